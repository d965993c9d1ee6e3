"""The HTTP client under the ``openai`` package: it counts attempts, and bounds what an endpoint may do.

Each attempt has a deadline for the whole answer (the package's own time-out is for a silence), an answer has
a largest size, no redirect is followed, and nothing is sent to another host. Headers are those that a chat
needs: the package adds others from the environment, which may be secrets of another endpoint.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import openai

from operators.agents.errors import Redirected, TooLarge
from operators.agents.secret import Secret

MOST_BYTES = 8 << 20
CUT, UNSENT = 0, -1  # no whole answer came; no connection was made
HEADERS = ("accept", "connection", "content-length", "content-type", "host", "idempotency-key", "user-agent")
ENCODED = ("content-encoding", "content-length", "transfer-encoding")

for _name in ("httpcore", "httpcore2"):  # at DEBUG they log raw headers, and a server may echo the key in one
    logging.getLogger(_name).setLevel(logging.INFO)


class Wire(openai.DefaultHttpxClient):
    """Sends one request at a time for each thread, and counts them.

    Args:
        url: the endpoint; nothing goes elsewhere.
        secret: sent as a bearer; an empty one is not sent.
        timeout_s: for a whole attempt.
        proxies: whether proxies of the environment are used.
    """

    def __init__(self, url: str, secret: Secret, timeout_s: float, proxies: bool) -> None:
        super().__init__(timeout=timeout_s, follow_redirects=False, trust_env=proxies)
        home = self.build_request("GET", url).url
        self._home = (home.scheme, home.host, home.port)
        self._secret, self._timeout_s = secret, timeout_s
        self._counts = threading.local()

    @property
    def attempts(self) -> int:
        """Requests that this thread has sent."""
        return getattr(self._counts, "sent", 0)

    @property
    def statuses(self) -> tuple[int, ...]:
        """Status codes of this thread's attempts since ``begin``; CUT and UNSENT where there is none."""
        return tuple(getattr(self._counts, "statuses", ()))

    def begin(self) -> None:
        """A new request of this thread."""
        self._counts.sent, self._counts.statuses = 0, []

    def send(self, request: Any, **options: Any) -> Any:
        """One attempt: the whole answer, read within its bounds."""
        if (request.url.scheme, request.url.host, request.url.port) != self._home:
            raise Redirected("the address leads to another host; nothing was sent there")
        headers = {name: value for name, value in request.headers.items() if name.lower() in HEADERS}
        headers["accept-encoding"] = "identity"
        if key := self._secret.reveal():
            headers["authorization"] = f"Bearer {key}"
        # What an exception may hold later on is the request as it came, which knows no key.
        sent = type(request)(
            request.method,
            request.url,
            headers=headers,
            content=request.read(),
            extensions=request.extensions,
        )
        self._counts.sent = self.attempts + 1
        statuses = self._counts.statuses = [*self.statuses, UNSENT]
        deadline = time.monotonic() + self._timeout_s
        try:
            response = super().send(sent, **{**options, "stream": True, "follow_redirects": False})
        except Exception as why:
            statuses[-1] = UNSENT if type(why).__name__.startswith("Connect") else CUT
            raise
        statuses[-1] = CUT
        try:
            body = self._body(response, deadline)
        finally:
            response.close()
        statuses[-1] = response.status_code
        said = ((n, value) for n, value in response.headers.multi_items() if n not in ENCODED)
        kept = [(name, self._secret.out_of(value)) for name, value in said]
        return type(response)(response.status_code, headers=kept, content=body, request=request)

    def _body(self, response: Any, deadline: float) -> bytes:
        pieces: list[bytes] = []
        length = 0
        for piece in response.iter_bytes():
            pieces.append(piece)
            length += len(piece)
            if length > MOST_BYTES:
                raise TooLarge(f"the answer has more than {MOST_BYTES >> 20} MiB")
            if time.monotonic() > deadline:
                raise openai.APITimeoutError(request=response.request)
        return b"".join(pieces)

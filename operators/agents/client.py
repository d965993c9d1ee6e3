"""A model behind an OpenAI-compatible server, spoken to by the ``openai`` package.

The package is imported when a client is made. It retries and waits (429, 5xx, broken connections, with
Retry-After); every attempt is counted. Answers are read by our own strict reader, as servers differ.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from operators.agents import chat, errors, replies
from operators.agents.chat import Answer, Message, Tool
from operators.agents.models import OPENAI, ModelSettings
from operators.agents.secret import Secret
from operators.agents.spent import Spent

HERE = ("127.0.0.1", "localhost", "::1")  # no proxy leads there


class Client:
    """A ``Chat`` with a real model.

    Args:
        settings: which one, and where.
        environment: where its key is looked up; pass ``os.environ``.

    Raises:
        NoKey: the variable that ``settings.key_env`` names holds no key.
    """

    def __init__(self, settings: ModelSettings, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._secret = Secret.read(settings.key_env, environment)
        import openai

        from operators.agents.wire import Wire

        proxies = urlsplit(settings.url).hostname not in HERE
        self._wire = Wire(settings.url, self._secret, settings.timeout_s, proxies)
        self._openai = openai.OpenAI(
            api_key="sent-below",  # by the wire, and to this endpoint alone
            admin_api_key="",
            webhook_secret="",
            base_url=settings.url,
            max_retries=settings.retries,
            timeout=settings.timeout_s,
            http_client=self._wire,
        )
        self._under_way = threading.BoundedSemaphore(settings.parallel)

    @property
    def settings(self) -> ModelSettings:
        """Its name, prices and limits."""
        return self._settings

    def ask(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), limit: int | None = None
    ) -> Answer:
        """See ``Chat``; at most ``settings.parallel`` requests are under way, others wait here."""
        most = min(limit or self._settings.max_output, self._settings.max_output)
        reserved = reservation(self._settings, messages, tools, most)
        if reserved.guessed_in + most > self._settings.context:
            raise errors.OutOfContext(
                f"the prompt has about {reserved.guessed_in} tokens and the answer {most}; "
                f"the model takes {self._settings.context} together"
            )
        with self._under_way:
            return self._asked(self._request(messages, tools, most), reserved)

    def close(self) -> None:
        """Give the connections back."""
        self._openai.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client {self._settings.name} at {self._settings.url}>"

    def _asked(self, request: dict[str, Any], reserved: Spent) -> Answer:
        self._wire.begin()
        begun = time.monotonic()
        text, failure = self._sent(request)
        seconds, statuses = time.monotonic() - begun, self._wire.statuses
        answer: Answer | None = None
        if failure is None:
            try:
                answer = replies.read(text, self._secret)
            except errors.Garbled as why:
                failure = errors.Garbled(f"model {self._settings.name} at {self._settings.url}: {why}")
        whole = statuses[:-1] if answer is not None else statuses
        spent = _broken(self._settings, reserved, whole, seconds)
        if answer is None:
            assert failure is not None
            failure.spent = spent
            raise failure
        return replies.charged(answer, self._settings, spent, reserved)

    def _sent(self, request: dict[str, Any]) -> tuple[str, errors.ChatError | None]:
        """The body of the answer, or the failure; made outside of any handler, so that it has no context."""
        import openai

        try:
            raw = self._openai.chat.completions.with_raw_response.create(**request)
            return raw.text, None
        except errors.ChatError as why:
            return "", type(why)(str(why))
        except openai.OpenAIError as why:
            return "", replies.failure(why, self._settings, self._secret)

    def _request(self, messages: Sequence[Message], tools: Sequence[Tool], most: int) -> dict[str, Any]:
        settings = self._settings
        own = settings.url.rstrip("/") == OPENAI  # other servers may not know the newer name
        request: dict[str, Any] = {
            "model": settings.name,
            "messages": replies.wire_forms(messages, settings.system),
            "max_completion_tokens" if own else "max_tokens": most,
        }
        if settings.temperature is not None:
            request["temperature"] = settings.temperature
        if settings.effort is not None:
            request["reasoning_effort"] = settings.effort
        if tools:
            request["tools"] = [{"type": "function", "function": tool.to_json()} for tool in tools]
        return request


def reservation(
    settings: ModelSettings, messages: Sequence[Message], tools: Sequence[Tool] = (), limit: int | None = None
) -> Spent:
    """What one attempt at a request costs at most; ``settings.attempts`` of them may be made.

    Args:
        settings: the model.
        messages, tools, limit: as for ``Chat.ask``.
    """
    most = min(limit or settings.max_output, settings.max_output)
    prompt = chat.size(messages, tools)
    return Spent(guessed_in=prompt, guessed_out=most, attempts=1, usd=settings.cost(prompt, most))


def _broken(settings: ModelSettings, reserved: Spent, statuses: Sequence[int], seconds: float) -> Spent:
    """What attempts cost that led to nothing: those not sent or refused nothing, others what was reserved."""
    billed = sum(1 for status in statuses if status >= 0 and not 300 <= status < 500)
    tokens_in, tokens_out = billed * reserved.guessed_in, billed * reserved.guessed_out
    cost = settings.cost(tokens_in, tokens_out)
    return Spent(
        guessed_in=tokens_in, guessed_out=tokens_out, attempts=len(statuses), seconds=seconds, usd=cost
    )

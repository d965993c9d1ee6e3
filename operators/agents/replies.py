"""From our values to what goes over the wire, and back: strict, as servers differ and some send garbage."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from operators.agents import errors
from operators.agents.chat import Answer, Message, ToolCall
from operators.agents.models import ModelSettings
from operators.agents.secret import Secret
from operators.agents.spent import Spent

SHOWN = 200  # characters of a server's own words
LARGEST = 10**9  # tokens; a larger count is nonsense
_CONTEXT = re.compile(
    r"context.{0,20}(?:length|window|size|limit)|too many tokens|prompt is too long|exceeds?.{0,40}context",
    re.I,
)


def wire_forms(messages: Sequence[Message], system: str) -> list[dict[str, Any]]:
    """A conversation as the protocol has it.

    Args:
        messages: the conversation.
        system: what the model calls the role of instructions; where that is "user" they open the user's first
            message, since models without such a role want turns to alternate.
    """
    if system == "user" and [message.role for message in messages[:2]] == ["system", "user"]:
        messages = [Message("user", f"{messages[0].text}\n{messages[1].text}"), *messages[2:]]
    return [_wire_form(message, system) for message in messages]


def _wire_form(message: Message, system: str) -> dict[str, Any]:
    role = system if message.role == "system" else message.role
    form: dict[str, Any] = {"role": role, "content": message.text.encode("utf-8", "replace").decode()}
    if message.calls:
        form["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    if message.answers is not None:
        form["tool_call_id"] = message.answers
    return form


def read(body: str, secret: Secret) -> Answer:
    """The answer in a body, the key taken out wherever the server repeats it; ``spent`` has its counts alone.

    Raises:
        Garbled: it is no chat completion.
    """
    choice, data = _choice(body, secret)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise errors.Garbled("the endpoint's answer has no message")
    calls = tuple(_call(each, n, secret) for n, each in enumerate(_list(message.get("tool_calls"))))
    refusal = message.get("refusal")
    return Answer(
        _clean(_text(message.get("content")), secret),
        calls,
        _clean(choice.get("finish_reason") or ("tool_calls" if calls else "stop"), secret)[:40],
        _clean(refusal, secret) if isinstance(refusal, str) and refusal else None,
        _clean(data.get("model") or "", secret)[:SHOWN],
        _counts(data.get("usage")),
    )


def charged(answer: Answer, settings: ModelSettings, broken: Spent, reserved: Spent) -> Answer:
    """The answer with its cost: the server's count, else the reservation; plus attempts that broke before."""
    own = replace(answer.spent, attempts=1)
    if not own.tokens:
        own = replace(own, guessed_in=reserved.guessed_in, guessed_out=reserved.guessed_out)
    tokens = own.tokens_in + own.guessed_in, own.tokens_out + own.guessed_out
    return replace(answer, spent=broken + replace(own, usd=settings.cost(*tokens, own.cached)))


def failure(why: Exception, settings: ModelSettings, secret: Secret) -> errors.ChatError:
    """What one of the package's exceptions means, in one line, without the key."""
    import openai

    where = f"model {settings.name} at {settings.url}"
    cause = why.__cause__ or why
    if isinstance(cause, errors.ChatError):  # of the wire's; some versions wrap it
        return type(cause)(str(cause))
    if isinstance(why, openai.APITimeoutError) or isinstance(cause, openai.APITimeoutError):
        return errors.TimedOut(f"{where}: no whole answer within {settings.timeout_s:g} s")
    if isinstance(why, openai.APIStatusError):
        return _status(why.status_code, _words(why.body, secret), where, settings)
    if isinstance(why, openai.APIConnectionError):
        kind = errors.Unreachable if "Connect" in type(cause).__name__ else errors.Dropped
        said = secret.out_of(str(cause))[:SHOWN] or type(cause).__name__
        hint = "; is the server running?" if kind is errors.Unreachable else ""
        return kind(f"{where}: {said}{hint}")
    return errors.Broken(f"{where}: {secret.out_of(str(why))[:SHOWN]}")


def _status(code: int, words: str, where: str, settings: ModelSettings) -> errors.ChatError:
    said = f"{where}: {code} {words}".rstrip()
    if code in (401, 403):
        variable = settings.key_env or "none; name its variable by key_env"
        return errors.KeyRefused(f"{where} refuses the key ({code}); key: {variable}")
    if code == 404:
        return errors.UnknownModel(f"{said}; check the model's name, and that the address ends in /v1")
    if 300 <= code < 400:
        return errors.Redirected(f"{where} leads elsewhere ({code}); give the final address")
    if code == 429:
        return errors.RateLimited(said)
    if code == 413 or (code in (400, 422) and _CONTEXT.search(words)):
        return errors.OutOfContext(f"{said}; set the model's context in the settings")
    return errors.ServerFault(said) if code >= 500 or code == 408 else errors.Refused(said)


def _words(body: object, secret: Secret) -> str:
    """The server's own words on an error, shortened."""
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(inner, Mapping):
        inner = inner.get("message") or inner.get("detail") or ""
    text = " ".join(secret.out_of(inner if isinstance(inner, str) else "").split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _choice(body: str, secret: Secret) -> tuple[dict[str, Any], dict[str, Any]]:
    data = _loaded(body)
    if data is None:
        raise errors.Garbled("the endpoint's answer is not JSON; does the address end in /v1?")
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        words = _words(data, secret) if isinstance(data, dict) and "error" in data else ""
        what = f"an error: {words}" if words else "JSON, but no chat completion"
        raise errors.Garbled(f"the endpoint's answer is {what}")
    return choices[0], data


def _loaded(body: str) -> Any:
    """JSON data; None where it is none, so that an error about it has nothing behind it."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _call(each: object, n: int, secret: Secret) -> ToolCall:
    form = each if isinstance(each, dict) else {}
    function = form.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    written = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    id, name = form.get("id") or f"call-{n}", function.get("name") or ""
    return ToolCall(*(_clean(each, secret) for each in (id, name, written)))


def _clean(said: object, secret: Secret) -> str:
    """A text without the key, and such as UTF-8 can hold."""
    return secret.out_of(str(said).encode("utf-8", "replace").decode())


def _text(content: object) -> str:
    """A string, or the texts of a list of parts."""
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in _list(content) if isinstance(part, dict)]
    return "".join(part for part in parts if isinstance(part, str))


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _counts(usage: object) -> Spent:
    """The server's count of tokens; nothing where it gives none that can be believed."""
    form = usage if isinstance(usage, dict) else {}
    read_, written = _count(form.get("prompt_tokens")), _count(form.get("completion_tokens"))
    if read_ is None or written is None:
        return Spent()
    details = form.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return Spent(read_, written, min(cached or 0, read_))


def _count(value: object) -> int | None:
    sound = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST
    return value if sound and isinstance(value, int) else None

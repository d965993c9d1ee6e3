"""A model as the user names it: where it is, what it costs, how long its prompts may be."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from operators.agents.errors import BadModel

OPENAI = "https://api.openai.com/v1"
OPENAI_KEY = "OPENAI_API_KEY"
_ADDRESS = re.compile(r"[!-~]+")


@dataclass(frozen=True)
class ModelSettings:
    """One model at one endpoint.

    Attributes:
        name: what the endpoint calls it.
        url: the endpoint, up to and with ``/v1``.
        key_env: name of the environment variable that holds its key; None: it needs none.
        price_in, price_out: USD for a million tokens read or written; None: no price is known.
        price_cached: the same for tokens that the endpoint had in its cache; None: as ``price_in``.
        context: tokens of prompt and answer together.
        max_output: tokens an answer may have, thoughts included.
        temperature: None: the endpoint's own.
        effort: reasoning effort, for models that have one; None: not sent.
        parallel: requests under way at once.
        timeout_s: seconds for one attempt, connection to last byte.
        retries: attempts after the first.
        system: name of the role of instructions: "system", "developer", or "user" for a model without.
        tools: whether it can call functions: it may then try kernels before it hands one in.
    """

    name: str
    url: str = OPENAI
    key_env: str | None = None
    price_in: float | None = None
    price_out: float | None = None
    price_cached: float | None = None
    context: int = 32768
    max_output: int = 8192
    temperature: float | None = None
    effort: str | None = None
    parallel: int = 4
    timeout_s: float = 600.0
    retries: int = 2
    system: str = "system"
    tools: bool = False

    def __post_init__(self) -> None:
        if wrong := _fault(self):
            raise BadModel(f"model {self.name!r}: {wrong}")

    @staticmethod
    def parse(text: str) -> ModelSettings:
        """``NAME`` at OpenAI's own endpoint, or ``NAME@URL`` anywhere else.

        A key is looked for in OPENAI_API_KEY for the first kind only: it belongs to that endpoint. Give
        ``key_env`` in a settings file for another one.

        Raises:
            BadModel: no name, or no address.
        """
        at = max(text.find("@http://"), text.find("@https://"))
        if at < 0:
            if "@" in text:
                shown = text.partition("@")[0]
                raise BadModel(f"model {shown!r}: the address after @ must begin with http:// or https://")
            return ModelSettings(text.strip(), key_env=OPENAI_KEY)
        return ModelSettings(text[:at].strip(), text[at + 1 :].strip().rstrip("/"))

    @property
    def priced(self) -> bool:
        """Whether its cost is known."""
        return self.price_in is not None and self.price_out is not None

    @property
    def attempts(self) -> int:
        """How often one request may be sent."""
        return self.retries + 1

    @property
    def room(self) -> int:
        """Tokens a prompt may have, with a whole answer to follow."""
        return self.context - self.max_output

    def cost(self, tokens_in: int, tokens_out: int, cached: int = 0) -> float | None:
        """USD; None where there is no price."""
        if self.price_in is None or self.price_out is None:
            return None
        price_cached = self.price_in if self.price_cached is None else self.price_cached
        fresh = max(tokens_in - cached, 0)
        return (fresh * self.price_in + cached * price_cached + tokens_out * self.price_out) / 1e6


def _fault(model: ModelSettings) -> str | None:
    """What cannot be meant; never quotes what may be a secret."""
    if not model.name or not model.name.isprintable():
        return "a model needs a name"
    try:
        parts = urlsplit(model.url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "the address is none; write it as http://host:port/v1"
    if parts.scheme not in ("http", "https") or not host or not _ADDRESS.fullmatch(model.url):
        return "the address is none; write it as http://host:port/v1"
    if parts.username or parts.password or parts.query or parts.fragment:
        return "the address must hold no name, password or query; give the key by key_env"
    prices = (model.price_in, model.price_out, model.price_cached)
    if any(price is not None and not (math.isfinite(price) and price >= 0) for price in prices):
        return "a price is 0 or more USD for a million tokens"
    if (model.price_in is None) != (model.price_out is None):
        return "give both price_in and price_out, or neither"
    if model.max_output < 1 or model.context <= model.max_output:
        return (
            f"context ({model.context}) must be larger than max_output ({model.max_output}), both in tokens"
        )
    if model.parallel < 1 or model.retries < 0 or not model.timeout_s > 0:
        return "parallel and timeout_s must be above 0, retries 0 or more"
    return (
        None
        if model.system in ("system", "developer", "user")
        else "system must be system, developer or user"
    )

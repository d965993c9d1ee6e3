"""A key: read once by the name of its variable, sent to one endpoint, and taken out of every text."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from urllib.parse import quote

from operators.agents.errors import NoKey

SHORTEST = 6  # a shorter one is a local server's placeholder; taking "x" out of a text would spoil it
REDACTED = "[key]"


class Secret:
    """A key that no ``repr``, error or record shows.

    Args:
        value: the key; "" where the endpoint needs none.
    """

    __slots__ = ("_forms", "_value")

    def __init__(self, value: str = "") -> None:
        self._value = value
        encoded = base64.b64encode(value.encode()).decode()
        forms = {value, json.dumps(value)[1:-1], quote(value, safe=""), encoded, encoded.rstrip("=")}
        self._forms = tuple(sorted(forms, key=len, reverse=True)) if len(value) >= SHORTEST else ()

    @staticmethod
    def read(key_env: str | None, environment: Mapping[str, str]) -> Secret:
        """The key that a variable holds; an empty one where no variable is named.

        Raises:
            NoKey: the variable is not set, or what it holds can't be a key.
        """
        if key_env is None:
            return Secret()
        value = environment.get(key_env, "").strip()
        if not value:
            raise NoKey(f"{key_env} is not set; export it, or name another variable by key_env")
        if not value.isascii() or not value.isprintable() or " " in value:
            raise NoKey(f"{key_env} holds characters that no key has; is it the key itself?")
        return Secret(value)

    def reveal(self) -> str:
        """The key, for the one header that needs it."""
        return self._value

    def out_of(self, text: str) -> str:
        """The text without the key, as it is or as JSON, URLs and base64 write it."""
        for form in self._forms:
            text = text.replace(form, REDACTED)
        return text

    def __repr__(self) -> str:
        return "<Secret>" if self._value else "<no Secret>"

    def __reduce__(self) -> str:
        raise TypeError("a key is not written anywhere")

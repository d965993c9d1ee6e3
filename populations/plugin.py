"""Objects that a user names as text: "package.module:Name"."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def plugin(name: str) -> Any:
    """The object that "package.module:Name" names.

    Raises:
        LookupError: there is no such module or name; the message says what and how to write it.
    """
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as why:
        raise LookupError(f"{name} cannot be loaded: {why}; write it as package.module:Name") from None

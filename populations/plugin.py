"""Objects that a user names as text: "package.module:Name"."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def plugin(name: str) -> Any:
    """The object that "package.module:Name" names; the module may lie in the current folder.

    Raises:
        LookupError: there is no such module or name; the message says what and how to write it.
    """
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # last, so that it shadows nothing
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as why:
        raise LookupError(f"{name} cannot be loaded: {why}; write it as package.module:Name") from None

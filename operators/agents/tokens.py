"""How many tokens a text has, rather too many than too few, without any model's own tokenizer.

Byte-pair tokenizers split words of code into pieces of three letters or more on the whole, give most signs
a token of their own, take digits one to three at a time, and a blank before a word for nothing. We count a
token for every three letters of a word begun, every sign, every digit, every four blanks, every line end,
and every byte outside ASCII.
"""

from __future__ import annotations

import re
from functools import lru_cache

PER_MESSAGE = 8  # of a chat's template: role, separators
_PIECE = re.compile(
    r"(?P<word>[A-Za-z]+)|(?P<newlines>\n+)|(?P<blanks>[ \t\r]+)|(?P<other>[\x21-\x7e])|(?P<rest>.)", re.S
)


@lru_cache(maxsize=256)
def count(text: str) -> int:
    """Tokens of a text: an upper estimate."""
    total = 0
    for piece in _PIECE.finditer(text):
        kind, length = piece.lastgroup, piece.end() - piece.start()
        if kind == "word":
            total += -(-length // 3)
        elif kind == "newlines":
            total += length
        elif kind == "blanks":
            total += length // 4 if length > 1 else 0
        elif kind == "other":
            total += 1
        else:
            total += len(piece[0].encode("utf-8", "surrogatepass"))
    return total

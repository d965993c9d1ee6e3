"""What the interpreter does not know how to compute."""

from __future__ import annotations


class Foreign(Exception):
    """A kernel asks for something that only its device can do; one phrase that says what."""


def foreign_in(error: BaseException | None) -> Foreign | None:
    """The ``Foreign`` that an exception goes back to, through Triton's wrapping; None where there is none."""
    while error is not None and not isinstance(error, Foreign):
        error = error.__cause__ or error.__context__
    return error

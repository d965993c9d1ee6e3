"""How a child says that a candidate broke a rule, and on which of its lines."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType

FILE = "kernel.py"  # name of the candidate's file in the scratch folder
MESSAGE_CHARACTERS = 400


class Refused(BaseException):
    """A rule was broken. Not an ``Exception``: ``except Exception`` in a candidate must not swallow it.

    Args:
        reason: what is wrong and what to do, without the line.
        line: of the candidate's file; None: the innermost of its frames on the stack.
    """

    def __init__(self, reason: str, line: int | None = None) -> None:
        self.line = line if line is not None else _line_on_stack()
        where = "" if self.line is None else f"line {self.line}: "
        super().__init__(f"{where}{reason}")


def line_of(traceback: TracebackType | None) -> int | None:
    """The innermost line of the candidate's file in a traceback."""
    line = None
    while traceback is not None:
        if _is_candidate(traceback.tb_frame):
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def one_line(why: BaseException) -> str:
    """An error as ``Type: message`` in one short line."""
    text = " ".join(str(why).split())
    name = type(why).__name__
    return f"{name}: {text[:MESSAGE_CHARACTERS]}" if text else name


def _line_on_stack() -> int | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if _is_candidate(frame):
            return frame.f_lineno
        frame = frame.f_back
    return None


def _is_candidate(frame: FrameType) -> bool:
    return frame.f_code.co_filename.endswith("/" + FILE)

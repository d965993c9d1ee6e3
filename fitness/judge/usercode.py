"""Running what the user wrote: its printing stays off our standard output, its errors become one line."""

from __future__ import annotations

import hashlib
import random
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

import numpy as np
import torch

from fitness.judge.place import in_place
from fitness.target import ProblemError

MESSAGE_CHARACTERS = 200


@contextmanager
def user_code(where: str, what: str, todo: str) -> Iterator[None]:
    """Run the user's code; whatever it raises becomes a ``ProblemError`` of one line.

    Args:
        where: path of the problem file, as the user gave it.
        what: what runs, e.g. "get_inputs()".
        todo: what the user can do about it.
    """
    try:
        with redirect_stdout(sys.stderr), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with in_place():
                yield
    except ProblemError:
        raise
    except (Exception, SystemExit, KeyboardInterrupt) as why:  # the user's code may raise anything
        message = " ".join(str(why).split())[:MESSAGE_CHARACTERS]
        if "cuda" in message.lower():
            todo = "leave tensors on the CPU, the judge puts them where they belong"
        raise ProblemError(
            f"{_place(why, where)}: {what} raised {type(why).__name__}: {message}; {todo}"
        ) from why


def _place(why: BaseException, where: str) -> str:
    """``file:line`` of the last frame inside the user's file."""
    lines = [
        line
        for frame, line in traceback.walk_tb(why.__traceback__)
        if frame.f_code.co_filename.startswith(where)
    ]
    return f"{where}:{lines[-1]}" if lines else where


def seed_of(*parts: object) -> int:
    """A seed of 63 bits that depends on all parts."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators of torch, NumPy and Python for a while, then restore them."""
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch.manual_seed would ask every kind of device
            torch.cuda.manual_seed_all(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)


@contextmanager
def reseeding_ignored() -> Iterator[None]:
    """Let ``torch.manual_seed`` do nothing: a ``get_inputs`` that fixes its seed would repeat its data."""
    original = torch.manual_seed
    torch.manual_seed = lambda seed: torch.default_generator  # noqa: ARG005
    try:
        yield
    finally:
        torch.manual_seed = original

"""How the built-in problems write their cases: one dictionary each, in the order the gates use them.

The first case is the given one, which is timed. Visible cases follow, the smallest first. Of the held-out
ones the first four belong to the search gate, all of them to the promotion gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

PRIMES = (29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127)
LONG_PRIMES = (509, 521, 541, 1009, 1013, 1021, 1031, 1033, 2039, 2053, 2063, 3067, 3079)

VISIBLE = ((2, 17), (3, 64), (24, 1000))
ONES_AND_NEIGHBOURS = ((1, 1), (5, 1025), (3, 7))  # one, a block and one more, smaller than any block
PROMOTION = ((1, 4095), (37, 1), (4, 1023), (2, 20011), (64, 63), (17, 257), (33, 2048), (9, 511), (1, 65537))


def case(
    constants: dict[str, int], distribution: str | None, *, held_out: bool = False, timed: bool = False
) -> dict[str, Any]:
    """One case, named after its constants and its distribution, e.g. "24x1000-spiky"."""
    shape = "x".join(str(extent) for extent in constants.values())
    return {
        "name": f"{shape}-{distribution}" if distribution else shape,
        "constants": constants,
        "distribution": distribution,
        "held_out": held_out,
        "timed": timed,
    }


def rows_by_columns(
    seed: int, names: tuple[str, str], given: tuple[int, int], distributions: str
) -> list[dict[str, Any]]:
    """Cases of a problem that works along the rows of a matrix.

    Args:
        seed: chooses the prime shapes among the held-out ones.
        names: the two constants, rows first.
        given: their values in the given case.
        distributions: names, separated by spaces, dealt out in turn over all cases but the given one.
    """
    kinds = distributions.split()
    rng = Random(seed)
    primes = [(rng.choice(PRIMES), rng.choice(LONG_PRIMES)) for _ in range(2)]
    held_out = (*ONES_AND_NEIGHBOURS, primes[0], *PROMOTION, primes[1])
    cases = [case(dict(zip(names, given, strict=True)), None, timed=True)]
    for i, shape in enumerate((*VISIBLE, *held_out)):
        constants = dict(zip(names, shape, strict=True))
        cases.append(case(constants, kinds[i % len(kinds)], held_out=i >= len(VISIBLE)))
    return cases


def shaped(
    names: tuple[str, ...],
    given: tuple[int, ...],
    *,
    visible: Sequence[tuple[Any, ...]],
    held_out: Sequence[tuple[Any, ...]],
) -> list[dict[str, Any]]:
    """Cases of a problem whose constants do not vary one by one.

    Args:
        names: the constants.
        given: their values in the given case.
        visible, held_out: of each case the distribution, then a value for every constant.
    """
    cases = [case(dict(zip(names, given, strict=True)), None, timed=True)]
    for hidden, listed in ((False, visible), (True, held_out)):
        for distribution, *extents in listed:
            constants = dict(zip(names, extents, strict=True))
            cases.append(case(constants, distribution, held_out=hidden))
    return cases

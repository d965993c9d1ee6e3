"""Further cases for a file that has one shape: other sizes of what ``get_inputs`` draws.

They show whether a kernel is ``general``. A size is a module-level integer on which ``get_inputs`` depends
and that changes nothing but extents; a number that a kernel can't read off its shapes (a stride, a count
of groups) is left alone.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping

from fitness.card import Case
from fitness.judge.loaded import LoadedCase
from fitness.judge.program import Program, imagined_signature
from fitness.judge.signature import Signature
from fitness.judge.soundness import runs_well
from fitness.judge.source import Source
from fitness.target import ProblemError

MOST_CASES = 8
MOST_SECONDS = 20.0
MOST_ATTEMPTS = 32
MOST_BYTES = 64 << 20
BASE_BYTES = 4 << 20  # the given shape is shrunk to this before one size is varied: checking stays cheap
PRIMES = (251, 127, 61, 31, 13, 7, 5, 3, 2)
# In turn, the file's own first. A case keeps its own where the reference does not bear another.
DISTRIBUTIONS = (None, "normal", "rowscale", "large", "uniform", "tiny", "spiky", "normal")


def derived_cases(source: Source, signature: Signature, template: LoadedCase | None) -> list[LoadedCase]:
    """At most eight cases, smaller, odd, prime and one.

    Args:
        source: the problem file.
        signature: of the given case.
        template: the given case, or None where it does not fit the machine; then the first derived one is
            timed.
    """
    deadline = time.monotonic() + MOST_SECONDS
    sizes = source.sizes_used_by("get_inputs")
    base = _shrunk(source, sizes, signature, BASE_BYTES)
    plain = {name: source.constants[name].value for name in sizes}
    variants: Iterator[dict[str, int]] = _variants({**plain, **base}, base)
    found: list[LoadedCase] = []
    if template is None:  # one as large as may be comes first, for timing
        variants = itertools.chain([_shrunk(source, sizes, signature, MOST_BYTES // 2), base], variants)
    for number, overrides in enumerate(variants):
        if len(found) == MOST_CASES or number == MOST_ATTEMPTS or time.monotonic() > deadline:
            break
        shown = {name: value for name, value in overrides.items() if value != plain[name]}
        if not shown:
            continue
        loaded = _loaded(source, shown, signature, template)
        if loaded is not None:
            timed = template is None and not found
            found.append(_with_distribution(loaded, DISTRIBUTIONS[len(found)]).but(timed=timed))
    return found


def _variants(values: Mapping[str, int], base: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """One size changed at a time: first all to a prime, then all to one, then odd, then half."""
    seen = set()
    for pick in (_prime, _one, _odd, _half):
        for name, value in values.items():
            other = pick(value)
            if other != value and (name, other) not in seen:
                seen.add((name, other))
                yield {**base, name: other}


def _prime(value: int) -> int:
    return next((prime for prime in PRIMES if prime < value and prime * 3 // 2 <= value), 3)


def _one(_value: int) -> int:
    return 1


def _odd(value: int) -> int:
    return value - 1 if value % 2 == 0 else value - 2 if value > 2 else 5


def _half(value: int) -> int:
    return max(value // 2, 1)


def _shrunk(source: Source, sizes: list[str], signature: Signature, limit: int) -> dict[str, int]:
    """Overrides that bring one argument set below a limit by halving the largest sizes that can be halved."""
    values = {name: source.constants[name].value for name in sizes}
    nbytes = signature.nbytes
    stuck: set[str] = set()
    while nbytes > limit:
        candidates = [name for name in sizes if name not in stuck and values[name] >= 4]
        if not candidates:
            break
        name = max(candidates, key=lambda each: values[each])
        trial = {**values, name: values[name] // 2}
        smaller = imagined_signature(
            source, {n: v for n, v in trial.items() if v != source.constants[n].value}
        )
        if smaller is None or not smaller.fits(signature) or smaller.nbytes >= nbytes:
            stuck.add(name)
            continue
        values, nbytes = trial, smaller.nbytes
    return {name: value for name, value in values.items() if value != source.constants[name].value}


def _loaded(
    source: Source,
    overrides: dict[str, int],
    signature: Signature,
    template: LoadedCase | None,
) -> LoadedCase | None:
    """The case, or None where it does not run or a kernel could not tell what changed."""
    try:
        program = Program(source, overrides)
        found = imagined_signature(source, overrides) or program.signature()
        if not found.fits(signature) or found == signature or found.nbytes > MOST_BYTES:
            return None
        if any(0 in spec.shape for spec in found.inputs + found.outputs):
            return None
        if not _numbers_are_visible(signature, found):
            return None
    except ProblemError:
        return None
    name = ",".join(f"{name}={value}" for name, value in overrides.items())
    case = Case(
        name, overrides, None, False, True, False, found.inputs, found.parameters, found.outputs, found.nbytes
    )
    loaded = (
        LoadedCase(program, case, template.precision, steady=template.steady)
        if template
        else LoadedCase(program, case)
    )
    return loaded if runs_well(loaded) else None


def _numbers_are_visible(given: Signature, signature: Signature) -> bool:
    """Whether every number that differs from the given case's is an extent of some argument."""
    extents = {extent for spec in signature.arguments for extent in spec.shape}
    before, after = given.numbers, signature.numbers
    if len(before) != len(after):
        return False
    return all(new == old or new in extents for old, new in zip(before, after, strict=True))


def _with_distribution(loaded: LoadedCase, distribution: str | None) -> LoadedCase:
    if distribution is None:
        return loaded
    other = loaded.but(distribution=distribution)
    return other if runs_well(other) else loaded

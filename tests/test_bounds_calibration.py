"""A fast part of benchmarks/gate_calibration.py: honest code passes, lower precisions and mutants do not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.gate_calibration import OPERATIONS, calibrate, least
from tests.samples import one_thread  # noqa: F401 -- for all tests here

# Averages over thousands of exponentials: half-precision inputs are as good as exact ones.
FORGIVING = ("logsumexp", "cross_entropy")
EXACT_IN_PART = ("quantize_int8",)  # whole numbers are right or within one
EXACT = ("max_pool3d",)  # bfloat16 steps are exact, too
NARROW = "bfloat16"  # a result's rounding may take all of its bound, so a few roundings take two


@pytest.mark.parametrize("make", OPERATIONS, ids=lambda make: make.__name__)
def test_honest_code_passes_and_lower_precisions_and_mutants_do_not(make) -> None:  # type: ignore[no-untyped-def]
    operation = make()
    lengths = [n for n in operation.lengths if n <= 128][-1:]
    for row in calibrate(operation, lengths, ("normal", "rowscale", "large", "tiny")):
        assert row.honest.error is not None
        limit = 1.0 if operation.name in EXACT_IN_PART or row.bound == NARROW else 0.45
        assert row.honest.error <= limit, (row.bound, row.honest.where)
        if row.bound != NARROW:
            assert least(row.bfloat16)[1] > 3, row.bound
            assert operation.name in FORGIVING or least(row.float16)[1] > 3, row.bound
        elif operation.name not in EXACT:
            assert least(row.bfloat16)[1] >= 1, row.bound
        assert least(row.mutants)[1] > 3, (row.bound, least(row.mutants))

"""The comparison: what it refuses, in which order, and what evidence it gives."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fitness.judge.bounds import U_FLOAT32, Bound
from fitness.judge.compare import compare

NAN, INF = math.nan, math.inf


def flat(allowed: float, *, statistical: bool = False) -> Bound:
    return Bound(torch.tensor(allowed, dtype=torch.float64), 0, U_FLOAT32, U_FLOAT32, statistical)


def wide(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_an_error_is_reported_in_units_of_the_bound() -> None:
    found = compare([torch.tensor([1.0, 2.25])], [wide(1, 2)], [flat(0.5)])
    assert found.max_error == 0.5
    assert found.evidence is None


def test_the_worst_element_is_the_evidence() -> None:
    got = torch.zeros(3, 4)
    got[1, 2] = 3.0
    found = compare([torch.ones(2), got], [wide(1, 1), torch.zeros(3, 4).double()], [flat(0.5), flat(0.5)])
    assert found.max_error == 6.0
    assert found.evidence is not None
    assert found.evidence.output == 1
    assert found.evidence.index == (1, 2)
    assert (found.evidence.got, found.evidence.expected) == (3.0, 0.0)
    assert (found.evidence.error, found.evidence.bound) == (3.0, 0.5)


def test_a_nan_where_a_number_belongs_was_not_written() -> None:
    found = compare([torch.tensor([1.0, NAN])], [wide(1, 2)], [flat(9.0)])
    assert found.max_error == INF
    assert found.evidence is not None
    assert found.evidence.log == "output not written or NaN"
    assert found.evidence.index == (1,)


def test_nan_and_infinities_must_stand_where_the_reference_has_them() -> None:
    want = wide(NAN, INF, -INF, 1)
    right = torch.tensor([NAN, INF, -INF, 1.25])
    assert compare([right], [want], [flat(0.5)]).max_error == 0.5
    for index, wrong in ((0, 5.0), (1, -INF), (1, 3e38), (2, NAN), (3, INF)):
        got = right.clone()
        got[index] = wrong
        found = compare([got], [want], [flat(0.5)])
        assert found.max_error == INF
        assert found.evidence is not None
        assert found.evidence.index == (index,)


def test_what_overflows_the_output_is_an_infinity() -> None:
    assert compare([torch.tensor([INF])], [wide(1e39)], [flat(1.0)]).evidence is None


def test_where_nothing_is_allowed_equal_is_right_and_a_subnormal_more_is_wrong() -> None:
    want = wide(0.0, 1.0)
    assert compare([torch.tensor([0.0, 1.0])], [want], [flat(0.0)]).max_error == 0.0
    assert compare([torch.tensor([1e-45, 1.0])], [want], [flat(0.0)]).max_error > 1


def test_a_wrong_shape_or_kind_of_number_is_refused() -> None:
    want = wide(1, 2)
    for got in (torch.ones(3), torch.ones(2, 1), torch.ones(2, dtype=torch.int32)):
        found = compare([got], [want], [flat(9.0)])
        assert found.max_error == INF
        assert found.evidence is not None


def test_whole_numbers_are_held_to_their_bound_however_much_is_allowed() -> None:
    want = torch.tensor([1, 2], dtype=torch.int8)
    allowed = Bound(wide(0, 1), 0, U_FLOAT32, 0.0, statistical=False)
    assert compare([want + torch.tensor([0, 1], dtype=torch.int8)], [want], [allowed], scale=2).max_error == 1
    assert compare([want + torch.tensor([0, 2], dtype=torch.int8)], [want], [allowed], scale=2).max_error == 2
    assert compare([want + torch.tensor([1, 0], dtype=torch.int8)], [want], [allowed], scale=2).max_error > 1


def test_a_timed_block_may_be_wrong_by_twice_the_bound() -> None:
    want = torch.tensor([1.0, 2.0])
    assert compare([torch.tensor([1.75, 2.0])], [want], [flat(0.5)], scale=2).max_error == 0.75
    assert compare([torch.tensor([2.25, 2.0])], [want], [flat(0.5)], scale=2).evidence is not None


def test_a_scalar_is_compared_as_well() -> None:
    found = compare([torch.tensor(2.0)], [torch.tensor(1.0).double()], [flat(0.5)])
    assert found.evidence is not None
    assert found.evidence.index == ()


def test_an_error_that_all_rows_share_is_refused_although_every_element_is_within_its_bound() -> None:
    rng = torch.Generator().manual_seed(1)
    want = torch.randn(64, 100, generator=rng, dtype=torch.float64)
    allowed = torch.full((64, 100), 1e-3, dtype=torch.float64)
    allowed[:, 0] = 1.0  # one wide bound, for which the norm of the error is small
    bound = Bound(allowed, 0, U_FLOAT32, U_FLOAT32)
    noise = torch.rand(64, 100, generator=rng) - 0.5

    for shared in (want + 0.7e-3, want + 0.7e-3 * want.sign()):
        found = compare([shared.float()], [want], [bound])
        assert found.evidence is not None
        assert "lean to one side" in str(found.evidence.log)
    assert compare([(want + 1.4e-3 * noise).float()], [want], [bound]).evidence is None


def test_a_large_error_all_over_is_refused_by_its_norm() -> None:
    rng = torch.Generator().manual_seed(1)
    want = torch.randn(20, 100, generator=rng, dtype=torch.float64)
    sign = torch.where(torch.rand(20, 100, generator=rng) < 0.5, -1.0, 1.0)
    found = compare([(want + 0.9e-3 * sign).float()], [want], [flat(1e-3, statistical=True)])
    assert found.evidence is not None
    assert "relative L2" in str(found.evidence.log)
    assert found.evidence.index is not None


def test_a_result_rounded_to_its_dtype_is_right_even_where_it_is_the_only_one() -> None:
    unit = 2.0**-8
    for want in (wide(1 + 0.999 * unit), wide(1 + 0.999 * unit).expand(64, 100)):
        allowed = (unit + 1e-6) * want
        found = compare([want.bfloat16()], [want], [Bound(allowed, 0, U_FLOAT32, unit)])
        assert found.evidence is None
        assert found.max_error > 0.9

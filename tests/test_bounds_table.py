"""The table of forward models: what it lets through, what it refuses, and how it is declared."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from fitness.card import TensorSpec
from fitness.judge.bounds import Bound, bounds, describe
from fitness.judge.compare import compare
from fitness.target import ProblemError


def spec(shape: tuple[int, ...], dtype: str = "float32") -> TensorSpec:
    return TensorSpec("out", shape, dtype)


def one(
    tolerance: object, inputs: list[Tensor], parameters: list[Tensor], y: Tensor, dtype: str = "float32"
) -> Bound:
    return bounds(tolerance, inputs, parameters, [y], [spec(tuple(y.shape), dtype)])[0]  # type: ignore[arg-type]


def normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


LINES = {
    "exp": ({"operation": "exp"}, torch.exp, []),
    "tanh": ({"operation": "tanh"}, torch.tanh, []),
    "sigmoid": ({"operation": "sigmoid"}, torch.sigmoid, []),
    "gelu": ({"operation": "gelu"}, functional.gelu, []),
    "silu": ({"operation": "silu"}, functional.silu, []),
    "sum": ({"operation": "sum", "dim": -1}, lambda x: x.sum(-1), []),
    "sum of two": ({"operation": "sum", "dim": [0, 1]}, lambda x: x.sum((0, 1), keepdim=True), []),
    "mean": ({"operation": "mean", "dim": 0}, lambda x: x.mean(0), []),
    "softmax": ({"operation": "softmax", "dim": 0}, lambda x: x.softmax(0), []),
    "log_softmax": ({"operation": "log_softmax"}, lambda x: x.log_softmax(-1), []),
    "logsumexp": ({"operation": "logsumexp"}, lambda x: x.logsumexp(-1), []),
    "cumsum": ({"operation": "cumsum", "dim": 0}, lambda x: x.cumsum(0), []),
    "rms_norm": ({"operation": "rms_norm"}, lambda x, w: functional.rms_norm(x, (96,), w), [normal(96)]),
    "layer_norm": (
        {"operation": "layer_norm"},
        lambda x, w, b: functional.layer_norm(x, (96,), w, b),
        [normal(96), normal(96, seed=2)],
    ),
    "batch_norm": (
        {"operation": "batch_norm"},
        lambda x, w, b, m, v: functional.batch_norm(x, m, v, w, b),
        [normal(96, seed=n) for n in range(3)] + [normal(96).abs() + 0.1],
    ),
    "matmul": ({"operation": "matmul"}, lambda x, w: x @ w, [normal(96, 40)]),
    "linear": ({"operation": "linear"}, functional.linear, [normal(40, 96), normal(40)]),
    "conv1d": (
        {"operation": "conv1d", "padding": 2, "stride": 2},
        lambda x, w, b: functional.conv1d(x, w, b, padding=2, stride=2),
        [normal(3, 64, 5), normal(3)],
    ),
    "conv_transpose1d": (
        {"operation": "conv_transpose1d", "padding": 1, "stride": 2},
        lambda x, w, b: functional.conv_transpose1d(x, w, b, padding=1, stride=2),
        [normal(64, 3, 3), normal(3)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_the_framework_passes_and_sixteen_bits_do_not(name: str) -> None:
    line, f, parameters = LINES[name]
    x = normal(64, 96, seed=7)
    want = f(x.double(), *(p.double() for p in parameters))
    bound = one(line, [x.double()], [p.double() for p in parameters], want)

    assert compare([f(x, *parameters)], [want], [bound]).max_error < 1 / 3
    rounded = f(x.bfloat16().float(), *(p.bfloat16().float() for p in parameters))
    assert compare([rounded], [want], [bound]).max_error > 3


@pytest.mark.parametrize("name", LINES)
def test_a_bound_computed_in_float32_is_the_bound_computed_in_float64(name: str) -> None:
    line, f, parameters = LINES[name]
    x = normal(64, 96, seed=7)
    wide = [p.double() for p in parameters]
    exact = one(line, [x.double()], wide, f(x.double(), *wide)).elementwise
    quick = one(line, [x], parameters, f(x, *parameters)).elementwise

    assert quick.dtype == torch.float32
    assert torch.allclose(quick.double(), exact, rtol=1e-3, atol=1e-10)


def test_a_copy_must_be_exact() -> None:
    x = normal(10, 10)
    bound = one({"operation": "relu"}, [x.double()], [], x.double().relu())
    nudged = x.relu().nextafter(torch.tensor(9.0))

    assert compare([x.relu()], [x.double().relu()], [bound]).max_error == 0.0
    assert compare([nudged], [x.double().relu()], [bound]).max_error > 1


def test_a_copy_into_fewer_bits_may_round() -> None:
    x = normal(10, 10)
    bound = one({"operation": "copy"}, [x.double()], [], x.double(), "bfloat16")
    assert compare([x.bfloat16()], [x.double()], [bound]).max_error <= 1


def test_a_bfloat16_result_is_allowed_one_rounding_more() -> None:
    a, b = normal(8, 64).bfloat16().double(), normal(64, 8, seed=2).bfloat16().double()
    bound = one({"operation": "matmul"}, [a, b], [], a @ b, "bfloat16")
    honest = (a.float() @ b.float()).bfloat16()
    truncated = ((a @ b).float().view(torch.int32) & -0x20000).view(torch.float32).bfloat16()

    assert compare([honest], [a @ b], [bound]).max_error < 1
    assert compare([truncated], [a @ b], [bound]).max_error > 1


def test_subnormal_products_may_lose_their_last_digits() -> None:
    a, b = 1e-22 * normal(4, 50), 1e-22 * normal(50, 4, seed=2)
    want = a.double() @ b.double()
    bound = one({"operation": "matmul"}, [a.double(), b.double()], [], want)
    assert compare([a @ b], [want], [bound]).max_error <= 1


def test_of_two_equal_maxima_either_position_is_right() -> None:
    x = torch.tensor([[1.0, 5.0, 5.0], [7.0, 2.0, 7.0]])
    want = x.argmax(-1)
    bound = one({"operation": "argmax", "dim": -1}, [x.double()], [], want, "int64")

    assert compare([torch.tensor([2, 2])], [want], [bound]).max_error == 0.0
    assert compare([torch.tensor([0, 2])], [want], [bound]).evidence is not None
    assert compare([torch.tensor([3, 0])], [want], [bound]).evidence is not None


def test_tolerances_of_the_user_are_taken_as_they_are() -> None:
    y = torch.tensor([1.0, 100.0], dtype=torch.float64)
    bound = one({"atol": 0.5, "rtol": 0.01}, [], [], y)
    assert bound.elementwise.tolist() == pytest.approx([0.51, 1.5])
    assert compare([torch.tensor([1.5, 101.4])], [y], [bound]).evidence is None


def test_an_unknown_operation_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ProblemError, match=r"'sofmax'.*nearest is 'softmax'"):
        one({"operation": "sofmax"}, [normal(2, 2)], [], normal(2, 2))


def test_a_misspelt_tolerance_is_refused() -> None:
    with pytest.raises(ProblemError, match="absolute"):
        one({"absolute": 1.0}, [], [], normal(2))


def test_a_bound_for_each_output_is_demanded() -> None:
    with pytest.raises(ProblemError, match="1 bounds for 2 outputs"):
        bounds([{"operation": "copy"}], [], [], [normal(2), normal(2)], [spec((2,)), spec((2,))])


def test_declarations_are_described_in_words() -> None:
    def composed(*_: object) -> list[Tensor]:
        """Two factors, each a sigmoid."""
        return []

    assert describe(None) == "sampled forward model"
    assert describe({"operation": "softmax", "dim": -1}) == "softmax over dim -1"
    assert describe([{"operation": "exp"}, {"operation": "sum", "dim": 1}]) == "exp; sum over dim 1"
    assert describe({"atol": 1e-5}) == "atol 1e-05, rtol 0"
    assert describe(composed) == "Two factors, each a sigmoid"

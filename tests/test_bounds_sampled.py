"""The sampled forward model: bounds for references that declare none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from fitness.card import TensorSpec
from fitness.judge.bounds import bounds
from fitness.judge.compare import compare
from fitness.judge.gate import judged
from fitness.judge.problem import load
from fitness.target import ProblemError


def max_errors(f: Callable[..., Tensor], *arguments: Tensor) -> tuple[float, float]:
    """Errors of the framework in float32 and of 16-bit inputs, in units of the sampled bound."""
    want = f(*(a.double() for a in arguments))
    spec = TensorSpec("out", tuple(want.shape), "float32")
    allowed = bounds(None, [a.double() for a in arguments], [], [want], [spec], lambda i, _: [f(*i)])
    rounded = f(*(a.bfloat16().float() for a in arguments))
    return (
        compare([f(*arguments)], [want], allowed).max_error,
        compare([rounded], [want], allowed).max_error,
    )


def normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


REFERENCES: dict[str, tuple[Callable[..., Tensor], list[Tensor]]] = {
    "product": (lambda x, w, b: functional.gelu(x @ w + b), [normal(30, 80), normal(80, 9), normal(9)]),
    "convolution": (
        lambda x, w: functional.max_pool2d(functional.conv2d(x, w, padding=1).relu(), 2),
        [normal(2, 3, 16, 16), normal(4, 3, 3, 3)],
    ),
    "transposed convolution": (functional.conv_transpose2d, [normal(2, 3, 9, 9), normal(3, 4, 3, 3)]),
    "attention": (functional.scaled_dot_product_attention, [normal(2, 20, 16, seed=n) for n in range(3)]),
    "in place": (lambda x, y: x.clone().mul_(y).add_(x).exp_(), [normal(8, 40), normal(8, 40, seed=2)]),
    "group norm": (lambda x: functional.group_norm(x, 2), [normal(3, 4, 50)]),
    "variance": (lambda x: x.var(-1), [normal(50, 90)]),
    "scalar": (lambda x, y: functional.mse_loss(x, y), [normal(50, 90), normal(50, 90, seed=2)]),
    "pooling": (lambda x: functional.avg_pool2d(x, 3), [normal(2, 3, 18, 18)]),
    "normalised": (lambda x: functional.normalize(x, dim=-1), [normal(20, 60)]),
    "cumulative product": (lambda x: torch.cumprod(x, -1), [normal(20, 30)]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFERENCES)
def test_the_framework_passes_and_sixteen_bits_do_not(name: str) -> None:
    f, arguments = REFERENCES[name]
    honest, lower = max_errors(f, *arguments)
    assert honest < 1 / 3
    assert lower > 3


def test_the_same_arguments_give_the_same_bound() -> None:
    x = normal(8, 60).double()
    spec = TensorSpec("out", (8, 60), "float32")
    first, second = (
        bounds(None, [x], [], [x.softmax(-1)], [spec], lambda i, _: [i[0].softmax(-1)])[0] for _ in range(2)
    )
    assert torch.equal(first.elementwise, second.elementwise)


def test_copying_is_allowed_no_more_than_a_rounding() -> None:
    x = normal(8, 60).double()
    spec = TensorSpec("out", (60, 8), "float32")
    bound = bounds(None, [x], [], [x.T], [spec], lambda i, _: [i[0].T])[0]
    assert bool((bound.elementwise <= 2.0**-24 * x.T.abs() + 1e-37).all())


def test_a_whole_number_may_differ_where_rounding_decides_it() -> None:
    x = torch.tensor([0.3, 0.5 + 1e-9, 1.2, 2.5 - 1e-9], dtype=torch.float64)
    scaled = [x * 3.0]
    spec = TensorSpec("out", (4,), "int32")

    def rounded(inputs: list[Tensor], _: list[Tensor]) -> list[Tensor]:
        return [torch.round(inputs[0] / 3.0).to(torch.int32)]

    bound = bounds(None, scaled, [], rounded(scaled, []), [spec], rounded)[0]
    assert bound.elementwise.tolist() == [0.0, 1.0, 0.0, 1.0]


def test_infinite_results_leave_the_others_their_bound() -> None:
    x = normal(4, 64).double()
    x[1, 3] = torch.inf
    spec = TensorSpec("out", (4, 64), "float32")
    bound = bounds(None, [x], [], [x.exp()], [spec], lambda i, _: [i[0].exp()])[0]
    assert bool(torch.isfinite(bound.elementwise[torch.isfinite(x)]).all())
    assert compare([x.float().exp()], [x.exp()], [bound]).max_error < 1 / 3


SHARED = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.exp(x).expand(-1, 40)


def get_inputs():
    return [torch.randn(3000, 1)]


def get_init_inputs():
    return []
"""


def test_no_verdict_hangs_on_a_bound_that_few_samples_made_too_small(tmp_path: Path) -> None:
    """All elements of a row share one error, so no neighbour shows that a row's estimate is too small."""
    (tmp_path / "shared.py").write_text(SHARED)
    loaded = load(str(tmp_path / "shared.py"), seed=1, cache_bytes=32 << 20).cases[0]
    draw = loaded.draw("a key")
    want = loaded.reference(draw.inputs, draw.parameters)
    few, many = (
        bounds(
            None, [draw.inputs[0].double()], [], want, loaded.case.outputs, loaded.reference, surely=surely
        )[0].elementwise
        for surely in (False, True)
    )
    row = int((few / many)[:, 0].argmin())

    def worst(share: float) -> float:
        got = want[0].clone()
        got[row] += share * many[row]
        return judged(loaded, draw, [got]).max_error

    assert bool((few[row] < 0.7 * many[row]).all())
    assert worst(0.9) < 1
    assert worst(1.1) > 1


def test_without_a_reference_there_is_nothing_to_sample() -> None:
    with pytest.raises(ProblemError, match="TOLERANCE"):
        bounds(None, [], [], [normal(3)], [TensorSpec("out", (3,), "float32")])

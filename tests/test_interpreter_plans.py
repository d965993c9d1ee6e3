"""Every kind of step and argument of a launch plan means in the interpreter what it means on a device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from interpreting import Written, kernel, launch, view

from fitness import plan
from fitness.interpreter.client import Interpreter
from fitness.judge.interpreted import uninterpreted
from fitness.judge.rig import KernelDied
from populations.verdict import Outcome

pytest.importorskip("triton")

X = torch.randn(64, generator=torch.Generator().manual_seed(2))
ADD = """
@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)
"""
SPEC = kernel("add", x=X, y=X, n=("i32",), BLOCK=16)


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interpreter]:
    with Interpreter(tmp_path_factory.mktemp("interpreter")) as started:
        yield started


def added(storage: int, into: int) -> dict[str, Any]:
    return launch(0, (4,), view(storage, X), view(into, X), 64, 16)


@pytest.mark.parametrize(
    ("step", "want"),
    [
        ({"do": "fill", "value": 2.5}, torch.full([64], 2.5)),
        ({"do": "fill", "value": float("inf")}, torch.full([64], float("inf"))),
        ({"do": "copy", "source": view(0, X)}, X),
        ({"do": "constant", "values": [0.5 * i for i in range(64)]}, torch.arange(64) * 0.5),
        ({"do": "count", "start": 3, "step": 2}, torch.arange(64) * 2.0 + 3),
    ],
)
def test_fills_copies_constants_and_counts_come_before_the_launch(
    interpreter: Interpreter, tmp_path: Path, step: dict[str, Any], want: torch.Tensor
) -> None:
    steps = [{"into": view(1, X), **step}, added(0, 1)]
    (made,) = Written(tmp_path, ADD, [X], [X], [SPEC], steps).outputs(interpreter)
    assert torch.equal(made, X + want)


def test_a_copy_converts(interpreter: Interpreter, tmp_path: Path) -> None:
    half = X.bfloat16()
    steps = [{"do": "copy", "into": view(1, half), "source": view(0, X)}]
    (made,) = Written(tmp_path, ADD, [X], [half], [SPEC], steps).outputs(interpreter)
    assert torch.equal(made, half)


def test_scratch_is_poisoned_and_so_is_what_is_made_of_it(interpreter: Interpreter, tmp_path: Path) -> None:
    steps = [{"do": "fill", "into": view(1, X), "value": 0}, added(2, 1)]
    (made,) = Written(tmp_path, ADD, [X], [X], [SPEC], steps, scratch=[X.nbytes]).outputs(interpreter)
    assert made.isnan().all()


def test_a_launch_may_pass_results_on_through_scratch(interpreter: Interpreter, tmp_path: Path) -> None:
    steps = [
        {"do": "fill", "into": view(2, X), "value": 1},
        added(0, 2),
        {"do": "fill", "into": view(1, X), "value": 0},
        added(2, 1),
    ]
    (made,) = Written(tmp_path, ADD, [X], [X], [SPEC], steps, scratch=[X.nbytes]).outputs(interpreter)
    assert torch.equal(made, X + 1)


def test_an_output_may_be_a_view_of_a_larger_storage(interpreter: Interpreter, tmp_path: Path) -> None:
    square = X[:60].view(6, 10)
    transposed = {"storage": 2, "offset": 4, "shape": [6, 10], "strides": [1, 6], "dtype": "float32"}
    steps = [{"do": "copy", "into": transposed, "source": view(0, square)}]
    written = Written(tmp_path, ADD, [X], [square], [SPEC], steps, scratch=[X.nbytes], views=[transposed])
    assert torch.equal(written.outputs(interpreter)[0], square)


def test_an_output_may_be_an_input_itself(interpreter: Interpreter, tmp_path: Path) -> None:
    steps = [{"do": "fill", "into": view(1, X), "value": 0}]
    written = Written(tmp_path, ADD, [X], [X], [SPEC], steps, views=[view(0, X)])
    assert torch.equal(written.outputs(interpreter)[0], X)


def test_what_no_step_writes_keeps_the_judges_poison(interpreter: Interpreter, tmp_path: Path) -> None:
    steps = [
        {"do": "fill", "into": view(1, X), "value": 0},
        {"do": "copy", "into": view(1, X), "source": view(2, X)},
    ]
    some = [launch(0, (3,), view(0, X), view(1, X), 48, 16)]
    with Written(tmp_path, ADD, [X], [X], [SPEC], some).running(interpreter) as (sets, launcher):
        launcher.block(0, 1, 5.0)
        assert sets.poison_left(0) == "a1"
    whole = Written(tmp_path, ADD, [X], [X], [SPEC], steps, scratch=[X.nbytes])
    assert whole.outputs(interpreter)[0].isnan().all()


def test_each_set_is_run_on_its_own_inputs(interpreter: Interpreter, tmp_path: Path) -> None:
    steps = [{"do": "fill", "into": view(1, X), "value": 0}, added(0, 1)]
    with Written(tmp_path, ADD, [X], [X], [SPEC], steps).running(interpreter, sets=3) as (sets, launcher):
        sets.inputs(2)[0].copy_(X * 3)
        launcher.block(0, 3, 5.0)
        assert torch.equal(sets.outputs(1)[0], X)
        assert torch.equal(sets.outputs(2)[0], X * 3)


ARGUMENTS = """
SCALE = tl.constexpr(3.0)
OFFSET: tl.constexpr = 1

@triton.jit
def twice(v):
    return v * 2, v

@triton.jit
def thrice(v):
    return v * 3, v

@triton.jit
def k(x, bias, y, n, factor, one, N: tl.constexpr, DTYPE: tl.constexpr, F: tl.constexpr, SHAPE: tl.constexpr):
    at = tl.arange(0, N)
    v = tl.load(x + at, mask=at < n, other=0.0)
    if bias is not None:
        v += tl.load(bias + at)
    made, kept = F(v)
    made = made * SCALE * factor + OFFSET * one.to(tl.int64)
    for i in range(n - 62):
        made += i.to(tl.float32)
    for i in tl.range(0, 2, num_stages=2):
        made += i
    for i in tl.static_range(SHAPE[1]):
        made += i
    tl.store(y + at, (made - kept).to(DTYPE))
"""


def test_constants_numbers_functions_dtypes_and_none_are_arguments(
    interpreter: Interpreter, tmp_path: Path
) -> None:
    constants = {
        "N": 64,
        "DTYPE": {"dtype": "bf16"},
        "F": {"function": "thrice"},
        "SHAPE": [1, 3],
    }
    half = X.bfloat16()
    spec = kernel("k", x=X, bias=None, y=half, n=("i32",), factor=("fp32",), one=1, **constants)
    steps = [launch(0, (1,), view(0, X), None, view(1, half), 64, 0.25, 1, 64, None, None, None)]
    (made,) = Written(tmp_path, ARGUMENTS, [X], [half], [spec], steps).outputs(interpreter)
    want = (X * 3 * 3.0 * 0.25 + 1 + 1 + 1 + 3 - X).bfloat16()
    assert torch.allclose(made.float(), want.float(), rtol=2**-7, atol=1e-3)


def test_programs_run_in_order_the_first_axis_fastest(interpreter: Interpreter, tmp_path: Path) -> None:
    source = """
    @triton.jit
    def k(x, y, counter):
        ticket = tl.atomic_add(counter, 1)
        row = tl.program_id(1) + tl.num_programs(1) * tl.program_id(2)
        place = tl.program_id(0) + tl.num_programs(0) * row
        tl.store(y + ticket, place.to(tl.float32))
    """
    zero = torch.zeros(1, dtype=torch.int32)
    steps = [
        {"do": "fill", "into": view(2, zero), "value": 0},
        launch(0, (4, 4, 4), view(0, X), view(1, X), view(2, zero)),
    ]
    spec = kernel("k", x=X, y=X, counter=zero)
    (made,) = Written(tmp_path, source, [X], [X], [spec], steps, scratch=[4]).outputs(interpreter)
    assert torch.equal(made, torch.arange(64).float())


@pytest.mark.parametrize(
    ("grid", "options", "says"),
    [((300,), {}, "300 programs"), ((4,), {"launch_cooperative_grid": True}, "cooperative")],
)
def test_large_and_cooperative_grids_are_lowered_not_checked(
    interpreter: Interpreter, tmp_path: Path, grid: tuple[int], options: dict[str, Any], says: str
) -> None:
    spec = kernel("add", options, x=X, y=X, n=("i32",), BLOCK=16)
    written = Written(tmp_path, ADD, [X], [X], [spec], [launch(0, grid, view(0, X), view(1, X), 64, 16)])
    lowered = plan.read(written.path.read_bytes())
    assert says in (uninterpreted(lowered.cases[0], lowered) or "")
    with pytest.raises(KernelDied, match=says) as died:
        written.outputs(interpreter)
    assert died.value.outcome is Outcome.LOWERED


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int64, torch.bool, torch.float8_e5m2])
def test_copies_between_all_kinds_of_types_work_in_a_confined_child(
    interpreter: Interpreter, tmp_path: Path, dtype: torch.dtype
) -> None:
    other = view(2, X) | {"dtype": str(dtype).removeprefix("torch."), "shape": [8, 8], "strides": [1, 8]}
    square = view(1, X) | {"shape": [8, 8], "strides": [8, 1]}
    steps = [
        {"do": "copy", "into": other, "source": view(0, X) | {"shape": [8, 8], "strides": [8, 1]}},
        {"do": "copy", "into": square, "source": other},
    ]
    (made,) = Written(tmp_path, ADD, [X], [X], [SPEC], steps, scratch=[512]).outputs(interpreter)
    assert torch.equal(made, X.to(dtype).float())

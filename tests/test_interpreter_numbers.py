"""The interpreter computes what a device would: rounding, matrix products, foreign functions, descriptors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from interpreting import Written, kernel, launch, view
from torch import Tensor

from fitness.interpreter.client import Interpreter
from fitness.judge.rig import KernelDied
from populations.verdict import Outcome

pytest.importorskip("triton")


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interpreter]:
    with Interpreter(tmp_path_factory.mktemp("interpreter")) as started:
        yield started


@pytest.fixture
def run(interpreter: Interpreter, tmp_path: Path) -> Any:
    """Runs ``body`` in one program over whole vectors x, y, … of one length N; it makes ``out``."""

    def ran(body: str, *inputs: Tensor, like: Tensor, head: str = "", **constants: Any) -> Tensor:
        names = [f"x{i}" for i in range(len(inputs))]
        loads = [f"{name} = tl.load(p{i} + at)" for i, name in enumerate(names)]
        lines = ["at = tl.arange(0, N)", *loads, *body.strip().splitlines(), "tl.store(out + at, made)"]
        pointers = [f"p{i}" for i in range(len(inputs))]
        notes = [f"{name}: tl.constexpr" for name in ("N", *constants)]
        source = f"{head}\n@triton.jit\ndef k({', '.join([*pointers, 'out', *notes])}):\n"
        source += "".join(f"    {line}\n" for line in lines)
        out = torch.empty_like(like)
        parameters = dict(zip(pointers, inputs, strict=True)) | {"out": out, "N": like.numel()} | constants
        places = [view(i, tensor) for i, tensor in enumerate([*inputs, out])]
        steps = [launch(0, (1,), *places, like.numel(), *(None for _ in constants))]
        written = Written(tmp_path, source, inputs, [out], [kernel("k", **parameters)], steps)
        return written.outputs(interpreter)[0]

    return ran


@pytest.fixture
def x() -> Tensor:
    return torch.randn(256, generator=torch.Generator().manual_seed(1))


def test_float32_becomes_bfloat16_to_nearest_and_ties_go_to_even(run: Any, x: Tensor) -> None:
    x[:4] = torch.tensor([1.00390625, 1.01171875, float("inf"), float("nan")])
    made = run("made = x0.to(tl.bfloat16)", x, like=x.bfloat16())
    assert torch.equal(made.view(torch.int16)[4:], x.bfloat16().view(torch.int16)[4:])
    assert made[:3].tolist() == x.bfloat16()[:3].tolist()
    assert made[3].isnan()


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("made = x0 + x1", lambda a, b: a + b),
        ("made = x0 * x1 - x0", lambda a, b: a * b - a),
        ("made = tl.maximum(x0, x1)", torch.maximum),
        ("made = tl.where(x0 < x1, x0, x1)", torch.minimum),
        ("made = (x0 > 0).to(tl.bfloat16)", lambda *ab: (ab[0] > 0).bfloat16()),
        ("made = -x0 * 2.5", lambda *ab: -ab[0] * 2.5),
        ("made = tl.abs(x0)", lambda *ab: ab[0].abs()),
        ("made = x0 / x1", lambda a, b: a / b),
        ("made = tl.exp(x0.to(tl.float32)).to(tl.bfloat16)", lambda *ab: ab[0].float().exp().bfloat16()),
        ("made = x0.to(tl.int32).to(tl.bfloat16)", lambda *ab: ab[0].int().bfloat16()),
        ("made = tl.full([N], 0.1, tl.bfloat16) + x0", lambda *ab: ab[0] + torch.tensor(0.1).bfloat16()),
    ],
)
def test_bfloat16_is_computed_with_and_rounded(run: Any, x: Tensor, body: str, want: Any) -> None:
    a, b = x.bfloat16(), x.flip(0).bfloat16()
    assert torch.equal(run(body, a, b, like=a), want(a, b))


@pytest.mark.parametrize(
    ("condition", "want"),
    [
        ("x0 > 0 and x1 > 0", lambda a, b: (a > 0) & (b > 0)),
        ("x0 > 0 or x1 > 0 or x0 < -1", lambda a, b: (a > 0) | (b > 0) | (a < -1)),
        ("not (x0 > 0 and True)", lambda a, b: (a <= 0) | b.isnan()),
        ("-1 < x0 < 1", lambda a, b: (a.abs() < 1) | b.isnan()),
    ],
)
def test_and_or_and_not_join_whole_blocks(run: Any, x: Tensor, condition: str, want: Any) -> None:
    other = x.flip(0)
    made = run(f"yes = {condition}\nmade = yes.to(tl.float32)", x, other, like=x)
    assert torch.equal(made.bool(), want(x, other))


def test_float8_conversions_round_and_saturate(run: Any, x: Tensor) -> None:
    x[:2] = torch.tensor([1e6, -1e6])
    made = run("made = x0.to(tl.float8e4nv).to(tl.float32)", x, like=x)
    assert torch.equal(made, x.clamp(-448, 448).to(torch.float8_e4m3fn).float())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_sums_and_maxima_ignore_no_number(run: Any, x: Tensor, dtype: torch.dtype) -> None:
    x = x.to(dtype)
    total = run("made = tl.zeros([N], tl.float32) + tl.sum(x0, 0)", x, like=x.float())
    assert total[0].item() == pytest.approx(
        x.double().sum().item(), abs=1.0 if dtype != torch.float32 else 1e-4
    )
    largest = run("made = tl.zeros([N], tl.float32) + tl.max(x0, 0)", x, like=x.float())
    assert largest[0] == x.float().max()


def test_the_position_of_the_maximum_is_the_first_one_and_nan_is_passed_over(run: Any, x: Tensor) -> None:
    x[[7, 9]] = 50.0
    x[0] = float("nan")
    made = run("made = tl.zeros([N], tl.int32) + tl.argmax(x0, 0)", x, like=x.int())
    assert made[0] == 7


COMBINE = """
@triton.jit
def welford(m1, s1, n1, m2, s2, n2):
    n = n1 + n2
    d = m2 - m1
    return m1 + d * n2 / n, s1 + s2 + d * d * n1 * n2 / n, n

@triton.jit
def affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2
"""


def test_a_reduction_of_three_values_by_a_function_of_the_kernel(run: Any, x: Tensor) -> None:
    body = """
m, s, n = tl.reduce((x0, tl.zeros([N], tl.float32), tl.full([N], 1.0, tl.float32)), 0, welford)
made = tl.zeros([N], tl.float32) + s / n
"""
    made = run(body, x, like=x, head=COMBINE)
    assert made[0].item() == pytest.approx(x.var(unbiased=False).item(), rel=1e-5)


@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_in_both_directions(run: Any, x: Tensor, reverse: bool) -> None:
    made = run(f"made = tl.cumsum(x0, 0, reverse={reverse})", x, like=x)
    want = x.double().flip(0).cumsum(0).flip(0) if reverse else x.double().cumsum(0)
    assert torch.allclose(made.double(), want, atol=1e-4)


def test_a_scan_of_pairs_by_a_function_of_the_kernel(run: Any, x: Tensor) -> None:
    decay = torch.rand(256)
    made = run("a, made = tl.associative_scan((x0, x1), 0, affine)", decay, x, like=x, head=COMBINE)
    state, want = 0.0, []
    for a, b in zip(decay.tolist(), x.tolist(), strict=True):
        state = state * a + b
        want.append(state)
    assert torch.allclose(made.double(), torch.tensor(want, dtype=torch.float64), atol=1e-4)


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("made = libdevice.tanh(x0)", torch.tanh),
        ("made = libdevice.erf(x0)", torch.erf),
        ("made = libdevice.pow(tl.abs(x0), x0)", lambda x: x.abs() ** x),
        ("made = libdevice.rsqrt(tl.abs(x0))", lambda x: x.abs().rsqrt()),
        ("made = tl.extra.cuda.libdevice.exp2(x0)", torch.exp2),
        ("made = libdevice.fast_expf(x0)", torch.exp),
        ("made = libdevice.isnan(x0).to(tl.float32)", lambda x: x * 0),
        ("made = libdevice.round(x0) + libdevice.rint(x0)", lambda x: x.round() * 2),
        ("made = tl.math.rsqrt(tl.abs(x0)) + tl.erf(x0)", lambda x: x.abs().rsqrt() + torch.erf(x)),
        ("made = libdevice.div_rn(x0, 3.0)", lambda x: x / 3),
    ],
)
def test_device_functions_come_from_a_table(run: Any, x: Tensor, body: str, want: Any) -> None:
    made = run(body, x, like=x, head="from triton.language.extra import libdevice\n")
    assert torch.allclose(made, want(x), rtol=1e-6, atol=1e-6)


def assembly(
    text: str, constraints: str = "=f,f", given: str = "[x0]", kind: str = "tl.float32", pack: int = 1
) -> str:
    return f"made = tl.inline_asm_elementwise('{text}', '{constraints}', {given}, {kind}, True, {pack})"


@pytest.mark.parametrize(
    ("body", "want", "rtol"),
    [
        (assembly("ex2.approx.ftz.f32 $0, $1;"), torch.exp2, 1e-6),
        (assembly("lg2.approx.f32 $0, $1;", given="[tl.abs(x0)]"), lambda x: x.abs().log2(), 1e-6),
        (assembly("rcp.approx.ftz.f32 $0, $1;"), torch.reciprocal, 1e-6),
        (assembly("fma.rn.f32 $0, $1, $1, 0f3F800000;"), lambda x: x * x + 1, 1e-6),
        (assembly("{ .reg .f32 t; mul.f32 t, $1, 0f40000000; ex2.approx.f32 $0, t; }"), lambda x: 4**x, 1e-6),
        (assembly("tanh.approx.f32 $0, $1;"), torch.tanh, 2.0**-11),
        (assembly("max.f32 $0, $1, $2;", "=f,f,f", "[x0, -x0]"), torch.abs, 0),
        (assembly("and.b32 $0, $1, 0x7fffffff;", "=r,r"), torch.abs, 0),
    ],
)
def test_instructions_come_from_a_table(run: Any, x: Tensor, body: str, want: Any, rtol: float) -> None:
    assert torch.allclose(run(body, x, like=x), want(x), rtol=rtol, atol=1e-7)


def test_the_hardwares_tanh_has_eleven_bits(run: Any, x: Tensor) -> None:
    made = run(assembly("tanh.approx.f32 $0, $1;"), x, like=x)
    assert (made - torch.tanh(x)).abs().max() > 1e-5


def test_packed_instructions_take_two_halves(run: Any, x: Tensor) -> None:
    half = x.bfloat16()
    made = run(assembly("mul.bf16x2 $0, $1, $1;", "=r,r", kind="tl.bfloat16", pack=2), half, like=half)
    assert torch.equal(made, half * half)


@pytest.mark.parametrize(
    "body",
    [
        assembly("bfind.u32 $0, $1;", "=r,r"),
        assembly("mov.u32 $0, %laneid;", "=r", given="[]", kind="tl.int32"),
        "made = tl.extra.cuda.libdevice.jn(2, x0)",
    ],
)
def test_what_no_table_holds_is_lowered_and_says_what(run: Any, x: Tensor, body: str) -> None:
    with pytest.raises(KernelDied, match="is not interpreted") as died:
        run(body, x, like=x.int() if "laneid" in body else x)
    assert died.value.outcome is Outcome.LOWERED


DOT = """
@triton.jit
def k(a, b, c, M: tl.constexpr, PRECISION: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    product = tl.dot(tl.load(a + i * M + j), tl.load(b + i * M + j), input_precision=PRECISION)
    tl.store(c + i * M + j, product)
"""


@pytest.mark.parametrize(
    ("dtype", "precision", "worst"),
    [
        (torch.bfloat16, "tf32", 1e-6),
        (torch.float16, "tf32", 1e-6),
        (torch.float32, "ieee", 1e-6),
        (torch.float32, "tf32x3", 1e-6),
        (torch.float32, "bf16x6", 1e-6),
        (torch.float32, "bf16x3", 1e-4),
        (torch.float32, "tf32", 1e-2),
    ],
)
def test_matrix_products_have_the_precision_of_tensor_cores(
    interpreter: Interpreter, tmp_path: Path, dtype: torch.dtype, precision: str, worst: float
) -> None:
    a, b = (torch.randn(64, 64).to(dtype) for _ in range(2))
    c = torch.empty(64, 64)
    spec = kernel("k", a=a, b=b, c=c, M=64, PRECISION=precision)
    steps = [launch(0, (1,), view(0, a), view(1, b), view(2, c), 64, None)]
    (made,) = Written(tmp_path, DOT, [a, b], [c], [spec], steps).outputs(interpreter)
    want = a.double() @ b.double()
    error = ((made - want).norm() / want.norm()).item()
    assert worst / 100 < error < worst if worst > 1e-6 else error < worst


DESCRIPTORS = """
@triton.jit
def device(x, y, rows, cols, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, cols], [cols, 1], [BM, BN])
    target = tl.make_tensor_descriptor(y, [rows, cols], [cols, 1], [BM, BN])
    at = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    target.store(at, source.load(at) * 2)

@triton.jit
def host(x, y, BM: tl.constexpr, BN: tl.constexpr):
    at = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    y.store(at, x.load(at) * 2)
"""


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tensor_descriptors_of_both_kinds_stop_at_the_edge(
    interpreter: Interpreter, tmp_path: Path, dtype: torch.dtype
) -> None:
    x = torch.randn(40, 72).to(dtype)
    y = torch.empty_like(x)
    device = kernel("device", x=x, y=y, rows=("i32",), cols=("i32",), BM=16, BN=32)
    host = kernel("host", x=("tensordesc<fp32[16, 32]>",), y=("tensordesc<fp32[16, 32]>",), BM=16, BN=32)
    described = [{"kind": "descriptor", "view": view(i, x), "block": [16, 32]} for i in (0, 1)]
    for spec, arguments in ((device, [view(0, x), view(1, y), 40, 72]), (host, described)):
        steps = [launch(0, (3, 3), *arguments, 16, 32)]
        (made,) = Written(tmp_path, DESCRIPTORS, [x], [y], [spec], steps).outputs(interpreter)
        assert torch.equal(made, x * 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_atomic_additions_of_all_programs_add_up(
    interpreter: Interpreter, tmp_path: Path, dtype: torch.dtype
) -> None:
    source = """
    @triton.jit
    def k(x, y, N: tl.constexpr):
        tl.atomic_add(y + tl.arange(0, N) // 2, tl.load(x + tl.arange(0, N)))
    """
    x = torch.randint(-4, 5, (64,)).to(dtype)
    y = torch.empty(32, dtype=dtype)
    steps = [{"do": "fill", "into": view(1, y), "value": 0}, launch(0, (4,), view(0, x), view(1, y), 64)]
    (made,) = Written(tmp_path, source, [x], [y], [kernel("k", x=x, y=y, N=64)], steps).outputs(interpreter)
    assert torch.equal(made, 4 * x.view(32, 2).sum(1))

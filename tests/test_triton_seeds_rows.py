"""The Triton seeds of problems bound by bandwidth: right at any size by the interpreter, and they lower.

The interpreter wants ``TRITON_INTERPRET`` set before Triton is imported, so each problem is tried in a
process of its own, which imports this file and prints one line of JSON.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Generator, Tensor
from torch.nn import functional

from fitness.card import Case, TensorSpec
from fitness.lowering import Lowered, Lowering
from populations.kernel import Kernel
from populations.seeds import Seed, seeds

ROOT = Path(__file__).parent.parent
Tensors = tuple[Tensor, ...]
Shape = tuple[int, ...]
U = 2.0**-24


def rms(x: Tensor, dim: int, eps: float) -> Tensor:
    return x * torch.rsqrt(x.square().mean(dim, keepdim=True) + eps)


def rotated(x: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def quantised(x: Tensor) -> Tensors:
    largest = x.abs().amax(-1, keepdim=True)
    scale = torch.where(largest > 0, largest / 127, torch.ones_like(largest))
    return torch.round(x / scale).to(torch.int8), scale


def gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def widened(x: Tensor) -> Tensor:
    return x.float() if x.dtype == torch.bfloat16 else x


def gated(x: Tensor) -> Tensor:
    gate, up = x.chunk(2, -1)
    return functional.silu(gate) * up


def normed_sum(x: Tensor, residual: Tensor, weight: Tensor) -> Tensors:
    return rms(x + residual, -1, 1e-6) * weight, x + residual


REFERENCES: dict[str, Callable[..., Tensor | Tensors]] = {
    "softmax": lambda x: torch.softmax(x, -1),
    "softmax_long": lambda x: torch.softmax(x, -1),
    "rms_norm_rows": lambda x, weight: rms(x, -1, 1e-6) * weight,
    "rms_norm": normed_sum,
    "rms_norm_channels": lambda x: rms(x, 1, 1e-5),
    "layer_norm": lambda x, weight, bias: functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5),
    "gelu_tanh": gelu,
    "swiglu": gated,
    "cross_entropy": lambda logits, targets: functional.cross_entropy(widened(logits), targets),
    "cumsum": lambda x: torch.cumsum(x, -1),
    "masked_cumsum": lambda x, mask: torch.cumsum(x * mask, -1),
    "quantize_int8": quantised,
    "rope": lambda x, cos, sin: x * cos + rotated(x) * sin,
    "matvec": lambda a, b: a @ b,
}
PROBLEMS = tuple(REFERENCES)
ROWS: list[Shape] = [
    (1, 1), (3, 15), (37, 1), (2, 16), (5, 17), (3, 257), (9, 1023), (2, 2048), (3, 4099), (1, 33001),
]  # fmt: skip
SHAPES: dict[str, list[Shape]] = {
    "rope": [(1, 1, 1, 2), (2, 3, 5, 6), (3, 2, 17, 34), (1, 3, 65, 64), (2, 7, 9, 126), (1, 2, 3, 1026)],
    "rms_norm_channels": [(1, 1, 1, 1), (2, 3, 5, 7), (1, 64, 16, 17), (2, 67, 3, 64), (1, 517, 2, 67)],
    "swiglu": [(rows, 2 * n) for rows, n in ROWS],
}
TIER: dict[str, tuple[torch.dtype, list[Shape]]] = {
    "softmax": (torch.bfloat16, [(8192, 8192)]),
    "softmax_long": (torch.float32, [(4096, 393216)]),
    "rms_norm_rows": (torch.bfloat16, [(8192, 4096), (4096,)]),
    "rms_norm": (torch.bfloat16, [(8192, 8192), (8192, 8192), (8192,)]),
    "rms_norm_channels": (torch.bfloat16, [(112, 64, 512, 512)]),
    "layer_norm": (torch.bfloat16, [(8192, 12288), (12288,), (12288,)]),
    "gelu_tanh": (torch.bfloat16, [(8192, 8192)]),
    "swiglu": (torch.bfloat16, [(8192, 28672)]),
    "cross_entropy": (torch.bfloat16, [(8192, 128256), (8192,)]),
    "cumsum": (torch.float32, [(32768, 32768)]),
    "masked_cumsum": (torch.float32, [(32768, 4096), (32768, 4096)]),
    "quantize_int8": (torch.float32, [(8192, 8192)]),
    "rope": (torch.bfloat16, [(1, 40, 8192, 128), (8192, 128), (8192, 128)]),
    "matvec": (torch.bfloat16, [(2048, 1048576), (1048576, 1)]),
}
OTHER_DTYPES = {("cross_entropy", 1): torch.int64, ("masked_cumsum", 1): torch.bool}
# Cooperative grids spin, and programs of the interpreter run one after the other: only rows of one part.
LONGEST = {("softmax_long", "cooperative"): 10000}
KINDS = ("normal", "row scales", "wide", "subnormal", "zero", "non-finite", "bfloat16")


def values(shape: Shape, kind: str, chance: Generator) -> Tensor:
    normal = torch.randn(shape, generator=chance)
    if kind == "row scales":
        return normal * torch.logspace(-2, 1, shape[0]).view(-1, *(1,) * (len(shape) - 1)) + 3
    if kind == "wide":
        return torch.rand(shape, generator=chance) * 160 - 80
    if kind == "subnormal":
        return normal * 1e-40
    if kind == "zero":
        return torch.zeros(shape)
    if kind == "non-finite":
        for place, value in enumerate((math.nan, math.inf, -math.inf)):
            normal.view(-1)[place * 7919 % normal.numel()] = value
        normal[len(normal) // 2] = -math.inf
    return normal.bfloat16() if kind == "bfloat16" else normal


def arguments(problem: str, shape: Shape, kind: str) -> Tensors:
    """The inputs of one case, then its parameters."""
    chance = Generator().manual_seed(sum(shape))
    x = values(shape, kind, chance)

    def random(*size: int) -> Tensor:
        return torch.randn(size, generator=chance).to(x.dtype)

    match problem:
        case "rms_norm_rows":
            return x, random(shape[1])
        case "layer_norm":
            return x, random(shape[1]), random(shape[1])
        case "rms_norm":
            return x, values(shape, kind, chance), random(shape[1])
        case "rope":
            return x, random(*shape[2:]), random(*shape[2:])
        case "cross_entropy":
            return x, torch.randint(0, shape[1], shape[:1], generator=chance)
        case "masked_cumsum":
            return x, torch.rand(shape, generator=chance) < 0.5
        case "matvec":
            return x, random(shape[1], 1)
    return (x,)


def allowed(problem: str, inputs: Tensors, wanted: Tensor, index: int) -> Any:
    """How far a float32 kernel may be from the exact result, before the output is rounded."""
    x, *others = (tensor.double().nan_to_num(0, 0, 0) for tensor in inputs)
    near = U * wanted.abs() * (32 + x.shape[-1] ** 0.5)
    match problem:
        case "softmax" | "softmax_long":
            return near + 4 * U * wanted * (x.amax(-1, keepdim=True) - x) + 2.0**-126
        case "rms_norm_channels":
            return U * wanted.abs() * (16 + x.shape[1] ** 0.5)
        case "rms_norm":
            return near if index == 0 else 0.0
        case "layer_norm":
            deviation = (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
            spread = (x.abs() + x.mean(-1, keepdim=True).abs()) / deviation
            return near + U * (others[0].abs() * (8 + x.shape[-1] ** 0.5) * spread + 2 * others[1].abs())
        case "gelu_tanh":
            return U * (wanted.abs() * (8 + 4 * x.abs()) + 16 * x.abs())
        case "swiglu":
            gate, up = (part.abs() for part in x.chunk(2, -1))
            return U * wanted.abs() * (10 + 4 * gate) + gate * up * 2.0**-126
        case "cross_entropy":
            return U * (32 + x.shape[-1] ** 0.5) * (1 + 2 * x.abs().amax())
        case "cumsum" | "masked_cumsum":
            kept = x if problem == "cumsum" else x * others[0]
            return U * (8 + torch.arange(1, x.shape[-1] + 1).sqrt()) * kept.abs().cumsum(-1)
        case "rope":
            return 8 * U * ((x * others[0]).abs() + (rotated(x) * others[1]).abs())
        case "matvec":
            return U * (8 + x.shape[-1] ** 0.5) * (x.abs() @ others[0].abs())
    return near


def imported(seed: Seed) -> ModuleType:
    found = importlib.util.spec_from_file_location(seed.name, ROOT / seed.path)
    assert found and found.loader
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def fault(problem: str, outputs: Tensors, inputs: Tensors) -> str | None:
    """What is wrong with the outputs of one call."""
    wide = [tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs]
    wanted = REFERENCES[problem](*wide)
    expected = wanted if isinstance(wanted, tuple) else (wanted,)
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs"
    for index, (got, exact) in enumerate(zip(outputs, expected, strict=True)):
        dtype = inputs[0].dtype if exact.is_floating_point() else exact.dtype
        dtype = torch.float32 if problem == "cross_entropy" else dtype  # losses are not rounded to bfloat16
        if got.shape != exact.shape or got.dtype != dtype:
            return f"{got.dtype} {tuple(got.shape)} for {tuple(exact.shape)}"
        rounded = exact.to(dtype)
        if not torch.equal(got.isnan(), rounded.isnan()) or not torch.equal(got.isinf(), rounded.isinf()):
            return f"NaN or infinity elsewhere: {got.flatten()[:9]} for {rounded.flatten()[:9]}"
        bound = allowed(problem, inputs, exact, index) if exact.is_floating_point() else 0.0
        rounding = 2.0**-7 if dtype == torch.bfloat16 else U  # the interpreter truncates to bfloat16
        bound = bound + rounding * exact.abs() + 2.0**-143
        off = (got.double() - exact.double()).abs()
        wrong = rounded.isfinite() & ~(off <= bound)
        if wrong.any():
            worst = (off / bound)[wrong].max()
            return f"{got[wrong][:3].tolist()} for {exact[wrong][:3].tolist()} ({worst:.1f} bounds)"
    return None


def faults(problem: str) -> dict[str, list[str]]:
    """By seed, what is wrong with it; called where the interpreter is on."""
    found: dict[str, list[str]] = {}
    for seed in seeds(problem, "triton"):
        run = imported(seed).kernel_function
        found[seed.name] = []
        for shape, kind in trials(problem, seed.name):
            inputs = arguments(problem, shape, kind)
            before = [tensor.clone() for tensor in inputs]
            outputs = run(*inputs)
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            why = fault(problem, outputs, inputs)
            for tensor, copy in zip(inputs, before, strict=True):
                if not torch.equal(tensor.view(torch.uint8), copy.view(torch.uint8)):
                    why = "an input was written"
            if why:
                found[seed.name].append(f"{shape} {kind}: {why}")
    return found


def trials(problem: str, name: str) -> Iterator[tuple[Shape, str]]:
    longest = LONGEST.get((problem, name), math.inf)
    for shape in SHAPES.get(problem, ROWS):
        for kind in KINDS:
            meaningless = problem == "quantize_int8" and kind in ("non-finite", "bfloat16")
            if shape[-1] <= longest and not meaningless and (math.prod(shape) < 9000 or kind == "normal"):
                yield shape, kind


@cache
def interpreted(problem: str) -> Any:
    program = f"import json, test_triton_seeds_rows as t; print(json.dumps(t.faults({problem!r})))"
    variables = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


SEEDS = [seed for problem in PROBLEMS for seed in seeds(problem, "triton")]
each_seed = pytest.mark.parametrize("seed", SEEDS, ids=[f"{seed.problem}-{seed.name}" for seed in SEEDS])


def literal(seed: Seed, name: str) -> Any:
    for statement in ast.parse(seed.source).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            return ast.literal_eval(statement.value)
    raise AssertionError(f"{seed.path} has no {name}")


@each_seed
def test_a_triton_seed_is_right_at_any_size(seed: Seed) -> None:
    assert interpreted(seed.problem)[seed.name] == []


@pytest.fixture(scope="module")
def lowering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lowering]:
    opened = Lowering(tmp_path_factory.mktemp("lowered"), arch="sm_90")
    yield opened
    opened.close()


def spec(tensor: Tensor) -> TensorSpec:
    return TensorSpec("tensor", tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))


def tier_case(problem: str) -> Case:
    """The shape that is timed on a GPU."""
    dtype, shapes = TIER[problem]
    inputs = tuple(
        torch.empty(shape, dtype=OTHER_DTYPES.get((problem, index), dtype), device="meta")
        for index, shape in enumerate(shapes)
    )
    wanted = REFERENCES[problem](*inputs)
    outputs = wanted if isinstance(wanted, tuple) else (wanted,)
    specs = tuple(map(spec, inputs)), (), tuple(map(spec, outputs))
    return Case("tier", {}, None, False, False, True, *specs, bytes=0)


@each_seed
def test_a_triton_seed_lowers_for_the_h200_without_spills(lowering: Lowering, seed: Seed) -> None:
    lowered = lowering.lower(Kernel(seed.source, seed.language), [tier_case(seed.problem)])
    assert isinstance(lowered, Lowered), lowered
    assert lowered.traits["spill_store_bytes"] == 0
    assert lowered.traits["registers"] <= 160


@each_seed
def test_a_triton_seed_tunes_within_its_space(seed: Seed) -> None:
    config, space = literal(seed, "CONFIG"), literal(seed, "SPACE")
    assert config.keys() == space.keys()
    assert all(config[name] in space[name] for name in config)


@each_seed
def test_a_triton_seed_opens_with_its_story(seed: Seed) -> None:
    story = ast.get_docstring(ast.parse(seed.source)) or ""
    assert story.startswith(seed.summary) and "Written for kernel-evo from the definition." in story

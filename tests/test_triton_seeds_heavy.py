"""The Triton seeds of products, attention, convolutions and pools: right by the interpreter, and they lower.

The interpreter wants ``TRITON_INTERPRET`` set before Triton is imported, so each problem is tried in a
process of its own, which runs this file as a program and prints one line of JSON. Its bfloat16 products
are not the hardware's, so what takes 16-bit tiles through descriptors is tried in float16, whose
products are.
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
U = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
Shapes = tuple[tuple[int, ...], ...]


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    group = q.shape[1] // k.shape[1]
    keys, values = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    hidden = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ keys.mT / math.sqrt(q.shape[-1])).masked_fill(hidden, -math.inf)
    return torch.softmax(scores, -1) @ values


REFERENCES: dict[str, Callable[..., Tensor]] = {
    "depthwise_conv3x3": lambda x, weight: functional.conv2d(x, weight, groups=x.shape[1]),
    "max_pool3d": lambda x: functional.max_pool3d(x, 3, 2, 1, 3),
    "conv_transpose3d": lambda x, weight: functional.conv_transpose3d(
        x, weight, stride=2, padding=1, dilation=2
    ),
    "matmul": torch.matmul,
    "attention": attention,
}
PROBLEMS = tuple(REFERENCES)


def filters(batch: int, channels: int, height: int, width: int) -> Shapes:
    return (batch, channels, height, width), (channels, 1, 3, 3)


def heads(batch: int, many: int, few: int, length: int, width: int) -> Shapes:
    return (batch, many, length, width), (batch, few, length, width), (batch, few, length, width)


def volume(batch: int, channels: int, out: int, *size: int) -> Shapes:
    return (batch, channels, *size), (channels, out, 3, 3, 3)


SHAPES: dict[str, list[Shapes]] = {
    "depthwise_conv3x3": [
        filters(1, 1, 3, 3), filters(1, 2, 5, 6), filters(3, 2, 4, 9), filters(2, 3, 8, 16),
        filters(1, 1, 131, 3), filters(1, 2, 41, 37), filters(1, 1, 5, 515), filters(1, 1, 34, 1030),
    ],
    "max_pool3d": [
        ((1, 1, 5, 5, 5),), ((1, 2, 6, 7, 8),), ((2, 3, 9, 8, 17),), ((1, 1, 7, 40, 6),),
        ((1, 2, 16, 5, 65),), ((1, 1, 79, 6, 7),), ((1, 1, 5, 5, 513),), ((1, 1, 6, 53, 61),),
    ],
    "conv_transpose3d": [
        volume(1, 1, 1, 1, 1, 1), volume(2, 3, 4, 1, 3, 5), volume(1, 33, 17, 1, 5, 7),
        volume(1, 4, 70, 1, 3, 17), volume(1, 2, 8, 2, 17, 16), volume(1, 1, 1, 1, 1, 67),
    ],
    "matmul": [
        ((1, 1), (1, 1)), ((3, 17), (17, 5)), ((32, 64), (64, 48)), ((65, 129), (129, 127)),
        ((128, 1), (1, 128)), ((1, 515), (515, 33)), ((257, 40), (40, 264)), ((300, 136), (136, 8)),
    ],
    "attention": [
        heads(1, 1, 1, 1, 16), heads(1, 2, 1, 7, 8), heads(2, 4, 2, 33, 32), heads(1, 1, 1, 67, 40),
        heads(1, 4, 2, 256, 64), heads(1, 2, 2, 384, 16),
    ],
}  # fmt: skip
TIER: dict[str, Shapes] = {
    "depthwise_conv3x3": filters(16, 64, 512, 512),
    "max_pool3d": ((16, 32, 128, 128, 128),),
    "conv_transpose3d": volume(16, 32, 64, 16, 32, 32),
    "matmul": ((8192, 8192), (8192, 8192)),
    "attention": heads(4, 32, 8, 4096, 128),
}
FEW = {"max_pool3d": 700}  # values of an input that is tried in every kind; 200 elsewhere
KINDS = ("normal", "row scales", "non-finite", "integers", "float16")


def arguments(shapes: Shapes, kind: str) -> list[Tensor]:
    chance = Generator().manual_seed(sum(shapes[0]))
    made = [torch.randn(shape, generator=chance) for shape in shapes]
    x = made[0]
    if kind == "row scales":
        x *= torch.logspace(-2, 1, x.shape[-2]).unsqueeze(-1)
    if kind == "non-finite":
        for place, value in enumerate((math.nan, math.inf, -math.inf)):
            x.view(-1)[place * 7919 % x.numel()] = value
        x.view(-1)[::5] = -math.inf
    if kind == "integers":
        made = [tensor.sign() for tensor in made]
    return [tensor.half() for tensor in made] if kind == "float16" else made


def allowed(problem: str, inputs: list[Tensor], wanted: Tensor) -> Tensor | float:
    """How far a kernel may be from the exact result, before the output is rounded: sums in float32."""
    if problem == "max_pool3d":
        return 0.0
    sizes = [tensor.double().abs() for tensor in inputs]
    u = U[torch.float32]
    if problem == "attention":  # weights are rounded to the inputs' type before the second product
        scores = sizes[0].amax() * sizes[1].sum(-1).amax() / math.sqrt(sizes[0].shape[-1])
        return (u * (32 + wanted.shape[-2] ** 0.5 + 8 * scores) + U[inputs[0].dtype]) * sizes[2].amax()
    terms = inputs[0].shape[-1] if problem == "matmul" else inputs[1][:, 0].numel()
    return u * (8 + terms**0.5) * REFERENCES[problem](*sizes)


def imported(seed: Seed) -> ModuleType:
    found = importlib.util.spec_from_file_location(seed.name, ROOT / seed.path)
    assert found and found.loader
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def fault(problem: str, got: Tensor, inputs: list[Tensor]) -> str | None:
    """What is wrong with the output of one call."""
    exact = REFERENCES[problem](*(tensor.double() for tensor in inputs))
    if got.shape != exact.shape or got.dtype != inputs[0].dtype:
        return f"{got.dtype} {tuple(got.shape)} for {tuple(exact.shape)}"
    rounded = exact.to(got.dtype)
    if not torch.equal(got.isnan(), rounded.isnan()) or not torch.equal(got.isinf(), rounded.isinf()):
        return "NaN or infinity elsewhere"
    bound = allowed(problem, inputs, exact) + U[got.dtype] * exact.abs() + 2.0**-25
    off = (got.double() - exact).abs()
    wrong = rounded.isfinite() & ~(off <= bound)
    return f"{got[wrong][:3].tolist()} for {exact[wrong][:3].tolist()}" if wrong.any() else None


def faults(problem: str) -> dict[str, list[str]]:
    """By seed, what is wrong with it; called where the interpreter is on."""
    found: dict[str, list[str]] = {}
    for seed in seeds(problem, "triton"):
        run = imported(seed).kernel_function
        found[seed.name] = []
        for index, shapes in enumerate(SHAPES[problem]):
            for kind in KINDS:
                tried = math.prod(shapes[0]) < FEW.get(problem, 200) or kind == KINDS[index % 2 * 4]
                if not tried or (problem == "attention" and kind == "non-finite"):
                    continue
                inputs = arguments(shapes, kind)
                before = [tensor.clone() for tensor in inputs]
                why = fault(problem, run(*inputs), inputs)
                for tensor, copy in zip(inputs, before, strict=True):
                    if not torch.equal(tensor.view(torch.uint8), copy.view(torch.uint8)):
                        why = "an input was written"
                if why:
                    found[seed.name].append(f"{shapes} {kind}: {why}")
    return found


@cache
def interpreted(problem: str) -> Any:
    program = f"import json, test_triton_seeds_heavy as t; print(json.dumps(t.faults({problem!r})))"
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
def test_a_heavy_triton_seed_is_right_at_any_size(seed: Seed) -> None:
    assert interpreted(seed.problem)[seed.name] == []


@pytest.fixture(scope="module")
def lowering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lowering]:
    opened = Lowering(tmp_path_factory.mktemp("lowered"), arch="sm_90")
    yield opened
    opened.close()


def spec(tensor: Tensor) -> TensorSpec:
    return TensorSpec("tensor", tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))


def bfloat16_case(problem: str, name: str, shapes: Shapes) -> Case:
    inputs = [torch.empty(shape, dtype=torch.bfloat16, device="meta") for shape in shapes]
    output = REFERENCES[problem](*inputs)
    return Case(name, {}, None, False, False, True, tuple(map(spec, inputs)), (), (spec(output),), bytes=0)


@each_seed
def test_a_heavy_triton_seed_lowers_for_the_h200_without_spills(lowering: Lowering, seed: Seed) -> None:
    case = bfloat16_case(seed.problem, "tier", TIER[seed.problem])
    lowered = lowering.lower(Kernel(seed.source, seed.language), [case])
    assert isinstance(lowered, Lowered), lowered
    assert lowered.traits["spill_store_bytes"] == 0


@each_seed
def test_a_heavy_triton_seed_lowers_at_small_and_odd_sizes(lowering: Lowering, seed: Seed) -> None:
    sizes = SHAPES[seed.problem][:4]
    cases = [bfloat16_case(seed.problem, str(index), shapes) for index, shapes in enumerate(sizes)]
    lowered = lowering.lower(Kernel(seed.source, seed.language), cases)
    assert isinstance(lowered, Lowered), lowered


@each_seed
def test_a_heavy_triton_seed_tunes_within_its_space(seed: Seed) -> None:
    config, space = literal(seed, "CONFIG"), literal(seed, "SPACE")
    assert config.keys() == space.keys()
    assert all(config[name] in space[name] for name in config)


@each_seed
def test_a_heavy_triton_seed_opens_with_its_story(seed: Seed) -> None:
    story = " ".join((ast.get_docstring(ast.parse(seed.source)) or "").split())
    assert story.startswith(seed.summary) and "Written for kernel-evo from the definition." in story

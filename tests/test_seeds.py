"""The starting kernels: they build as the judge builds, carry what the operators need, and are right."""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import tree_sitter
import tree_sitter_cpp
from torch.nn import functional

from fitness.cpp import FLAGS, check_library
from fitness.cpp_source import fault
from populations.seeds import Seed, problems_with_seeds, seeds

PROBLEMS = (
    "softmax", "layer_norm", "rms_norm", "gelu_tanh", "rope", "quantize_int8", "depthwise_conv3x3",
    "cross_entropy", "swiglu", "masked_cumsum",
)  # fmt: skip
SEEDS = [seed for problem in PROBLEMS for seed in seeds(problem, "cpp")]
TUNE = re.compile(r"^constexpr (?:int|int64_t) [A-Z_]+ = (\d+);  // tune: (\d+(?: \d+)+)$", re.MULTILINE)

Tensors = list[torch.Tensor]
each_seed = pytest.mark.parametrize("seed", SEEDS, ids=[f"{seed.problem}-{seed.name}" for seed in SEEDS])


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[Seed, Path]:
    """Every seed, built with the judge's flags."""
    folder = tmp_path_factory.mktemp("seeds")

    def build(seed: Seed) -> Path:
        source = folder / f"{seed.problem}-{seed.name}.cpp"
        source.write_text(seed.source)
        library = source.with_suffix(".so")
        subprocess.run(["g++", *FLAGS, str(source), "-o", str(library)], check=True)
        return library

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(SEEDS, pool.map(build, SEEDS), strict=True))


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> Tensors:
    total = x + residual
    return [total * torch.rsqrt(total.square().mean(-1, keepdim=True) + 1e-6) * weight, total]


def gelu_tanh(x: torch.Tensor) -> Tensors:
    return [0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))]


def quantize_int8(x: torch.Tensor) -> Tensors:
    largest = x.abs().amax(-1, keepdim=True)
    scale = torch.where(largest == 0, 1.0, largest / 127).float()
    return [torch.round(x / scale.double()).to(torch.int8), scale]


def swiglu(x: torch.Tensor) -> Tensors:
    gate, up = x.chunk(2, -1)
    return [functional.silu(gate) * up]


REFERENCES: dict[str, Callable[..., Tensors]] = {
    "softmax": lambda x: [torch.softmax(x, -1)],
    "layer_norm": lambda x, weight, bias: [functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)],
    "rms_norm": rms_norm,
    "gelu_tanh": gelu_tanh,
    "rope": lambda x, cos, sin: [x * cos + rotate_half(x) * sin],
    "quantize_int8": quantize_int8,
    "depthwise_conv3x3": lambda x, weight: [functional.conv2d(x, weight, groups=x.shape[1])],
    "cross_entropy": lambda logits, targets: [functional.cross_entropy(logits, targets)],
    "swiglu": swiglu,
    "masked_cumsum": lambda x, mask: [torch.cumsum(x * mask, -1)],
}
ROWS = [(1, 1), (3, 15), (2, 16), (5, 17), (7, 63), (3, 257), (9, 1023), (2, 4099)]
SIZES: dict[str, list[tuple[int, ...]]] = {
    "rope": [(1, 1, 1, 2), (2, 3, 5, 6), (3, 2, 17, 34), (1, 3, 65, 64), (2, 2, 9, 126)],
    "depthwise_conv3x3": [(1, 1, 3, 3), (2, 3, 4, 5), (1, 5, 7, 18), (3, 4, 33, 35), (1, 3, 66, 67)],
    "swiglu": [(rows, 2 * n) for rows, n in ROWS],
}


def fill(shape: tuple[int, ...], kind: str, chance: torch.Generator) -> torch.Tensor:
    """Values of one kind: the first index of a shape gives its rows different scales where kind says so."""
    normal = torch.randn(shape, generator=chance)
    if kind == "row scales":
        return normal * torch.logspace(-2, 1, shape[-2])[:, None] + 3
    if kind == "wide":
        return torch.rand(shape, generator=chance) * 160 - 80
    if kind == "subnormal":
        return normal * 1e-40
    if kind == "zero":
        return torch.zeros(shape)
    if kind == "non-finite":
        flat = normal.view(-1)
        for place, value in enumerate((math.nan, math.inf, -math.inf)):
            flat[place * 7919 % len(flat)] = value
        normal[..., shape[-2] // 2, :] = -math.inf
    return normal


def arguments(problem: str, size: tuple[int, ...], kind: str) -> Tensors:
    """The inputs of one case, then its parameters."""
    chance = torch.Generator().manual_seed(sum(size))
    x = fill(size, kind, chance)
    match problem:
        case "layer_norm":
            return [x, torch.randn(size[1], generator=chance), torch.randn(size[1], generator=chance)]
        case "rms_norm":
            return [x, fill(size, kind, chance), torch.randn(size[1], generator=chance)]
        case "rope":
            return [x, torch.randn(size[2:], generator=chance), torch.randn(size[2:], generator=chance)]
        case "depthwise_conv3x3":
            return [x, torch.randn((size[1], 1, 3, 3), generator=chance)]
        case "cross_entropy":
            return [x, torch.randint(0, size[1], size[:1], generator=chance)]
        case "masked_cumsum":
            return [x, torch.rand(size, generator=chance) < 0.5]
        case _:
            return [x]


def call(library: Path, inputs: Tensors, outputs: Tensors) -> None:
    extents = [extent for tensor in (*inputs, *outputs) for extent in tensor.shape]
    shapes = torch.tensor(extents, dtype=torch.int64)
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (*inputs, *outputs, shapes)]
    ctypes.CDLL(str(library)).kernel_function(*pointers)


def allowance(problem: str, inputs: Tensors, expected: torch.Tensor) -> torch.Tensor:
    """Absolute error that float arithmetic may make beside the relative one: cancelled terms."""
    finite = [tensor.double().nan_to_num(0, 0, 0).abs() for tensor in inputs]
    match problem:
        case "layer_norm":
            return 1e-5 * (finite[1].max() + finite[2].max()) * (1 + finite[0].max())
        case "rope":
            return 1e-6 * (finite[0] * finite[1] + rotate_half(finite[0]).abs() * finite[2])
        case "depthwise_conv3x3":
            return 1e-6 * functional.conv2d(finite[0], finite[1], groups=inputs[0].shape[1])
        case "masked_cumsum":
            return 2e-6 * finite[0].cumsum(-1)
        case "gelu_tanh":
            return 1e-6 * finite[0]
        case "cross_entropy":
            return 1e-6 * (1 + finite[0].max())
        case _:
            return torch.zeros_like(expected)


def assert_right(seed: Seed, library: Path, inputs: Tensors, case: str) -> None:
    reference = REFERENCES[seed.problem]
    doubles = [tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs]
    outputs = []
    for wanted in reference(*doubles):
        like = wanted.float() if wanted.is_floating_point() else wanted
        outputs.append(torch.full_like(like, math.nan if like.is_floating_point() else 99))
    before = [tensor.clone() for tensor in inputs]
    call(library, inputs, outputs)
    for tensor, copy in zip(inputs, before, strict=True):
        assert torch.equal(tensor.view(torch.uint8), copy.view(torch.uint8)), f"{case}: an input was written"
    for output, wanted in zip(outputs, reference(*doubles), strict=True):
        if not wanted.is_floating_point():
            assert torch.equal(output, wanted), case
            continue
        rounded = wanted.float()
        assert torch.equal(output.isnan(), rounded.isnan()), f"{case}: NaN elsewhere"
        assert torch.equal(output.isinf(), rounded.isinf()), f"{case}: infinities elsewhere"
        bound = 3e-5 * wanted.abs() + allowance(seed.problem, inputs, wanted) + 2.0**-126
        wrong = rounded.isfinite() & ~((output.double() - wanted).abs() <= bound)
        assert not wrong.any(), f"{case}: {output[wrong][:3]} for {wanted[wrong][:3]}"


def test_each_of_the_ten_problems_has_a_plain_and_an_expert_seed() -> None:
    assert problems_with_seeds("cpp") == tuple(sorted(PROBLEMS))
    assert all([seed.name for seed in seeds(problem, "cpp")] == ["plain", "expert"] for problem in PROBLEMS)
    assert seeds("no such problem") == ()


def test_seeds_are_read_without_torch() -> None:
    program = "import sys, populations.seeds as s; s.seeds('softmax'); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parent.parent)


@each_seed
def test_a_seed_opens_with_its_story(seed: Seed) -> None:
    story = re.match(r"(?://[^\n]*\n)+", seed.source)
    assert story and "Written for kernel-evo from the definition." in story[0]
    assert seed.source.startswith(f"// {seed.summary}\n")


@each_seed
def test_a_seed_parses_to_a_tree_that_operators_can_edit(seed: Seed) -> None:
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))
    assert not parser.parse(seed.source.encode()).root_node.has_error


@each_seed
def test_a_number_that_tunes_lists_its_own_value(seed: Seed) -> None:
    found = TUNE.findall(seed.source)
    assert len(found) == seed.source.count("tune:")
    assert all(value in allowed.split() for value, allowed in found)
    assert bool(found) == (seed.name == "expert")


@each_seed
def test_a_seed_passes_the_rules_for_sources_and_libraries(libraries: dict[Seed, Path], seed: Seed) -> None:
    size = SIZES.get(seed.problem, ROWS)[0]
    inputs = arguments(seed.problem, size, "normal")
    outputs = REFERENCES[seed.problem](*inputs)
    assert fault(seed.source, len(inputs) + len(outputs) + 1) is None
    assert check_library(libraries[seed]) is None


@each_seed
@pytest.mark.parametrize("kind", ["normal", "row scales", "wide", "subnormal", "zero", "non-finite"])
def test_a_seed_is_right_at_any_size(libraries: dict[Seed, Path], seed: Seed, kind: str) -> None:
    if seed.problem == "quantize_int8" and kind == "non-finite":
        pytest.skip("int8 has no NaN")
    for size in SIZES.get(seed.problem, ROWS):
        inputs = arguments(seed.problem, size, kind)
        assert_right(seed, libraries[seed], inputs, f"{size}")

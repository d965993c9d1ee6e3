"""The kernels that show the operators: their inputs, and what they should compute, in plain PyTorch."""

import importlib.util
import itertools
import types
from collections.abc import Callable, Sequence

import torch

_COUNT = itertools.count()


def load(file: str) -> types.ModuleType:
    """The module in a file, under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"subject_{next(_COUNT)}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawn(*shapes: Sequence[int]) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(len(shapes))
    return tuple(torch.randn(*shape, generator=generator) for shape in shapes)


def gelu(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x, approximate="tanh") * torch.sigmoid(gate)


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rms = (x.square().mean(-1) + 1e-5).sqrt()
    return x / rms[:, None] * weight, rms


def layer_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[1:], weight)


def pool(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    best = torch.nn.functional.max_pool2d(x[None], (3, 2), stride=1)[0]
    return best, x.sum(-1), x.amax(-1)


def prefix(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([torch.tril(x).sum(-1), torch.tril(x).abs().sum(-1)], dim=-1)


INPUTS: dict[str, Callable[[], list[tuple[torch.Tensor, ...]]]] = {
    "softmax": lambda: [drawn((3, 37)), drawn((2, 64))],
    "softmax_long": lambda: [drawn((3, 75)), drawn((2, 64))],
    "rms_norm": lambda: [drawn((5, 100), (100,)), drawn((2, 128), (128,))],
    "rms_norm_early": lambda: [drawn((5, 100), (100,)), drawn((2, 128), (128,))],
    "gelu": lambda: [drawn((3, 70), (3, 70)), drawn((2, 64), (2, 64))],
    "matmul": lambda: [drawn((40, 24), (24, 20)), drawn((64, 32), (32, 32))],
    "layer_norm": lambda: [drawn((3, 75), (75,)), drawn((2, 64), (64,))],
    "pool": lambda: [drawn((6, 50)), drawn((4, 33))],
    "prefix": lambda: [drawn((37, 37))],
    "autotuned": lambda: [drawn((3, 70))],
}
REFERENCES: dict[str, Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]] = {
    "softmax": lambda x: torch.softmax(x, -1),
    "softmax_long": lambda x: torch.softmax(x, -1),
    "rms_norm": rms_norm,
    "rms_norm_early": lambda x, weight: rms_norm(x, weight)[0],
    "gelu": gelu,
    "matmul": torch.matmul,
    "layer_norm": layer_norm,
    "pool": pool,
    "prefix": prefix,
    "autotuned": lambda x: 2.0 * x,
}

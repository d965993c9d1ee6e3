"""Each structural rewrite with a kernel before it, the child after it, and the verdict: they agree.

The kernels lie in ``tests/operators``: ``before/*.cpp`` and ``after/<rewrite>.cpp``. All have one entry,
``(const float* x, const float* w, float* out, const int64_t* shapes)``: x and out of rows * n, w of n values.
To look at a changed rewrite, run this module as a program with ``--write`` and read the difference.
"""

from __future__ import annotations

import ctypes
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from operators.cpp import STRUCTURAL
from operators.cpp.nodes import well_formed
from operators.cpp.rewrite import Rewrite
from operators.testing import BRIEF
from tests.operators.library import one_library

HERE = Path(__file__).parent / "operators"
# The kernel that shows the rewrite, and which of its children is shown.
SHOWN = {
    "parallelise": ("vectors", 0),
    "schedule": ("grid", 2),
    "collapse": ("grid", 0),
    "serial_below": ("softmax", 0),
    "one_region": ("two_loops", 0),
    "region_outside": ("rows_in_turn", 0),
    "bind_threads": ("softmax", 0),
    "simd": ("softmax", 0),
    "drop_simd": ("vectors", 0),
    "simd_width": ("vectors", 0),
    "unroll": ("running_sum", 0),
    "restrict": ("softmax", 0),
    "aligned": ("vectors", 1),
    "inline_functions": ("vectors", 0),
    "fuse": ("two_loops", 0),
    "fission": ("two_results", 0),
    "interchange": ("grid", 0),
    "unswitch": ("constants", 0),
    "hoist": ("constants", 0),
    "tile": ("softmax", 1),
    "tile_and_swap": ("gelu", 0),
    "accumulators": ("softmax", 0),
    "row_block": ("softmax", 0),
    "prefetch": ("running_sum", 0),
    "prefetch_next_row": ("softmax", 0),
    "stream_stores": ("gelu", 0),
    "fast_exp": ("log_softmax", 0),
    "tanh_by_exp": ("gelu", 1),
    "sigmoid_form": ("gelu", 0),
    "power_by_products": ("constants", 0),
    "reciprocal": ("softmax", 0),
    "divide_less": ("softmax", 0),
    "online": ("log_softmax", 0),
    "keep_values": ("log_softmax", 0),
    "recompute_values": ("softmax", 0),
    "prefix_scan": ("running_sum", 0),
}
SHAPES = ((5, 1031), (3, 37), (9, 2), (1, 1), (17, 256))


def before(name: str) -> str:
    return (HERE / "before" / f"{SHOWN[name][0]}.cpp").read_text()


def after(name: str) -> str:
    return (HERE / "after" / f"{name}.cpp").read_text()


def child(rewrite: Rewrite) -> str:
    return list(rewrite.children(before(rewrite.name), BRIEF))[SHOWN[rewrite.name][1]]


def aligned(values: np.ndarray) -> np.ndarray:
    raw = np.zeros(values.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    view = raw[start : start + values.nbytes].view(values.dtype)
    view[:] = values.ravel()
    return view


def outputs(library: ctypes.CDLL, entry: str) -> list[np.ndarray]:
    """What a kernel writes, for each shape."""
    found = []
    for rows, n in SHAPES:
        chance = np.random.default_rng(rows * n)
        x, w = (aligned(chance.standard_normal(size).astype(np.float32)) for size in (rows * n, n))
        out, shapes = aligned(np.full(rows * n, np.nan, np.float32)), np.array([rows, n], np.int64)
        arguments = [ctypes.c_void_p(array.ctypes.data) for array in (x, w, out, shapes)]
        getattr(library, entry)(*arguments)
        found.append(out.copy())
    return found


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ctypes.CDLL]:
    """The library of the kernels before, and for each rewrite the one that holds its child."""
    folder = tmp_path_factory.mktemp("built")
    names = sorted(SHOWN)
    groups = [{f"after_{name}": after(name) for name in names[i::4]} for i in range(4)]
    groups.append(
        {f"before_{path.stem}": path.read_text() for path in sorted((HERE / "before").glob("*.cpp"))}
    )
    with ThreadPoolExecutor(2) as pool:
        built = list(pool.map(lambda i: one_library(groups[i], folder / f"group{i}.so"), range(5)))
    return {key: library for group, library in zip(groups, built, strict=True) for key in group}


@pytest.mark.parametrize("rewrite", STRUCTURAL, ids=lambda rewrite: rewrite.name)
def test_the_rewrite_turns_the_kernel_before_into_the_one_after(rewrite: Rewrite) -> None:
    assert child(rewrite) == after(rewrite.name)


@pytest.mark.parametrize("name", SHOWN)
def test_the_child_computes_what_its_parent_computes(name: str, libraries: dict[str, ctypes.CDLL]) -> None:
    old, new = f"before_{SHOWN[name][0]}", f"after_{name}"
    for expected, got in zip(outputs(libraries[old], old), outputs(libraries[new], new), strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5 * np.abs(expected).max())


def test_there_are_at_least_fifteen_structural_rewrites_and_each_is_shown() -> None:
    assert len(STRUCTURAL) >= 15
    assert {rewrite.name for rewrite in STRUCTURAL} == set(SHOWN)


def test_every_child_of_every_kernel_before_parses() -> None:
    for path in (HERE / "before").glob("*.cpp"):
        for rewrite in STRUCTURAL:
            assert all(map(well_formed, rewrite.children(path.read_text(), BRIEF))), (rewrite.name, path.name)


if __name__ == "__main__" and "--write" in sys.argv:
    for shown in STRUCTURAL:
        (HERE / "after" / f"{shown.name}.cpp").write_text(child(shown))

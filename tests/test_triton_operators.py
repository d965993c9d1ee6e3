"""Each structural rewrite for Triton with a kernel before it and the child after it: they agree.

The kernels lie in ``tests/operators/triton``: ``before/*.py`` and ``after/<rewrite>.py``; ``subjects.py`` has
their inputs and what they compute. Children run under Triton's interpreter, and are compiled for an
architecture that need not be there, in one process each. To look at a changed rewrite, run this module as a
program with ``--write`` and read the difference.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from operators.proposal import Brief
from operators.testing import BRIEF
from operators.triton import STRUCTURAL
from operators.triton.rewrite import Rewrite
from operators.triton.syntax import well_formed
from populations.kernel import Kernel
from populations.seeds import seeds

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent / "operators" / "triton"
# The kernel that shows the rewrite, and which of its children is shown.
SHOWN = {
    "adopt_autotune": ("autotuned", 0),
    "launch_numbers": ("prefix", 0),
    "free_number": ("rms_norm", 0),
    "tuple_grid": ("gelu", 0),
    "permute_axes": ("matmul", 0),
    "group_swizzle": ("matmul", 0),
    "reverse_programs": ("prefix", 0),
    "constexpr_sizes": ("softmax_long", 0),
    "index_width": ("softmax_long", 0),
    "empty_output": ("softmax", 0),
    "persistent": ("rms_norm", 0),
    "coarsen": ("gelu", 0),
    "rows_per_program": ("softmax", 0),
    "evict_first": ("layer_norm", 2),
    "evict_last": ("softmax_long", 0),
    "cache_loads": ("gelu", 0),
    "stream_stores": ("gelu", 0),
    "hints": ("matmul", 0),
    "hoist_load": ("rms_norm", 0),
    "sink_load": ("rms_norm_early", 0),
    "keep_value": ("rms_norm", 0),
    "reread_value": ("softmax", 0),
    "even_mask": ("softmax_long", 0),
    "peel_last": ("softmax_long", 0),
    "interior_split": ("gelu", 0),
    "exp2": ("softmax", 0),
    "reciprocal": ("softmax", 0),
    "rsqrt": ("layer_norm", 0),
    "tanh_by_exp2": ("gelu", 0),
    "sigmoid_form": ("gelu", 0),
    "sigmoid_by_exp2": ("gelu", 0),
    "dot_precision": ("matmul", 0),
    "dot_accumulate": ("matmul", 0),
    "vector_accumulator": ("prefix", 0),
    "scalar_accumulator": ("layer_norm", 0),
    "pipeline_loop": ("softmax_long", 1),
    "unroll_loop": ("softmax_long", 1),
    "static_loop": ("pool", 0),
    "flatten_loop": ("pool", 0),
    "warp_specialize": ("matmul", 0),
    "disable_licm": ("prefix", 0),
    "single_accumulator": ("matmul", 0),
    "interchange": ("pool", 0),
    "fuse_loops": ("pool", 0),
    "split_loop": ("prefix", 0),
    "reverse_pass": ("softmax_long", 1),
    "online_softmax": ("softmax_long", 0),
}
SLACK = 2e-6  # against float64, relative to the largest value


def before(name: str) -> str:
    return (HERE / "before" / f"{SHOWN[name][0]}.py").read_text()


def after(name: str) -> str:
    return (HERE / "after" / f"{name}.py").read_text()


def child(rewrite: Rewrite) -> str:
    return list(rewrite.children(before(rewrite.name), BRIEF))[SHOWN[rewrite.name][1]]


def answers(program: str, cache: Path) -> dict[str, dict[str, Any]]:
    """What a program beside the kernels says of each of them, before and after."""
    files = {f"before_{path.stem}": (path, path.stem) for path in sorted((HERE / "before").glob("*.py"))}
    files |= {name: (HERE / "after" / f"{name}.py", subject) for name, (subject, _) in SHOWN.items()}
    if program == "interpret":
        del files["before_autotuned"]  # the interpreter would have it measure
    tasks = [{"name": name, "file": str(path), "subject": subject} for name, (path, subject) in files.items()]
    done = subprocess.run(
        [sys.executable, "-m", f"tests.operators.triton.{program}"],
        input="".join(json.dumps(task) + "\n" for task in tasks),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TRITON_CACHE_DIR": str(cache), "TRITON_DEFAULT_FP_FUSION": "1"},
        check=False,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(tasks), done.stderr
    return {answer["name"]: answer for answer in found}


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return answers("interpret", tmp_path_factory.mktemp("interpreted"))


@pytest.fixture(scope="module")
def lowered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return answers("lower", tmp_path_factory.mktemp("lowered"))


@pytest.mark.parametrize("rewrite", STRUCTURAL, ids=lambda rewrite: rewrite.name)
def test_the_rewrite_turns_the_kernel_before_into_the_one_after(rewrite: Rewrite) -> None:
    assert child(rewrite) == after(rewrite.name)


@pytest.mark.parametrize("name", SHOWN)
def test_the_child_computes_what_its_parent_computes(
    name: str, interpreted: dict[str, dict[str, Any]]
) -> None:
    assert "failed" not in interpreted[name], interpreted[name]["failed"]
    assert interpreted[name]["error"] < SLACK


@pytest.mark.parametrize("name", SHOWN)
def test_the_child_compiles_for_an_architecture_that_is_not_there(
    name: str, lowered: dict[str, dict[str, Any]]
) -> None:
    assert "failed" not in lowered[name], lowered[name]["failed"]
    assert lowered[name]["kernels"] >= 1


def test_the_kernels_before_are_right_and_compile(
    interpreted: dict[str, dict[str, Any]], lowered: dict[str, dict[str, Any]]
) -> None:
    for name in sorted({f"before_{subject}" for subject, _ in SHOWN.values()} - {"before_autotuned"}):
        assert interpreted[name].get("error", 1.0) < SLACK, interpreted[name]
        assert lowered[name].get("kernels", 0) >= 1, lowered[name]


def test_there_are_at_least_twenty_four_structural_rewrites_and_each_is_shown() -> None:
    assert len(STRUCTURAL) >= 24
    assert {rewrite.name for rewrite in STRUCTURAL} == set(SHOWN)


def test_every_child_of_every_kernel_before_is_python_and_differs() -> None:
    for path in sorted((HERE / "before").glob("*.py")):
        source = path.read_text()
        for rewrite in STRUCTURAL:
            for found in rewrite.children(source, BRIEF):
                assert well_formed(found) and found != source, (rewrite.name, path.name)


if __name__ == "__main__" and "--write" in sys.argv:
    (HERE / "after").mkdir(exist_ok=True)
    for shown in STRUCTURAL:
        (HERE / "after" / f"{shown.name}.py").write_text(child(shown))


def test_a_rewrite_leaves_alone_what_does_not_run_where_the_kernel_is_timed() -> None:
    (whole_row,) = (seed for seed in seeds("softmax", "triton") if "LONGEST" in seed.source)
    parent = Kernel(whole_row.source, "triton")
    idle = changed(parent, BRIEF)
    assert idle & {"softmax_rows", "softmax_long_rows"} == {"softmax_rows", "softmax_long_rows"}
    assert "softmax_long_rows" not in changed(parent, replace(BRIEF, running=("softmax_rows",)))
    assert changed(parent, replace(BRIEF, running=("renamed",))) == idle


def changed(parent: Kernel, brief: Brief) -> set[str]:
    """The functions that rewrites alone change: each by a child in which no other differs."""
    found = set()
    for rewrite in STRUCTURAL:
        for chance in range(12):
            proposal = rewrite((parent,), brief, Random(chance))
            if proposal is not None:
                old, new = functions(parent.source), functions(proposal.kernel.source)
                differing = {name for name in old if old[name] != new.get(name)}
                found |= differing if len(differing) == 1 else set()
    return found


def functions(source: str) -> dict[str, str]:
    """The text of each function by its name."""
    nodes = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.unparse(node) for node in nodes}

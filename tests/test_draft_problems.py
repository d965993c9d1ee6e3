"""Drafts of small problems as people write them: built as the judge builds, within the gate's bound."""

from __future__ import annotations

import ctypes
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fitness.cpp import FLAGS, admit
from fitness.judge.gate import judged
from fitness.judge.loaded import Draw, LoadedCase
from fitness.judge.problem import Problem, load
from fitness.judge.tracing import trace
from fitness.target import Admission
from operators.draft import Argument, draft
from populations.graph import Graph
from populations.kernel import Kernel

HERE = Path(__file__).parent / "problems"
FILES = [*sorted((HERE / "drafted").glob("*.py")), HERE / "attention.py", HERE / "gru.py"]
TRACED = 5  # cases: enough for each size to vary once
OTHER_CASES = 1
# What the sizes of a draft do not follow: how many steps a recurrent layer takes, a model's own constants.
BAKED = {"gru", "lstm_layer"}


@dataclass(frozen=True)
class Drafted:
    """A problem with its draft, built."""

    problem: Problem
    graph: Graph
    kernel: Kernel
    library: Future[Path]


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Drafted]:
    folder = tmp_path_factory.mktemp("drafts")

    def build(name: str, kernel: Kernel) -> Path:
        source, library = folder / f"{name}.cpp", folder / f"{name}.so"
        source.write_text(kernel.source)
        subprocess.run(["g++", *FLAGS, str(source), "-o", str(library)], check=True)
        return library

    found = {}
    with ThreadPoolExecutor(2) as pool, torch.no_grad():
        for file in FILES:
            problem = load(str(file), seed=1, cache_bytes=32 << 20)
            graph = trace(problem.cases[:TRACED])
            outputs = [Argument(spec.name, spec.dtype) for spec in problem.card.given.outputs]
            kernel = draft(graph, outputs, problem.card.summary)
            library = pool.submit(build, file.stem, kernel)
            found[file.stem] = Drafted(problem, graph, kernel, library)
    return found


def called(library: Path, loaded: LoadedCase, draw: Draw) -> list[Tensor]:
    """The outputs, poisoned beforehand."""
    outputs = [torch.full(spec.shape, 77).to(getattr(torch, spec.dtype)) for spec in loaded.case.outputs]
    extents = [extent for spec in loaded.case.arguments for extent in spec.shape]
    arguments = [*draw.inputs, *draw.parameters, *outputs, torch.tensor(extents, dtype=torch.int64)]
    ctypes.CDLL(str(library)).kernel_function(*[ctypes.c_void_p(tensor.data_ptr()) for tensor in arguments])
    return outputs


@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_a_draft_passes_the_bound_of_the_gate_at_the_given_size_and_at_others(
    drafts: dict[str, Drafted], name: str
) -> None:
    drafted = drafts[name]
    fitting = [loaded for loaded in drafted.problem.cases if loaded.case.name in drafted.graph.cases]
    for loaded in fitting[: 1 + OTHER_CASES]:
        with torch.no_grad():
            draw = loaded.draw("a key")
            found = judged(loaded, draw, called(drafted.library.result(), loaded, draw))
        assert found.max_error <= 1, f"{loaded.case.name}: {found.evidence}\n{drafted.kernel.source}"


@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_a_draft_is_admitted_and_keeps_what_it_says_of_sizes(drafts: dict[str, Drafted], name: str) -> None:
    drafted = drafts[name]
    assert isinstance(admit(drafted.kernel, drafted.problem.card), Admission)
    general = "Sizes that vary are read from shapes." in drafted.kernel.source.replace("\n// ", " ")
    assert general == bool(drafted.graph.extents)
    missing = {loaded.case.name for loaded in drafted.problem.cases[:TRACED]} - set(drafted.graph.cases)
    assert name in BAKED or all(case.endswith("=1") for case in missing)

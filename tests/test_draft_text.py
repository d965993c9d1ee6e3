"""The parts of a draft: places, names, what is refused, and what a run makes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import tree_sitter
import tree_sitter_cpp
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from evo.settings import SettingsError
from evo.starting import admitted, drafted
from fitness.card import ProblemCard
from fitness.judge.extents import unified
from fitness.judge.problem import load
from fitness.judge.tracing import Untraceable, trace, traced
from fitness.testing import InstantTarget
from operators.draft import Argument, Undraftable, draft
from operators.draft.sizes import Digit, Extent, joined, place, product, regrouped, variable
from operators.tune import space
from populations.graph import Graph, Node

ROOT = Path(__file__).parent.parent
HEAD = """\"\"\"A plain problem.\"\"\"

import torch
from torch import nn

rows = 6
width = 10


class Model(nn.Module):
"""
TAIL = """

def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return []
"""


def graph_of(folder: Path, model: str) -> Graph:
    """The graph of a problem whose model is these lines."""
    return trace(loaded(folder, model).cases)


def loaded(folder: Path, model: str):  # type: ignore[no-untyped-def]
    path = folder / "plain.py"
    path.write_text(HEAD + "\n".join("    " + line for line in model.splitlines()) + "\n" + TAIL)
    return load(str(path), seed=1, cache_bytes=32 << 20)


def kernel_of(folder: Path, model: str) -> str:
    return draft(graph_of(folder, model), [Argument("out", "float32")]).source


# -- places --------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_a_reshape_keeps_the_row_major_place(factors: list[int], chance) -> None:  # type: ignore[no-untyped-def]
    count = product(map(Extent, factors))
    shuffled = list(factors)
    chance.shuffle(shuffled)
    shape = [Extent(factor) for factor in shuffled]
    for at in range(int(count)):
        digits = variable("at", count, 1)
        places = [eval(place(digits).replace("/", "//"), {"at": at}) for digits in regrouped(digits, shape)]
        found = 0
        for extent, one in zip(shape, places, strict=True):
            found = found * int(extent) + one
        assert found == at


def test_a_view_there_and_back_leaves_no_division() -> None:
    row, inner = variable("row", Extent(12), 1), variable("i", Extent(35), 2)
    index = regrouped([*row, *inner], [Extent(4), Extent(3), Extent(5), Extent(7)])
    assert "/" in place(index[0])
    assert place(joined(digit for digits in index for digit in digits)) == "row * 35 + i"


def test_a_product_of_names_is_divided_by_one_of_them() -> None:
    n, m = Extent.read(6, "n0"), Extent.read(20, "n1 * 4")
    assert product((n, m)).text == "n0 * n1 * 4"
    assert product((n, m)).by(n).text == "n1 * 4"
    assert m.by(Extent(4)).text == "n1"
    assert m.by(Extent(2)).text == "n1 * 2"


def test_a_digit_of_a_size_that_is_read_at_run_time_names_it() -> None:
    n = Extent.read(6, "n0")
    upper, lower = Digit("row", product((n, Extent(5))), Extent(1), product((n, Extent(5))), 1).split(
        Extent(5)
    )
    assert (upper.text, lower.text) == ("(row / 5)", "(row % 5)")


# -- tracing -------------------------------------------------------------------------------------------


def test_a_graph_survives_json(tmp_path: Path) -> None:
    card = traced(loaded(tmp_path, "def forward(self, x):\n    return x.masked_fill(x < 0, float('-inf'))"))
    cards = TypeAdapter(ProblemCard)
    assert card.graph is not None
    text = json.dumps(cards.dump_python(card, mode="json"), allow_nan=False)
    assert cards.validate_json(text) == card


def test_sizes_are_explained_by_the_shapes_of_all_cases(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, "def forward(self, x):\n    return x[:, 1:].flatten() * x.shape[0]")
    assert [extent.meaning for extent in graph.extents][:2] == ["x, dimension 0", "x, dimension 1"]
    assert len(graph.cases) > 4


def test_traces_that_differ_keep_the_sizes_of_the_given_case(tmp_path: Path) -> None:
    problem = loaded(tmp_path, "def forward(self, x):\n    return x + 1 if x.shape[0] == 6 else x * 2 - 3")
    graph = trace(problem.cases)
    assert graph.cases[0] == "given"
    assert not [case for case in graph.cases if case.startswith("rows")]
    assert all("rows" not in extent.meaning for extent in graph.extents)


def test_a_model_whose_path_depends_on_data_has_no_graph_and_a_note(tmp_path: Path) -> None:
    problem = loaded(tmp_path, "def forward(self, x):\n    return x if x.sum() > 0 else -x")
    with pytest.raises(Untraceable):
        trace(problem.cases)
    card = traced(problem)
    assert card.graph is None
    assert "could not be traced" in card.notes[-1]


def test_a_loop_of_many_operations_is_too_long(tmp_path: Path) -> None:
    model = "def forward(self, x):\n    for _ in range(300):\n        x = torch.sin(x) + 1\n    return x"
    with pytest.raises(Untraceable, match="more than 400"):
        graph_of(tmp_path, model)


def test_a_single_graph_is_its_own_common_one(tmp_path: Path) -> None:
    problem = loaded(tmp_path, "def forward(self, x):\n    return x + 1")
    graph = trace(problem.cases[:1])
    assert graph.extents == ()
    assert unified([graph], [problem.cases[0].case]) == graph


# -- text ----------------------------------------------------------------------------------------------


def test_softmax_is_one_parallel_loop_over_rows(tmp_path: Path) -> None:
    source = kernel_of(tmp_path, "def forward(self, x):\n    return torch.softmax(x, dim=1)")
    assert source.count("#pragma omp parallel for") == 1
    assert source.count("expf(") == 2
    assert "malloc" not in source


def test_what_is_known_once_a_row_is_computed_once_a_row(tmp_path: Path) -> None:
    source = kernel_of(
        tmp_path, "def forward(self, x):\n    return x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6)"
    )
    assert source.index("sqrtf") < source.rindex("for (int64_t")


def test_a_pointwise_end_is_written_by_the_product_before_it(tmp_path: Path) -> None:
    model = "def __init__(self):\n    super().__init__()\n    self.dense = nn.Linear(width, 16)\n\n"
    source = kernel_of(tmp_path, model + "def forward(self, x):\n    return torch.relu(self.dense(x))")
    assert source.count("parallel for") == 1
    assert set(space(source)) == {"ROWS", "COLUMNS"}


def test_names_that_loops_and_the_library_use_are_given_another(tmp_path: Path) -> None:
    path = tmp_path / "named.py"
    text = (HEAD + "    def forward(self, row, i):\n        return torch.exp(row) + i\n" + TAIL).replace(
        "[torch.randn(rows, width)]", "[torch.randn(rows, width), torch.randn(rows, width)]"
    )
    path.write_text(text)
    problem = load(str(path), seed=1, cache_bytes=32 << 20)
    source = draft(trace(problem.cases), [Argument("out", "float32")]).source
    assert "const float* row_, const float* i_" in source


def test_a_draft_parses_to_a_tree_that_operators_can_edit(tmp_path: Path) -> None:
    source = kernel_of(tmp_path, "def forward(self, x):\n    return torch.cumsum(x, 1) / x.amax()")
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))
    assert not parser.parse(source.encode()).root_node.has_error


def test_an_operation_without_a_draft_is_named(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, "def forward(self, x):\n    return torch.sort(x, dim=1)[0]")
    with pytest.raises(Undraftable, match=r"aten\.sort"):
        draft(graph, [Argument("out", "float32")])


def test_temporaries_of_more_than_the_limit_are_refused() -> None:
    shape, sizes = (1 << 14, 1 << 13), ("16384", "8192")
    nodes = (
        Node("x", "input", {}, shape, sizes, "float32"),
        Node("y", "aten.cumsum.default", {"self": "%x", "dim": "1"}, shape, sizes, "float32"),
        Node("z", "aten.cumsum.default", {"self": "%y", "dim": "0"}, shape, sizes, "float32"),
    )
    with pytest.raises(Undraftable, match="temporaries of 512 MiB"):
        draft(Graph(nodes, ("z",)), [Argument("out", "float32")])


# -- a run ---------------------------------------------------------------------------------------------


def test_a_problem_that_cannot_be_drafted_says_what_is_lacking_and_what_to_do(tmp_path: Path) -> None:
    card = traced(loaded(tmp_path, "def forward(self, x):\n    return torch.sort(x, dim=1)[0]"))
    target = InstantTarget("plain.py", folder=tmp_path)
    target._card = card
    with pytest.raises(
        SettingsError, match=r"^no starting kernel: aten\.sort has no draft; give one with --seeds"
    ):
        admitted(target, [], "plain.py")
    lacking = replace(card, graph=None, notes=("the reference could not be traced: too long",))
    assert drafted(lacking) == ([], "the reference could not be traced: too long")


@pytest.mark.judge
@pytest.mark.timeout(900)
@pytest.mark.timeout(1200)  # a busy machine takes races again
def test_a_plain_problem_with_parameters_runs_from_its_draft(tmp_path: Path) -> None:
    problem = tmp_path / "dense.py"
    model = (
        "    def __init__(self):\n        super().__init__()\n        self.dense = nn.Linear(width, 200)\n"
        "        self.norm = nn.LayerNorm(200)\n\n"
        "    def forward(self, x):\n        return self.norm(torch.relu(self.dense(x)))\n"
    )
    problem.write_text(
        (HEAD + model + TAIL).replace("rows = 6", "rows = 500").replace("width = 10", "width = 300")
    )
    run = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-m", "evo", "run", problem, "--evaluations", "4", "--run-dir", run, "--json"],
        capture_output=True,
        text=True,
        timeout=800,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode in (0, 1), done.stderr  # 1: this machine is too noisy to measure anything
    assert json.loads(done.stdout)["ledger"]["evaluations"] >= 1
    shown = subprocess.run(
        [sys.executable, "-m", "evo", "show", run, "1"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert "drafted from the reference's graph): " in shown.stdout + shown.stderr
    assert any(word in shown.stdout + shown.stderr for word in ("measured", "correct"))
    assert "incorrect" not in shown.stdout + shown.stderr


def test_drafting_needs_no_torch() -> None:
    program = "import sys, operators.draft; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_gradients_stay_on_after_tracing(tmp_path: Path) -> None:
    graph_of(tmp_path, "def forward(self, x):\n    return x + 1")
    assert torch.is_grad_enabled()

"""Mutations are sent to kinds of kernels of which a run has none or few."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from chat_server import Body, serving
from test_evo_agents import Parts, events, kernel, nothing, speak

import evo
import populations
from evo.directions import DIRECTED, Directions
from evo.folded import replayed
from evo.settings import checked
from evo.traits import TRAITS, cell
from operators.agents.writers import Mutate
from populations.events import Reserved
from populations.kernel import Kernel
from populations.profile import KernelProfile

HERE = __name__
SEEDS = Path(populations.__file__).parent / "seeds" / "softmax"
THREADS, VECTORS = (TRAITS["cpp"][n].levels[1] for n in (0, 1))


def test_the_cell_of_a_cpp_kernel_is_read_from_its_source_and_not_from_its_comments() -> None:
    plain = (SEEDS / "plain.cpp").read_text()
    assert cell(Kernel(plain, "cpp")) == (1, 0, 1, 0)
    wide = (SEEDS.parent / "depthwise_conv3x3" / "expert.cpp").read_text()
    assert cell(Kernel(wide, "cpp"))[:2] == (1, 2)
    assert cell(Kernel((SEEDS / "expert.cpp").read_text(), "cpp"))[:2] == (1, 1)
    said = "// _mm512_add_ps\n/* #pragma omp parallel\n float lanes[16]; */\n"
    assert cell(Kernel(said + kernel("PLAIN"), "cpp")) == (0, 0, 0, 0)
    assert cell(Kernel(kernel("PLAIN") + "float lanes[16];", "cpp")) == (0, 0, 0, 1)


def test_the_cell_of_a_triton_kernel_is_read_from_its_binary() -> None:
    source = Kernel("@triton.jit\ndef k(): pass", "triton")
    small = KernelProfile("k", 1, registers=40, shared_bytes=512, instructions=90, load_bits={32: 4, 128: 1})
    large = KernelProfile("j", 2, registers=168, shared_bytes=1 << 15, instructions=900, load_bits={128: 4})
    assert cell(source) == (None, None, None, None)
    assert cell(source, (small,)) == (0, 0, 0, 0)
    assert cell(source, (small, large)) == (2, 1, 1, 1)
    assert len(TRAITS["triton"][0].levels) == 3


class Always(Parts):
    """Every kernel is worth the same."""


class Author:
    """Writes kernels that differ in a name, all but one in four with threads."""

    def __init__(self) -> None:
        self._number = itertools.count(1)

    def __call__(self, body: Body) -> str:  # noqa: ARG002 -- the same whatever it is asked
        number = next(self._number)
        source = kernel(f"N{number}")
        if number % 4:
            source = source.replace("    for (", "#pragma omp parallel for\n    for (", 1)
        return f"Rationale: number {number}\n\n```cpp\n{source}```\n"


def directions(run: populations.Run) -> list[str]:
    """Of the mutations that were asked for, in order; "" where one was left to its author."""
    found = []
    for event in events(run, Reserved):
        if event.operator == Mutate.name:
            told = json.loads((run.path / "calls" / f"{event.call}.asked.json").read_text())
            said = re.search(r"^Explore in this direction: (.*)$", told["messages"][-1]["text"], re.MULTILINE)
            found.append(said[1] if said else "")
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of which most kernels use threads."""
    folder = tmp_path_factory.mktemp("directed") / "run"
    with serving(Author()) as server:
        evo.search(
            "instant", f"{HERE}:Always", evaluations=40, patience=10, run_dir=folder, toolbox=nothing(),
            weights={"agent_cross": 0}, models=[speak(server, parallel=1)],
        ).close()  # fmt: skip
    return folder


def test_some_mutations_have_a_direction_and_others_are_left_to_their_author(path: Path) -> None:
    with populations.open(path) as run:
        told = directions(run)
    assert len(told) > 20 and 0.1 < sum(map(bool, told)) / len(told) < 0.9
    assert len(set(told)) > 2


def test_the_fewer_structures_a_cell_holds_the_likelier_it_is_the_direction(path: Path) -> None:
    with populations.open(path) as run:
        state, course = replayed(run.log, checked(run.settings["search"], "the run"))
        finder = Directions("cpp", lambda id: run.get(id).kernel, lambda _: ())
        alone = next(m.id for m in run.individuals() if "omp" not in m.source)
        crowd = sum("omp" in member.source for member in run.individuals())
        said = [finder.toward(alone, state, course, Random(n)) for n in range(600)]
    words = Counter(each.partition(" (")[0] for each in said if each)
    assert abs(words.total() / len(said) - DIRECTED) < 0.1
    assert set(words) == {words for trait in TRAITS["cpp"] for words in trait.levels[1:]}
    assert words[THREADS] < 0.3 * words[VECTORS]
    assert (
        f"{VECTORS} (not tried yet: no measured kernel does this and otherwise resembles the parent)" in said
    )
    known = f"of kernels that otherwise resemble the parent {crowd} do this, at best with 1.00 of its speed"
    assert f"{THREADS} ({known})" in said

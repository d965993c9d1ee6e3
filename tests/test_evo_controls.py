"""Control arms: the same search without one of its parts, at equal budget."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import evo
import populations
from evo import session
from evo.progress import Silent

SEED = """constexpr int TILE = 64;  // tune: 16 32 64 128 256
extern "C" void kernel_function(const float* x, float* out0, const int64_t* shapes) {
    for (int64_t i = 0; i < shapes[0]; ++i) out0[i] = x[i];
    for (int64_t j = 0; j < shapes[1]; ++j) out0[j] += x[j];
}
"""
INSTANT = "fitness.testing:InstantTarget"


def searched(folder: Path, control: str | None, evaluations: int = 60) -> populations.Run:
    start = folder / "seed.cpp"
    start.write_text(SEED)
    run_dir = folder / (control or "whole")
    return evo.search(
        "softmax", INSTANT, evaluations=evaluations, seeds=[start], run_dir=run_dir, control=control
    )


def test_best_of_n_has_children_of_the_seeds_alone(tmp_path: Path) -> None:
    with searched(tmp_path, "best-of-n") as run:
        seeds = {member.id for member in run.individuals() if not member.parents}
        assert run.evaluations == 60
        assert all(set(member.parents) <= seeds for member in run.individuals())


def test_without_crossover_every_child_has_one_parent(tmp_path: Path) -> None:
    with searched(tmp_path, "no-crossover") as run:
        assert all(len(member.parents) <= 1 for member in run.individuals())


def test_random_parents_are_any_measured_kernels(tmp_path: Path) -> None:
    with searched(tmp_path, "random-parent", 120) as run:
        ranks = {member.id: member.rank for member in run.individuals()}
        parents = {id for member in run.individuals() if member.operator != "tune" for id in member.parents}
        assert all(ranks[id] is not None for id in parents)
        assert min(ranks[id] or 0.0 for id in parents) < sorted(rank or 0.0 for rank in ranks.values())[40]


def test_a_control_is_recorded_and_kept_by_a_resume(tmp_path: Path) -> None:
    with searched(tmp_path, "random-operator") as run:
        assert tomllib.loads((run.path / "run.toml").read_text())["control"] == "random-operator"
        assert run.settings["search"]["control"] == "random-operator"
        session.resume(run.path, Silent())


@pytest.mark.parametrize("control", ["best-of-n", "random-operator"])
def test_a_control_makes_another_search_with_the_same_seed(control: str, tmp_path: Path) -> None:
    with searched(tmp_path, control) as one, searched(tmp_path, None) as whole:
        assert [m.source_sha for m in one.individuals()] != [m.source_sha for m in whole.individuals()]

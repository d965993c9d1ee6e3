"""Nothing is compiled twice, what is compiled is compiled side by side, and the disk does not fill."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import lower_idioms
import pytest
from test_lowering_rules import CASE, DOUBLE, HONEST

from fitness import plan
from fitness.lowering import Lowered, Lowering
from fitness.lowering.children import Children
from fitness.lowering.confinement import Limits
from fitness.lowering.jobs import TRACE, Job, TraceJob
from fitness.lowering.store import Made, Shelf, Store
from fitness.plan import Binary
from fitness.target import Alike
from populations.kernel import Kernel
from populations.verdict import Outcome, Verdict

BY_WIDTH = HONEST.replace("256", "min(1024, triton.next_power_of_2(x.shape[1]))")
CASES = [lower_idioms.case(f"x=float32[8,{width}] -> float32[8,{width}]") for width in (32, 64, 128, 256)]
TRIPLE = DOUBLE[DOUBLE.index("@triton") :].replace("double", "triple").replace("FACTOR", "3.0")
NAPS = """import time
def kernel_function(x):
    began = time.monotonic()
    time.sleep(0.5)
    raise ValueError(f"[{began}, {time.monotonic()}]")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lowering")


@pytest.fixture(scope="module")
def lowering(folder: Path) -> Iterator[Lowering]:
    made = Lowering(folder, cores=2)
    yield made
    made.close()


def scaled(source: str, factor: int) -> str:
    """The same kernel with a number of its own, so that no other test has compiled it."""
    return source.replace("tl.constexpr(2.0)", f"tl.constexpr({factor}.0)")


def lowered(lowering: Lowering, source: str, cases: int = len(CASES)) -> Lowered:
    made = lowering.lower(Kernel(source, "triton"), CASES[:cases])
    assert isinstance(made, Lowered), made
    return made


def newly_compiled(lowering: Lowering, source: str, cases: int = len(CASES)) -> int:
    before = lowering.tally["compile"].jobs
    lowered(lowering, source, cases)
    return lowering.tally["compile"].jobs - before


def test_more_cases_compile_only_what_the_first_ones_did_not_need(lowering: Lowering) -> None:
    source = scaled(BY_WIDTH, 3)
    assert [newly_compiled(lowering, source, cases) for cases in (2, 4)] == [2, 2]


def test_other_host_code_compiles_nothing(lowering: Lowering) -> None:
    source = scaled(BY_WIDTH, 4)
    lowered(lowering, source)
    assert newly_compiled(lowering, source.replace("cdiv(x.numel(), ", "cdiv(x.numel() + 1, ")) == 0
    assert newly_compiled(lowering, source.replace("pass", "y = torch.zeros_like(x)")) == 0


def test_where_the_work_on_the_timed_case_is_known_nothing_else_is_compiled(lowering: Lowering) -> None:
    cases = [replace(case, timed=case is CASES[0]) for case in CASES]
    source = scaled(BY_WIDTH, 11)
    first = lowering.lower(Kernel(source, "triton"), cases)
    assert isinstance(first, Lowered)
    assert first.timed_sha is not None
    other = source.replace("min(1024, triton.next_power_of_2(x.shape[1]))", "32 if x.shape[1] == 32 else 512")
    before = lowering.tally["compile"].jobs

    alike = lowering.lower_unless(Kernel(other, "triton"), cases, {first.timed_sha}.__contains__)
    assert alike == Alike(first.timed_sha)
    assert lowering.tally["compile"].jobs == before

    whole = lowering.lower(Kernel(other, "triton"), cases)
    assert isinstance(whole, Lowered)
    assert whole.timed_sha == first.timed_sha
    assert whole.sha != first.sha


def test_another_function_of_the_module_compiles_only_itself(lowering: Lowering) -> None:
    source = scaled(BY_WIDTH, 5)
    lowered(lowering, source, 1)
    both = source.replace("pass", "triple[(1,)](x, y, 5, 128)") + TRIPLE
    assert newly_compiled(lowering, both, 1) == 1
    assert newly_compiled(lowering, both.replace("3.0", "9.0"), 1) == 1


def test_another_launch_option_is_compiled(lowering: Lowering) -> None:
    source = scaled(HONEST, 6)
    lowered(lowering, source, 1)
    assert newly_compiled(lowering, source.replace("256)\n", "256, num_warps=8)\n"), 1) == 1


def test_a_plan_from_kept_binaries_is_the_plan_of_new_ones(lowering: Lowering, tmp_path: Path) -> None:
    source = scaled(BY_WIDTH, 7)
    lowered(lowering, source, 2)
    kept = lowered(lowering, source)
    alone = Lowering(tmp_path, cores=1)
    try:
        new = lowered(alone, source)
    finally:
        alone.close()
    assert kept.plan == new.plan
    assert {p.name: p.read_bytes() for p in kept.folder.iterdir()} == {
        p.name: p.read_bytes() for p in new.folder.iterdir()
    }


def test_a_damaged_binary_is_compiled_anew(lowering: Lowering, folder: Path) -> None:
    source = scaled(HONEST, 8)
    before = set((folder / "binaries").iterdir())
    first = lowered(lowering, source)
    (stored,) = set((folder / "binaries").iterdir()) - before
    data = stored.read_bytes()
    stored.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    assert newly_compiled(lowering, source + "MORE = 1\n") == 1
    stored.write_bytes(data[:99])
    assert newly_compiled(lowering, source + "MORE = 2\n") == 1
    assert newly_compiled(lowering, source + "MORE = 3\n") == 0
    assert lowered(lowering, source + "MORE = 4\n").sha == first.sha


def test_two_threads_with_one_source_compile_it_once(lowering: Lowering) -> None:
    source, before = scaled(BY_WIDTH, 9), lowering.tally["compile"].jobs
    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(lambda _: lowered(lowering, source), range(2))
    assert one.plan == other.plan
    assert lowering.tally["compile"].jobs - before == len(CASES)


def test_two_threads_with_one_kernel_that_does_not_compile_are_both_told(lowering: Lowering) -> None:
    source = HONEST.replace("* FACTOR", "* tl.arange(0, 100)")
    with ThreadPoolExecutor(2) as threads:
        said = list(threads.map(lambda _: lowering.lower(Kernel(source, "triton"), CASES), range(2)))
    assert [one.status for one in said if isinstance(one, Verdict)] == [Outcome.UNCOMPILABLE] * 2


def test_the_first_that_does_not_compile_is_told_of_and_ends_the_rest(tmp_path: Path) -> None:
    lowering = Lowering(tmp_path, cores=1)
    try:
        source = BY_WIDTH.replace("* FACTOR", "* tl.arange(0, 3 * BLOCK - 128)")  # right for 64 alone
        verdict = lowering.lower(Kernel(source, "triton"), [CASES[1], CASES[2], CASES[3]])
        assert isinstance(verdict, Verdict)
        assert verdict.reason.startswith("line 8: ")
        assert lowering.tally["compile"].jobs == 2
    finally:
        lowering.close()


def test_all_threads_together_have_no_more_children_than_the_budget(tmp_path: Path) -> None:
    children = Children(tmp_path / "log", arch="sm_90", sandboxed=True, limits=Limits(), most=2)
    job = TRACE.dump_json(TraceJob(entry="kernel_function", cases=(CASE,), asked={}))

    def naps(thread: int) -> list[tuple[float, float]]:
        jobs = [Job(tmp_path, f"{thread}-{index}", job) for index in range(3)]
        for one in jobs:
            one.folder.mkdir()
            (one.folder / "kernel.py").write_text(NAPS)
        answers = children.ask_all("trace", jobs, lambda _: False)
        reasons = [json.loads(text)["reason"] for text in answers if isinstance(text, bytes)]
        return [tuple(json.loads(reason[reason.index("[") :])) for reason in reasons]

    try:
        with ThreadPoolExecutor(3) as threads:
            slept = [nap for some in threads.map(naps, range(3)) for nap in some]
    finally:
        children.close()
    at_once = [sum(began <= moment < ended for began, ended in slept) for moment, _ in slept]
    assert (len(slept), max(at_once)) == (9, 2)


def test_a_shelf_forgets_what_was_used_longest_ago(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf", entries=3, most_bytes=1000, least=1)
    for name in "abc":
        put(shelf, tmp_path, name, 10)
    shelf.use("a")
    put(shelf, tmp_path, "d", 10)
    assert sorted(path.name for path in (tmp_path / "shelf").iterdir()) == ["a", "c", "d"]
    put(shelf, tmp_path, "e", 985)
    assert sorted(path.name for path in (tmp_path / "shelf").iterdir()) == ["d", "e"]
    assert shelf.use("a") is None


def test_the_last_used_entries_stay_whatever_their_size(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf", entries=9, most_bytes=1, least=2)
    for name in "abc":
        put(shelf, tmp_path, name, 500)
    assert sorted(path.name for path in (tmp_path / "shelf").iterdir()) == ["b", "c"]


def test_a_shelf_opened_again_knows_what_was_used_last(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf", entries=9, most_bytes=1000, least=1)
    for age, name in enumerate("abc"):
        put(shelf, tmp_path, name, 10)
        os.utime(tmp_path / "shelf" / name, (1000 - age, 1000 - age))
    Shelf(tmp_path / "shelf", entries=1, most_bytes=1000, least=1)
    assert [path.name for path in (tmp_path / "shelf").iterdir()] == ["a"]


def put(shelf: Shelf, folder: Path, name: str, size: int) -> None:
    made = folder / "made"
    made.mkdir()
    (made / "file").write_bytes(b"x" * size)
    shelf.put(name, made)


def test_a_store_keeps_what_was_put_whole_and_no_draft(tmp_path: Path) -> None:
    made = Made(
        Binary("k", "s", {"cubin": "k.cubin"}, {"shared": 0}, {"registers": 9}), {"cubin": b"\x00\xff"}
    )
    Store(tmp_path, entries=9, most_bytes=1 << 20, least=1).put("key", made)
    (tmp_path / "other.1.draft").write_bytes(b"half")
    again = Store(tmp_path, entries=9, most_bytes=1 << 20, least=1)
    assert (again.get("key"), again.get("other")) == (made, None)
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_binaries_outlive_the_process_and_a_forgotten_plan_is_made_of_them_again(tmp_path: Path) -> None:
    for compiled in (1, 0):
        lowering = Lowering(tmp_path, plans=1)
        try:
            assert newly_compiled(lowering, HONEST, 1) == compiled
            assert newly_compiled(lowering, HONEST + "MORE = 1\n", 1) == 0
        finally:
            lowering.close()
        assert len(list((tmp_path / "plans").iterdir())) == 1


def test_a_plan_of_which_half_reached_the_disk_is_made_again(lowering: Lowering) -> None:
    first = lowered(lowering, HONEST, 1)
    (first.folder / "plan.json").write_text("{")
    again = lowered(lowering, HONEST, 1)
    assert (again, plan.read((first.folder / "plan.json").read_bytes())) == (first, first.plan)

"""Several specialisations in one child: each has its own limits, answer and misfortune. Places go by age."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fitness.lowering.children import ChildError, Children
from fitness.lowering.confinement import Limits
from fitness.lowering.jobs import COMPILE, COMPILE_ANSWER, Compiled, CompileJob, Job, taken_file
from fitness.lowering.offers import Offers
from fitness.lowering.places import Places
from fitness.plan import KernelSpec

MODULE = """import os, time, triton
LEFT = os.path.join(os.getcwd(), "..")
{}

@triton.jit
def fill(x, n):
    triton.language.store(x, n)
"""
SPEC = KernelSpec("fill", ("x", "n"), {"x": "*fp32", "n": "i32"}, (), (), {})
HANG = "time.sleep(60)"
SPIN = "while True: pass"
CRASH = "os.abort()"
GREEDY = "kept = bytearray(7 << 30)"


@pytest.fixture(scope="module")
def children(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Children]:
    log = tmp_path_factory.mktemp("children") / "log"
    made = Children(log, arch="sm_90", sandboxed=True, limits=Limits(wall=4, cpu=3), most=1)
    yield made
    made.close()


def asked(children: Children, folder: Path, *does: str) -> list[str]:
    """What came of specialisations that one child is given, each with a module that does something first."""
    jobs = [
        Job(folder, str(index), COMPILE.dump_json(CompileJob(text=MODULE.format(line), dotted={}, spec=SPEC)))
        for index, line in enumerate(does)
    ]
    answers = children.ask_all("compile", jobs, lambda text: b'"binary"' not in text)
    return [_said(answer) for answer in answers]


def _said(answer: bytes | ChildError | None) -> str:
    if isinstance(answer, bytes):
        return "compiled" if isinstance(COMPILE_ANSWER.validate_json(answer), Compiled) else "refused"
    return answer.status if isinstance(answer, ChildError) else "not done"


@pytest.mark.parametrize(("line", "status"), [(HANG, "timed_out"), (SPIN, "timed_out"), (CRASH, "crashed")])
def test_one_that_does_not_end_well_among_others_costs_what_came_before_it_nothing(
    children: Children, tmp_path: Path, line: str, status: str
) -> None:
    assert asked(children, tmp_path, "", "", line, "") == ["compiled", "compiled", status, "not done"]
    (tmp_path / "after").mkdir()
    assert asked(children, tmp_path / "after", "") == ["compiled"]


def test_one_that_is_refused_ends_the_rest(children: Children, tmp_path: Path) -> None:
    refused = "from triton.language import there_is_no_such_thing"
    assert asked(children, tmp_path, "", refused, "") == ["compiled", "refused", "not done"]


def test_several_are_done_by_one_child(children: Children, tmp_path: Path) -> None:
    before = children.tally["compile"].children
    assert asked(children, tmp_path, "", "", "") == ["compiled"] * 3
    assert children.tally["compile"].children - before == 1


def test_one_that_crashes_behind_others_is_done_once_more_in_a_child_of_its_own(
    children: Children, tmp_path: Path
) -> None:
    once = "if not os.path.exists(LEFT + '/was'): open(LEFT + '/was', 'w').close(); os.abort()"
    before = children.tally["compile"].children
    assert asked(children, tmp_path, "", once, "") == ["compiled"] * 3
    assert children.tally["compile"].children - before == 3


def test_time_counts_from_the_beginning_of_each(children: Children, tmp_path: Path) -> None:
    naps = ["time.sleep(1.5)"] * 4  # six seconds together, of four
    assert asked(children, tmp_path, *naps) == ["compiled"] * 4


def test_processor_time_counts_from_the_beginning_of_each(children: Children, tmp_path: Path) -> None:
    busy = ["until = time.process_time() + 1\nwhile time.process_time() < until: pass"] * 4
    assert asked(children, tmp_path, *busy) == ["compiled"] * 4


def test_memory_that_is_not_there_is_told(children: Children, tmp_path: Path) -> None:
    assert asked(children, tmp_path, "", GREEDY) == ["compiled", "crashed"]


def test_a_constant_of_torchs_is_a_dtype_and_no_function(children: Children, tmp_path: Path) -> None:
    spec = KernelSpec(
        "fill", ("x", "n"), {"x": "*fp32", "n": "constexpr"}, (((1,), {"torch": "load"}),), (), {}
    )
    text = MODULE.format("").replace("n)", "n: triton.language.constexpr)", 1)
    answer = children.ask("compile", tmp_path, COMPILE.dump_json(CompileJob(text=text, dotted={}, spec=spec)))
    assert b"torch.load is no dtype" in answer


def test_processes_that_one_leaves_behind_end_with_its_child(children: Children, tmp_path: Path) -> None:
    leaves = (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    )
    assert asked(children, tmp_path, leaves, "") == ["compiled"] * 2
    sleeping = [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"time.sleep(600)" in _read(path)]
    assert sleeping == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # it has ended meanwhile


def offered(folder: Path, modules: str) -> Offers[str]:
    for module in set(modules):
        (folder / module).mkdir()
    return Offers([Job(folder / module, str(index), b"") for index, module in enumerate(modules)])


def take(offers: Offers[str], index: int, number: int) -> None:
    """As a child does."""
    folder = offers.jobs[index].folder
    (folder / "job.json").rename(folder / taken_file(number))


def test_each_free_place_is_one_more_child_and_each_child_may_take_all_that_is_left(tmp_path: Path) -> None:
    offers = offered(tmp_path, "aaa")
    first, *others = offers.wanted([])
    assert [offer.indices for offer in (first, *others)] == [[0, 1, 2]] * 3
    assert len(offers.wanted([first])) == 2  # it will take one of them
    take(offers, 0, 7)
    assert [offer.indices for offer in offers.wanted([])] == [[1, 2]] * 2
    assert offers.taken(first, 7) == [0]


def test_what_does_not_trust_each_other_is_done_by_children_of_its_own(tmp_path: Path) -> None:
    assert [offer.indices for offer in offered(tmp_path, "abab").wanted([])] == [[0, 2], [1, 3]] * 2


def test_behind_one_that_failed_nothing_is_begun_but_what_stands_before_it_is(tmp_path: Path) -> None:
    offers = offered(tmp_path, "aaaa")
    take(offers, 0, 7)
    take(offers, 1, 8)
    offers.answer(1, "wrong", last=True)
    assert offers.wanted([]) == []
    assert offers.again(0)
    assert [offer.indices for offer in offers.wanted([])] == [[0]]


def test_places_go_to_the_oldest_turn_whoever_asked_first() -> None:
    places, got = Places(1), []

    def ask(turn: int, number: int) -> None:
        with places.asker(turn) as asker:
            assert places.next(asker, 1, None) == (1, [])
            got.append(turn)
            places.begun(asker, number)
            places.ended(number, 0)
            assert places.next(asker, 0, None) == (0, [(number, 0)])

    with places.asker(0) as first:
        assert places.next(first, 3, None) == (1, [])  # all there are
        places.begun(first, 100)
        threads = [threading.Thread(target=ask, args=(turn, turn)) for turn in (3, 1, 2)]
        for thread in threads:
            thread.start()
        while places.waiting < len(threads):
            time.sleep(0.001)
        places.ended(100, 0)
    for thread in threads:
        thread.join()
    assert got == [1, 2, 3]


def test_those_who_wait_are_told_when_there_are_no_more_places() -> None:
    places = Places(0)
    with places.asker(1) as asker:
        places.close()
        assert places.next(asker, 1, None) is None

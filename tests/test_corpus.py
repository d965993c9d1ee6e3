"""Wrong and cheating kernels, each with the verdict it must get, and honest ones that merely look odd.

Every file of ``tests/corpus`` opens with what is expected of it: status, stage (alternatives where chance
decides, as in a race) and a part of the reason. docs/corpus.md is the table of them; run this file as a
program to write it anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest

import fitness
from fitness import Admission, Built, Target
from populations.kernel import Kernel
from populations.verdict import Outcome, Stage, Verdict

CORPUS = Path(__file__).parent / "corpus"
TABLE = Path(__file__).parents[1] / "docs" / "corpus.md"
KIBIBYTE = 1024

pytestmark = [pytest.mark.judge, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Specimen:
    """One file of the corpus and what its head says of it."""

    name: str  # "folder/stem"
    problem: str
    statuses: tuple[Outcome, ...]
    stages: tuple[Stage, ...]
    reason: str  # must be found in the verdict's reason
    tries: str  # what the kernel does, in words
    source: str

    @property
    def honest(self) -> bool:
        return self.name.startswith("honest/")


def read(path: Path) -> Specimen:
    source = path.read_text()
    head = dict(re.findall(r"^// (problem|status|stage|reason): ?(.*)$", source, re.MULTILINE))
    comment = re.search(r"^// reason:.*\n((?:// .*\n)+)", source, re.MULTILINE)
    assert comment, f"{path} does not say what it tries"
    return Specimen(
        name=f"{path.parent.name}/{path.stem}",
        problem=head["problem"],
        statuses=tuple(Outcome(word) for word in head["status"].split()),
        stages=tuple(Stage(word) for word in head["stage"].split()),
        reason=head["reason"].strip(),
        tries=" ".join(line.removeprefix("// ") for line in comment[1].splitlines()),
        source=source,
    )


SPECIMENS = sorted((read(path) for path in CORPUS.glob("*/*.cpp")), key=lambda s: (s.problem, s.name))
WRONG = [specimen for specimen in SPECIMENS if not specimen.honest]
PROBLEMS = sorted({specimen.problem for specimen in SPECIMENS})


@dataclass(frozen=True)
class Workshop:
    """A problem's target, and what building each of the problem's specimens came to."""

    target: Target
    built: dict[str, Built | Verdict]


@pytest.fixture(scope="module")
def workshop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """One judge at a time, hence one problem at a time; all builds are done before the first judging."""
    target = fitness.open_target("cpu", request.param, folder=tmp_path_factory.mktemp(request.param))
    mine = [specimen for specimen in SPECIMENS if specimen.problem == request.param]
    try:
        with ThreadPoolExecutor(2) as pool:
            built = pool.map(lambda specimen: build(target, specimen.source), mine)
            yield Workshop(target, dict(zip((s.name for s in mine), built, strict=True)))
    finally:
        target.close()


def build(target: Target, source: str) -> Built | Verdict:
    admission = target.admit(Kernel(source, "cpp"))
    return target.build(admission) if isinstance(admission, Admission) else admission


def judge(target: Target, built: Built | Verdict, *, promote: bool = False) -> Verdict:
    if isinstance(built, Verdict):
        return built
    return target.promote(built) if promote else target.screen(built)


@pytest.mark.parametrize(
    ("workshop", "specimen"),
    [pytest.param(s.problem, s, id=f"{s.problem}-{s.name}") for s in SPECIMENS],
    indirect=["workshop"],
    scope="module",
)
def test_a_specimen_gets_the_verdict_that_its_head_names(workshop: Workshop, specimen: Specimen) -> None:
    promote = specimen.stages == (Stage.PROMOTION_GATE,)
    verdict = judge(workshop.target, workshop.built[specimen.name], promote=promote)
    assert verdict.status in specimen.statuses, verdict
    assert verdict.stage in specimen.stages, verdict
    assert specimen.reason in verdict.reason


@pytest.mark.parametrize("workshop", ["softmax"], indirect=True, scope="module")
def test_after_all_that_the_judge_still_measures_an_honest_seed(workshop: Workshop) -> None:
    seed = (files("populations") / "seeds" / "softmax" / "expert.cpp").read_text()
    verdict = judge(workshop.target, build(workshop.target, seed))
    assert verdict.status is Outcome.MEASURED, verdict
    assert verdict.isolation == "process"


@pytest.mark.parametrize("workshop", ["softmax"], indirect=True, scope="module")
def test_a_kernel_that_slows_short_blocks_down_is_not_taken_for_a_faster_one(workshop: Workshop) -> None:
    names = ("timing/own_clock", "timing/slow_in_short_blocks")
    plain, sly = (judge(workshop.target, workshop.built[name]) for name in names)
    assert plain.speedup is not None
    assert sly.speedup is None or sly.speedup < 1.4 * plain.speedup


GENERATED = {
    "a source of more than 256 KiB": ("//" + "x" * 256 * KIBIBYTE, "at most 262144 (256 KiB)"),
    "a NUL character": ("\n\n\0", "line 3: contains a NUL character"),
    "half of a surrogate pair": ("// \ud800", "line 1: is not UTF-8 text"),
    "nothing at all": ("", "defines no entry"),
    "brackets without end": ('extern "C" void kernel_function' + "(" * 100_000, "takes 1 arguments"),
}


@pytest.mark.parametrize("workshop", ["softmax"], indirect=True, scope="module")
@pytest.mark.parametrize("what", GENERATED)
def test_text_that_is_no_source_is_refused_with_a_reason(workshop: Workshop, what: str) -> None:
    source, reason = GENERATED[what]
    verdict = build(workshop.target, source)
    assert isinstance(verdict, Verdict)
    assert (verdict.status, verdict.stage) == (Outcome.REJECTED, Stage.ADMIT)
    assert reason in verdict.reason


def test_the_corpus_is_large_and_mixed() -> None:
    assert len(WRONG) >= 36
    assert len(SPECIMENS) - len(WRONG) >= 8
    assert {stage for specimen in WRONG for stage in specimen.stages} == set(Stage)
    assert len(PROBLEMS) >= 6


def test_the_table_in_the_manual_says_what_the_files_say() -> None:
    table = TABLE.read_text()
    missing = [specimen.name for specimen in SPECIMENS if row(specimen) not in table]
    assert not missing, "write it anew: python tests/test_corpus.py"
    assert table.count("\n| `") == len(SPECIMENS)


def row(specimen: Specimen) -> str:
    verdict = f"{' or '.join(specimen.statuses)} / {' or '.join(specimen.stages)}"
    reason = f"…{specimen.reason}…" if specimen.reason else ""
    cells = (f"`{specimen.name}`", specimen.problem, specimen.tries, verdict, reason)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    before = TABLE.read_text().partition("\n| `")[0]
    rows = "\n".join(row(specimen) for specimen in sorted(SPECIMENS, key=lambda s: s.name))
    TABLE.write_text(f"{before}\n{rows}\n")

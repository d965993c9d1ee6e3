"""Wrong and cheating Triton kernels, each with the verdict it must get, and honest ones in many styles.

Every file of ``tests/triton_corpus`` opens with what is expected of it without a GPU: problem, status, stage
(alternatives where two are right) and a part of the reason. Plans of what lowers are run by the interpreter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from fitness.lowered import LoweredTarget
from fitness.target import Admission, Built
from populations.kernel import Kernel
from populations.verdict import Outcome, Stage, Verdict

pytest.importorskip("triton")

CORPUS = Path(__file__).parent / "triton_corpus"
PROBLEMS = Path(__file__).parent / "problems"
KIBIBYTE = 1024
BUILDS = 2  # at once

pytestmark = [pytest.mark.judge, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Specimen:
    """One file of the corpus and what its head says of it."""

    name: str  # "folder/stem"
    problem: str  # a built-in one, or a file of tests/problems
    entry: str | None
    statuses: tuple[Outcome, ...]
    stages: tuple[Stage, ...]
    reason: str  # must be found in the verdict's reason
    source: str

    @property
    def honest(self) -> bool:
        return self.name.startswith("honest/")


def read(path: Path) -> Specimen:
    source = path.read_text()
    head = dict(re.findall(r"^# (problem|entry|status|stage|reason): ?(.*)$", source, re.MULTILINE))
    assert re.search(r"^# reason:.*\n# \S", source, re.MULTILINE), f"{path} does not say what it tries"
    return Specimen(
        name=f"{path.parent.name}/{path.stem}",
        problem=head["problem"],
        entry=head.get("entry"),
        statuses=tuple(Outcome(word) for word in head["status"].split()),
        stages=tuple(Stage(word) for word in head["stage"].split()),
        reason=head["reason"].strip(),
        source=source,
    )


SPECIMENS = sorted((read(path) for path in CORPUS.glob("*/*.py")), key=lambda s: (s.problem, s.name))
WRONG = [specimen for specimen in SPECIMENS if not specimen.honest]


class Workshop:
    """A problem's target; its specimens are built while others are judged."""

    def __init__(self, problem: str, entry: str | None, folder: Path, pool: ThreadPoolExecutor) -> None:
        file = PROBLEMS / f"{problem}.py"
        self.target = LoweredTarget(str(file) if file.exists() else problem, folder=folder, entry=entry)
        mine = [each for each in SPECIMENS if (each.problem, each.entry) == (problem, entry)]
        self._built = {each.name: pool.submit(self.build, each.source) for each in mine}

    def build(self, source: str) -> Built | Verdict:
        """Admit and lower, as a search does."""
        admission = self.target.admit(Kernel(source, "triton"))
        return self.target.build(admission) if isinstance(admission, Admission) else admission

    def judged(self, name: str) -> Verdict:
        """The verdict on a specimen: what a search would see."""
        built: Built | Verdict = self._built[name].result()
        return built if isinstance(built, Verdict) else self.target.screen(built)


@pytest.fixture(scope="module")
def workshop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    problem, entry = request.param
    with ThreadPoolExecutor(BUILDS) as pool:
        opened = Workshop(problem, entry, tmp_path_factory.mktemp(problem), pool)
        try:
            yield opened
        finally:
            pool.shutdown(cancel_futures=True)
            opened.target.close()


@pytest.mark.parametrize(
    ("workshop", "specimen"),
    [pytest.param((s.problem, s.entry), s, id=f"{s.problem}-{s.name}") for s in SPECIMENS],
    indirect=["workshop"],
    scope="module",
)
def test_a_specimen_gets_the_verdict_that_its_head_names(workshop: Workshop, specimen: Specimen) -> None:
    verdict = workshop.judged(specimen.name)
    said = f"{verdict.status}/{verdict.stage}: {verdict.reason}"
    assert verdict.status in specimen.statuses, said
    assert verdict.stage in specimen.stages, said
    assert specimen.reason in verdict.reason, said
    assert "Traceback" not in verdict.reason
    assert not verdict.timed


GENERATED = {
    "a source of more than 256 KiB": ("#" + "x" * 256 * KIBIBYTE, "at most 262144 (256 KiB)"),
    "a NUL character": ("x = 1\n\0", "null bytes"),
    "half of a surrogate pair": ("# \ud800", "line 1: is not UTF-8 text"),
    "nothing at all": ("", "there is no @triton.jit function"),
    "C++": ("#include <cmath>\nvoid kernel_function(float *x) {}", "line 2: invalid syntax"),
    "a bracket that nobody closed": ("import triton\nprint((1, 2)", "line 2: '(' was never closed"),
    "brackets without end": ("x = " + "(" * 5000, "too many nested parentheses"),
    "a sum without end": ("x = " + "-" * 50_000 + "1", ""),
}


@pytest.mark.parametrize("workshop", [("softmax", None)], indirect=True, scope="module")
@pytest.mark.parametrize("what", GENERATED)
def test_text_that_is_no_source_is_refused_with_a_reason(workshop: Workshop, what: str) -> None:
    source, reason = GENERATED[what]
    verdict = workshop.build(source)
    assert isinstance(verdict, Verdict)
    assert (verdict.status, verdict.stage) == (Outcome.REJECTED, Stage.ADMIT)
    assert reason in verdict.reason


def test_the_corpus_is_large_and_mixed() -> None:
    assert len(WRONG) >= 45
    assert len(SPECIMENS) - len(WRONG) >= 22
    assert len({specimen.problem for specimen in SPECIMENS}) >= 5

"""For tests, benchmarks and authors of targets: a device that answers at once, and the contract of a target.

``InstantTarget`` compiles and runs nothing. Its verdict is a function of the source alone, so a search on it
is reproducible to the last digit, and the time it takes is the engine's own. Name it on the command line as a
plug-in target is named: ``--target fitness.testing:InstantTarget``.

``TargetContract`` is the suite that every target passes; a new one inherits it and supplies two fixtures.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import replace
from pathlib import Path

from fitness.card import Case, ProblemCard, TensorSpec
from fitness.target import Admission, Built, Target
from populations.calibration import Baseline, Calibration, Floor, Noise
from populations.export_check import Agreement
from populations.kernel import Kernel
from populations.verdict import CaseVerdict, Evidence, Outcome, Stage, Timing, Verdict

MAX_SOURCE_BYTES = 256 * 1024
BASELINE_SECONDS = 1e-3
NOISE = 0.005  # half-width of the A/A interval, of log speed-up
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NUMBER = re.compile(r"constexpr\s+\w+\s+(\w+)\s*=\s*(\d+)")
_ENTRY = 'extern "C"'


class InstantTarget:
    """A target that answers at once, the same for the same source.

    A smooth bowl over the kernel's ``constexpr`` numbers, a bonus that its structure draws from a hash, and a
    little noise make the rank; ``failures`` of all sources fail, spread over the outcomes a real device has.

    Args:
        problem: any name; the card is that of a small row-wise problem.
        folder, seed, sandboxed: as every target takes them; not used.
        failures: share of sources that are not measured, 0 to 1.
    """

    def __init__(
        self,
        problem: str = "instant",
        *,
        folder: Path | None = None,
        seed: int = 0,
        sandboxed: bool = True,
        failures: float = 0.12,
    ) -> None:
        del folder, seed, sandboxed
        rows = TensorSpec("x", (256, 4096), "float32")
        case = Case(
            name="256x4096", constants={}, distribution=None, held_out=False, derived=False, timed=True,
            inputs=(rows,), parameters=(), outputs=(replace(rows, name="out0"),), bytes=2 * rows.nbytes,
        )  # fmt: skip
        self._failures = failures
        self._card = ProblemCard(
            name=Path(problem).stem,
            path=problem,
            sha=_hash(problem),
            summary="a stand-in problem of a device that answers at once",
            tolerance="none",
            policy="warm",
            cases=(case,),
        )

    @property
    def card(self) -> ProblemCard:
        """One timed case of 256 rows."""
        return self._card

    def calibrate(self) -> Calibration:
        """Made-up baselines, noise and floor."""
        ci = (BASELINE_SECONDS * 0.99, BASELINE_SECONDS * 1.01)
        name = self._card.given.name
        policies = ("warm", "cold")
        return Calibration(
            baselines=tuple(
                Baseline(
                    contender,
                    name,
                    policy,
                    True,
                    None,
                    BASELINE_SECONDS * slower,
                    (ci[0] * slower, ci[1] * slower),
                )
                for policy in policies
                for contender, slower in (("eager", 1.2), ("torch.compile", 1.0))
            ),
            noise=tuple(Noise(name, policy, NOISE) for policy in policies),
            floors=tuple(Floor(name, policy, BASELINE_SECONDS / 100, 100.0) for policy in policies),
            machine={"model": "instant", "cores": "1"},
        )

    def admit(self, kernel: Kernel) -> Admission | Verdict:
        """Refuse what is too large or has no entry; comments and layout don't count in the hash."""
        if len(kernel.source.encode()) > MAX_SOURCE_BYTES:
            return Verdict(
                Outcome.REJECTED, Stage.ADMIT, f"the source is larger than {MAX_SOURCE_BYTES >> 10} KiB"
            )
        if _ENTRY not in kernel.source:
            return Verdict(Outcome.REJECTED, Stage.ADMIT, f"the source has no {_ENTRY} entry")
        return Admission(kernel, _hash(normal(kernel.source)))

    def build(self, admission: Admission) -> Built | Verdict:
        """Nothing is compiled; a few sources "fail" all the same."""
        if self._fate(admission.kernel) is Outcome.UNCOMPILABLE:
            log = Evidence(log="error: this source was drawn to fail")
            return Verdict(Outcome.UNCOMPILABLE, Stage.BUILD, "drawn to fail: the compiler", evidence=log)
        return Built(
            admission.kernel,
            Path("/dev/null"),
            admission.normal_sha,
            {"text_bytes": len(admission.kernel.source)},
        )

    def screen(self, built: Built) -> Verdict:
        """A rank without a claim, from three samples."""
        fate = self._fate(built.kernel)
        if fate is not Outcome.MEASURED:
            return Verdict(fate, Stage.SEARCH_GATE, f"drawn to fail: {fate}")
        return self._measured(built.kernel, rounds=3)

    def promote(self, built: Built) -> Verdict:
        """A claim, from eight samples; one kernel in eight is not general."""
        fate = self._fate(built.kernel)
        if fate is not Outcome.MEASURED:
            return Verdict(fate, Stage.PROMOTION_GATE, f"drawn to fail: {fate}")
        verdict = self._measured(built.kernel, rounds=8)
        general = _share("general", built.kernel.source) > 1 / 8
        return replace(verdict, general=general, not_general=None if general else "257x4096")

    def close(self) -> None:
        """Nothing to give back."""

    def _fate(self, kernel: Kernel) -> Outcome:
        draw = _share("fate", normal(kernel.source))
        if draw >= self._failures:
            return Outcome.MEASURED
        ways = (
            Outcome.UNCOMPILABLE,
            Outcome.CRASHED,
            Outcome.TIMED_OUT,
            Outcome.INCORRECT,
            Outcome.INCORRECT,
        )
        return ways[int(draw / self._failures * len(ways))]

    def _measured(self, kernel: Kernel, rounds: int) -> Verdict:
        claim = rounds >= 8
        gain = log_speedup(kernel.source)
        low, high = math.exp(gain - NOISE), math.exp(gain + NOISE)
        median = BASELINE_SECONDS / math.exp(gain)
        fitness = gain - NOISE if claim else None
        rank = gain - NOISE if claim else gain - 2 * NOISE
        timings = tuple(
            Timing(
                policy=policy, median=median, ci95=(median / high * low, median / low * high),
                baseline="torch.compile", baseline_median=BASELINE_SECONDS,
                speedup=math.exp(gain), speedup_ci95=(low, high),
                fitness=fitness, noise_floor=NOISE, rank=rank,
                gbps=self._card.given.bytes / median / 1e9, tflops=None,
                samples=(median,) * rounds, baseline_samples=(BASELINE_SECONDS,) * rounds,
            )
            for policy in (("warm", "cold") if claim else ("warm",))
        )  # fmt: skip
        case = CaseVerdict(
            self._card.given.name, False, False, Outcome.MEASURED, max_error=0.1, timings=timings
        )
        return Verdict(
            Outcome.MEASURED, Stage.TIMING, "measured", cases=(case,), speedup=math.exp(gain),
            fitness=fitness, rank=rank, verifier="instant", key="0", device_s=1e-3 * rounds,
        )  # fmt: skip


def normal(source: str) -> str:
    """The source without comments and layout."""
    return " ".join(_COMMENT.sub(" ", source).split())


def log_speedup(source: str) -> float:
    """What the instant device "measures": a bowl over the numbers, a bonus for structure, a little noise."""
    text = normal(source)
    bowl = 0.0
    for name, value in _NUMBER.findall(text):
        best = 2 + 6 * _share("best", name)  # of log2
        bowl -= 0.02 * (math.log2(int(value) + 1) - best) ** 2
    structure = _share("structure", _NUMBER.sub(r"\1", text))
    return max(bowl, -0.5) + 0.8 * structure**2 - 0.2 + 0.01 * _share("noise", text)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _share(purpose: str, text: str) -> float:
    """A number in [0, 1) that only the text and the purpose decide."""
    return int.from_bytes(hashlib.sha256(f"{purpose}\0{text}".encode()).digest()[:6]) / 2**48


class TargetContract:
    """What every target promises. Inherit it and supply two fixtures:

    ``target`` (a ``Target``, best with scope "class") and ``good`` (a correct ``Kernel`` of its problem).
    """

    def test_the_card_names_a_timed_case_with_an_output(self, target: Target) -> None:
        """A search needs something to time and something to compare."""
        timed = [case for case in target.card.cases if case.timed]
        assert timed
        assert all(case.outputs for case in timed)

    def test_calibration_finds_a_baseline_that_counts_for_each_timed_case(self, target: Target) -> None:
        """Speed is a ratio; without a baseline there is none."""
        calibration = target.calibrate()
        timed = [case for case in target.card.cases if case.timed]
        assert all(calibration.strongest(case.name, target.card.policy) for case in timed)
        assert all(noise.half_width > 0 for noise in calibration.noise)

    def test_a_comment_or_a_blank_line_does_not_make_a_new_kernel(self, target: Target, good: Kernel) -> None:
        """Duplicates must cost nothing."""
        first = target.admit(good)
        second = target.admit(Kernel(good.source + "\n\n// a remark\n", good.language))
        assert isinstance(first, Admission)
        assert isinstance(second, Admission)
        assert first.normal_sha == second.normal_sha

    def test_a_source_that_is_too_large_is_rejected_not_raised(self, target: Target, good: Kernel) -> None:
        """A bad kernel is a value."""
        verdict = target.admit(Kernel(good.source + "\n//" + "x" * MAX_SOURCE_BYTES, good.language))
        assert isinstance(verdict, Verdict)
        assert (verdict.status, verdict.stage) == (Outcome.REJECTED, Stage.ADMIT)

    def test_the_same_source_builds_to_the_same_artifact_hash(self, target: Target, good: Kernel) -> None:
        """The second duplicate check relies on it."""
        assert self._built(target, good).artifact_sha == self._built(target, good).artifact_sha

    def test_a_screened_kernel_has_a_finite_rank(self, target: Target, good: Kernel) -> None:
        """What selection compares."""
        verdict = target.screen(self._built(target, good))
        assert verdict.status is Outcome.MEASURED, verdict.reason
        assert verdict.rank is not None
        assert math.isfinite(verdict.rank)
        assert verdict.verifier

    def test_a_promoted_kernel_has_a_finite_fitness_and_both_policies(
        self, target: Target, good: Kernel
    ) -> None:
        """What people see."""
        verdict = target.promote(self._built(target, good))
        assert verdict.status is Outcome.MEASURED, verdict.reason
        assert verdict.fitness is not None
        assert math.isfinite(verdict.fitness)
        assert {timing.policy for case in verdict.cases for timing in case.timings} == {"warm", "cold"}

    def test_a_target_that_runs_exported_files_finds_that_a_good_one_does_what_was_measured(
        self, target: Target, good: Kernel
    ) -> None:
        """Most targets export what they measure as it is, and have nothing to check."""
        check_export = getattr(target, "check_export", None)
        if check_export is None:
            return
        verdict = target.promote(self._built(target, good))
        check = check_export(good.source, good, {case.name for case in verdict.cases})
        assert check.agreement is Agreement.EQUAL, check.reason

    @staticmethod
    def _built(target: Target, kernel: Kernel) -> Built:
        admission = target.admit(kernel)
        assert isinstance(admission, Admission), admission
        built = target.build(admission)
        assert isinstance(built, Built), built
        return built

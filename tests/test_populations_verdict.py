"""The seams that everything shares: outcomes, verdicts, individuals, calibration."""

from __future__ import annotations

import json
from math import log

from populations.calibration import Baseline, Calibration
from populations.individual import Individual
from populations.kernel import Kernel, source_sha
from populations.testing import a_failure, a_kernel, a_measurement
from populations.verdict import Outcome, Verdict


def test_outcomes_are_ordered_by_how_far_a_kernel_came():
    assert sorted(Outcome, key=lambda outcome: outcome.rank) == list(Outcome)
    assert Outcome.REJECTED < Outcome.UNCOMPILABLE < Outcome.TIMED_OUT < Outcome.MEASURED
    assert Outcome.CRASHED <= Outcome.CRASHED >= Outcome.REJECTED
    assert max(Outcome) is Outcome.MEASURED


def test_a_verdict_survives_json_with_its_infinities():
    for verdict in (a_failure(), a_measurement(0.5, claim=True)):
        text = json.dumps(verdict.to_json(), allow_nan=False)
        assert repr(Verdict.from_json(json.loads(text))) == repr(verdict)


def test_a_verdict_says_whether_anything_was_timed():
    assert a_measurement(0.1).timed
    assert not a_failure().timed


def test_only_a_measured_kernel_has_a_fitness():
    one = Individual(1, a_kernel(1), (), "seed", "")
    assert not one.fitness.valid
    one.judged(a_measurement(log(2)))
    assert one.fitness.values == (log(2),)
    one.judged(a_failure())
    assert not one.fitness.valid


def test_individuals_are_equal_only_to_themselves():
    one, twin = (Individual(1, a_kernel(1), (), "seed", "") for _ in range(2))
    assert one != twin
    assert repr(one) == "<Individual 1 seed waiting>"


def test_a_kernel_is_known_by_its_source():
    assert Kernel("x", "cpp").sha == source_sha("x")
    assert Kernel("x", "cpp") == Kernel("x", "cpp")


def test_the_strongest_baseline_is_the_fastest_that_counts():
    def baseline(name: str, median: float | None, counted: bool = True) -> Baseline:
        return Baseline(name, "a", "warm", counted, None, median, None)

    some = (
        baseline("eager", 2.0),
        baseline("compile", 1.0),
        baseline("wrong", 0.1, False),
        baseline("none", None),
    )
    calibration = Calibration(some, (), (), {})
    assert calibration.strongest("a", "warm").name == "compile"
    assert calibration.strongest("a", "cold") is None

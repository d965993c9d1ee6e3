"""What the search remembers beside the population."""

from __future__ import annotations

from pathlib import Path

import pytest

from evo.bandit import Bandit
from evo.course import Course
from evo.ledger import Ledger
from populations import EventLog, Outcome, Verdict
from populations.events import Promoted
from populations.state import State
from populations.verdict import Stage


@pytest.fixture
def course(tmp_path: Path) -> Course:
    with EventLog.create(tmp_path / "run") as log:
        return Course(State(log), 0, Bandit(), Ledger())


def promoted(course: Course, seconds: float, outcome: Outcome = Outcome.MEASURED) -> None:
    course.apply(Promoted(1, Verdict(outcome, Stage.TIMING, "as it came", device_s=seconds)))


def test_one_promotion_with_rounds_taken_again_says_little_of_the_next(course: Course) -> None:
    for seconds in (5.0, 22.0, 6.0):
        promoted(course, seconds)
    assert course.usual_promotion_s == 6.0


def test_a_promotion_that_is_refused_early_does_not_make_claims_look_cheap(course: Course) -> None:
    for seconds, outcome in ((0.1, Outcome.INCORRECT), (5.0, Outcome.MEASURED), (0.1, Outcome.INCORRECT)):
        promoted(course, seconds, outcome)
    assert course.usual_promotion_s == 5.0


def test_before_the_first_claim_the_longest_promotion_stands_for_it(course: Course) -> None:
    assert course.usual_promotion_s == 0.0
    promoted(course, 0.1, Outcome.INCORRECT)
    assert course.usual_promotion_s == 0.1

"""What came of running an exported file is an event of the run: folded, checked, and read back."""

from __future__ import annotations

import pytest

import populations
from populations import EventLog, State, check
from populations.events import Exported, Judged, Promoted, load
from populations.export_check import Agreement, ExportCheck
from populations.testing import STARTED, a_kernel, a_measurement, a_proposal

EQUAL = ExportCheck(Agreement.EQUAL, "the same launches and bytes", True, True, case="3x64", wall_us=31.5)
OTHER = ExportCheck(Agreement.DIFFERENT, "launch 1 has another grid", False)
LIFE = (STARTED, a_proposal(1), Judged(1, a_measurement(0.3)), Promoted(1, a_measurement(0.3, claim=True)))


@pytest.fixture
def log(tmp_path):
    with EventLog.create(tmp_path / "run", *LIFE[:1]) as made:
        made.append(*LIFE[1:], kernels=[a_kernel(1)])
        yield made


def test_the_latest_check_of_a_kernel_is_folded_and_read_back(log):
    log.append(Exported(1, OTHER), Exported(1, EQUAL))
    assert State.replay(log).exports == {1: EQUAL}
    assert populations.open(log.folder).export_check("best") == EQUAL
    assert check(log.folder) == []


def test_a_kernel_whose_file_was_never_run_has_no_check(log):
    assert populations.open(log.folder).export_check(1) is None


def test_only_a_promoted_kernel_can_be_exported(log):
    log.append(a_proposal(2), Judged(2, a_measurement(0.2)), Exported(2, EQUAL), kernels=[a_kernel(2)])
    with pytest.raises(populations.RunError, match="kernel 2 was exported before it was promoted"):
        State.replay(log)
    assert check(log.folder) == ["Kernel 2 was exported (event 7) before it was promoted."]


def test_a_check_survives_json_and_unknown_fields_have_defaults():
    assert ExportCheck.from_json(EQUAL.to_json()) == EQUAL
    old = load("exported", '{"id": 1, "check": {"agreement": "unchecked", "reason": "no GPU"}}')
    assert isinstance(old, Exported)
    assert old.check.wall_us is None

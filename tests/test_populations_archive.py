"""The archive of the best: order, room, one structure's share, and falling when measured again."""

from __future__ import annotations

import pytest

from populations.archive import TopArchive
from populations.individual import Individual
from populations.testing import a_failure, a_kernel, a_measurement


def measured(id: int, rank: float) -> Individual:
    return Individual(id, a_kernel(id), (), "unroll", "", a_measurement(rank))


def ids(archive: TopArchive) -> list[int]:
    return [one.id for one in archive]


def test_the_best_come_first_and_the_worst_leave():
    archive = TopArchive(3)
    entered = [
        archive.add(measured(id, rank), str(id)) for id, rank in enumerate((0.1, 0.4, 0.2, 0.3, 0.0), 1)
    ]
    assert ids(archive) == [2, 4, 3]
    assert entered == [True, True, True, True, False]
    assert archive.best is archive[0]


def test_of_equal_ranks_the_older_wins():
    archive = TopArchive(2)
    for id in (7, 3, 5):
        archive.add(measured(id, 0.5), str(id))
    assert ids(archive) == [3, 5]


def test_one_structure_cannot_fill_the_archive():
    archive = TopArchive(10, per_structure=2)
    for id in range(1, 6):
        archive.add(measured(id, id / 10), "same")
    archive.add(measured(6, 0.01), "other")
    assert ids(archive) == [5, 4, 6]
    assert archive.structures == {"same": 2, "other": 1}


def test_a_kernel_without_a_rank_stays_out():
    archive = TopArchive(3)
    assert not archive.add(Individual(1, a_kernel(1), (), "unroll", "", a_failure()), "x")
    assert not archive.add(Individual(2, a_kernel(2), (), "unroll", ""), "x")
    assert len(archive) == 0
    assert archive.best is None


def test_a_member_falls_when_it_is_measured_again():
    archive = TopArchive(3)
    lucky, solid = measured(1, 0.9), measured(2, 0.5)
    archive.add(lucky, "a")
    archive.add(solid, "b")
    lucky.judged(a_measurement(0.2))
    assert archive.update(lucky)
    assert ids(archive) == [2, 1]


def test_a_member_that_turns_out_wrong_leaves():
    archive = TopArchive(3)
    wrong = measured(1, 0.9)
    archive.add(wrong, "a")
    wrong.judged(a_failure())
    assert not archive.update(wrong)
    assert len(archive) == 0
    archive.discard(1)


def test_membership_is_identity():
    archive = TopArchive(3)
    one, twin = measured(1, 0.5), measured(1, 0.5)
    archive.add(one, "a")
    assert one in archive
    assert twin not in archive
    assert archive.get(1) is one
    assert archive.get(2) is None
    assert archive.structure(1) == "a"


def test_it_says_whether_a_rank_could_enter():
    archive = TopArchive(1)
    assert archive.admits(-5.0)
    archive.add(measured(1, 0.5), "a")
    assert not archive.admits(0.4)
    assert archive.admits(0.6)


def test_an_archive_without_room_is_refused():
    with pytest.raises(ValueError, match="room for one"):
        TopArchive(0)
    with pytest.raises(ValueError, match="room for one"):
        TopArchive(5, per_structure=0)

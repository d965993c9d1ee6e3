"""What a store of a run must do, as a test suite, and small true-to-life values to test with.

To test your own store, give the suite one fixture::

    class TestMyStore(StoreContract):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda: MyStore(tmp_path / "run")     # the first call makes it, later calls open it again
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log, nan

import pytest

from populations.events import Event, Judged, Promoted, Proposed, Started, Stillborn, Stopped
from populations.kernel import Kernel
from populations.log import Store
from populations.verdict import CaseVerdict, Evidence, Outcome, Stage, Timing, Verdict

STARTED = Started("softmax", "cpu", seed=7, settings={"evaluations": 100}, card={"name": "softmax"})


def a_kernel(number: int) -> Kernel:
    """A small C++ source, different for each number."""
    return Kernel(f'extern "C" void kernel_function() {{ /* kernel {number} */ }}\n', "cpp")


def a_proposal(
    id: int, ask: int | None = None, parents: tuple[int, ...] = (), operator: str = "unroll"
) -> Proposed:
    """The proposal of ``a_kernel(id)``."""
    sha = a_kernel(id).sha
    return Proposed(id if ask is None else ask, id, sha, sha, "cpp", parents, operator, "fewer branches")


def a_failure(status: Outcome = Outcome.INCORRECT, reason: str = "row 3 is wrong") -> Verdict:
    """A verdict on a kernel that is no good, with evidence that JSON has no literal for."""
    evidence = Evidence("64x100", 0, (3, 7), got=nan, expected=0.5, error=inf, bound=1e-6)
    case = CaseVerdict("64x100", False, False, status, reason, max_error=inf)
    return Verdict(status, Stage.SEARCH_GATE, reason, evidence, (case,), device_s=0.01)


def a_measurement(rank: float, claim: bool = False, general: bool | None = None, rounds: int = 15) -> Verdict:
    """A verdict on a measured kernel.

    Args:
        rank: log speed-up that selection compares.
        claim: measured with enough rounds to have a fitness, as after promotion.
        general: right for derived cases; None: not tried.
        rounds: number of timing samples.
    """
    speedup, fitness = exp(rank + 0.02), rank if claim else None
    samples = tuple(1e-3 / speedup * (1 + 0.001 * n) for n in range(rounds))
    timing = Timing(
        policy="warm",
        median=samples[rounds // 2],
        ci95=(samples[0], samples[-1]),
        baseline="eager",
        baseline_median=1e-3,
        speedup=speedup,
        speedup_ci95=(speedup * 0.99, speedup * 1.01),
        fitness=fitness,
        noise_floor=0.01,
        rank=rank,
        gbps=8.4,
        tflops=None,
        samples=samples,
        baseline_samples=(1e-3,) * rounds,
    )
    cases = (
        CaseVerdict("64x100", True, False, Outcome.CORRECT, max_error=0.1),
        CaseVerdict("256x4096", False, False, Outcome.MEASURED, max_error=0.2, timings=(timing,)),
    )
    return Verdict(
        Outcome.MEASURED, Stage.TIMING, f"{speedup:.2f}x over eager", cases=cases, general=general,
        speedup=speedup, fitness=fitness, rank=rank, verifier="v1", device_s=0.05,
    )  # fmt: skip


def a_life() -> list[Event]:
    """A whole small run."""
    return [
        STARTED,
        a_proposal(1, operator="seed"),
        Judged(1, a_failure()),
        a_proposal(2, parents=(1,)),
        Judged(2, a_measurement(log(2.0))),
        Promoted(2, a_measurement(log(1.9), claim=True, general=True)),
        Stopped("evaluations"),
    ]


class StoreContract:
    """Promises of a ``Store``; a subclass provides the fixture ``open_store``."""

    @pytest.fixture
    def open_store(self) -> Callable[[], Store]:
        """To be overridden: makes the store, and on later calls opens it again."""
        pytest.skip("override the fixture open_store")

    @pytest.fixture
    def store(self, open_store: Callable[[], Store]) -> Store:
        """An open, empty store."""
        return open_store()

    def test_events_are_numbered_from_one_without_gaps(self, store: Store) -> None:
        """The caller gets the last number."""
        assert store.append(STARTED) == 1
        assert store.append(Stillborn(1, "unroll", (), "no loop"), Stillborn(2, "unroll", (), "no loop")) == 3
        assert [record.seq for record in store.records()] == [1, 2, 3]

    def test_what_comes_back_is_what_was_stored(self, store: Store) -> None:
        """Every kind of event, infinities included, and its time."""
        events = a_life()
        store.append(*events, kernels=[a_kernel(1), a_kernel(2)], time=1234.5)
        assert [repr(record.event) for record in store.records()] == [repr(event) for event in events]
        assert {record.time for record in store.records()} == {1234.5}

    def test_reading_can_begin_after_any_event(self, store: Store) -> None:
        """Without what came before."""
        store.append(*a_life(), kernels=[a_kernel(1), a_kernel(2)])
        assert [record.seq for record in store.records(since=4)] == [5, 6, 7]

    def test_an_event_is_found_by_its_number(self, store: Store) -> None:
        """The one that was stored as that."""
        events = a_life()
        store.append(*events, kernels=[a_kernel(1), a_kernel(2)])
        assert repr(store.event(5)) == repr(events[4])

    def test_a_closed_store_opens_with_everything_in_it(self, open_store: Callable[[], Store]) -> None:
        """Events and sources."""
        first = open_store()
        first.append(*a_life(), kernels=[a_kernel(1), a_kernel(2)])
        first.close()
        second = open_store()
        assert [record.seq for record in second.records()] == [1, 2, 3, 4, 5, 6, 7]
        assert second.kernel(a_kernel(2).sha) == a_kernel(2)
        second.close()

    def test_closing_twice_is_closing_once(self, store: Store) -> None:
        """And no error."""
        store.close()
        store.close()

    def test_a_kernel_is_found_by_its_hash(self, store: Store) -> None:
        """Also when it was handed over twice."""
        store.append(STARTED, a_proposal(1), kernels=[a_kernel(1), a_kernel(1)])
        store.append(Stillborn(2, "unroll", (), "no loop"), kernels=[a_kernel(1)])
        assert store.kernel(a_kernel(1).sha) == a_kernel(1)

    def test_a_proposal_is_found_by_its_kernels_number(self, store: Store) -> None:
        """With all that it says."""
        store.append(STARTED, a_proposal(1), a_proposal(2, parents=(1,)), kernels=[a_kernel(1), a_kernel(2)])
        assert store.proposed(2) == a_proposal(2, parents=(1,))

    @pytest.mark.parametrize(
        "impossible",
        [
            pytest.param(a_proposal(1, ask=9), id="a kernel proposed twice"),
            pytest.param(a_proposal(2, ask=1), id="an ask that ends twice"),
            pytest.param(Stillborn(1, "unroll", (), "no loop"), id="an ask that ends in both ways"),
            pytest.param(a_proposal(3), id="a kernel without its source"),
            pytest.param(Judged(1, a_measurement(0.1)), id="a second first verdict"),
            pytest.param(Judged(5, a_failure()), id="a verdict on nothing"),
            pytest.param(Promoted(2, a_measurement(0.1)), id="a promotion before the verdict"),
            pytest.param(Promoted(1, a_measurement(nan)), id="a rank that is no number"),
        ],
    )
    def test_an_impossible_event_is_refused_and_takes_its_companions_along(
        self, store: Store, impossible: Event
    ) -> None:
        """All of an append is stored, or none."""
        store.append(STARTED, a_proposal(1), Judged(1, a_failure()), kernels=[a_kernel(1), a_kernel(2)])
        with pytest.raises(ValueError):
            store.append(Stillborn(7, "unroll", (), "no loop"), impossible)
        assert len(list(store.records())) == 3
        assert store.append(Stillborn(7, "unroll", (), "no loop")) == 4

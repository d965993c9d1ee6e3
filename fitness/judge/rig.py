"""The seam between judging and hardware: a ``Rig`` is how kernels run, and how time is told, on one target.

The gate, the stands and the bench are the same for every target. What differs is behind these protocols:
argument sets in shared memory or on a device, a launcher that runs one kernel over them, contenders that
race.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from torch import Tensor

from fitness.card import Case, TensorSpec
from populations.calibration import Floor
from populations.verdict import Evidence, Outcome

if TYPE_CHECKING:
    from fitness.judge.course import Course
    from fitness.judge.loaded import LoadedCase


class KernelDied(Exception):
    """The kernel ended its process, or had to be ended; ``outcome`` is crashed or timed out."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason


class WrongOutput(Exception):
    """A timed launch whose outputs do not hold."""

    def __init__(self, reason: str, evidence: Evidence | None = None) -> None:
        super().__init__(reason)
        self.evidence = evidence


class Disturbance(Exception):
    """A kernel that used more than it was given while the clock ran: it goes on behind it."""


class Unbelievable(Exception):
    """A claim faster than the hardware allows, or too fast for the clock."""


class Sets(Protocol):
    """Sets of all arguments of a kernel, in memory that the judge and the kernel share."""

    count: int

    def inputs(self, k: int) -> list[Tensor]:
        """Set ``k``'s inputs and parameters; write them to fill the set."""

    def outputs(self, k: int) -> list[Tensor]:
        """Set ``k``'s outputs."""

    def poison(self, k: int, rng_seed: int) -> None:
        """Spoil what set ``k``'s kernel has to write; another seed gives other poison. Inputs are sealed."""

    def inherit(self, k: int) -> None:
        """Leave in set ``k``'s scratch what set ``k - 1``'s run left: allocators hand out old memory."""

    def damage(self, first: int, count: int = 1) -> str | None:
        """What is wrong with ``count`` sets whatever their values, as a phrase; None where nothing is."""

    def close(self) -> None:
        """Give the memory back."""


Check = Callable[[Sets, int], None]  # looks at so many sets, from the first; raises WrongOutput


class Launcher(Protocol):
    """One kernel, ready to run over argument sets."""

    def block(self, first: int, count: int, timeout_s: float) -> object:
        """Run sets ``first`` to ``first + count - 1``, each exactly once.

        Raises:
            KernelDied: it died, or did not end in time.
        """


class Contender(Protocol):
    """Whatever runs blocks over a course's argument sets."""

    def block(self, count: int) -> tuple[float, bool]:
        """Launch sets 0 … count-1 once each; seconds, and whether the machine disturbed it."""

    def check(self, count: int) -> None:
        """Compare all outputs of the block just run.

        Raises:
            WrongOutput: one does not hold.
        """

    def close(self) -> None:
        """End what runs it."""


class Rig(Protocol):
    """How kernels of one target run. ``kernel`` is what the target built: a library or a launch plan.

    Attributes:
        policies: of timing that this target knows; none: kernels are checked, not timed.
        rounds: of a promotion.
        isolation: what verdicts say of it ("process", "plan", "weak").
        numerics: what verdicts say of it ("device", "interpreter").
        fuses: whether checks of timed outputs are worth compiling: where they would outlast the kernel.
        repeats: whether a screening launches small cases twice. Host code may remember a call; a launch plan
            could only in device memory, and would do so in timed launches, all of which are checked.
    """

    policies: tuple[str, ...]
    rounds: int
    isolation: str
    numerics: str
    fuses: bool
    repeats: bool

    @property
    def lost(self) -> bool:
        """Whether a kernel's fault left this process without the device."""

    @property
    def memory_bytes(self) -> int | None:
        """Memory that cases may take; None: ask the system."""

    @property
    def cache_bytes(self) -> int:
        """Size of the last-level cache."""

    @property
    def facts(self) -> dict[str, str]:
        """What a result has to be read with."""

    def telemetry(self) -> dict[str, str]:
        """What sensors say now: clocks in MHz, power in W, temperature in °C, why clocks are held back."""

    def baselines(self, loaded: LoadedCase) -> tuple[str, ...]:
        """Names of the baselines that a case has to beat."""

    def sets(self, arguments: Sequence[TensorSpec], read_only: int, count: int) -> Sets:
        """``count`` sets of the arguments; the first ``read_only`` of each may only be read."""

    def launcher(self, kernel: Path, case: Case, sets: Sets) -> AbstractContextManager[Launcher]:
        """A kernel over sets of a case.

        Raises:
            KernelDied: it can't even be loaded.
        """

    def course(self, loaded: LoadedCase, policy: str) -> Course:
        """The argument sets of a timed case under a policy, renewed for each block."""

    def baseline(self, name: str, loaded: LoadedCase, course: Course) -> Contender:
        """A baseline over a course, compiled and warmed up."""

    def contender(self, kernel: Path, case: Case, course: Course, check: Check, limit_s: float) -> Contender:
        """A kernel on a course; ``limit_s`` for one block."""

    def floor(self, case: Case, course: Course, seconds: float) -> Floor:
        """The time below which a claim is not believed; ``seconds``: of the strongest baseline's call."""

    def least_block_s(self, course: Course) -> float:
        """Seconds of launches below which a block is too short for this target's clock."""

    def quiet(self) -> AbstractContextManager[object]:
        """Within it the machine is kept as timing wants it."""

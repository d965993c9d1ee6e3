"""The seam between search and hardware: a ``Target`` admits, builds, screens and promotes kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from fitness.card import ProblemCard
from populations.calibration import Calibration
from populations.kernel import Kernel
from populations.profile import KernelProfile
from populations.verdict import Verdict


class FitnessError(Exception):
    """The user's or the machine's fault, not a kernel's; one line that says what, where and what to do."""


class ProblemError(FitnessError):
    """A problem that cannot be loaded or cannot be judged."""


class DeviceError(FitnessError):
    """The judge or its device is broken or missing a feature; kernels are not to blame."""


@dataclass(frozen=True)
class Admission:
    """A source that may be built. ``normal_sha``: hash without comments and layout; equal means duplicate."""

    kernel: Kernel
    normal_sha: str


@dataclass(frozen=True)
class Built:
    """A kernel made ready for the judge: a checked shared library (cpp), or a launch plan.

    Attributes:
        artifact: the file the judge loads.
        artifact_sha: hash of what will run; equal means the same machine code.
        traits: static facts, e.g. {"vector_bytes": 64, "text_bytes": 1432}.
        profile: what its device functions are made of; it becomes part of the verdict.
        timed_sha: hash of what will run on the timed cases alone; None where there is no telling.
    """

    kernel: Kernel
    artifact: Path
    artifact_sha: str
    traits: dict[str, int] = field(default_factory=dict)
    profile: tuple[KernelProfile, ...] = ()
    timed_sha: str | None = None


@dataclass(frozen=True)
class Alike:
    """A kernel that does the same work on the timed cases as a measured one: it was built no further."""

    timed_sha: str


class Target(Protocol):
    """A device with one problem loaded. A bad kernel is a ``Verdict``, a broken machine a ``DeviceError``.

    A target may have more, which a search uses where it is there: ``separate``, true where builds disturb no
    measuring; ``build_unless(admission, known)``, a build that stops with ``Alike`` where ``known`` says that
    the kernel's ``timed_sha`` was measured before; ``prepare(built)``, which does of a promotion what needs
    no device. Like ``build`` they may be called from several threads at once. ``check_export(text, kernel,
    passed)`` runs the exported file of a promoted kernel once beside what was measured, on cases that it
    passed, and returns an ``ExportCheck``; a target without it exports what it measures as it is.
    """

    @property
    def card(self) -> ProblemCard:
        """The problem as this target sees it."""

    def calibrate(self) -> Calibration:
        """Measure baselines, A/A noise and the hardware floor; tens of seconds."""

    def admit(self, kernel: Kernel) -> Admission | Verdict:
        """Rules that need no build: size, parse, structure. Under a millisecond or two."""

    def build(self, admission: Admission) -> Built | Verdict:
        """Compile in a sandbox. May be called from several threads at once, but not while a kernel is
        measured, unless the target has an attribute ``separate`` that is true."""

    def screen(self, built: Built) -> Verdict:
        """Smoke and search gate, then a few timing rounds: a rank, not yet a claim."""

    def promote(self, built: Built) -> Verdict:
        """Promotion gate, derived cases, and the rounds that a claim needs, under both policies."""

    def close(self) -> None:
        """Give the device back; children end."""

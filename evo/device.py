"""The target as the loop sees it: opened and calibrated when first needed, opened anew when it broke."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from typing import Generic, TypeVar

from fitness.target import Admission, Alike, Built, DeviceError, Target
from populations.calibration import Calibration
from populations.export_check import ExportCheck
from populations.kernel import Kernel
from populations.verdict import Verdict

CALIBRATING = "measuring the baselines"
CheckExport = Callable[[str, Kernel, Collection[str]], ExportCheck]
RECENT = 16  # builds that tell how long one takes
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Asked(Generic[T_co]):
    """A question that a target is at: it may have been lost since."""

    future: Future[T_co]
    target: Target


class Device:
    """A target that may die and come back. Use it from one thread; it has its own for builds and for judging.

    Args:
        open_target: opens it, with the problem loaded.
        calibrated: told of every calibration.
        doing: told when one begins.
        side_by_side: how many builds run at once.
        target: one that is open already; it is closed with the device.
        known: whether work with this hash on the timed cases was measured before; called from other threads.
    """

    def __init__(
        self,
        open_target: Callable[[], Target],
        calibrated: Callable[[Calibration], None],
        doing: Callable[[str], None],
        side_by_side: int,
        target: Target | None = None,
        known: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._open_target, self._calibrated, self._doing = open_target, calibrated, doing
        self._target, self._ready, self._known = target, False, known
        self._threads = ThreadPoolExecutor(side_by_side, thread_name_prefix="build")
        self._judging = _judging()
        self._took: deque[float] = deque(maxlen=RECENT)

    @property
    def separate(self) -> bool:
        """Whether builds may go on while the device measures."""
        return bool(getattr(self._opened(), "separate", False))

    @property
    def usual_build_s(self) -> float:
        """Seconds from the order of a build to its end, as of late."""
        took = list(self._took)
        return median(took) if took else 0.0

    def admit(self, kernel: Kernel) -> Admission | Verdict:
        """See ``Target``."""
        return self._opened().admit(kernel)

    def build(self, admissions: Sequence[Admission]) -> list[Asked[Built | Alike | Verdict]]:
        """All of them, begun side by side: the threads wait for compilers."""
        target = self._opened()
        now = time.monotonic()
        return [
            Asked(self._threads.submit(self._build, target, admission, now), target)
            for admission in admissions
        ]

    def built(self, admission: Admission, build: Asked[Built | Alike | Verdict]) -> Built | Alike | Verdict:
        """What came of a build that was begun; where a lost device took it along, what comes of another."""
        try:
            return build.future.result()
        except DeviceError:
            if build.target is self._target:
                raise
        return self._opened().build(admission)

    def rebuild(self, kernel: Kernel) -> Built | Verdict:
        """Admit and build a kernel that was proposed before."""
        return _rebuilt(self._opened(), kernel)

    def screen(self, built: Built) -> Asked[Verdict]:
        """See ``Target``: begun, one after another; ``screened`` tells what came of it."""
        target = self._opened()
        return Asked(self._judging.submit(target.screen, built), target)

    def screened(self, built: Built, screening: Asked[Verdict]) -> Verdict:
        """The verdict of a screening that was begun."""
        return self._once_more(screening, lambda target: target.screen(built))

    def promote(self, built: Built) -> Verdict:
        """See ``Target``."""
        target = self._opened()
        begun = Asked(self._judging.submit(target.promote, built), target)
        return self._once_more(begun, lambda target: target.promote(built))

    def promotion(self, kernel: Kernel) -> Asked[Verdict]:
        """A promotion, begun: it joins the queue of the device once it is made ready."""
        target = self._opened()
        return Asked(self._threads.submit(self._promotion, target, kernel), target)

    def promoted(self, kernel: Kernel, promotion: Asked[Verdict]) -> Verdict:
        """The verdict of a promotion that was begun."""

        def again(target: Target) -> Verdict:
            built = _rebuilt(target, kernel)
            return target.promote(built) if isinstance(built, Built) else built

        return self._once_more(promotion, again)

    def check_export(self, text: str, kernel: Kernel, passed: Collection[str]) -> ExportCheck | None:
        """See ``Target``; None: this one exports what it measures as it is."""
        if self._target is None and kernel.language == "cpp":
            return None  # no reason to open a device: a library is built from what is exported
        check: CheckExport | None = getattr(self._opened(), "check_export", None)
        return None if check is None else self._judging.submit(check, text, kernel, passed).result()

    def close(self) -> None:
        """Give the device back."""
        for threads in (self._judging, self._threads):
            threads.shutdown(wait=False, cancel_futures=True)
        if self._target is not None:
            self._target.close()  # whoever waits for it hears that it is gone
        for threads in (self._judging, self._threads):
            threads.shutdown()
        self._target = None

    def _build(self, target: Target, admission: Admission, ordered: float) -> Built | Alike | Verdict:
        unless = getattr(target, "build_unless", None)
        made: Built | Alike | Verdict = unless(admission, self._known) if unless else target.build(admission)
        self._took.append(time.monotonic() - ordered)
        return made

    def _promotion(self, target: Target, kernel: Kernel) -> Verdict:
        built = _rebuilt(target, kernel)
        if not isinstance(built, Built):
            return built
        if prepare := getattr(target, "prepare", None):
            prepare(built)
        return self._judging.submit(target.promote, built).result()

    def _once_more(self, asked: Asked[Verdict], again: Callable[[Target], Verdict]) -> Verdict:
        """The verdict; only a broken device gets a second chance, and only one for each question."""
        try:
            return asked.future.result()
        except (DeviceError, CancelledError):
            self._lost(asked.target)
        target = self._opened()
        return self._judging.submit(again, target).result()

    def _lost(self, target: Target) -> None:
        """It broke: nothing more is asked of it."""
        if target is not self._target:
            return  # somebody found that before
        self._judging.shutdown(wait=False, cancel_futures=True)
        target.close()
        self._judging.shutdown()
        self._judging = _judging()
        self._target, self._ready = None, False

    def _opened(self) -> Target:
        if self._target is None:
            self._target = self._open_target()
        if not self._ready:
            self._doing(CALIBRATING)
            calibration, self._target = self._calibration(self._target)
            self._calibrated(calibration)
            self._ready = True
        return self._target

    def _calibration(self, target: Target) -> tuple[Calibration, Target]:
        """The calibration; a device that breaks meanwhile gets a second chance as well."""
        try:
            return target.calibrate(), target
        except DeviceError:
            target.close()
            self._target = None
        self._target = again = self._open_target()
        return again.calibrate(), again


def _rebuilt(target: Target, kernel: Kernel) -> Built | Verdict:
    admission = target.admit(kernel)
    return target.build(admission) if isinstance(admission, Admission) else admission


def _judging() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="judge")

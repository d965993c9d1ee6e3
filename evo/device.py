"""The target as the loop sees it: opened and calibrated when first needed, opened anew when it broke."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from fitness.target import Admission, Built, DeviceError, Target
from populations.calibration import Calibration
from populations.kernel import Kernel
from populations.verdict import Verdict

CALIBRATING = "measuring the baselines"


class Device:
    """A target that may die and come back. Use it from one thread; it has its own for builds and for judging.

    Args:
        open_target: opens it, with the problem loaded.
        calibrated: told of every calibration.
        doing: told when one begins.
        side_by_side: how many builds run at once.
        target: one that is open already; it is closed with the device.
    """

    def __init__(
        self,
        open_target: Callable[[], Target],
        calibrated: Callable[[Calibration], None],
        doing: Callable[[str], None],
        side_by_side: int,
        target: Target | None = None,
    ) -> None:
        self._open_target, self._calibrated, self._doing = open_target, calibrated, doing
        self._target, self._ready = target, False
        self._threads = ThreadPoolExecutor(side_by_side, thread_name_prefix="build")
        self._judging = ThreadPoolExecutor(1, thread_name_prefix="judge")

    @property
    def separate(self) -> bool:
        """Whether builds may go on while the device measures."""
        return bool(getattr(self._opened(), "separate", False))

    def admit(self, kernel: Kernel) -> Admission | Verdict:
        """See ``Target``."""
        return self._opened().admit(kernel)

    def build(self, admissions: Sequence[Admission]) -> list[Future[Built | Verdict]]:
        """All of them, begun side by side: the threads wait for compilers."""
        target = self._opened()
        return [self._threads.submit(target.build, admission) for admission in admissions]

    def rebuild(self, kernel: Kernel) -> Built | Verdict:
        """Admit and build a kernel that was proposed before."""
        admission = self.admit(kernel)
        return self._opened().build(admission) if isinstance(admission, Admission) else admission

    def screen(self, built: Built) -> Future[Verdict]:
        """See ``Target``: begun, one after another; ``screened`` tells what came of it."""
        return self._judging.submit(self._opened().screen, built)

    def screened(self, built: Built, screening: Future[Verdict]) -> Verdict:
        """The verdict of a screening that was begun."""
        return self._once_more(lambda _: screening.result(), lambda target: target.screen(built))

    def promote(self, built: Built) -> Verdict:
        """See ``Target``."""
        return self._once_more(lambda target: target.promote(built), lambda target: target.promote(built))

    def close(self) -> None:
        """Give the device back."""
        for threads in (self._judging, self._threads):
            threads.shutdown(wait=False, cancel_futures=True)
        if self._target is not None:
            self._target.close()  # whoever waits for it hears that it is gone
        for threads in (self._judging, self._threads):
            threads.shutdown()
        self._target = None

    def _once_more(self, ask: Callable[[Target], Verdict], again: Callable[[Target], Verdict]) -> Verdict:
        """The verdict; only a broken device gets a second chance, and only one for each question."""
        try:
            return ask(self._opened())
        except DeviceError:
            if self._target is not None:
                self._target.close()
            self._target, self._ready = None, False
        return again(self._opened())

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

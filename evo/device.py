"""The target as the loop sees it: opened and calibrated when first needed, opened anew when it broke."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from fitness.target import Admission, Built, DeviceError, Target
from populations.calibration import Calibration
from populations.kernel import Kernel
from populations.verdict import Verdict

CALIBRATING = "measuring the baselines"


class Device:
    """A target that may die and come back. Use it from one thread.

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

    def admit(self, kernel: Kernel) -> Admission | Verdict:
        """See ``Target``."""
        return self._opened().admit(kernel)

    def build(self, admissions: Sequence[Admission]) -> list[Built | Verdict]:
        """All of them, side by side: the threads wait for compilers. Nothing is judged meanwhile."""
        target = self._opened()
        if len(admissions) == 1:
            return [target.build(admissions[0])]
        return list(self._threads.map(target.build, admissions))

    def rebuild(self, kernel: Kernel) -> Built | Verdict:
        """Admit and build a kernel that was proposed before."""
        admission = self.admit(kernel)
        return self.build([admission])[0] if isinstance(admission, Admission) else admission

    def screen(self, built: Built) -> Verdict:
        """See ``Target``."""
        return self._once_more(lambda target: target.screen(built))

    def promote(self, built: Built) -> Verdict:
        """See ``Target``."""
        return self._once_more(lambda target: target.promote(built))

    def close(self) -> None:
        """Give the device back."""
        self._threads.shutdown(cancel_futures=True)
        if self._target is not None:
            self._target.close()
        self._target = None

    def _once_more(self, ask: Callable[[Target], Verdict]) -> Verdict:
        """The verdict; only a broken device gets a second chance, and only one for each question."""
        try:
            return ask(self._opened())
        except DeviceError:
            if self._target is not None:
                self._target.close()
            self._target, self._ready = None, False
        return ask(self._opened())

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

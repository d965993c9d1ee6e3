"""The last word on a run's best kernel: its exported file, run beside what was measured."""

from __future__ import annotations

from pydantic import TypeAdapter

from evo.device import Device
from evo.export import body, cases_passed, refused
from fitness.card import ProblemCard
from populations.events import Event, Exported, Promoted
from populations.export_check import Agreement
from populations.individual import Individual
from populations.kernel import Kernel
from populations.state import State


def confirmed(one: Individual, state: State) -> bool:
    """Whether nothing is left to run: its file was run before, or it was never measured for a claim."""
    known = state.exports.get(one.id)
    return not state.champion(one.id) or (known is not None and known.agreement is not Agreement.UNCHECKED)


def confirmation(one: Individual, kernel: Kernel, state: State, device: Device) -> list[Event]:
    """What becomes of a champion: what its file did, and its new verdict where it did other things.

    Args:
        one: the champion.
        kernel: its source.
        state: of the run.
        device: runs the file.

    Returns:
        No event where the device exports what it measures as it is.

    Raises:
        DeviceError: the device broke.
    """
    assert one.verdict is not None and state.started is not None
    card = TypeAdapter(ProblemCard).validate_python(state.started.card)
    text = body(kernel, one.verdict, card, promoted=True)
    check = device.check_export(text, kernel, cases_passed(one.verdict))
    if check is None:
        return []
    told: list[Event] = [Exported(one.id, check)]
    if check.agreement is Agreement.DIFFERENT:
        told.append(Promoted(one.id, refused(one.verdict, check)))
    return told

"""What a call of an exported file did otherwise than its plan, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fitness.exported.jobs import Compiled, Seen
from fitness.lowering.tidy import views, without_unused
from fitness.plan import Argument, CasePlan, Launch, LaunchPlan, Step, View

WHAT = {
    "launch": "launches a kernel",
    "fill": "fills memory",
    "copy": "copies",
    "constant": "writes host constants",
    "count": "counts up",
}


def difference(plan: LaunchPlan, kernels: Sequence[Compiled], seen: Seen) -> str | None:
    """The first thing that any recorded call did otherwise than the plan of its case; None: nothing.

    Binaries, grids, arguments (which memory at which offset, or which number), fills, copies, the sizes of
    all memory used, and where the outputs lie must be the same. What is allocated and never used may differ.

    Args:
        plan: what was measured.
        kernels: that the file compiled.
        seen: its calls on a case that the plan has.
    """
    planned = plan.case(seen.case)
    ours = [Compiled(binary.name, binary.sha) for binary in plan.binaries]
    for number, call in enumerate(seen.calls):
        wrong = _malformed(call, len(kernels)) or _call(planned, ours, without_unused(call), kernels)
        if wrong:
            which = "" if number == 0 else f" (call {number + 1}; the first was as planned)"
            return f"case {seen.case}: {wrong}{which}"
    return None


def _call(
    planned: CasePlan, ours: Sequence[Compiled], call: CasePlan, theirs: Sequence[Compiled]
) -> str | None:
    for number, (want, got) in enumerate(zip(planned.steps, call.steps, strict=False), 1):
        wrong = _step(want, ours, got, theirs)
        if wrong:
            return f"step {number} of the exported file {wrong}"
    if len(planned.steps) != len(call.steps):
        more = [*planned.steps, *call.steps][min(len(planned.steps), len(call.steps)) :][0]
        return (
            f"the exported file does {_steps(call)}, the plan {_steps(planned)}; the first one more "
            f"{WHAT[more.do]}"
        )
    if repr(planned.outputs) != repr(call.outputs):
        for mine, other in zip(planned.outputs, call.outputs, strict=False):
            if mine != other:
                return f"the exported file returns {_view(other)}, the plan {_view(mine)}"
        return "the exported file returns another number of outputs than the plan"
    if planned.storages != call.storages:
        return f"the exported file uses memory of {call.storages} bytes, the plan of {planned.storages}"
    return None


def _step(want: Step, ours: Sequence[Compiled], got: Step, theirs: Sequence[Compiled]) -> str | None:
    if want.do != got.do:
        return f"{WHAT[got.do]}, that of the plan {WHAT[want.do]}"
    if not (isinstance(want, Launch) and isinstance(got, Launch)):
        return (
            None if repr(want) == repr(got) else f"{WHAT[got.do]} otherwise: {got}, that of the plan: {want}"
        )
    mine, other = ours[want.kernel], theirs[got.kernel]
    if (mine.name, mine.sha) != (other.name, other.sha):
        if mine.name != other.name:
            return f"launches {other.name}, that of the plan {mine.name}"
        return (
            f"launches another binary of {other.name} ({other.sha[:12]}) than the plan ({mine.sha[:12]}): "
            "its options, specialisation or code differ"
        )
    if want.grid != got.grid:
        return f"launches {mine.name} over {list(got.grid)} programs, that of the plan over {list(want.grid)}"
    if repr(want.arguments) != repr(got.arguments):
        pairs = list(zip(want.arguments, got.arguments, strict=False))
        at = next((n for n, pair in enumerate(pairs) if repr(pair[0]) != repr(pair[1])), len(pairs))
        shown = [
            _argument(step.arguments[at]) if at < len(step.arguments) else "none" for step in (got, want)
        ]
        return f"gives {mine.name} as argument {at + 1} {shown[0]}, that of the plan {shown[1]}"
    return None


def _malformed(call: CasePlan, kernels: int) -> str | None:
    """A report whose numbers lead nowhere: it was made by untrusted code."""
    launches = [step for step in call.steps if isinstance(step, Launch)]
    storages = [view.storage for view in _all_views(call)]
    if any(not 0 <= step.kernel < kernels for step in launches) or any(
        not 0 <= storage < len(call.storages) for storage in storages
    ):
        return "the report on the exported file makes no sense"
    return None


def _all_views(call: CasePlan) -> Iterator[View]:
    for step in call.steps:
        yield from views(step)
    yield from call.outputs


def _steps(call: CasePlan) -> str:
    launches = sum(isinstance(step, Launch) for step in call.steps)
    return f"{len(call.steps)} steps with {launches} launches"


def _argument(argument: Argument) -> str:
    if argument.kind == "scalar":
        return f"the number {argument.value}"
    return f"{'a descriptor of ' if argument.kind == 'descriptor' else ''}{_view(argument.view)}"


def _view(view: View) -> str:
    at = f" from {view.offset}" if view.offset else ""
    return f"{view.dtype}{list(view.shape)} in memory {view.storage}{at} with strides {list(view.strides)}"

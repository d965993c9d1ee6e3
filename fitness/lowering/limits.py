"""What a traced plan must keep to; the tracing child ran untrusted code, so its answer is not believed."""

from __future__ import annotations

from collections.abc import Iterator

from fitness import plan as plans
from fitness.card import Case
from fitness.lowering.jobs import Traced
from fitness.lowering.tidy import views
from fitness.plan import CasePlan, Constant, Copy, Launch, Step, View

ITEM_BYTES = {
    "float32": 4, "float64": 8, "bfloat16": 2, "float16": 2, "int8": 1, "uint8": 1, "int16": 2, "int32": 4,
    "int64": 8, "bool": 1, "uint16": 2, "uint32": 4, "uint64": 8, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1,
}  # fmt: skip
STEPS = 4 * plans.LAUNCHES


def fault(traced: Traced, cases: tuple[Case, ...]) -> str | None:
    """Which rule a plan breaks, in a sentence; None where it may be run.

    Views lie inside their storages, launches name kernels that are there, inputs are what the case says and
    are not written by any step of the host, outputs are new memory of the right shape, limits are kept.
    """
    if [case.name for case in cases] != [case.case for case in traced.cases]:
        return "the host function gives a plan of other cases"
    for case, planned in zip(cases, traced.cases, strict=True):
        wrong = _misfit(case, planned) or _over(planned)
        if wrong:
            return f"case {case.name}: {wrong}"
        for step in planned.steps:
            if isinstance(step, Launch):
                fits = 0 <= step.kernel < len(traced.kernels)
                if not fits or len(step.arguments) != len(traced.kernels[step.kernel].parameters):
                    return f"case {case.name}: a launch does not fit its kernel"
    return None


def _misfit(case: Case, planned: CasePlan) -> str | None:
    given = case.inputs + case.parameters
    if planned.arguments != len(given) or len(planned.outputs) != len(case.outputs):
        return "the plan has other arguments than the case"
    if list(planned.storages[: planned.arguments]) != [spec.nbytes for spec in given]:
        return "the plan has inputs of other sizes than the case"
    for spec, view in zip(case.outputs, planned.outputs, strict=True):
        if (view.shape, view.dtype) != (spec.shape, spec.dtype) or view.storage < planned.arguments:
            return f"output {spec.name} is not new memory of the right shape"
        if _overlaps(view):
            return f"elements of output {spec.name} share memory (an expanded view?); each needs its own"
    if not all(_inside(view, planned) for view in _all_views(planned)):
        return "a view reaches outside its memory"
    return None


def _over(planned: CasePlan) -> str | None:
    outputs = {view.storage for view in planned.outputs}
    own = range(planned.arguments, len(planned.storages))
    scratch = sum(planned.storages[index] for index in own if index not in outputs)
    if scratch > plans.SCRATCH_BYTES:
        most = plans.SCRATCH_BYTES >> 20
        return f"allocates {scratch >> 20} MiB of scratch; at most {most} are allowed"
    launches = sum(isinstance(step, Launch) for step in planned.steps)
    if not launches:
        return "the host function launches no kernel"
    if launches > plans.LAUNCHES or len(planned.steps) > STEPS:
        return f"more than {plans.LAUNCHES} launches or {STEPS} steps"
    return next((wrong for step in planned.steps if (wrong := _wrong_step(step, planned))), None)


def _wrong_step(step: Step, planned: CasePlan) -> str | None:
    if isinstance(step, Launch):
        return None if all(0 < extent < 2**31 for extent in step.grid) else "a grid that cannot be launched"
    if step.into.storage < planned.arguments:
        return "writes into an input; inputs must stay as they are"
    if isinstance(step, Copy) and step.into.shape != step.source.shape:
        return "a copy between different shapes"
    if isinstance(step, Constant):
        count = len(step.values)
        if count > plans.CONSTANT_ELEMENTS or count != _elements(step.into):
            return f"a host constant of {count} numbers; at most {plans.CONSTANT_ELEMENTS} are allowed"
    return None


def _all_views(planned: CasePlan) -> Iterator[View]:
    for step in planned.steps:
        yield from views(step)
    yield from planned.outputs


def _inside(view: View, planned: CasePlan) -> bool:
    numbers = (view.storage, view.offset, *view.shape, *view.strides)
    if min(numbers) < 0 or view.storage >= len(planned.storages) or len(view.shape) != len(view.strides):
        return False
    size = ITEM_BYTES.get(view.dtype)
    if size is None:
        return False
    if not _elements(view):
        return True
    last = view.offset + sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))
    return (last + 1) * size <= planned.storages[view.storage]


def _overlaps(view: View) -> bool:
    """Whether two elements may lie in one place."""
    reach = 0  # of the dimensions with smaller strides
    for stride, extent in sorted(zip(view.strides, view.shape, strict=True)):
        if extent > 1:
            if stride <= reach:
                return True
            reach += (extent - 1) * stride
    return False


def _elements(view: View) -> int:
    count = 1
    for extent in view.shape:
        count *= extent
    return count

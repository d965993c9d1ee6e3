"""The first child: runs a candidate's module and host function on tensors without memory; makes JSON only.

Everything here runs in the same process as untrusted Python, so nothing it says is believed: the answer is
checked by a schema, and binaries are made elsewhere, from the device functions alone.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fitness.card import Case, TensorSpec
from fitness.lowering import shims
from fitness.lowering.driver import Recorder
from fitness.lowering.facts import Facts
from fitness.lowering.host import watched
from fitness.lowering.refusal import Refused, line_of, one_line
from fitness.lowering.tape import Json, Tape

OUTSIDE = "outside"  # module level and __init__: what is made there does not exist when the plan runs


class Incorrect(Exception):
    """The host function returned something else than the case asks for."""


def trace(source: Path, entry: str, facts: Facts, cases: Sequence[Case], asked: dict[str, int]) -> Json:
    """The answer about one source: {"kernels", "cases", "choices", "tuned"}, or {"status", "reason"}.

    Args:
        source: the candidate's file.
        entry: name of the function or class to call.
        facts: of the card lowered for.
        cases: what to call it with.
        asked: index of the configuration wanted from each autotuned function; others take their first.
    """
    recorder = Recorder(facts, asked)
    recorder.install()
    shims.install(facts)
    try:
        with watched(Tape(), lenient=True):
            called = getattr(module(source), entry, None)
        if not callable(called):
            raise Refused(f"{entry} is not a function or class once the module has run")
        plans = [_case(called, case, recorder) for case in cases]
    except Refused as why:
        return {"status": "rejected", "reason": str(why)}
    except Incorrect as why:
        return {"status": "incorrect", "reason": str(why)}
    except BaseException as why:  # untrusted code may raise anything
        line = line_of(why.__traceback__)
        where = f"line {line}: " if line is not None else ""
        return {"status": "rejected", "reason": f"{where}the host code raised {one_line(why)}"}
    choices = {
        name: {k: v for k, v in kept.items() if k != "rank"} for name, kept in recorder.choices.items()
    }
    return {"kernels": recorder.kernels, "cases": plans, "choices": choices, "tuned": recorder.tuned}


def module(source: Path, name: str = "kernel") -> Any:
    """The candidate's file, run under a name."""
    spec = importlib.util.spec_from_file_location(name, source)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def _case(called: Callable[..., Any], case: Case, recorder: Recorder) -> Json:
    function, bind = bound(called, case)
    same = [_meta(spec) for spec in case.inputs + case.parameters]
    recorder.tuning = False
    first = _traced(function, bind, case, recorder, same, salt=1)
    if recorder.tuning:  # then it also reset what trials would have written, as later calls do not
        first = _traced(function, bind, case, recorder, same, salt=1)
    others = [_meta(spec) for spec in case.inputs + case.parameters]
    for given, salt in ((others, 2), (same, 1)):  # results may be kept by shape, or by tensor and address
        again = _traced(function, bind, case, recorder, given, salt=salt)
        if json.dumps(again) != json.dumps(first):  # as text: NaN equals NaN
            raise Refused(
                f"case {case.name}: two calls of the host function do different work; it keeps state between "
                "calls, or depends on chance, time or addresses"
            )
    return first


def bound(called: Callable[..., Any], case: Case) -> tuple[Callable[..., Any], bool]:
    """The function to call, and whether parameters are bound to a module rather than passed."""
    if not inspect.isclass(called):
        return called, False
    with watched(Tape(), lenient=True), torch.device("meta"):
        made: Any = called(*case.init)
    return made, isinstance(made, nn.Module)


def _traced(
    function: Any, bind: bool, case: Case, recorder: Recorder, given: Sequence[torch.Tensor], *, salt: int
) -> Json:
    tape = recorder.tape = Tape(salt=salt)
    return recorded(function, bind, case, tape, given, watched)[0]


def recorded(
    function: Any,
    bind: bool,
    case: Case,
    tape: Tape,
    given: Sequence[torch.Tensor],
    watching: Callable[[Tape], AbstractContextManager[None]],
) -> tuple[Json, list[torch.Tensor]]:
    """One call: what it did as data of a ``CasePlan``, and its outputs.

    Args:
        function: what to call.
        bind: whether parameters are bound to a module rather than passed.
        case: the case.
        tape: a fresh one.
        given: inputs and parameters.
        watching: under what the call is run.

    Raises:
        Refused, Incorrect: what it must not do, or return.
    """
    for tensor in given:
        tape.adopt(tensor)
    tape.arguments = len(given)
    inputs, parameters = given[: len(case.inputs)], given[len(case.inputs) :]
    if bind:
        _bind(function, case, parameters)
    with watching(tape):
        result = function(*inputs) if bind else function(*inputs, *parameters)
    outputs = _tensors(result, case)
    views = [tape.view(tensor) for tensor in outputs]
    for spec, view in zip(case.outputs, views, strict=True):
        if view["storage"] < tape.arguments:
            raise Refused(f"output {spec.name} is (a view of) an input; outputs must be memory of their own")
    sizes = [storage.nbytes() for storage in tape.storages]
    about = {"case": case.name, "arguments": tape.arguments, "storages": sizes}
    return {**about, "steps": tape.steps, "outputs": views}, outputs


def _meta(spec: TensorSpec) -> torch.Tensor:
    return torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device="meta")


def _tensors(result: Any, case: Case) -> list[torch.Tensor]:
    """The outputs, checked against the case."""
    found = list(result) if isinstance(result, (tuple, list)) else [result]
    expected = ", ".join(_described(spec.shape, spec.dtype) for spec in case.outputs)
    said = ", ".join(
        _described(tuple(x.shape), str(x.dtype)[6:]) if isinstance(x, torch.Tensor) else repr(x)[:80]
        for x in found
    )
    if said != expected:
        raise Incorrect(f"case {case.name}: returns {said or 'nothing'}; expected {expected}")
    return found


def _described(shape: tuple[int, ...], dtype: str) -> str:
    return f"{dtype}[{', '.join(map(str, shape))}]"


def _bind(module: nn.Module, case: Case, parameters: Sequence[torch.Tensor]) -> None:
    """Put a case's parameters where the module keeps its own: by name, else in order."""
    own = list(module.state_dict(keep_vars=True).items())
    by_name = dict(zip((spec.name for spec in case.parameters), parameters, strict=True))
    names = [re.sub(r"\W+", "_", name) for name, _ in own]  # as the case has them
    if not set(names) <= set(by_name):
        if len(own) != len(parameters):
            wanted = ", ".join(by_name) or "none"
            raise Refused(f"ModelNew has the parameters {', '.join(names) or 'none'}; the problem: {wanted}")
        by_name = dict(zip(names, parameters, strict=True))
    for plain, (name, old) in zip(names, own, strict=True):
        if old.shape != by_name[plain].shape:
            raise Refused(
                f"parameter {name} of ModelNew has shape {tuple(old.shape)}; the problem's has "
                f"{tuple(by_name[plain].shape)}"
            )
        path, _, leaf = name.rpartition(".")
        owner = module.get_submodule(path)
        table: Any = owner._parameters if leaf in owner._parameters else owner._buffers
        table[leaf] = by_name[plain]

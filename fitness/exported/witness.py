"""Writes down what a call of an exported file does on a real device, in the form of a launch plan.

Lowering's recorder writes down the launches; here each kernel is compiled for real first, and each launch
goes on to the device. Runs in the child only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from triton.compiler import compiler as triton_compiler

from fitness.lowering.driver import Recorder
from fitness.lowering.facts import Facts
from fitness.lowering.host import HOST_MADE, Policy, unwatched
from fitness.lowering.refusal import Refused
from fitness.lowering.tape import Json, Tape

BINARIES = ("cubin", "hsaco")


class Witness(Recorder):
    """A recorder whose kernels are real.

    Attributes:
        binaries: name and hash of each kernel, by the number that launches give.
        listening: whether launches are written down.

    Args:
        facts: of the card that the plan was lowered for.
        choices: the configuration of each autotuned function that was measured: no other is run.
    """

    def __init__(self, facts: Facts, choices: Mapping[str, Json]) -> None:
        super().__init__(facts, {})
        self.binaries: dict[int, Json] = {}
        self.listening = False
        self.stream = 0  # that a call is made on
        self._measured = {name: _text(choice) for name, choice in choices.items()}
        self._really: Callable[..., Any] = triton_compiler.compile

    def _rank(self, tuner: Any, config: Any) -> float:
        super()._rank(tuner, config)
        wanted = self._measured.get(tuner.base_fn.__name__)
        return float(wanted != _text(config.all_kwargs()))

    def _compile(self, src: Any, target: Any = None, options: Any = None, **more: Any) -> Any:
        number = self.noted(src, options)
        with unwatched():
            kernel = self._really(src, target=target, options=options, **more)
            kind = next(kind for kind in BINARIES if kind in kernel.asm)
            made = {"name": kernel.name, "sha": hashlib.sha256(kernel.asm[kind]).hexdigest()}
            if self.binaries.setdefault(number, made) != made:
                raise Refused(f"two kernels are called {kernel.name} and are launched alike")
            kernel._init_handles()
            kernel._run = _Launch(self, number, kernel._run)
        return kernel


class _Launch:
    """Stands before a kernel's launcher."""

    def __init__(self, witness: Witness, kernel: int, really: Callable[..., Any]) -> None:
        self._witness = witness
        self._kernel = kernel
        self._really = really

    def __call__(self, x: Any, y: Any, z: Any, stream: Any, *more: Any) -> None:
        if not self._witness.listening:
            self._really(x, y, z, stream, *more)
            return
        if stream != self._witness.stream:
            raise Refused("launches a kernel on another stream than the one that it is called on")
        with unwatched():
            # What follows the stream: the function, its metadata, three things for hooks, then the arguments.
            self._witness.launch(self._kernel, (x, y, z), more[5:])
            self._really(x, y, z, stream, *more)


class HostMade(TorchFunctionMode):
    """Brings tensors that the host makes of numbers to the device by a copy, which the tape can see."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.said = ""
        self._device = device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """See TorchFunctionMode."""
        kwargs = kwargs or {}
        self.said = getattr(func, "__name__", "")
        first = args[0] if args else None
        ours = isinstance(first, torch.Tensor) and first.device.type == self._device
        if func is torch.Tensor.new_tensor and ours and isinstance(first, torch.Tensor):
            return torch.tensor(args[1], dtype=kwargs.get("dtype", first.dtype)).to(first.device)
        device = kwargs.get("device")
        moved = device is not None and torch.device(device).type == self._device
        if func in HOST_MADE and moved and not ours:
            return func(*args, **{**kwargs, "device": "cpu"}).to(device)
        return func(*args, **kwargs)


@contextmanager
def observed(tape: Tape) -> Iterator[None]:
    """Run what follows for real, and write its fills, copies and allocations to the tape."""
    made = HostMade(tape.device)
    with torch.no_grad(), Policy(tape, made), made:
        yield


def _text(choice: Any) -> str:
    return json.dumps(choice, sort_keys=True, default=str)

"""Stands where Triton's driver and compiler would be while a host function is traced.

Triton's own binder, specialisation, autotuner, heuristics and descriptors run as they are. This driver
answers for a card that is not there; the compiler's stand-in makes a kernel that, when launched, writes
itself down.
Runs in the tracing child only.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import compiler as triton_compiler
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from fitness.lowering.compiling import target_of
from fitness.lowering.facts import Facts
from fitness.lowering.host import CUDA, unwatched
from fitness.lowering.refusal import Refused
from fitness.lowering.tape import Json, Tape, dtype_name

OPTIONS = frozenset(
    [
        "num_warps",
        "num_stages",
        "num_ctas",
        "maxnreg",
        "launch_cooperative_grid",
        "launch_pdl",
        "enable_fp_fusion",
        "waves_per_eu",
        "matrix_instr_nonkdim",
        "kpack",
        "allow_flush_denorm",
        "max_num_imprecise_acc_default",
        "default_dot_input_precision",
    ]
)
ALWAYS = ("num_warps", "num_stages", "num_ctas")
UNHEEDED = frozenset({"debug", "sanitize_overflow"})  # device assertions are off in what is measured
GRID = (2**31 - 1, 65535, 65535)


class Driver:
    """Answers what ``triton.runtime.driver.active`` is asked for."""

    launcher_cls: Any = None

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.utils = self

    def get_current_target(self) -> GPUTarget:
        """The architecture lowered for."""
        return target_of(self.facts)

    def get_device_properties(self, device: Any = 0) -> dict[str, int]:
        """As Triton's own driver reports them."""
        facts = self.facts
        return {
            "max_shared_mem": facts.shared,
            "multiprocessor_count": facts.multiprocessors,
            "max_num_regs": 65536,
            "warpSize": facts.warp,
            "sm_clock_rate": 1980000,
            "mem_clock_rate": 2619000,
            "mem_bus_width": 5120,
        }

    def get_current_device(self) -> int:
        """There is one."""
        return 0

    def set_current_device(self, device: Any) -> None:
        """There is one."""

    def get_current_stream(self, device: Any = 0) -> int:
        """There is one."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """Where kernels run."""
        return CUDA

    def get_device_capability(self, device: Any = 0) -> tuple[int, int]:
        """Major and minor version."""
        return self.facts.capability

    def get_device_interface(self) -> Any:
        """Torch's module of the device."""
        return torch.cuda

    def get_benchmarker(self) -> Any:
        """Nothing is timed here; ``Autotuner._bench`` is answered for."""
        raise Refused("host code must not time kernels; the judge does")

    get_empty_cache_for_benchmark = get_benchmarker


class Recorder:
    """Writes down kernels and launches.

    Attributes:
        tape: of the call being traced.
        kernels: the distinct specialisations so far, as plan data.
        choices: configuration of each autotuned function.
        tuned: how many configurations each autotuned function has.
        tuning: set when a function was tuned.
    """

    def __init__(self, facts: Facts, asked: dict[str, int]) -> None:
        self.tape = Tape()
        self.kernels: list[Json] = []
        self.choices: dict[str, Json] = {}
        self.tuned: dict[str, int] = {}
        self.tuning = False
        self._facts = facts
        self._asked = asked
        self._target = target_of(facts)
        self._backend = triton_compiler.make_backend(self._target)
        self._plain = self._backend.parse_options({}).__dict__

    def install(self) -> None:
        """Put driver, compiler and autotuner stand-ins in their places, for the rest of this process."""
        triton.runtime.driver.set_active(Driver(self._facts))
        self.listen()

    def listen(self) -> None:
        """The same without the driver."""
        triton.compiler.compile = triton_compiler.compile = self._compile
        recorder = self

        def bench(tuner: Any, *args: Any, config: Any, **meta: Any) -> list[float]:
            return [recorder._rank(tuner, config)] * 3

        Autotuner._bench = bench

    def _rank(self, tuner: Any, config: Any) -> float:
        """A pretended time: the configuration asked for is fastest, then those after it."""
        name, total = tuner.base_fn.__name__, len(tuner.configs)
        self.tuned[name] = total
        self.tuning = True
        if config not in tuner.configs:
            return float(total)
        rank = (tuner.configs.index(config) - self._asked.get(name, 0)) % total
        if rank < self.choices.get(name, {"rank": total})["rank"]:
            self.choices[name] = {"rank": rank, **config.all_kwargs()}
        return float(rank)

    def _compile(self, src: Any, target: Any = None, options: Any = None, **_: Any) -> Any:
        return Pretended(self, self.noted(src, options), options or {}, self._facts)

    def noted(self, src: Any, options: Any) -> int:
        """Write down one specialisation, if it is new; its number."""
        with unwatched():
            spec = {
                "function": src.fn.__name__,
                "parameters": list(src.fn.arg_names),
                "signature": dict(src.signature),
                "constants": [[list(path), constant(value)] for path, value in sorted(src.constants.items())],
                "attributes": [[list(path), value] for path, value in sorted(src.attrs.items()) if value],
                "options": self._given(options or {}),
            }
        if spec not in self.kernels:
            self.kernels.append(spec)
        return self.kernels.index(spec)

    def _given(self, options: Json) -> Json:
        changed = {
            key: value
            for key, value in options.items()
            if key in ALWAYS or (key not in UNHEEDED and value != self._plain.get(key))
        }
        unknown = sorted(set(changed) - OPTIONS)
        if unknown:
            raise Refused(f"launch option {unknown[0]} is not supported")
        return changed

    def launch(self, kernel: int, grid: tuple[Any, ...], arguments: Sequence[Any]) -> None:
        """Write down one launch; an empty grid launches nothing."""
        for extent, most in zip(grid, GRID, strict=True):
            if type(extent) is not int or not 0 <= extent <= most:
                raise Refused(f"the grid is {grid}; each extent must be an integer from 0 to {list(GRID)}")
        if 0 in grid:
            return
        spec = self.kernels[kernel]
        types = list(spec["signature"].values())
        given = [self._argument(value, kind) for value, kind in zip(arguments, types, strict=True)]
        self.tape.launch({"do": "launch", "kernel": kernel, "grid": list(grid), "arguments": given})

    def _argument(self, value: Any, kind: Any) -> Json:
        if kind == "constexpr":
            plain = value if isinstance(value, (bool, int, float)) else None
            return {"kind": "scalar", "value": plain}
        if isinstance(value, TensorDescriptor):
            if getattr(value, "round_f32_to_tf32", False):
                raise Refused("descriptors with round_f32_to_tf32 are not supported")
            view = self.tape.view(value.base)
            view.update(shape=[int(n) for n in value.shape], strides=[int(n) for n in value.strides])
            return {
                "kind": "descriptor",
                "view": view,
                "block": list(value.block_shape),
                "padding": value.padding,
            }
        value = getattr(value, "base", value) if type(value).__name__ == "TensorWrapper" else value
        if isinstance(value, torch.Tensor):
            return {"kind": "pointer", "view": self.tape.view(value)}
        if value is None or type(value) in (bool, int, float):
            return {"kind": "scalar", "value": value}
        raise Refused(f"a kernel argument of type {type(value).__name__} cannot be part of a plan")


class Pretended:
    """What a launcher and curious host code find where a compiled kernel would be."""

    def __init__(self, recorder: Recorder, kernel: int, options: Json, facts: Facts) -> None:
        self._recorder = recorder
        self._kernel = kernel
        self.name = recorder.kernels[kernel]["function"]
        self.metadata = SimpleNamespace(
            **options, shared=facts.shared // 8, name=self.name, target=target_of(facts)
        )
        self.hash, self.function, self.packed_metadata = self.name, 1, ()
        self.asm: dict[str, str] = {}
        self.n_regs, self.n_spills, self.n_max_threads = 32, 0, 1024

    def launch_metadata(self, *_: Any) -> None:
        """Only profilers want it."""

    def _init_handles(self) -> None:
        """Nothing to load."""

    def result(self) -> Pretended:
        """Triton 3.6 asks what may be a future."""
        return self

    def run(
        self, x: Any, y: Any, z: Any, stream: Any, function: Any, packed: Any, about: Any, *more: Any
    ) -> None:
        """Called by Triton to launch; ``more``: two hooks, then the kernel's arguments."""
        with unwatched():
            self._recorder.launch(self._kernel, (x, y, z), more[2:])

    def __getitem__(self, grid: Any) -> Any:
        """``kernel[grid](…)`` on a compiled kernel, as after ``warmup``."""

        def launch(*arguments: Any, stream: Any = None) -> None:
            wanted = (*grid, 1, 1)[:3]
            with unwatched():
                self._recorder.launch(self._kernel, wanted, arguments)

        return launch


def constant(value: Any) -> Any:
    """A compile-time constant as plan data."""
    if isinstance(value, triton.language.constexpr):
        return constant(value.value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, triton.language.dtype):
        return {"dtype": str(value)}
    if isinstance(value, JITFunction):
        return {"function": value.fn.__name__}
    if isinstance(value, torch.dtype):
        return {"torch": dtype_name(value)}
    if isinstance(value, (tuple, list)):
        return [constant(item) for item in value]
    raise Refused(f"a compile-time constant of type {type(value).__name__} is not supported")

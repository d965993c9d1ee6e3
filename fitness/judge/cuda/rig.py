"""Kernels on a GPU, timed by CUDA graphs of many argument sets between two events.

A block is one replay: every set launched once. There are enough sets that rotation alone evicts the L2
cache and that a block lasts a millisecond. The device is kept busy while the host enqueues, so that the first
launch of a block is not waited for.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import triton
from torch.utils._python_dispatch import TorchDispatchMode

from fitness.card import Case, TensorSpec
from fitness.judge import baselines
from fitness.judge.course import Course
from fitness.judge.cuda import probes
from fitness.judge.cuda.plans import FIRST_S, PlanLauncher, Watch, Watched
from fitness.judge.cuda.roofline import roofline
from fitness.judge.cuda.sets import DeviceSets
from fitness.judge.hooks import ALWAYS, MAX_AUTOTUNE
from fitness.judge.loaded import LoadedCase
from fitness.judge.place import move_to, place
from fitness.judge.rig import Check, Contender, Sets
from fitness.roofline import driver
from fitness.target import DeviceError
from populations.calibration import Floor, Roofline

BLOCK_S = 1e-3  # of launches in one block, at the least
ROTATION = 5  # argument sets of a block are together this many times the L2 cache
MOST_SETS = 256
SHARE = 0.35  # of device memory that the sets of one course may take
DELAY_CYCLES = 400_000  # about 0.2 ms in which the host enqueues a block
LEAST_BLOCK_S = 50e-6  # below it, events tell nothing
PROBE_BYTES = 1 << 30
GAUGE_BYTES, GAUGE_COPIES = 256 << 20, 4
PROBE_ROUNDS = 7
ROOM = 1.15  # above the bandwidth of the probes: an honest kernel read 1.10 times as fast on an H200
BELOW_BASELINE = 0.95  # of the strongest baseline's time lies the floor, at the most
FLOAT32_SHARE = 1 / 6  # of the bfloat16 rate that products of float32 accuracy can reach

# Why clocks are held back, by NVML's bits.
HELD_BACK = {
    "power cap": 0x4,
    "hardware": 0x8,
    "software thermal": 0x20,
    "hardware thermal": 0x40,
    "brake": 0x80,
}

Enqueue = Callable[[], object]


class CudaRig:
    """One GPU (see fitness.judge.rig.Rig). The judge makes its data on it.

    Args:
        watched: told how long a kernel may run, in seconds, before it does; and None after.

    Raises:
        DeviceError: there is no GPU, or it gives wrong answers.
    """

    policies: tuple[str, ...] = ("cold",)
    rounds = 16
    numerics = "device"
    fuses = True
    repeats = False
    isolation = "plan"

    def __init__(self, watched: Watched) -> None:
        self._watch = Watch(watched)
        if not torch.cuda.is_available():
            raise DeviceError("PyTorch finds no GPU here; use --target cpu, or a CUDA or ROCm build of torch")
        move_to(torch.device("cuda", torch.cuda.current_device()))
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        triton.set_allocator(_scratch)
        self._properties = torch.cuda.get_device_properties()
        _health()

    @property
    def lost(self) -> bool:
        """See Rig."""
        return self._watch.lost

    @property
    def memory_bytes(self) -> int:
        """See Rig. Wide copies are made of pieces, so cases may take twice what they may on a CPU."""
        return 2 * int(self._properties.total_memory)

    @property
    def cache_bytes(self) -> int:
        """Its L2 cache."""
        return int(self._properties.L2_cache_size)

    @property
    def facts(self) -> dict[str, str]:
        """What a result has to be read with."""
        return {
            "device": self._properties.name,
            "arch": f"sm_{self._properties.major}{self._properties.minor}"
            if torch.version.cuda
            else str(self._properties.gcnArchName).split(":")[0],
            "multiprocessors": str(self._properties.multi_processor_count),
            "memory_bytes": str(self._properties.total_memory),
            "cache_bytes": str(self.cache_bytes),
            "torch": torch.__version__,
            "triton": triton.__version__,
            "runtime": str(torch.version.cuda or torch.version.hip),
            "driver": driver(),
            "card": self._card,
            **self.telemetry(),
        }

    @property
    def _card(self) -> str:
        """Tells this card from others of its kind, whose speed may differ; not its number."""
        return hashlib.sha256(str(getattr(self._properties, "uuid", "")).encode()).hexdigest()[:8]

    def telemetry(self) -> dict[str, str]:
        """See Rig; nothing without NVML."""
        try:
            nvml = import_module("pynvml")
        except ImportError:
            return {}
        try:
            handle = torch.cuda._get_pynvml_handler()
            reasons = nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
            return {
                "sm_mhz": str(torch.cuda.clock_rate()),
                "memory_mhz": str(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
                "power_w": f"{torch.cuda.power_draw() / 1e3:.0f}",
                "temperature_c": str(torch.cuda.temperature()),
                "held_back": "+".join(name for name, bit in HELD_BACK.items() if reasons & bit) or "no",
            }
        except (AttributeError, RuntimeError, nvml.NVMLError):
            return {}

    @property
    def roofline(self) -> Roofline:
        """What trusted kernels reach here; measured where it was never kept."""
        return roofline(_best)

    def baselines(self, loaded: LoadedCase) -> tuple[str, ...]:
        """See Rig: where there are products, the compiler's own search among kernels as well."""
        return (*ALWAYS, MAX_AUTOTUNE) if multiplies(loaded) else ALWAYS

    def sets(self, arguments: Sequence[TensorSpec], read_only: int, count: int) -> DeviceSets:
        """See Rig."""
        return DeviceSets(arguments, read_only, count)

    def launcher(self, kernel: Path, case: Case, sets: Sets) -> PlanLauncher:
        """See Rig."""
        assert isinstance(sets, DeviceSets)
        return PlanLauncher(kernel, case, sets, self._watch)

    def course(self, loaded: LoadedCase, policy: str) -> Course:
        """See Rig."""
        case, inputs = loaded.case, len(loaded.case.inputs)
        refill = loaded.refiller(secrets.token_hex(16))
        draw = loaded.draw("rough")
        seconds = rough_seconds(baselines.calls("eager", loaded, [(draw.inputs, draw.parameters)])[0])
        del draw
        count = self._count(sum(spec.nbytes for spec in case.arguments), seconds)
        return Course(
            self.sets(case.arguments, inputs + len(case.parameters), count),
            lambda ordinal, tensors: refill.fill(ordinal, tensors[:inputs], tensors[inputs:]),
            policy=policy,
            blocks=1,
            gauge=self._gauge(),
        )

    def baseline(self, name: str, loaded: LoadedCase, course: Course) -> Contender:
        """See Rig."""
        kept: list[object] = []
        ready = baselines.warmed_up(name, loaded, course)

        def enqueue() -> None:
            kept[:] = [call() for call in ready]  # kept: its allocator has to rotate as well

        return GraphContender(enqueue, kept)

    def contender(self, kernel: Path, case: Case, course: Course, check: Check, limit_s: float) -> Contender:
        """See Rig."""
        return PlanContender(kernel, case, course, check, limit_s, self._watch)

    def floor(self, case: Case, course: Course, seconds: float) -> Floor:
        """See Rig: what copying, writing and reading reach, and the matrix unit's rate.

        Kernels have been seen to read faster than the probe that reads, hence some room above what probes
        reach. The strongest baseline is trusted: where it comes near the floor, the floor lies lower.
        """
        nbytes = min(sum(spec.nbytes for spec in case.arguments), PROBE_BYTES)
        bandwidth = ROOM * probes.bandwidth(nbytes, _best)
        narrow = all(spec.dtype in ("bfloat16", "float16") for spec in case.inputs)
        roof = self.roofline
        rate = 1e12 * roof.product_tflops * (1.0 if narrow else FLOAT32_SHARE)
        slowest = min(max(case.bytes / bandwidth, (case.flops or 0) / rate), BELOW_BASELINE * seconds)
        return Floor(case.name, course.policy, slowest, bandwidth / 1e9, roof)

    def least_block_s(self, course: Course) -> float:  # noqa: ARG002
        """See Rig."""
        return LEAST_BLOCK_S

    def quiet(self) -> AbstractContextManager[object]:
        """See Rig: a GPU keeps itself awake."""
        return nullcontext()

    @cache  # noqa: B019 - one rig a process
    def _gauge(self) -> Contender:
        """Copies past the L2 cache: half a millisecond that every round repeats."""
        source, copy = (torch.empty(GAUGE_BYTES, dtype=torch.uint8, device=place()) for _ in range(2))
        source.random_()
        return GraphContender(lambda: [copy.copy_(source) for _ in range(GAUGE_COPIES)], [source, copy])

    def _count(self, set_bytes: int, seconds: float) -> int:
        enough = max(-(-ROTATION * self.cache_bytes // set_bytes), int(BLOCK_S / seconds) + 1)
        return max(1, min(enough, MOST_SETS, int(SHARE * self._properties.total_memory) // (2 * set_bytes)))


class GraphContender:
    """Work captured once as a graph, and replayed between two events (see fitness.judge.rig.Contender)."""

    def __init__(self, enqueue: Enqueue, kept: list[object]) -> None:
        self._kept = kept
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # a first run loads modules, which a capture may not
            enqueue()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        # torch.cuda.graph would collect garbage and empty the allocator's cache each time: milliseconds.
        free, total = torch.cuda.mem_get_info()
        if free < total / 2:
            torch.cuda.empty_cache()
        with torch.cuda.stream(stream):
            self._graph.capture_begin()
            try:
                enqueue()
            finally:
                self._graph.capture_end()
        torch.cuda.current_stream().wait_stream(stream)
        self._clock = _Clock()

    def block(self, count: int) -> tuple[float, bool]:  # noqa: ARG002
        """See Contender; a graph always runs all its sets."""
        return self._clock.seconds(self._graph.replay), False

    def check(self, count: int) -> None:
        """Nothing to do: a baseline passed the gate before and is trusted code."""

    def close(self) -> None:
        """Give the graph's memory back."""
        self._kept.clear()
        self._graph.reset()


class PlanContender:
    """A candidate's launch plan over a course; every timed launch is checked."""

    def __init__(
        self, kernel: Path, case: Case, course: Course, check: Check, limit_s: float, watch: Watch
    ) -> None:
        assert isinstance(course.sets, DeviceSets)
        self._course = course
        self._check = check
        self._limit_s = limit_s
        self._watch = watch
        self._launcher = PlanLauncher(kernel, case, course.sets, watch)
        with watch(FIRST_S + limit_s):
            self._graph = GraphContender(lambda: self._launcher.enqueue(0, course.count), [])

    def block(self, count: int) -> tuple[float, bool]:
        """See Contender."""
        with self._watch(self._limit_s):
            timed = self._graph.block(count)
            self._launcher.collect(0, count)
        return timed

    def check(self, count: int) -> None:
        """See Contender."""
        self._check(self._course.sets, count)

    def close(self) -> None:
        """Give the graph and the buffers back."""
        self._graph.close()
        self._launcher.close()


def rough_seconds(call: Callable[[], object]) -> float:
    """About how long one call takes on the device: the least of five, after three."""
    for _ in range(3):
        call()
    clock = _Clock()
    return min(clock.seconds(call) for _ in range(5))


class _Clock:
    """Two events around work that the host enqueues while the device is kept busy."""

    def __init__(self) -> None:
        self._start, self._end = (
            torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            for _ in range(2)
        )

    def seconds(self, enqueue: Enqueue) -> float:
        torch.cuda._sleep(DELAY_CYCLES)  # type: ignore[no-untyped-call]
        self._start.record()
        enqueue()
        self._end.record()
        self._end.synchronize()
        return float(self._start.elapsed_time(self._end)) / 1e3


def multiplies(loaded: LoadedCase) -> bool:
    """Whether a model has products, convolutions or attention: then max-autotune is worth its minutes."""
    draw = loaded.draw("products")
    with _Products() as seen:
        loaded.framework(draw.inputs, draw.parameters)
    return bool(seen.any)


class _Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notices operations that multiply matrices, whatever they are part of."""

    NAMES = ("mm", "addmm", "bmm", "baddbmm", "mv", "convolution", "scaled_dot_product")

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.any = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__.strip("_")
        self.any = self.any or bool(name.startswith(self.NAMES))
        return func(*args, **(kwargs or {}))


def _scratch(size: int, _alignment: int, _stream: object) -> torch.Tensor:
    """Memory that Triton's launcher asks for, e.g. for descriptors made on the device."""
    return torch.empty(size, dtype=torch.int8, device=place())


def _health() -> None:
    """A copy and a small product against known answers.

    Raises:
        DeviceError: the device gives wrong ones.
    """
    numbers = torch.arange(1 << 16)
    ones = torch.ones(64, 64, device=place())
    copied = torch.equal(numbers.to(place()).cpu(), numbers)
    if not (copied and bool(((ones @ ones) == 64).all())):
        raise DeviceError("the GPU gives wrong answers to a copy or a product; reset or replace it")


def _best(enqueue: Enqueue) -> float:
    contender = GraphContender(enqueue, [])
    try:
        return min(contender.block(1)[0] for _ in range(PROBE_ROUNDS))
    finally:
        contender.close()

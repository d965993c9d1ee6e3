"""Stand-ins for the parts of ``torch.cuda`` that honest host code calls; the rest refuses with its line.

Runs in the tracing child only, for the rest of that process.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import torch
import triton

from fitness.lowering.facts import Facts
from fitness.lowering.host import CUDA
from fitness.lowering.refusal import Refused

REFUSED = [
    "Stream",
    "ExternalStream",
    "stream",
    "set_stream",
    "default_stream",
    "Event",
    "CUDAGraph",
    "graph",
    "graphs",
    "make_graphed_callables",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "memory_allocated",
    "caching_allocator_alloc",
]


class _Stream:
    """The one stream."""

    cuda_stream = 0
    stream_id = 0
    device = CUDA

    def synchronize(self) -> None:
        """Nothing runs."""

    def __getattr__(self, name: str) -> Any:
        raise Refused(f"uses .{name} of a stream; a plan has one stream")


class _Device(AbstractContextManager[None]):
    """``torch.cuda.device(x.device)``."""

    def __init__(self, device: Any = None) -> None:
        index = device if isinstance(device, int) else getattr(torch.device(device or 0), "index", 0)
        if index not in (None, 0, -1):
            raise Refused(f"uses device {index}; a kernel has one device, cuda:0")

    def __exit__(self, *_: object) -> None:
        return None


def install(facts: Facts) -> None:
    """Put the stand-ins in place."""
    major, minor = facts.capability
    properties = SimpleNamespace(
        name=facts.name, major=major, minor=minor, total_memory=facts.memory, L2_cache_size=facts.l2,
        multi_processor_count=facts.multiprocessors, warp_size=facts.warp, regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048, shared_memory_per_block=49152,
        shared_memory_per_block_optin=facts.shared, shared_memory_per_multiprocessor=facts.shared + 1024,
        is_integrated=0, is_multi_gpu_board=0, gcnArchName=facts.arch,
    )  # fmt: skip
    stream = _Stream()
    stand_ins: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": _Device,
        "device": _Device,
        "device_of": lambda tensor: nullcontext(),
        "_DeviceGuard": lambda index: nullcontext(),
        "current_stream": lambda device=None: stream,
        "synchronize": lambda device=None: None,
        "empty_cache": lambda: None,
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: (major, minor),
        "get_device_name": lambda device=None: facts.name,
        "is_bf16_supported": lambda including_emulation=True: True,
        **{name: _refusing(name) for name in REFUSED},
    }
    for name, stand_in in stand_ins.items():
        setattr(torch.cuda, name, stand_in)
    triton.testing.do_bench = triton.testing.do_bench_cudagraph = _refusing("do_bench")


def _refusing(name: str) -> Any:
    def refuse(*_: Any, **__: Any) -> Any:
        raise Refused(f"{name} is not allowed; a plan has one stream and the judge's clock")

    return refuse

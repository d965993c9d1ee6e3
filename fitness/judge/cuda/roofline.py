"""The device's roofline: what copies, reads and writes move past the L2 cache, and a large product's rate."""

from __future__ import annotations

from collections.abc import Callable

import torch

from fitness import roofline as kept
from fitness.judge.cuda import probes
from fitness.judge.place import place
from populations.calibration import Roofline

Best = Callable[[Callable[[], object]], float]  # seconds of some work on the device, the best of a few
MEMORY_BYTES = 1 << 30  # of the buffers that a probe of memory moves between
PRODUCT = 8192  # order of the matrix product
TRIES = 3  # a disturbance must not be kept


def roofline(best: Best) -> Roofline:
    """Of the current device, as it was kept or as it is measured now."""
    properties = torch.cuda.get_device_properties()
    runtime = str(torch.version.cuda or torch.version.hip)
    identity = {
        "device": properties.name,
        "driver": kept.driver(),
        "torch": torch.__version__,
        "runtime": runtime,
    }
    return kept.roofline(identity, lambda: _measured(best))


def _measured(best: Best) -> Roofline:
    memory = [probes.rates(MEMORY_BYTES, best) for _ in range(TRIES)]
    copy, read, write = (max(rates[name] for rates in memory) / 1e9 for name in ("copy", "read", "write"))
    return Roofline(copy, read, write, max(_product_rate(best) for _ in range(TRIES)) / 1e12)


def _product_rate(best: Best) -> float:
    """Floating-point operations per second of a large bfloat16 product."""
    a, b = (torch.randn(PRODUCT, PRODUCT, dtype=torch.bfloat16, device=place()) for _ in range(2))
    out = torch.empty_like(a)
    return 2 * PRODUCT**3 / best(lambda: torch.mm(a, b, out=out))

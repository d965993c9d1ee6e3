"""The static profile of a launch plan on one case: what its device functions are made of."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

from fitness.lowering.disassembly import Disassembly, Word
from fitness.lowering.instructions import PADDING, class_of
from fitness.lowering.occupancy import occupancy
from fitness.plan import Binary, CasePlan, Launch, LaunchPlan
from populations.profile import KernelProfile

KEPT = 4096  # binaries whose counts stay in memory
LOADS, STORES = ("LD", "LDG", "LDGSTS"), ("ST", "STG")
MOST_WARPS = 32


class Profiler:
    """Profiles of one architecture; one may be used from several threads at once.

    Args:
        disassembly: of the same architecture.
        arch: as users write it.
    """

    def __init__(self, disassembly: Disassembly, arch: str) -> None:
        self._disassembly = disassembly
        self._arch = arch
        self._lock = threading.Lock()
        self._counts: OrderedDict[str, Counter[Word] | None] = OrderedDict()  # by the hash of a binary

    def profile(self, plan: LaunchPlan, folder: Path, case: CasePlan) -> tuple[KernelProfile, ...]:
        """One entry for each device function that the case launches, in the order of their first launch.

        Args:
            plan: of the case.
            folder: with the plan's binaries.
            case: one of the plan's.
        """
        launches = Counter(step.kernel for step in case.steps if isinstance(step, Launch))
        return tuple(self._kernel(plan.binaries[index], folder, times) for index, times in launches.items())

    def _kernel(self, binary: Binary, folder: Path, launches: int) -> KernelProfile:
        traits = binary.traits
        warps, registers, shared = (
            _warps(binary.metadata),
            traits.get("registers"),
            traits.get("shared_bytes"),
        )
        bound = None
        if warps is not None and registers is not None and shared is not None:
            bound = occupancy(self._arch, registers=registers, shared=shared, warps=warps)
        spills = [traits[name] for name in ("spill_store_bytes", "spill_load_bytes") if name in traits]
        return KernelProfile(
            name=binary.name,
            launches=launches,
            warps=warps,
            registers=registers,
            spill_bytes=sum(spills) if spills else None,
            shared_bytes=shared,
            blocks=bound.blocks if bound else None,
            occupancy=bound.share if bound else None,
            limiter=bound.limiter if bound else None,
            **_mix(self._counted(binary, folder)),
        )

    def _counted(self, binary: Binary, folder: Path) -> Counter[Word] | None:
        with self._lock:
            if binary.sha in self._counts:
                self._counts.move_to_end(binary.sha)
                return self._counts[binary.sha]
        found = None
        if "cubin" in binary.files:
            try:
                found = self._disassembly.count((folder / Path(binary.files["cubin"]).name).read_bytes())
            except OSError:
                return None  # the plan was forgotten meanwhile
        with self._lock:
            self._counts[binary.sha] = found
            if len(self._counts) > KEPT:
                self._counts.popitem(last=False)
        return found


def _mix(counts: Counter[Word] | None) -> dict[str, Any]:
    """The fields of a profile that follow from the instructions."""
    if counts is None:
        return {}
    classes: Counter[str] = Counter()
    loads: Counter[int] = Counter()
    stores: Counter[int] = Counter()
    for (name, bits), number in counts.items():
        if name == PADDING:
            continue
        classes[class_of(name)] += number
        if bits is not None:
            (stores if name in STORES else loads)[bits] += number
    total = classes.total()
    return {
        "instructions": total,
        "mix": {kind: number / total for kind, number in classes.most_common()},
        "load_bits": dict(sorted(loads.items())),
        "store_bits": dict(sorted(stores.items())),
    }


def _warps(facts: dict[str, Any]) -> int | None:
    """Warps of a block, as the compiler's metadata says; None where it says nothing sensible."""
    warps = facts.get("num_warps")
    return warps if isinstance(warps, int) and 0 < warps <= MOST_WARPS else None

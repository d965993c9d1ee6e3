"""The command that puts one kernel of a run under the profiler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evo import reading, saying

if TYPE_CHECKING:
    from fitness.counters import Counters
    from fitness.profiling import Device, Profiled
    from populations.kernel import Kernel
    from populations.verdict import Verdict

ANYWHERE = "sm_90"  # what is lowered for where there is no GPU


def profile(
    run: reading.RunFolder,
    id: Annotated[str, typer.Argument(help='A kernel\'s number, or "best".', metavar="ID")] = "best",
    as_json: saying.Json = False,
) -> None:
    """What one Triton kernel of a run is made of, its place under the roofline, and its hardware counters.

    The counters are read by ncu, on the GPU of this machine; exit code 1 where they could not be.
    """
    import populations
    from evo.settings import SettingsError

    with populations.open(run) as opened:
        member, begun = opened.get(id), opened.log.started()
        kernel, verdict = member.kernel, member.verdict
    if kernel.language != "triton":
        raise SettingsError(f"kernel {member.id} of {run} is no Triton kernel: only those have a profile")
    device, found = examined(kernel, begun.problem, begun.seed, begun.settings.get("sandboxed", True))
    if as_json:
        saying.data({"id": member.id, **as_data(device, found, verdict)}, as_json)
    else:
        rows = ((line,) for line in lines(device, found, verdict))
        saying.data(None, as_json, [(f"kernel {member.id} on case {found.case}",), *rows])
    saying.end(found.counters is not None)


def examined(
    kernel: Kernel, problem: str, seed: int, sandboxed: bool, device: Device | None = None
) -> tuple[Device | None, Profiled]:
    """A kernel's profile, with the device that it was taken on; None: there is no GPU.

    Args:
        kernel: a Triton source.
        problem: name or path.
        seed: of the case shapes that the problem draws.
        sandboxed: whether host code is confined.
        device: where it is known already.

    Raises:
        SettingsError: the kernel does not lower.
        FitnessError: the problem or the machine is at fault.
    """
    import fitness
    from evo.settings import SettingsError
    from fitness.profiling import device as current
    from fitness.profiling import profiled
    from populations.verdict import Verdict

    missing = None
    if device is None and not gpu():
        missing = "there is no GPU here"
    elif device is None:
        device = current()
    with fitness.scratch_folder() as folder:
        found = profiled(
            kernel,
            problem,
            folder=folder,
            arch=device.arch if device else ANYWHERE,
            seed=seed,
            sandboxed=sandboxed,
            missing=missing,
        )
    if isinstance(found, Verdict):
        raise SettingsError(f"the kernel does not lower here: {found.status}: {found.reason}")
    return device, found


def gpu() -> bool:
    """Whether this machine has one."""
    from fitness.verify import resolved

    return resolved("auto", "triton") == "cuda"


def lines(device: Device | None, found: Profiled, verdict: Verdict | None) -> Iterator[str]:
    """All of it for people."""
    from evo.profiles import place_lines, roofline_line, static_lines

    yield from static_lines(found.static)
    if device is not None:
        yield f"{device.name}: {roofline_line(device.roofline)}"
        if verdict is not None:
            yield from place_lines(verdict, device.roofline)
    if found.counters is None:
        yield f"no counters: {found.reason}"
    for one in found.counters or ():
        yield f"{one.kernel}: {', '.join(counted(one)) or 'nothing was counted'}"


def counted(one: Counters) -> Iterator[str]:
    """What the counters of one launch say, as far as they are there."""
    if one.seconds is not None:
        yield f"{one.seconds * 1e6:.1f} µs"
    if one.dram is not None:
        yield f"memory at {100 * one.dram:.0f} % of its peak"
    if one.dram_read_bytes is not None and one.dram_write_bytes is not None:
        yield f"{one.dram_read_bytes / 1e6:.1f} MB read and {one.dram_write_bytes / 1e6:.1f} MB written"
    shares = (
        ("L2 hits", one.l2_hits),
        ("occupancy", one.occupancy),
        ("of at most", one.occupancy_bound),
        ("issue slots", one.issue_slots),
        ("tensor pipe", one.tensor),
    )
    for words, share in shares:
        if share is not None:
            yield f"{words} {100 * share:.0f} %"
    if one.local_read_bytes is not None and one.local_write_bytes is not None:
        yield f"local memory {(one.local_read_bytes + one.local_write_bytes) / 1e6:.1f} MB"
    if one.stall is not None and one.stall_share is not None:
        yield f"waits most for {one.stall} ({100 * one.stall_share:.0f} %)"


def as_data(device: Device | None, found: Profiled, verdict: Verdict | None) -> dict[str, Any]:
    """All of it as plain data."""
    from dataclasses import asdict

    roofline = device.roofline if device else None
    positions = [
        {"case": case.name, "policy": timing.policy, **asdict(roofline.position(timing.gbps, timing.tflops))}
        for case in (verdict.cases if verdict and roofline else ())
        for timing in case.timings
        if roofline is not None
    ]
    return {
        "case": found.case,
        "device": device.name if device else None,
        "static": [asdict(one) for one in found.static],
        "roofline": asdict(roofline) if roofline else None,
        "positions": positions,
        "counters": None if found.counters is None else [asdict(one) for one in found.counters],
        "reason": found.reason,
    }

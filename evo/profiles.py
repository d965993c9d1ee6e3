"""What a kernel is made of and where it stands on its device, in lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from populations.calibration import Roofline
from populations.profile import KernelProfile
from populations.verdict import Verdict

SHOWN = 6  # classes of instructions in a line, the most frequent ones


def profile_lines(verdict: Verdict, roofline: Roofline | None) -> Iterator[str]:
    """The device functions of a verdict, and its timed cases under a roofline; no line for what is not known.

    Args:
        verdict: with or without a profile and times.
        roofline: of the device that it was timed on; None: not measured.
    """
    yield from static_lines(verdict.profile)
    if roofline is not None:
        yield from place_lines(verdict, roofline)


def place_lines(verdict: Verdict, roofline: Roofline) -> Iterator[str]:
    """Where a kernel stands under a roofline, a line a timed case."""
    for case in verdict.cases:
        for timing in case.timings[:1]:
            at = roofline.position(timing.gbps, timing.tflops)
            rate = "" if at.rate is None else f", {_percent(at.rate)} of a large product's rate"
            yield f"{case.name}: {_percent(at.bandwidth)} of a copy's bandwidth{rate}: bound by {at.bound}"


def static_lines(profile: Sequence[KernelProfile]) -> Iterator[str]:
    """Two lines a device function."""
    for one in profile:
        yield f"{one.name}{_times(one.launches)}: {', '.join(_resources(one)) or 'nothing is known'}"
        if one.mix is not None:
            most = sorted(one.mix.items(), key=lambda item: -item[1])
            shares = ", ".join(f"{kind} {_percent(share)}" for kind, share in most[:SHOWN])
            rare = [f"{kind} {_percent(one.mix[kind])}" for kind in ("tensor", "local") if kind in one.mix]
            missing = [text for text in rare if text not in shares]
            yield f"  {one.instructions} instructions: {', '.join([shares, *missing])}{_widths(one)}"


def roofline_line(roofline: Roofline) -> str:
    """A roofline in one line."""
    copy, read, write = roofline.copy_gbps, roofline.read_gbps, roofline.write_gbps
    rate = roofline.product_tflops
    return f"copy {copy:.0f}, read {read:.0f}, write {write:.0f} GB/s; product {rate:.0f} TFLOP/s"


def _resources(one: KernelProfile) -> Iterator[str]:
    if one.registers is not None:
        yield f"{one.registers} registers"
    if one.spill_bytes is not None:
        yield f"{one.spill_bytes} bytes spilled" if one.spill_bytes else "no spills"
    if one.shared_bytes is not None:
        yield f"{one.shared_bytes} bytes shared"
    if one.warps is not None:
        yield f"{one.warps} warp{'' if one.warps == 1 else 's'}"
    if one.occupancy is not None:
        yield f"occupancy at most {_percent(one.occupancy)} ({one.blocks} blocks, limited by {one.limiter})"


def _widths(one: KernelProfile) -> str:
    parts = [
        f"{what} {', '.join(f'{count}x{bits}' for bits, count in sorted(found.items()))}"
        for what, found in (("loads", one.load_bits), ("stores", one.store_bits))
        if found
    ]
    return f"; {'; '.join(parts)} bits" if parts else ""


def _times(launches: int) -> str:
    return f" x{launches}" if launches > 1 else ""


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1f} %"

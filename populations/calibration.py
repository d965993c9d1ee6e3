"""What a device said before the search began: baselines, the noise floor, the hardware floor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Baseline:
    """One contender to beat, on one timed case under one policy.

    Attributes:
        name: "eager" or "torch.compile".
        counted: whether it passed the same gate as a candidate; one that failed is shown, not counted.
        reason: why it does not count, else None.
        median: seconds per call; None where it was not timed.
        ci95: 95 percent interval of the median.
    """

    name: str
    case: str
    policy: str
    counted: bool
    reason: str | None
    median: float | None
    ci95: tuple[float, float] | None


@dataclass(frozen=True)
class Noise:
    """A/A: the strongest baseline against itself; half-width of the 95 percent interval of log speed-up."""

    case: str
    policy: str
    half_width: float


@dataclass(frozen=True)
class Position:
    """Where a kernel stands under a roofline.

    Attributes:
        bandwidth: its compulsory bytes a second, as a share of what a copy moves.
        rate: its FLOPs a second as a share of a large product's; None where the problem declares none.
        bound: "memory" or "compute": the roof that lies lower at the problem's FLOPs per byte.
    """

    bandwidth: float
    rate: float | None
    bound: str


@dataclass(frozen=True)
class Roofline:
    """What trusted kernels reach on a device, past its caches; 1e9 bytes, and 1e12 FLOPs, a second.

    Attributes:
        copy_gbps, read_gbps, write_gbps: bytes read and written together, read, or written.
        product_tflops: of a large bfloat16 matrix product.
    """

    copy_gbps: float
    read_gbps: float
    write_gbps: float
    product_tflops: float

    def position(self, gbps: float, tflops: float | None) -> Position:
        """Where a kernel stands that moves and computes so much a second."""
        bandwidth, rate = gbps / self.copy_gbps, None if tflops is None else tflops / self.product_tflops
        return Position(bandwidth, rate, "compute" if (rate or 0.0) > bandwidth else "memory")


@dataclass(frozen=True)
class Floor:
    """Time below which a claim is not believed: compulsory bytes at copy speed, or FLOPs at peak rate.

    Attributes:
        seconds: the larger of the two.
        gbps: the copy's bandwidth at this size under this policy, 1e9 bytes per second.
        roofline: of the device, whatever the case; None: not measured there.
    """

    case: str
    policy: str
    seconds: float
    gbps: float
    roofline: Roofline | None = None


@dataclass(frozen=True)
class Calibration:
    """All of it, and the machine it was measured on (model, cores, cache, library versions)."""

    baselines: tuple[Baseline, ...]
    noise: tuple[Noise, ...]
    floors: tuple[Floor, ...]
    machine: dict[str, str]

    def noise_floor(self, policy: str) -> float:
        """Half-width of the widest A/A interval under a policy, of log speed-up."""
        return max((noise.half_width for noise in self.noise if noise.policy == policy), default=0.0)

    @property
    def roofline(self) -> Roofline | None:
        """The device's; None where none was measured."""
        return next((floor.roofline for floor in self.floors if floor.roofline is not None), None)

    def strongest(self, case: str, policy: str) -> Baseline | None:
        """The fastest counted baseline of a case; None where none counts."""
        here = [b for b in self.baselines if b.case == case and b.policy == policy]
        timed = [b for b in here if b.counted and b.median]
        return min(timed, key=lambda b: b.median or 0.0, default=None)

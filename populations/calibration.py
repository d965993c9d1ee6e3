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
class Floor:
    """Time below which a claim is not believed: compulsory bytes at copy speed, or FLOPs at peak rate.

    Attributes:
        seconds: the larger of the two.
        gbps: the copy's bandwidth at this size under this policy, 1e9 bytes per second.
    """

    case: str
    policy: str
    seconds: float
    gbps: float


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

    def strongest(self, case: str, policy: str) -> Baseline | None:
        """The fastest counted baseline of a case; None where none counts."""
        here = [b for b in self.baselines if b.case == case and b.policy == policy]
        timed = [b for b in here if b.counted and b.median]
        return min(timed, key=lambda b: b.median or 0.0, default=None)

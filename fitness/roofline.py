"""Rooflines measured on this machine, one file a device, driver and torch; a damaged one is measured anew."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fitness import native
from fitness.kept import keep
from populations.calibration import Roofline

DRIVER = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True)
class Kept:
    """A roofline, and what it was measured with: device, driver, torch."""

    identity: dict[str, str]
    roofline: Roofline


_KEPT = TypeAdapter(Kept)


def roofline(
    identity: Mapping[str, str], measure: Callable[[], Roofline], folder: Path | None = None
) -> Roofline:
    """The kept one of this identity, else what ``measure`` finds, kept from now on.

    Args:
        identity: device, driver and torch: with others it is another roofline.
        measure: takes it; a second or two of a quiet device.
        folder: where rooflines are kept; None: in the user's cache.
    """
    path = _path(identity, folder)
    kept = _read(path)
    if kept is not None and kept.identity == dict(identity):
        return kept.roofline
    found = measure()
    keep(path, _KEPT.dump_json(Kept(dict(identity), found), indent=1))
    return found


def kept_rooflines(folder: Path | None = None) -> list[Kept]:
    """All that this user's cache holds, in the order of their files' names."""
    paths = sorted((folder or _folder()).glob("*.json"))
    return [kept for kept in map(_read, paths) if kept is not None]


def driver() -> str:
    """Version of the kernel's NVIDIA module; "unknown" where there is none."""
    try:
        found = re.search(r"\b\d{3,}\.\d+(\.\d+)?\b", DRIVER.read_text())
    except OSError:
        return "unknown"
    return found[0] if found else "unknown"


def _folder() -> Path:
    return native.cache_folder() / "roofline"


def _path(identity: Mapping[str, str], folder: Path | None) -> Path:
    text = json.dumps(dict(identity), sort_keys=True)
    return (folder or _folder()) / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _read(path: Path) -> Kept | None:
    try:
        kept = _KEPT.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    numbers = asdict(kept.roofline).values()
    return kept if all(math.isfinite(number) and number > 0 for number in numbers) else None

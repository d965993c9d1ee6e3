"""Reads and lowers tests/idioms/*.py; each states its entry and its cases in comments, as

# entry: name
# case: x=float32[64,128]; weight=float32[128] -> float32[64,128] float32[64]

python tests/lower_idioms.py FOLDER      prints {"triton": version, "plans": {name: plan or reason}} as JSON
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fitness import plan
from fitness.card import Case, TensorSpec
from fitness.lowering import Lowered, Lowering
from populations.kernel import Kernel

FOLDER = Path(__file__).parent / "idioms"
TENSOR = re.compile(r"(?:(\w+)=)?(\w+)\[([\d,]*)\]")


def idioms() -> list[Path]:
    return sorted(FOLDER.glob("*.py"))


def read(path: Path) -> tuple[Kernel, list[Case], str | None]:
    text = path.read_text()
    entry = re.search(r"^# entry: (\w+)$", text, re.MULTILINE)
    lines = re.findall(r"^# case: (.*)$", text, re.MULTILINE)
    return Kernel(text, "triton"), [case(line) for line in lines], entry[1] if entry else None


def case(line: str) -> Case:
    given, _, returned = line.partition(" -> ")
    inputs, _, parameters = given.partition(";")
    return Case(
        name=line,
        constants={},
        distribution=None,
        held_out=False,
        derived=False,
        timed=True,
        inputs=_specs(inputs),
        parameters=_specs(parameters),
        outputs=_specs(returned),
        bytes=0,
    )


def _specs(text: str) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(name or f"out{index}", tuple(int(n) for n in shape.split(",") if n), dtype)
        for index, (name, dtype, shape) in enumerate(TENSOR.findall(text))
    )


def lowered(lowering: Lowering, path: Path) -> dict[str, Any] | str:
    """What does not depend on the compiler: kernels, cases and choices; or the reason of the verdict."""
    kernel, cases, entry = read(path)
    made = lowering.lower(kernel, cases, entry)
    if not isinstance(made, Lowered):
        return f"{made.status}: {made.reason}"
    data: dict[str, Any] = json.loads(plan.write(made.plan))
    return {name: data[name] for name in ("kernels", "cases", "choices")}


def lower_all(folder: Path) -> dict[str, Any]:
    lowering = Lowering(folder)
    try:
        plans = {path.stem: lowered(lowering, path) for path in idioms()}
    finally:
        lowering.close()
    return {"triton": version("triton"), "plans": plans}


if __name__ == "__main__":
    print(json.dumps(lower_all(Path(sys.argv[1]))))

"""How close honest code comes to the gate's bounds, and how far beyond them everything else is.

Writes docs/results/gate-calibration.md. Honest float32 implementations should stay below a third of the
bound; the next lower precision, and every mutant, should be at more than three times it.

    python benchmarks/gate_calibration.py
"""

from __future__ import annotations

import argparse
import datetime
import math
import platform
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.gate import attending, elementwise, normalisations, sums, volumes
from benchmarks.gate.honest import ONE_ACCUMULATOR
from benchmarks.gate.operation import EVERYDAY, Operation, rows_for
from benchmarks.gate.steps import bfloat16_steps
from fitness.card import TensorSpec
from fitness.judge.bounds import Bound, bounds
from fitness.judge.compare import compare

OPERATIONS: tuple[Callable[[], Operation], ...] = (
    normalisations.softmax, normalisations.layer_norm, normalisations.rms_norm, normalisations.cross_entropy,
    elementwise.gelu_tanh, elementwise.swiglu, elementwise.rope, elementwise.quantize_int8,
    sums.depthwise_conv3x3, sums.masked_cumsum,
    sums.total, sums.mean, sums.logsumexp, sums.matmul, sums.conv2d, normalisations.batch_norm,
    sums.linear_gelu, sums.attention,
    attending.attention, sums.matvec, sums.cumsum, normalisations.softmax_long, normalisations.rms_norm_rows,
    volumes.rms_norm_channels, volumes.conv_transpose3d, volumes.max_pool3d,
)  # fmt: skip
RESULT = Path(__file__).parents[1] / "docs" / "results" / "gate-calibration.md"


@dataclass
class Extreme:
    """The most extreme of the errors seen, in units of the bound, and where."""

    error: float | None = None
    where: str = ""

    def highest(self, error: float, where: str) -> None:
        if self.error is None or error > self.error:
            self.error, self.where = error, where


@dataclass
class Row:
    """One operation under one kind of bound.

    Attributes:
        honest: the worst honest error; running: the worst of sums with a single accumulator.
        bfloat16, float16: of the lower precisions, by length the worst error over everyday distributions.
        mutants: of each mutant the worst error; it need be caught on one case only.
    """

    operation: str
    bound: str
    honest: Extreme = field(default_factory=Extreme)
    running: Extreme = field(default_factory=Extreme)
    bfloat16: dict[str, Extreme] = field(default_factory=dict)
    float16: dict[str, Extreme] = field(default_factory=dict)
    mutants: dict[str, Extreme] = field(default_factory=dict)


def calibrate(
    operation: Operation, lengths: Iterable[int] | None = None, distributions: Iterable[str] | None = None
) -> list[Row]:
    """The declared bound's row, if there is one, the sampled bound's, and that of the bfloat16 version."""
    declared = [Row(operation.name, "declared")] if operation.tolerance else []
    table = [*declared, Row(operation.name, "sampled")]
    narrow = Row(operation.name, "bfloat16")
    for length in lengths or operation.lengths:
        for number, kind in enumerate(distributions or operation.distributions):
            rng = torch.Generator().manual_seed(1000 * length + number)
            inputs, parameters = operation.arguments(length, rows_for(length), kind, rng)
            judge_case(operation, table, inputs, parameters, kind, length)
            if operation.narrow:
                judge_narrow(operation, narrow, inputs, parameters, kind, length)
    return [*table, narrow] if operation.narrow else table


def judge_case(
    operation: Operation,
    table: list[Row],
    inputs: list[Tensor],
    parameters: list[Tensor],
    kind: str,
    length: int,
) -> None:
    arguments = inputs + parameters
    want = listed(operation.reference(*converted(arguments, torch.float64)))
    dtypes = [y.dtype for y in listed(operation.reference(*arguments))]
    specs = specified(want, dtypes)
    wide = converted(inputs, torch.float64), converted(parameters, torch.float64)
    for row in table:
        tolerance = operation.tolerance(length) if operation.tolerance and row.bound == "declared" else None
        allowed = bounds(tolerance, *wide, want, specs, lambda i, p: listed(operation.reference(*i, *p)))
        where = f"{kind}, {length}"
        for name, f in operation.honest.items():
            extreme = row.running if name in ONE_ACCUMULATOR else row.honest
            extreme.highest(error(f, arguments, want, allowed, dtypes), f"{name}, {where}")
        if kind in EVERYDAY and length > 2:
            for lower, seen in ((torch.bfloat16, row.bfloat16), (torch.float16, row.float16)):
                rounded = converted(converted(arguments, lower), torch.float32)
                extreme = seen.setdefault(str(length), Extreme())
                extreme.highest(error(operation.reference, rounded, want, allowed, dtypes), where)
        for name, f in (operation.mutants | surrogates(operation)).items():
            mutant = row.mutants.setdefault(name, Extreme())
            mutant.highest(error(f, arguments, want, allowed, dtypes), where)


def judge_narrow(
    operation: Operation, row: Row, inputs: list[Tensor], parameters: list[Tensor], kind: str, length: int
) -> None:
    """Arguments in bfloat16, float32 inside, results rounded; coarse is what rounds every step."""
    assert operation.narrow is not None
    inputs, parameters = (
        converted(converted(tensors, torch.bfloat16), torch.float32) for tensors in (inputs, parameters)
    )
    arguments = inputs + parameters
    want = listed(operation.reference(*converted(arguments, torch.float64)))
    dtypes = [y.dtype for y in listed(operation.reference(*arguments))]
    if not operation.keeps:
        dtypes = [torch.bfloat16 if dtype == torch.float32 else dtype for dtype in dtypes]
    wide = converted(inputs, torch.float64), converted(parameters, torch.float64)
    allowed = bounds(operation.narrow(length), *wide, want, specified(want, dtypes))
    where = f"{kind}, {length}"
    for name, f in (operation.honest | operation.narrow_honest).items():
        extreme = row.running if name in ONE_ACCUMULATOR else row.honest
        extreme.highest(error(f, arguments, want, allowed, dtypes), f"{name}, {where}")
    if kind in EVERYDAY and length > 2:
        stepwise = operation.honest.get("pairwise") or next(iter(operation.honest.values()))
        for f in (bfloat16_steps(stepwise), *operation.coarse.values()):
            row.bfloat16.setdefault(str(length), Extreme()).highest(
                error(f, arguments, want, allowed, dtypes), where
            )
    for name, f in (operation.mutants | surrogates(operation, 1.05)).items():
        row.mutants.setdefault(name, Extreme()).highest(error(f, arguments, want, allowed, dtypes), where)


def specified(want: list[Tensor], dtypes: list[torch.dtype]) -> list[TensorSpec]:
    return [
        TensorSpec(f"out{i}", tuple(y.shape), str(dtype).removeprefix("torch."))
        for i, (y, dtype) in enumerate(zip(want, dtypes, strict=True))
    ]


def error(
    f: Callable[..., Any],
    arguments: list[Tensor],
    want: list[Tensor],
    allowed: list[Bound],
    dtypes: list[torch.dtype],
) -> float:
    """The worst error in units of the bound; infinite where NaN or shapes differ."""
    got = [y.to(dtype) for y, dtype in zip(listed(f(*arguments)), dtypes, strict=True)]
    return compare(got, want, allowed).max_error


def surrogates(operation: Operation, factor: float = 1.0001) -> dict[str, Callable[..., Any]]:
    """What passes for a result without computing one."""

    def changed(change: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
        return lambda *arguments: [change(y) for y in listed(operation.reference(*arguments))]

    def without_tail(y: Tensor) -> Tensor:
        flat = y.clone().flatten()
        flat[-max(1, flat.numel() // 16) :] = 0
        return flat.reshape(y.shape)

    return {
        "zeros": changed(torch.zeros_like),
        "tail left out": changed(without_tail),
        f"off by {factor - 1:.2g}": changed(lambda y: y * factor if y.is_floating_point() else y + 1),
    }


def converted(tensors: list[Tensor], dtype: torch.dtype) -> list[Tensor]:
    return [t.to(dtype) if t.is_floating_point() else t for t in tensors]


def listed(outputs: Any) -> list[Tensor]:
    return list(outputs) if isinstance(outputs, tuple | list) else [outputs]


HEAD = """# Calibration of the gate

{date}, {machine}, torch {torch}, {seconds:.0f} s. Command: `python benchmarks/gate_calibration.py`.

Errors are in units of the bound, so 1 is the limit. *Honest*: the worst of all honest float32 implementations
over all distributions and lengths. *One accumulator*: the worst of those that sum a whole row into a single
float, forwards or backwards. *bf16*, *fp16*: the operation on inputs rounded to that precision, its worst
error over everyday distributions; shown is the length at which it is least. *Mutant*: the worst error of each
mutant; shown is the weakest.

Rows *bfloat16*: arguments and results in bfloat16, float32 inside. Rounding a result takes up to all of its
bound, so honest is near 1; *bf16* there is an implementation that rounds every step to bfloat16.

| operation | bound | honest | where | one accumulator | where | bf16 | fp16 | weakest mutant |
|---|---|---|---|---|---|---|---|---|
"""


def markdown(table: list[Row], seconds: float) -> str:
    head = HEAD.format(
        date=datetime.date.today(), machine=machine(), torch=torch.__version__, seconds=seconds
    )
    return head + "".join(line(row) for row in table)


def machine() -> str:
    """Model of the processor, as Linux names it."""
    models = [
        text for text in Path("/proc/cpuinfo").read_text().splitlines() if text.startswith("model name")
    ]
    return f"{models[0].split(':')[1].strip()}, {len(models)} cores" if models else platform.machine()


def least(seen: dict[str, Extreme]) -> tuple[str, float]:
    """The weakest of several, with its name."""
    return min(((name, extreme.error or 0.0) for name, extreme in seen.items()), key=lambda pair: pair[1])


def line(row: Row) -> str:
    weakest = [least(seen) if seen else None for seen in (row.bfloat16, row.float16, row.mutants)]
    cells = (
        row.operation, row.bound, figure(row.honest.error), row.honest.where, figure(row.running.error),
        row.running.where, *(f"{figure(found[1])} ({found[0]})" if found else "–" for found in weakest),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |\n"


def figure(value: float | None) -> str:
    if value is None:
        return "–"
    return "inf" if math.isinf(value) else f"{value:.2g}" if value < 100 else f"{value:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("operations", nargs="*", help="only these; the table is printed, not written")
    wanted = parser.parse_args().operations
    torch.set_num_threads(1)  # small tensors; and the machine may have other work
    start, table = time.monotonic(), []
    for make in OPERATIONS:
        operation = make()
        if not wanted or operation.name in wanted:
            found = calibrate(operation)
            table += found
            print("".join(line(row) for row in found), end="", flush=True)
    if not wanted:
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(markdown(table, time.monotonic() - start))


if __name__ == "__main__":
    main()

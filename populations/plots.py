"""Two pictures of a run: how it got better, and what became of its kernels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from populations.run import Run
from populations.verdict import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette: told apart by people who see colours differently, and in grey.
_BLUE, _ORANGE, _GREY, _BLACK = "#0072B2", "#E69F00", "#8A8A8A", "#000000"


def best_over_evaluations(run: Run, ax: Axes | None = None) -> Axes:
    """Speed-up of every measured kernel, and the best so far, over the number of evaluations.

    The line follows rank, what selection compares: the lower bound where a kernel has one. It can lie below
    points that were lucky in a few rounds.

    Args:
        run: with any number of evaluations, also none.
        ax: where to draw; None: axes of a new figure.
    """
    ax = ax or _new_axes()
    table = run.frame("individuals")
    measured = table[table["rank"].notna()].sort_values("evaluation")
    seeds = measured["operator"] == "seed"
    for part, marker, colour, label in (
        (measured[~seeds], "o", _GREY, "evolved"),
        (measured[seeds], "D", _ORANGE, "seed"),
    ):
        if len(part):
            x, y = part["evaluation"].to_numpy(int), part["speedup"].to_numpy(float)
            ax.scatter(x, y, s=18, marker=marker, color=colour, alpha=0.7, label=label, zorder=2)
    if len(measured):
        ranks = measured["rank"].cummax().tolist()
        until = [
            *measured["evaluation"].tolist(),
            int(table["evaluation"].max()),
        ]  # the last best holds to the end
        lower_bounds = [math.exp(rank) for rank in (*ranks, ranks[-1])]
        ax.step(
            until,
            lower_bounds,
            where="post",
            color=_BLUE,
            linewidth=2,
            label="best so far, lower bound",
            zorder=3,
        )
    ax.axhline(1.0, color=_BLACK, linewidth=1, linestyle="--", label="strongest baseline", zorder=1)
    ax.set_xlabel("kernels evaluated")
    ax.set_ylabel("speed-up over the strongest baseline (×)")
    ax.set_title(f"{run.problem}: best over evaluations")
    ax.legend(loc="best", frameon=False)
    return ax


def stage_counts(run: Run, ax: Axes | None = None) -> Axes:
    """How many kernels came how far, one bar an outcome, and how many asks led to none.

    Args:
        run: with any number of evaluations, also none.
        ax: where to draw; None: axes of a new figure.
    """
    ax = ax or _new_axes()
    status = run.status()
    counts = {"stillborn": status["stillborn"], **status["outcomes"]}
    good = {Outcome.CORRECT.value, Outcome.MEASURED.value}
    names = [name.replace("_", " ") for name in counts]
    colours = [_BLUE if name in good else _GREY if name == "stillborn" else _ORANGE for name in counts]
    bars = ax.barh(names, list(counts.values()), color=colours)
    ax.bar_label(bars, padding=3)
    ax.margins(x=0.12)
    ax.invert_yaxis()  # the way a kernel goes, from the top down
    ax.set_xlabel("number of kernels")
    ax.set_title(f"{status['problem']}: how far {status['evaluations']} evaluated kernels came")
    return ax


def _new_axes() -> Axes:
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]

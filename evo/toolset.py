"""The composition root: everything a search is made of hangs on one DEAP toolbox.

    toolbox = evo.toolbox("softmax")
    toolbox.register("mutate", my_operator)       # instead of all the structural rewrites
    toolbox.register("select", deap.tools.selBest)
    evo.search("softmax", toolbox=toolbox)

The tools and how the search calls them::

    select(individuals, k)          DEAP's own; it draws from the module-level generator, seeded for each ask
    mutate([parent], brief, rng)    an ``operators.Operator``, or a ``Mixture`` of them
    mate([one, other], brief, rng)  the same, with two parents
    tune([parent], brief, rng, tried)  other numbers for the same structure; ``tried``: what its kin reached
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from deap import base, tools

import operators
from evo.arms import Arm
from evo.bandit import Bandit, shuffled
from evo.settings import Settings, SettingsError, nearest
from operators.agents.explore import Explore
from operators.agents.writers import WRITERS
from operators.proposal import Brief, Operator, Proposal
from populations.kernel import Kernel, source_sha
from populations.plugin import plugin

Tried = tuple[Kernel, float | None]  # a kernel and its rank; None: it was not measured
LANGUAGES = {"cpu": "cpp", "cuda": "triton"}  # what a target's operators rewrite
SUFFIXES = {"cpp": ".cpp", "triton": ".py"}  # of files


class Mixture:
    """Several operators as one: tries them in the order that a bandit gives, until one applies.

    An operator that speaks to a model names it in an attribute ``model``; with another it is another arm.

    Args:
        members: the operators.
        weights: per operator name; 1.0 where not named, 0 switches it off.
    """

    def __init__(self, members: Sequence[Operator], weights: Mapping[str, float] | None = None) -> None:
        self.weights = {member.name: (weights or {}).get(member.name, 1.0) for member in members}
        self.members = tuple(member for member in members if self.weights[member.name] > 0)
        self.arms = [Arm(member.name, getattr(member, "model", None) or "") for member in self.members]

    def __call__(
        self, parents: Sequence[Kernel], brief: Brief, rng: Random, bandit: Bandit | None = None
    ) -> Proposal | None:
        """A child by the first operator whose precondition holds; None where none does.

        Args:
            parents: one for mutations, two for crossovers.
            brief: what the operators may know.
            rng: where chance comes from.
            bandit: knows what the operators gained; None: they are tried in a random order.
        """
        for member in self.order(rng, bandit):
            if (child := member(parents, brief, rng)) is not None:
                return child
        return None

    def order(self, rng: Random, bandit: Bandit | None = None) -> list[Operator]:
        """All members, as they are to be tried."""
        weights = [self.weights[member.name] for member in self.members]
        positions = bandit.order(self.arms, rng, weights) if bandit else shuffled(weights, rng)
        return [self.members[n] for n in positions]


def compose(language: str, settings: Settings) -> base.Toolbox:
    """A toolbox with our own tools, as the settings weigh them.

    Raises:
        SettingsError: a weight for an operator that does not exist, or a plug-in that cannot be loaded.
    """
    found = [*operators.builtin(language), *(_operator(name) for name in settings.operators)]
    agents = (*WRITERS, Explore) if settings.models else ()
    known = {member.name for member in (*found, *agents)}
    for name in settings.weights:
        if name not in known:
            raise SettingsError(f"weights: no operator is named {name!r}{nearest(name, known)}")
    toolbox = base.Toolbox()
    toolbox.register("select", tools.selTournament, tournsize=settings.tournament)
    toolbox.register("mutate", Mixture([m for m in found if m.arity == 1], settings.weights))
    toolbox.register("mate", Mixture([m for m in found if m.arity == 2], settings.weights))
    toolbox.register("tune", tune)
    return toolbox


def tune(parents: Sequence[Kernel], brief: Brief, rng: Random, tried: Sequence[Tried]) -> Proposal | None:
    """The next step of a pattern search over the numbers of one structure; it needs no chance.

    Args:
        parents: the structure's best kernel so far.
        brief, rng: for tuners of your own.
        tried: the structure's kernels so far, and their ranks.
    """
    del brief, rng
    (parent,) = parents
    results = {operators.configuration(kernel.source, kernel.language): rank for kernel, rank in tried}
    source = operators.Tuner(parent.source, limit=len(results) + 1, language=parent.language).next(results)
    if source is None:
        return None
    before, after = (operators.space(text, parent.language) for text in (parent.source, source))
    moved = ", ".join(f"{name} = {after[name][0]}" for name in after if after[name] != before[name])
    return Proposal(Kernel(source, parent.language), "tune", f"numbers of a promising structure: {moved}")


def structure(kernel: Kernel) -> str:
    """What kernels share that differ in their tuning numbers alone."""
    numbers = operators.space(kernel.source, kernel.language)
    lowest = {name: allowed[0] for name, (_, allowed) in numbers.items()}
    return source_sha(
        operators.with_values(kernel.source, lowest, kernel.language) if lowest else kernel.source
    )


def use(
    tool: Any, parents: Sequence[Kernel], brief: Brief, rng: Random, bandit: Bandit | None
) -> Proposal | None:
    """Call a registered mutation or crossover; only a mixture has a choice."""
    child: Proposal | None
    if isinstance(tool.func, Mixture):
        child = tool(parents, brief, rng, bandit=bandit)
    else:
        child = tool(parents, brief, rng)
    return child


@contextmanager
def chance(rng: Random) -> Iterator[None]:
    """Let DEAP's tools, which draw from the module-level generator, draw from a seeded one for a while."""
    before = random.getstate()
    random.seed(rng.getrandbits(64))
    try:
        yield
    finally:
        random.setstate(before)


def _operator(name: str) -> Operator:
    try:
        found = plugin(name)
    except LookupError as why:
        raise SettingsError(f"operator {why.args[0]}") from None
    operator: Operator = found() if isinstance(found, type) else found
    if (
        not callable(operator)
        or not hasattr(operator, "name")
        or getattr(operator, "arity", None) not in (1, 2)
    ):
        raise SettingsError(f"operator {name!r} needs a name, an arity of 1 or 2, and to be callable")
    return operator

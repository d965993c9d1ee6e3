"""The test writer: proposes shapes and data that are likely to break kernels of a kind; data, never code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from operators.agents import prompts
from operators.agents.answers import Unread, one_line
from operators.agents.chat import Answer, Chat
from operators.agents.context import AgentBrief
from operators.agents.data import data
from operators.agents.offer import Offer, asked

MOST = 8  # cases of one answer
ELEMENTS = 1 << 22  # of an argument
LARGEST = 1 << 20  # of an integer of the problem file


@dataclass(frozen=True)
class ProposedCase:
    """A case as data.

    Attributes:
        constants: integers of the problem file by name, those that it overrides.
        distribution: one of those offered; None: as the problem draws its inputs.
        parameters: of the distribution, finite numbers.
        why: what it may break, in a line.
    """

    constants: tuple[tuple[str, int], ...]
    distribution: str | None
    parameters: tuple[tuple[str, float], ...]
    why: str


class WriteCases:
    """Proposes cases. Whether one is worth keeping is for the judge to find out.

    Args:
        constants: the problem file's module-level integers, with their given values.
        distributions: what each distribution draws, by name.
    """

    name, arity = "agent_cases", 0

    def __init__(self, constants: Mapping[str, int], distributions: Mapping[str, str]) -> None:
        self._constants, self._distributions = dict(constants), dict(distributions)

    def __call__(self, brief: AgentBrief, chat: Chat) -> Offer[tuple[ProposedCase, ...]]:
        """Some cases, or why there are none; the brief's parents, if any, are kernels that pass."""
        offered = {
            "constants": self._constants,
            "distributions": self._distributions,
            "most": MOST,
            "elements": ELEMENTS,
        }
        return asked(
            chat,
            brief,
            lambda less: prompts.conversation("cases", less, **offered),
            self.read,
            keeps=("the reference", "cases that are not timed"),
        )

    def read(self, answer: Answer) -> tuple[ProposedCase, ...] | Unread:
        """The cases in an answer that can be meant; others are dropped."""
        found = data(answer)
        if isinstance(found, Unread):
            return found
        listed = found.get("cases", found.get("items"))
        if not isinstance(listed, list):
            return Unread("the answer has no list of cases")
        cases = [case for each in listed[: 4 * MOST] if (case := self._case(each)) is not None]
        new = tuple(dict.fromkeys(cases))[:MOST]
        return new or Unread(
            "none of the cases proposed can be made of this problem's integers and distributions"
        )

    def _case(self, each: object) -> ProposedCase | None:
        if not isinstance(each, dict):
            return None
        constants, parameters = each.get("constants") or {}, each.get("parameters") or {}
        distribution = each.get("distribution")
        if not isinstance(constants, dict) or not isinstance(parameters, dict):
            return None
        if distribution is not None and (
            not isinstance(distribution, str) or distribution not in self._distributions
        ):
            return None
        if not all(name in self._constants and _size(value) for name, value in constants.items()):
            return None
        if not all(isinstance(name, str) and _number(value) for name, value in parameters.items()):
            return None
        if not constants and distribution is None:
            return None
        return ProposedCase(
            tuple(sorted(constants.items())),
            distribution,
            tuple(sorted((name, float(value)) for name, value in parameters.items())),
            one_line(str(each.get("why", ""))),
        )


def _size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST


def _number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e300 and math.isfinite(value)

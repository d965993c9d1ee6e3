"""The best kernels so far: what selection draws from, what people look at, what is promoted.

Like DEAP's hall of fame it holds the N best, best first. Unlike it, members are compared by identity, none is
copied, a member can fall when it is measured again, and one structure cannot fill it: of kernels that differ
only in their tuning numbers, at most ``per_structure`` stay.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from populations.individual import Individual

# Minus rank, whether it is not known to be general, id: sorts best first, whatever shows the best kernels.
Standing = tuple[float, bool, int]
_Place = tuple[Standing, Individual]


class TopArchive:
    """At most ``capacity`` measured individuals, best rank first; at equal rank general first, then older.

    Attributes:
        capacity: how many it holds at most.
        per_structure: how many of one structure; None: no limit.
    """

    def __init__(self, capacity: int, per_structure: int | None = None) -> None:
        if capacity < 1 or (per_structure is not None and per_structure < 1):
            raise ValueError(
                f"an archive needs room for one at least, not {capacity} and {per_structure} a structure"
            )
        self.capacity = capacity
        self.per_structure = per_structure
        self._order: list[_Place] = []
        self._places: dict[int, _Place] = {}
        self._structures: dict[int, str] = {}

    def add(self, individual: Individual, structure: str) -> bool:
        """Let an individual in if it ranks high enough, and one out for it if need be.

        Args:
            individual: a measured one, or one that has no rank and so stays out.
            structure: what it shares with kernels that differ only in tuning numbers, e.g. a hash of the
                source with those numbers blanked.

        Returns:
            Whether it is a member now.
        """
        self.discard(individual.id)
        if not individual.fitness.valid:
            return False
        place = (standing(individual), individual)
        insort(self._order, place)
        self._places[individual.id] = place
        self._structures[individual.id] = structure
        alike = [member for _, member in self._order if self._structures[member.id] == structure]
        if self.per_structure is not None and len(alike) > self.per_structure:
            self.discard(alike[-1].id)
        if len(self._order) > self.capacity:
            self.discard(self._order[-1][1].id)
        return individual.id in self._places

    def update(self, individual: Individual) -> bool:
        """Move a member to where its new verdict puts it, or out where it has no rank any more.

        Returns:
            Whether it is still a member.

        Raises:
            KeyError: it was not a member.
        """
        return self.add(individual, self._structures[individual.id])

    def discard(self, id: int) -> None:
        """Take an individual out, if it is in."""
        place = self._places.pop(id, None)
        if place is not None:
            del self._structures[id]
            del self._order[bisect_left(self._order, place)]

    def elected(self, ids: Iterable[int], structure: Callable[[int], str]) -> list[int]:
        """Of all measured kernels those that belong in here, best first.

        What ``add`` keeps of kernels that only come and rise; where a member fell or left, others come back.

        Args:
            ids: of all measured kernels, best first.
            structure: a kernel's structure.
        """
        found: list[int] = []
        alike: Counter[str] = Counter()
        for id in ids:
            if len(found) == self.capacity:
                break
            if self.per_structure is not None:
                alike[structure(id)] += 1
                if alike[structure(id)] > self.per_structure:
                    continue
            found.append(id)
        return found

    def admits(self, rank: float) -> bool:
        """Whether a newcomer of this rank could enter; its id and structure decide as well."""
        return len(self._order) < self.capacity or -rank <= self._order[-1][0][0]

    def get(self, id: int) -> Individual | None:
        """The member of this id; None where it is not one."""
        return self._places[id][1] if id in self._places else None

    def structure(self, id: int) -> str:
        """A member's structure."""
        return self._structures[id]

    @property
    def best(self) -> Individual | None:
        """The first member; None where there is none."""
        return self._order[0][1] if self._order else None

    @property
    def structures(self) -> Counter[str]:
        """How many members each structure has."""
        return Counter(self._structures.values())

    def __iter__(self) -> Iterator[Individual]:
        return iter([member for _, member in self._order])

    def __getitem__(self, index: int) -> Individual:
        return self._order[index][1]

    def __contains__(self, individual: object) -> bool:
        return isinstance(individual, Individual) and self.get(individual.id) is individual

    def __len__(self) -> int:
        return len(self._order)


def standing(one: Individual) -> Standing:
    """Where a measured individual stands among others: the least is the best."""
    return (-one.fitness.values[0], not (one.verdict and one.verdict.general), one.id)

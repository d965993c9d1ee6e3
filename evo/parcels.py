"""Proposals on their way from one half of a run to the other: one JSON file each, in RUN/proposals.

``ID.asked.json`` is there before a model is asked, and says what that costs at most; ``ID.json`` takes its
place once it is known what came of it, before anybody uses it. Each is put in place at once. An id begins
with the name of the process that proposes, so two never write the same file; while that process lives it
holds ``NAME.lock``. Whatever a file says is checked: it may come from anywhere.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from evo.course import SEED, TUNE
from evo.delegating import AGENTS
from evo.errands import PROBE
from operators.agents.recorded import Answered, Asked, Failed
from operators.proposal import Proposal
from populations.events import Certainty, Reserved, Settled
from populations.folder import RunError, writer_of
from populations.text import open_left

LARGEST = 32 << 20  # bytes of a file: a prompt as long as any context, and an answer
LONGEST = 1 << 20  # characters of a source, far more than any target admits
UNREAD = "unread"  # the operator of a proposal that cannot be used
SHOWN, RATIONALE = 200, 2000  # characters of why there is no child, and of why there is one
_NAME = re.compile(r"([A-Za-z0-9]{1,32}-[0-9]{1,9})(\.asked)?\.json")

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,40}$")]
Line = Annotated[str, Field(max_length=4000)]
Source = Annotated[str, Field(max_length=LONGEST)]
Number = Annotated[int, Field(ge=1, le=1 << 53)]
Lessons = Annotated[tuple[Annotated[int, Field(ge=0, le=1 << 53)], ...], Field(max_length=1000)]
Tokens = Annotated[int, Field(ge=0, le=10**12)]
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class Damaged(Exception):
    """A file that holds no proposal for this run; the message says why, in one line."""


@dataclass(frozen=True)
class Parcel:
    """One proposal, what it cost, and the conversation that led to it.

    Attributes:
        run: whose snapshot it is based on, as ``EventLog.identity`` says.
        id: its name.
        operator: who made it.
        parents: kernels that it was made from, each with the hash of its source.
        source: the child; None: there is none.
        language: of the source.
        rationale: why it was tried.
        reason: why there is none.
        model: that was asked; None: it needed none.
        reserved_tokens, reserved_usd: what the request may cost with all its attempts.
        tokens, usd, seconds: what it did cost; of a request that is open, the reservation.
        certainty: how that is known; "unknown" while the request is open.
        asked, answer: the conversation.
        lessons, untold: see ``Reserved``.
    """

    run: Annotated[str, Field(max_length=64)]
    id: str
    operator: Name
    parents: Annotated[tuple[tuple[Number, str], ...], Field(max_length=2)] = ()
    source: Source | None = None
    language: Name = "cpp"
    rationale: Line = ""
    reason: Line = ""
    model: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    reserved_tokens: Tokens = 0
    reserved_usd: Amount = 0.0
    tokens: Tokens = 0
    usd: Amount = 0.0
    seconds: Amount = 0.0
    certainty: Certainty = Certainty.COUNTED
    asked: Asked | None = None
    answer: Answered | Failed | None = None
    lessons: Lessons = ()
    untold: Lessons = ()
    format: Literal[1] = 1

    @property
    def call(self) -> str:
        """The name of its call, in the run."""
        return call_of(self.id)

    @property
    def ids(self) -> tuple[int, ...]:
        """Its parents."""
        return tuple(id for id, _ in self.parents)

    def without(self, reason: str) -> Parcel:
        """The same, and why there is no child in it."""
        return replace(self, reason=line(reason))

    def holding(self, child: Proposal) -> Parcel:
        """The same, with a child in it."""
        kernel, usage = child.kernel, child.usage
        if len(kernel.source) > LONGEST:
            return self.without(f"the kernel has more than {LONGEST >> 20} MiB")
        why = line(child.rationale, RATIONALE)
        made = replace(self, source=kernel.source, language=kernel.language, rationale=why)
        if self.model is not None:
            return made
        # An operator of the user's own, whose calls are not seen.
        return replace(made, tokens=usage.tokens, usd=usage.usd, seconds=usage.seconds)

    def reserved(self, ask: int, request: str | None = None) -> Reserved:
        """Its call, as an event; ``request`` is the hash of what was sent."""
        assert self.model is not None
        return Reserved(
            self.call, ask, self.operator, self.model, self.reserved_tokens, self.reserved_usd, None,
            self.ids, request, self.lessons, self.untold,
        )  # fmt: skip

    def settled(self, answer: str | None = None) -> Settled:
        """The call's end, as an event; ``answer`` is the hash of what came back."""
        failure = line(self.answer.kind) if isinstance(self.answer, Failed) else None
        return Settled(self.call, self.tokens, self.usd, self.seconds, self.certainty, answer, failure)


_PARCEL = TypeAdapter(Parcel)


def call_of(id: str) -> str:
    """The name of a proposal's call, in the run."""
    return f"{id}.1"


def listed(folder: Path) -> tuple[list[str], list[str]]:
    """Ids of proposals whose outcome is known, and of those that were still being asked for.

    Raises:
        RunError: it is no folder, but a link to one, say.
    """
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise RunError(f"{folder} is no folder: a run keeps its proposals in one of its own, no link")
        named = [_NAME.fullmatch(entry.name) for entry in folder.iterdir()]
    except FileNotFoundError:
        return [], []
    ended = sorted(name[1] for name in named if name and not name[2])
    known = set(ended)
    return ended, sorted(name[1] for name in named if name and name[2] and name[1] not in known)


def alive(folder: Path, id: str) -> bool:
    """Whether the process that made this proposal is still at it, as far as can be told from here."""
    return writer_of(folder, f"{id.partition('-')[0]}.lock") is not None


def read(folder: Path, id: str, run: str, ended: bool = True) -> Parcel:
    """One proposal, checked.

    Args:
        folder: RUN/proposals.
        id: its name.
        run: for which run it has to be.
        ended: whether its outcome is known.

    Raises:
        Damaged: there is none in this file, or not for this run.
    """
    try:
        with open_left(folder / f"{id}{'' if ended else '.asked'}.json") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Damaged("it is no plain file")
            content = file.read(LARGEST + 1)
    except OSError as why:
        raise Damaged("it is a link" if why.errno == errno.ELOOP else why.strerror or "unreadable") from None
    if len(content) > LARGEST:
        raise Damaged(f"it has more than {LARGEST >> 20} MiB")
    try:
        parcel = _PARCEL.validate_json(content)
    except ValidationError as why:
        first = why.errors(include_url=False, include_input=False, include_context=False)[0]
        raise Damaged(line(f"{'.'.join(map(str, first['loc']))} {first['msg']}")) from None
    if parcel.id != id:
        raise Damaged("it is the file of another proposal")
    if parcel.run != run:
        raise Damaged("it was made for another run")
    if why_not := _unlikely(parcel):
        raise Damaged(why_not)
    return parcel


def line(text: str, most: int = SHOWN) -> str:
    """A text as one line for people."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:most]


def _unlikely(parcel: Parcel) -> str:
    """Why no operator can have made this; "": one can."""
    agent, count = AGENTS.get(parcel.operator), len(parcel.parents)
    if parcel.model is not None and not parcel.model.isprintable():
        return "no model has such a name"
    if parcel.model is not None:
        if parcel.operator == PROBE or (agent is not None and agent.arity == count):
            return ""
        return f"no agent {parcel.operator!r} takes {count} parents"
    if agent is not None or parcel.operator in (SEED, PROBE, UNREAD):
        return f"no {parcel.operator!r} is proposed without a model"
    fits = count == 1 or (count == 2 and parcel.operator != TUNE)
    return "" if fits else f"{parcel.operator!r} does not make a kernel from {count} others"


def encoded(parcel: Parcel) -> bytes:
    """The content of its file."""
    text = json.dumps(asdict(parcel), indent=1, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "replace")  # half a character, as JSON lets servers send

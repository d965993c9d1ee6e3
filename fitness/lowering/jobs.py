"""What the client asks its children, and what they may answer: checked data, no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass as checked

from fitness.card import Case
from fitness.plan import STRICT, Binary, CasePlan, KernelSpec

job_file = "job.json"
answer_file = "answer.json"
AGAIN = "again.json"  # a job that one child alone does
ANSWER_BYTES = 16 << 20


def taken_file(number: int) -> str:
    """What a job's file is called once child ``number`` took it."""
    return f"job-{number}.json"


def log_file(number: int) -> str:
    """In the scratch folder: what child ``number`` says that nobody asked for."""
    return f"log-{number}.txt"


@dataclass(frozen=True)
class Job:
    """Something for a child to do: ``text``, in the folder ``name`` below ``scratch``.

    One child may do several jobs with one ``scratch``, and can write in all of it: whoever puts jobs there
    trusts each of them with the others' answers.
    """

    scratch: Path
    name: str
    text: bytes

    @property
    def folder(self) -> Path:
        """Where the job lies, and what was made of it."""
        return self.scratch / self.name


@checked(frozen=True, config=STRICT)
class TraceJob:
    """Call ``entry`` of ``kernel.py`` on each case; ``asked``: configuration of autotuned functions."""

    entry: str
    cases: tuple[Case, ...]
    asked: dict[str, int]


@checked(frozen=True, config=STRICT)
class Traced:
    """What the tracing child found. ``tuned``: how many configurations each autotuned function has."""

    kernels: tuple[KernelSpec, ...]
    cases: tuple[CasePlan, ...]
    choices: dict[str, dict[str, Any]]
    tuned: dict[str, int]


@checked(frozen=True, config=STRICT)
class Refusal:
    """Why a host function cannot be lowered: "rejected" (a rule) or "incorrect" (what it returns)."""

    status: str
    reason: str


@checked(frozen=True, config=STRICT)
class CompileJob:
    """Compile ``spec`` from the cut module ``text``; ``dotted``: names of Triton's in it, with lines."""

    text: str
    dotted: dict[str, int]
    spec: KernelSpec


@checked(frozen=True, config=STRICT)
class Compiled:
    """What the compiler made."""

    binary: Binary


@checked(frozen=True, config=STRICT)
class Failed:
    """Why the compiler refused; ``line``: of the cut module."""

    reason: str
    line: int | None


TRACE: TypeAdapter[TraceJob] = TypeAdapter(TraceJob)
TRACE_ANSWER: TypeAdapter[Traced | Refusal] = TypeAdapter(Traced | Refusal)
COMPILE: TypeAdapter[CompileJob] = TypeAdapter(CompileJob)
COMPILE_ANSWER: TypeAdapter[Compiled | Failed] = TypeAdapter(Compiled | Failed)

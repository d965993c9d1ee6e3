"""Binaries of specialisations: out of the store what was compiled before, the rest is made side by side."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fitness.lowering.children import ChildError, Children, read_small
from fitness.lowering.cut import Cut, Scope, cut
from fitness.lowering.jobs import COMPILE, COMPILE_ANSWER, Compiled, CompileJob, Failed, Job
from fitness.lowering.store import Made, Store
from fitness.plan import KernelSpec
from fitness.verifier import verifier_hash

BINARY_BYTES = 64 << 20
_SPEC = TypeAdapter(KernelSpec)


@dataclass(frozen=True)
class Uncompilable:
    """Specialisation ``kernel`` is refused by the compiler."""

    kernel: int
    reason: str


@dataclass(frozen=True)
class _Order:
    """One specialisation: its place in the plan, the module with what it reaches, and a key of all that."""

    kernel: int
    spec: KernelSpec
    device: Cut
    key: str


class Binaries:
    """Makes binaries; one may be used from several threads at once, and nothing is compiled twice.

    Args:
        children: that compile.
        store: of what was compiled before.
        arch: what is compiled for.
    """

    def __init__(self, children: Children, store: Store, arch: str) -> None:
        self._children = children
        self._store = store
        self._base = [verifier_hash(), metadata.version("triton"), arch]
        self._changed = threading.Condition()
        self._claimed: set[str] = set()  # keys that a thread is at

    def of(
        self, scope: Scope, specs: Sequence[KernelSpec], scratch: Path, turn: int = 0
    ) -> list[Made] | Uncompilable:
        """A binary for each specialisation, in order.

        Args:
            scope: of the source.
            specs: what to compile.
            scratch: a folder that is there.
            turn: see ``Children.turn``.

        Raises:
            CutError: a function is not device code.
            ChildError: a child crashed or took too long.
        """
        wanted = [(spec.function, *_functions(spec.constants)) for spec in specs]
        modules = {functions: cut(scope, functions) for functions in set(wanted)}
        orders = [
            self._order(index, spec, modules[functions])
            for index, (spec, functions) in enumerate(zip(specs, wanted, strict=True))
        ]
        found: dict[str, Made] = {}
        while missing := {order.key for order in orders} - found.keys():
            mine = self._claim(missing)
            try:
                found |= {key: kept for key in mine if (kept := self._store.get(key)) is not None}
                lacking = {order.key: order for order in orders if order.key in mine - found.keys()}
                wrong = self._compile(list(lacking.values()), scratch, found, turn)
            finally:
                self._give_up(mine)
            if isinstance(wrong, ChildError):
                raise wrong
            if wrong is not None:
                return wrong
        return [found[order.key] for order in orders]

    def _order(self, index: int, spec: KernelSpec, device: Cut) -> _Order:
        parts = [*self._base, device.text, _SPEC.dump_json(spec).decode()]
        return _Order(index, spec, device, hashlib.sha256("\0".join(parts).encode()).hexdigest())

    def _compile(
        self, orders: Sequence[_Order], scratch: Path, found: dict[str, Made], turn: int
    ) -> Uncompilable | ChildError | None:
        """Compile what nobody has, into ``found`` and the store; the first thing that went wrong, or None."""
        jobs = [self._job(order, scratch) for order in orders]
        answers = self._children.ask_all(
            "compile", jobs, lambda text: not isinstance(_read(text), Compiled), turn
        )
        wrong: Uncompilable | ChildError | None = None
        for order, job, answer in zip(orders, jobs, answers, strict=True):
            if answer is None:  # not begun, as an earlier one failed
                continue
            result = answer if isinstance(answer, ChildError) else _result(order, job.folder, answer)
            if isinstance(result, Made):
                self._store.put(order.key, result)
                found[order.key] = result
            elif wrong is None:
                wrong = result
        return wrong

    def _job(self, order: _Order, scratch: Path) -> Job:
        """With others of the same module alone: what a child makes is kept under its module's text."""
        module = scratch / hashlib.sha256(order.device.text.encode()).hexdigest()[:16]
        module.mkdir(exist_ok=True)
        job = CompileJob(text=order.device.text, dotted=order.device.dotted, spec=order.spec)
        return Job(module, str(order.kernel), COMPILE.dump_json(job))

    def _claim(self, keys: set[str]) -> set[str]:
        """Those of the keys that no other thread is at; waits while there are none."""
        with self._changed:
            self._changed.wait_for(lambda: keys - self._claimed)
            mine = keys - self._claimed
            self._claimed |= mine
            return mine

    def _give_up(self, keys: set[str]) -> None:
        with self._changed:
            self._claimed -= keys
            self._changed.notify_all()


def _functions(value: Any) -> Iterator[str]:
    """Names of the jit functions that a launch passes as constants."""
    if isinstance(value, dict) and isinstance(value.get("function"), str):
        yield value["function"]
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _functions(item)


def _read(text: bytes) -> Compiled | Failed | ChildError:
    try:
        return COMPILE_ANSWER.validate_json(text)
    except ValidationError as why:
        return ChildError("crashed", f"the compiler's answer is not understood: {why.errors()[0]['msg']}")


def _result(order: _Order, folder: Path, text: bytes) -> Made | Uncompilable | ChildError:
    answer = _read(text)
    if isinstance(answer, ChildError):
        return answer
    if isinstance(answer, Failed):
        line = order.device.lines.get(answer.line or 0)
        return Uncompilable(order.kernel, f"line {line}: {answer.reason}" if line else answer.reason)
    contents = {}
    for kind, name in answer.binary.files.items():
        data = b"" if "/" in name else read_small(folder / name, BINARY_BYTES)
        if not data:
            return ChildError("crashed", f"the compiler left no file {name[:100]}")
        contents[kind] = data
    return Made(answer.binary, contents)

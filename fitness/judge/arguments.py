"""What the user's functions return as arguments: tensors, which a kernel gets, and constant numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree

from fitness.judge import place as judges
from fitness.judge.signature import dtype_name
from fitness.target import ProblemError
from populations.dtypes import ITEM_BYTES


class Arguments:
    """The arguments of ``Model.forward`` with holes where the tensors go.

    Args:
        given: what ``get_inputs()`` returned.
        where: path of the problem file.

    Raises:
        ProblemError: it is not a list of dense CPU tensors and numbers, or holds no tensor.
    """

    def __init__(self, given: object, where: str) -> None:
        leaves, self._structure = _pytree.tree_flatten(call_arguments(given, where, "get_inputs()"))
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                check_tensor(leaf, f"{where}: get_inputs()")
            elif not isinstance(leaf, int | float | None):
                kind = type(leaf).__name__
                raise ProblemError(f"{where}: get_inputs() returns a {kind}; return tensors and numbers only")
        self._holes = [index for index, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        self._template = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        if not self._holes:
            raise ProblemError(
                f"{where}: get_inputs() returns no tensor; return the arguments of Model.forward"
            )
        self.tensors: list[Tensor] = [leaves[hole] for hole in self._holes]

    def emptied(self) -> Arguments:
        """The holes alone."""
        self.tensors = []
        return self

    def matches(self, other: Arguments) -> bool:
        """Whether both differ in their tensors alone."""
        mine = (self._template, self._structure, self._holes)
        return mine == (other._template, other._structure, other._holes)

    @property
    def count(self) -> int:
        """How many tensors there are."""
        return len(self._holes)

    @property
    def scalars(self) -> list[Any]:
        """The numbers."""
        return [leaf for index, leaf in enumerate(self._template) if index not in self._holes]

    def names(self, forward: Callable[..., Any]) -> list[str]:
        """A name per tensor, from the parameters of ``Model.forward``."""
        declared = [
            parameter.name
            for parameter in inspect.signature(forward).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ][1:]
        args, kwargs = _pytree.tree_unflatten(range(len(self._template)), self._structure)
        names: dict[int, str] = {}
        for index, arg in enumerate(args):
            names |= _leaf_names(declared[index] if index < len(declared) else f"in{index}", arg)
        for name, arg in kwargs.items():
            names |= _leaf_names(name, arg)
        return [names[hole] for hole in self._holes]

    def bound(self, model: Callable[..., Any]) -> Callable[..., Any]:
        """``model`` as a function of the tensors alone."""
        structure, template, holes = self._structure, self._template, self._holes
        args, kwargs = _pytree.tree_unflatten(range(len(template)), structure)
        if not kwargs and list(args) == holes:
            return model

        def call(*tensors: Tensor) -> Any:
            leaves = list(template)
            for hole, tensor in zip(holes, tensors, strict=True):
                leaves[hole] = tensor
            args, kwargs = _pytree.tree_unflatten(leaves, structure)
            return model(*args, **kwargs)

        return call


def call_arguments(given: object, where: str, what: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of a call from a list, a dict, or a list of both: ``[[…], {…}]``.

    Raises:
        ProblemError: it is something else.
    """
    if isinstance(given, Mapping):
        return (), dict(given)
    if not isinstance(given, list | tuple):
        raise ProblemError(f"{where}: {what} returns a {type(given).__name__}; return a list of arguments")
    if len(given) == 2 and isinstance(given[0], list | tuple) and isinstance(given[1], dict):
        return tuple(given[0]), given[1]
    return tuple(given), {}


def numbers_in(given: object) -> list[int | float | str]:
    """Numbers, words and flags anywhere in it."""
    return [leaf for leaf in _pytree.tree_leaves(given) if isinstance(leaf, int | float | str)]


def flat_tensors(found: object, arguments: Sequence[Tensor], where: str) -> list[Tensor]:
    """The tensors of what ``Model.forward`` returned, contiguous, and apart from its arguments.

    Raises:
        ProblemError: there is none, or something else among them.
    """
    leaves = [leaf for leaf in _pytree.tree_leaves(found) if leaf is not None]
    place = f"{where}: Model.forward"
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ProblemError(f"{place} returns a {type(leaf).__name__}; return a tensor, or several")
        check_tensor(leaf, place)
    if not leaves:
        raise ProblemError(f"{place} returns nothing; return a tensor, or several")
    taken = {t.untyped_storage()._cdata for t in arguments}
    return [
        leaf.detach().clone(memory_format=torch.contiguous_format)
        if leaf.untyped_storage()._cdata in taken
        else leaf.detach().contiguous()
        for leaf in leaves
    ]


def check_tensor(tensor: Tensor, place: str) -> None:
    """Refuse a tensor that no kernel could get.

    Raises:
        ProblemError: it is on another device, sparse, or of a dtype without a C type.
    """
    if tensor.device.type not in ("cpu", judges.place().type):
        todo = "leave it on the CPU, the judge puts it where it belongs"
        raise ProblemError(f"{place} returns a tensor on {tensor.device}; {todo}")
    if tensor.layout != torch.strided:
        raise ProblemError(f"{place} returns a {tensor.layout} tensor; return a dense one")
    if dtype_name(tensor) not in ITEM_BYTES:
        known = ", ".join(ITEM_BYTES)
        raise ProblemError(f"{place} returns a {dtype_name(tensor)} tensor; use one of {known}")


def _leaf_names(name: str, arg: Any) -> dict[int, str]:
    leaves = _pytree.tree_leaves(arg)
    return {leaf: name if arg == leaf else f"{name}_{n}" for n, leaf in enumerate(leaves)}

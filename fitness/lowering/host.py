"""What a host function may do, and how each thing is done or recorded while it is traced.

Two modes of torch stand between the candidate and torch. ``Disguise`` (above Python's functions) makes meta
tensors look like tensors of a GPU. ``Policy`` (below them, where every operation arrives under its true name)
lets views and allocations through, records fills, copies, casts, pads, concatenations and host constants, and
refuses everything else by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten

from fitness.lowering.refusal import Refused
from fitness.lowering.tape import Tape

aten = torch.ops.aten
CUDA = torch.device("cuda", 0)
META = torch.device("meta")
READS = frozenset(
    [
        "item",
        "tolist",
        "numpy",
        "cpu",
        "__bool__",
        "__int__",
        "__float__",
        "__complex__",
        "__index__",
        "__contains__",
        "__array__",
        "nonzero",
        "is_nonzero",
        "equal",
        "allclose",
        "masked_select",
        "unique",
        "argwhere",
    ]
)
_TENSOR: Any = torch.Tensor
_GETTERS: dict[Any, Any] = {
    _TENSOR.device.__get__: CUDA,
    _TENSOR.is_cuda.__get__: True,
    _TENSOR.is_meta.__get__: False,
    _TENSOR.is_cpu.__get__: False,
    _TENSOR.get_device: 0,
}
HOST_MADE = (torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor)
_STAY = (torch.Tensor.requires_grad_, torch.Tensor.record_stream)


class Called(Protocol):
    """Whoever stands above Python's functions."""

    said: str  # name of the function that was called last


class Disguise(TorchFunctionMode):
    """Shows meta tensors as tensors of ``cuda:0``; ``tape`` is that of the call being traced."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self.tape = tape
        self.said = ""  # name of the function that the candidate called

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """See TorchFunctionMode."""
        kwargs = kwargs or {}
        first: Any = args[0] if args else None
        on_device = isinstance(first, torch.Tensor) and first.device.type == "meta"
        if on_device and func in _GETTERS:
            return _GETTERS[func]
        if on_device and func is torch.Tensor.data_ptr:
            return self.tape.address(first)
        name = getattr(func, "__name__", "")
        if on_device and (name in READS or _goes_to(args[1:], kwargs) == "cpu"):
            raise Refused(f".{name}() reads numbers from the device; host code must not depend on data")
        if func in _STAY:
            return first
        self.said = name
        if func is torch.Tensor.cuda:
            return first if on_device else self._moved(first)
        if func is torch.Tensor.new_tensor and on_device:
            return self._moved(torch.tensor(args[1], dtype=kwargs.get("dtype", first.dtype)))
        args, kwargs = _redirected(args), {key: _device(value) for key, value in kwargs.items()}
        kwargs.pop("pin_memory", None)
        if func in HOST_MADE and kwargs.get("device") == META and not on_device:
            kwargs["device"] = "cpu"
            return self._moved(func(*args, **kwargs))
        return func(*args, **kwargs)

    def _moved(self, host: torch.Tensor) -> torch.Tensor:
        """A host tensor brought to the device: its numbers become a step."""
        return host.to(META)


def _goes_to(args: Any, kwargs: dict[str, Any]) -> str | None:
    for value in (*args, kwargs.get("device")):
        if isinstance(value, torch.device) or (isinstance(value, str) and value.partition(":")[0] == "cpu"):
            return torch.device(value).type
    return None


def _device(value: Any) -> Any:
    """ "cuda", "cuda:0" and their like mean the meta device here."""
    if isinstance(value, str) and value.partition(":")[0] in ("cuda", "hip"):
        value = torch.device(value)
    if isinstance(value, torch.device) and value.type == "cuda":
        if value.index not in (None, 0):
            raise Refused(f"uses {value}; a kernel has one device, cuda:0")
        return META
    return value


def _redirected(args: Any) -> tuple[Any, ...]:
    return tuple(_device(value) for value in args)


class Policy(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records or refuses each operation. ``lenient``: in ``__init__`` anything may run, on meta tensors.

    Args:
        tape: of the call.
        disguise: knows by its ``said`` which function the candidate called.
        lenient: whether anything may run.
    """

    def __init__(self, tape: Tape, disguise: Called, *, lenient: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.tape = tape
        self._disguise = disguise
        self._lenient = lenient

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch asks at class creation; True would import its compiler, which takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """See TorchDispatchMode."""
        kwargs = kwargs or {}
        if self._lenient or func.is_view or func in _FREE:
            return func(*args, **kwargs)
        out: Any
        if func in _ALLOCATIONS:
            out = func(*args, **kwargs)
            self._adopted(out)
            return out
        if func in _WRITERS and not self._on_host(func, args, kwargs):
            out = func(*args, **kwargs)
            if func not in _IN_PLACE:
                self._adopted(out)
            _WRITERS[func](self.tape, out, args, kwargs)
            return out
        if (func in _WRITERS or func in _HOST_ONLY) and self._on_host(func, args, kwargs):
            return func(*args, **kwargs)
        said = self._disguise.said
        raise Refused(
            f"{said or func} computes with the framework (operation {func}); the host may only launch, "
            "view, allocate, fill, copy and cast"
        )

    def _adopted(self, out: torch.Tensor) -> None:
        if out.device.type == self.tape.device:
            self.tape.adopt(out)

    @staticmethod
    def _on_host(func: Any, args: Any, kwargs: Any) -> bool:
        tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
        device = kwargs.get("device")
        if device is not None:
            return torch.device(device).type == "cpu" and all(x.device.type == "cpu" for x in tensors)
        if func is aten.copy_.default:
            return bool(args[0].device.type == "cpu")
        return all(x.device.type == "cpu" for x in tensors)


# ---- the operations, by their true names ------------------------------------------------------------------

_FREE = {aten._unsafe_view.default, aten.lift_fresh.default, aten.detach.default, aten.alias.default}
_FREE |= {aten.promote_types.default, aten.result_type.Tensor, aten.result_type.Scalar}  # of types alone
_ALLOCATIONS = {
    aten.empty.memory_format, aten.empty_strided.default, aten.empty_like.default, aten.new_empty.default,
    aten.new_empty_strided.default, aten.empty_permuted.default,
}  # fmt: skip
_HOST_ONLY = {aten._local_scalar_dense.default}
_IN_PLACE = {aten.fill_.Scalar, aten.fill_.Tensor, aten.zero_.default, aten.copy_.default}


def _fills(at: int | None, value: Any = None) -> Callable[[Tape, torch.Tensor, Any, Any], None]:
    def write(tape: Tape, out: torch.Tensor, args: Any, kwargs: Any) -> None:
        given = value if at is None else args[at] if len(args) > at else kwargs["fill_value"]
        tape.fill(out, given)

    return write


def _copies(at: int) -> Callable[[Tape, torch.Tensor, Any, Any], None]:
    return lambda tape, out, args, kwargs: tape.copy(out, args[at])


def _joins(tape: Tape, out: torch.Tensor, args: Any, kwargs: Any) -> None:
    dim, start = args[1] if len(args) > 1 else kwargs.get("dim", 0), 0
    for part in args[0]:
        if part.shape == (0,) and out.dim() != 1:
            continue  # torch's old rule: an empty vector joins with anything
        tape.copy(out.narrow(dim, start, part.shape[dim]), part)
        start += part.shape[dim]


def _stacks(tape: Tape, out: torch.Tensor, args: Any, kwargs: Any) -> None:
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    for index, part in enumerate(args[0]):
        tape.copy(out.select(dim, index), part)


def _pads(tape: Tape, out: torch.Tensor, args: Any, kwargs: Any) -> None:
    source, pad = args[0], args[1]
    value = args[2] if len(args) > 2 else kwargs.get("value", 0)
    tape.fill(out, value)
    inside = out
    for back, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        dim = source.dim() - 1 - back
        source = source.narrow(dim, max(-before, 0), source.shape[dim] - max(-before, 0) - max(-after, 0))
        inside = inside.narrow(dim, max(before, 0), inside.shape[dim] - max(before, 0) - max(after, 0))
    tape.copy(inside, source)


def _counts(tape: Tape, out: torch.Tensor, args: Any, kwargs: Any) -> None:
    start = args[0] if len(args) > 1 else 0
    tape.count(out, start, args[2] if len(args) > 2 else kwargs.get("step", 1))


_WRITERS: dict[Any, Callable[[Tape, torch.Tensor, Any, Any], None]] = {
    aten.zeros.default: _fills(None, 0), aten.zeros_like.default: _fills(None, 0),
    aten.new_zeros.default: _fills(None, 0), aten.zero_.default: _fills(None, 0),
    aten.ones.default: _fills(None, 1), aten.ones_like.default: _fills(None, 1),
    aten.new_ones.default: _fills(None, 1),
    aten.full.default: _fills(1), aten.full_like.default: _fills(1), aten.new_full.default: _fills(2),
    aten.fill_.Scalar: _fills(1), aten.fill_.Tensor: _fills(1), aten.scalar_tensor.default: _fills(0),
    aten.clone.default: _copies(0), aten._to_copy.default: _copies(0), aten.copy_.default: _copies(1),
    aten.cat.default: _joins, aten.stack.default: _stacks, aten.constant_pad_nd.default: _pads,
    aten.arange.default: _counts, aten.arange.start: _counts, aten.arange.start_step: _counts,
}  # fmt: skip


@contextmanager
def unwatched() -> Iterator[None]:
    """Let our own code see tensors as they are."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        yield


@contextmanager
def watched(tape: Tape, *, lenient: bool = False) -> Iterator[None]:
    """Run what follows under the two modes, on ``tape``."""
    disguise = Disguise(tape)
    with torch.no_grad(), Policy(tape, disguise, lenient=lenient), disguise:
        yield


def rehearse() -> None:
    """Do a little of everything once: torch imports a lot when it first makes a meta tensor like another."""
    tape = Tape()
    with watched(tape):
        made = torch.zeros(2, 3, device="cuda")
        torch.cat([torch.empty_like(made)[:, :2], made.new_ones(2, 2)], dim=1).to(torch.float16).contiguous()
        torch.nn.functional.pad(made.T.contiguous(), (1, 0)).copy_(torch.tensor(1.0, device="cuda"))
        torch.stack([torch.full_like(made, 2.0), made.clone()]).fill_(0)
        torch.arange(4, device="cuda").reshape(2, 2).expand(2, 2, 2)

"""A problem file executed with some constants overridden: its model, its inputs, one called on the other."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from fitness.judge.arguments import Arguments, call_arguments, flat_tensors, numbers_in
from fitness.judge.names import c_names, output_names
from fitness.judge.place import place
from fitness.judge.precision import computing_in, widened
from fitness.judge.signature import Signature, specs
from fitness.judge.source import Source
from fitness.judge.usercode import reseeding_ignored, seed_of, seeded, user_code
from fitness.target import ProblemError

WANTED = {
    "Model": "class Model(nn.Module), the reference",
    "get_inputs": "a function get_inputs() that returns the list of arguments of Model.forward",
    "get_init_inputs": "a function get_init_inputs() that returns the list of arguments of Model",
}
MEND_FORWARD = "mend forward() or get_inputs() so that they fit"


class Program:
    """One execution of a problem file.

    Args:
        source: the file.
        constants: values of module-level integers to override.

    Raises:
        ProblemError: it does not run, or lacks one of Model, get_inputs and get_init_inputs.
    """

    def __init__(self, source: Source, constants: Mapping[str, int]) -> None:
        self.where = source.where
        self.module = source.execute(constants)
        for name, wanted in WANTED.items():
            if not callable(getattr(self.module, name, None)):
                raise ProblemError(f"{self.where}: has no {name}; add {wanted}")
        if not (isinstance(self.module.Model, type) and issubclass(self.module.Model, nn.Module)):
            raise ProblemError(f"{self.where}: Model is not a torch.nn.Module; derive it from nn.Module")

    # -- the model -----------------------------------------------------------------------------------

    def build(self, seed: int) -> nn.Module:
        """A fresh model in eval mode, its parameters drawn under ``seed``."""
        with seeded(seed), torch.no_grad():
            with user_code(self.where, "get_init_inputs()", "mend it"):
                given = self.module.get_init_inputs()
            args, kwargs = call_arguments(given, self.where, "get_init_inputs()")
            with user_code(self.where, "Model(…)", "mend it, or get_init_inputs()"):
                model: nn.Module = self.module.Model(*args, **kwargs)
                return model.eval()

    def init_arguments(self) -> tuple[Any, ...]:
        """What the constructor of the model gets, where that is plain data in order; else nothing."""
        with user_code(self.where, "get_init_inputs()", "mend it"):
            given = self.module.get_init_inputs()
        args, kwargs = call_arguments(given, self.where, "get_init_inputs()")
        try:
            return tuple(json.loads(json.dumps(args))) if not kwargs else ()
        except (TypeError, ValueError):
            return ()

    @cached_property
    def skeleton(self) -> nn.Module:
        """The model that calls go through; its parameters are replaced for each call."""
        return self.build(seed_of("skeleton"))

    @cached_property
    def aliases(self) -> dict[str, list[str]]:
        """Names in the state dict, in order, by the first name of each tensor (tied ones share)."""
        found: dict[int, list[str]] = {}
        for name, value in self.skeleton.state_dict(keep_vars=True).items():
            if nn.parameter.is_lazy(value):
                todo = "give it its number of features"
                raise ProblemError(f"{self.where}: Model has a lazy layer ({name}); {todo}")
            if isinstance(value, Tensor):
                found.setdefault(id(value), []).append(name)
        return {names[0]: names for names in found.values()}

    def draw_parameters(self, seed: int) -> list[Tensor]:
        """Parameters and buffers of a fresh model, in state_dict order."""
        if not self.aliases:
            return []
        state = self.build(seed).state_dict()
        return [state[name].detach().contiguous() for name in self.aliases]

    def model_over(self, parameters: Sequence[Tensor]) -> nn.Module:
        """A fresh model whose parameters and buffers are the given tensors themselves."""
        model = self.build(seed_of("skeleton"))
        for names, tensor in zip(self.aliases.values(), parameters, strict=True):
            kept = nn.Parameter(tensor, requires_grad=False)
            for name in names:
                path, _, leaf = name.rpartition(".")
                module = model.get_submodule(path)
                if leaf in module._parameters:
                    module._parameters[leaf] = kept
                else:
                    module._buffers[leaf] = tensor
        return model

    # -- the inputs ----------------------------------------------------------------------------------

    def draw_inputs(self, seed: int) -> list[Tensor]:
        """The tensors that ``get_inputs`` returns, contiguous and apart from each other."""
        with seeded(seed), reseeding_ignored():
            arguments = self._called()
        if not arguments.matches(self.arguments):
            todo = "draw only tensors at random"
            raise ProblemError(f"{self.where}: get_inputs() returns other numbers from call to call; {todo}")
        device = place()
        return [t.detach().to(device).clone(memory_format=torch.contiguous_format) for t in arguments.tensors]

    @cached_property
    def arguments(self) -> Arguments:
        """How the inputs are passed to the model."""
        with seeded(0), reseeding_ignored():
            return self._called().emptied()

    def _called(self) -> Arguments:
        todo = "mend it so that it returns the arguments of Model.forward"
        with torch.no_grad(), user_code(self.where, "get_inputs()", todo):
            given = self.module.get_inputs()
        return Arguments(given, self.where)

    # -- one called on the other ---------------------------------------------------------------------

    def bound(self, model: Callable[..., Any]) -> Callable[..., Any]:
        """``model`` as a function of the input tensors alone."""
        return self.arguments.bound(model)

    def functional(self, *tensors: Tensor) -> Any:
        """The model as a function of inputs and parameters, as one flat row of tensors."""
        count = self.arguments.count
        state = dict(zip(self.aliases, tensors[count:], strict=True))

        def model(*args: Any, **kwargs: Any) -> Any:
            return torch.func.functional_call(self.skeleton, state, args, kwargs)

        return self.arguments.bound(model)(*tensors[:count])

    def run(self, inputs: Sequence[Tensor], parameters: Sequence[Tensor]) -> list[Tensor]:
        """Outputs as the user wrote the model, as a flat list of contiguous tensors."""
        with torch.no_grad(), user_code(self.where, "Model.forward", MEND_FORWARD):
            found = self.functional(*inputs, *parameters)
        return flat_tensors(found, (*inputs, *parameters), self.where)

    def run_in(
        self, dtype: torch.dtype, inputs: Sequence[Tensor], parameters: Sequence[Tensor]
    ) -> list[Tensor]:
        """Outputs with all floating-point work done in ``dtype``."""
        tensors = widened((*inputs, *parameters), dtype)
        with user_code(self.where, "Model.forward", MEND_FORWARD), computing_in(dtype):
            found = self.functional(*tensors)
        return flat_tensors(found, tensors, self.where)

    def signature(self) -> Signature:
        """Names, shapes and dtypes of the entry's arguments, by one run."""
        inputs, parameters = self.draw_inputs(0), self.draw_parameters(0)
        outputs = self.run(inputs, parameters)
        names = c_names(self.arguments.names(self.module.Model.forward))
        return Signature(
            specs(names, inputs),
            specs(c_names(self.aliases, taken=names), parameters),
            specs(output_names(len(outputs)), outputs),
            (*numbers_in(self.module.get_init_inputs()), *numbers_in(self.arguments.scalars)),
        )


def imagined_signature(source: Source, constants: Mapping[str, int]) -> Signature | None:
    """The signature without computing or allocating, or None where the file can't be run that way."""
    disabled = logging.root.manager.disable
    logging.disable(logging.ERROR)  # torch logs what it can't imagine; the real run then says what is wrong
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            return Program(source, constants).signature()  # of its own: what it caches is not real
    except ProblemError:
        return None
    finally:
        logging.disable(disabled)

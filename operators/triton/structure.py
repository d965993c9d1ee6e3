"""What a Triton file consists of: jit functions, their loops, the launches, the CONFIG and SPACE lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import libcst as cst

from operators.triton.syntax import Tree, squeeze, tree_of

RANGES = ("range", "tl.range", "tl.static_range")


@dataclass(frozen=True, eq=False)
class Parameter:
    """One parameter of a jit function."""

    name: str
    constexpr: bool
    default: bool
    node: cst.Param


@dataclass(frozen=True, eq=False)
class Jit:
    """A function under ``@triton.jit``.

    Attributes:
        body: its statements without the docstring.
    """

    name: str
    node: cst.FunctionDef
    parameters: tuple[Parameter, ...]
    body: tuple[cst.CSTNode, ...]

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name."""
        return next((p for p in self.parameters if p.name == name), None)


@dataclass(frozen=True, eq=False)
class Loop:
    """A ``for`` over one of the three ranges.

    Attributes:
        kind: one of ``RANGES``.
        start, stop, step: as texts.
        keywords: of the range's call.
        depth: how many loops are around it.
    """

    jit: Jit
    node: cst.For
    var: str
    kind: str
    call: cst.Call
    start: str
    stop: str
    step: str
    keywords: dict[str, cst.Arg]
    depth: int
    body: tuple[cst.CSTNode, ...]


@dataclass(frozen=True, eq=False)
class Launch:
    """One ``kernel[grid](…)``.

    Attributes:
        kernel: name of the jit function.
        given: expression by parameter name, where it is passed by place or by name; what follows a ``*`` of
            unknown length is not among them.
        options: keyword arguments that are no parameters, such as ``num_warps``.
        config: names of the dicts of which one is passed as ``**``, CONFIG among them; empty: none is.
        star: the text behind ``**``.
        clear: whether the names of all arguments are known.
        host: the function that launches.
    """

    kernel: Jit
    call: cst.Call
    grid: cst.BaseExpression
    given: dict[str, cst.BaseExpression]
    options: dict[str, cst.BaseExpression]
    config: tuple[str, ...]
    star: str
    clear: bool
    host: cst.FunctionDef
    statement: cst.CSTNode


@dataclass(eq=False)
class Unit:
    """One parsed Triton source; ``known`` is the memory of what others find in it."""

    tree: Tree
    known: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    @cached_property
    def functions(self) -> tuple[cst.FunctionDef, ...]:
        """All functions, in order."""
        return tuple(self.tree.find(self.tree.module, cst.FunctionDef))

    @cached_property
    def jits(self) -> tuple[Jit, ...]:
        """All jit functions, kernels and what they call."""
        return tuple(self._jit(node) for node in self.functions if self._is_jit(node))

    @cached_property
    def kernels(self) -> tuple[Jit, ...]:
        """The jit functions that are launched, each time with arguments that are written out."""
        names = {launch.kernel.name for launch in self.launches}
        vague = {launch.kernel.name for launch in self.launches if not launch.clear}
        return tuple(jit for jit in self.jits if jit.name in names - vague)

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """All launches outside of jit functions."""
        return tuple(
            found
            for call in self.tree.find(self.tree.module, cst.Call)
            if (found := self._launch(call)) is not None
        )

    def launches_of(self, jit: Jit) -> tuple[Launch, ...]:
        """The launches of one kernel."""
        return tuple(launch for launch in self.launches if launch.kernel is jit)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """All range loops in jit functions."""
        return tuple(
            loop
            for jit in self.jits
            for node in self.tree.find(jit.node, cst.For)
            if (loop := self._loop(jit, node)) is not None
        )

    def literal(self, name: str) -> cst.Dict | None:
        """The dict that a module-level name is bound to, such as ``CONFIG``."""
        for line in self.tree.module.body:
            if not isinstance(line, cst.SimpleStatementLine):
                continue
            for small in line.body:
                value = small.value if isinstance(small, cst.Assign | cst.AnnAssign) else None
                targets = (
                    [target.target for target in small.targets]
                    if isinstance(small, cst.Assign)
                    else [small.target]
                    if isinstance(small, cst.AnnAssign)
                    else []
                )
                if isinstance(value, cst.Dict) and [self.tree.text(t) for t in targets] == [name]:
                    return value
        return None

    @cached_property
    def config(self) -> dict[str, str]:
        """The texts of CONFIG's values by name; empty where there is none."""
        found = self.literal("CONFIG")
        pairs = [e for e in found.elements if isinstance(e, cst.DictElement)] if found else []
        return {
            e.key.evaluated_value: self.tree.text(e.value)
            for e in pairs
            if isinstance(e.key, cst.SimpleString) and isinstance(e.key.evaluated_value, str)
        }

    def body(self, node: cst.FunctionDef | cst.For | cst.If) -> tuple[cst.CSTNode, ...]:
        """The statements of a block, without a docstring."""
        block = node.body.body if isinstance(node.body, cst.IndentedBlock) else ()
        first = block[:1]
        if first and isinstance(first[0], cst.SimpleStatementLine):
            small = first[0].body[0]
            if isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString):
                return tuple(block[1:])
        return tuple(block)

    def _is_jit(self, node: cst.FunctionDef) -> bool:
        texts = [squeeze(self.tree.text(d.decorator)) for d in node.decorators]
        return any(text.split("(")[0] in ("triton.jit", "jit") for text in texts)

    def _jit(self, node: cst.FunctionDef) -> Jit:
        parameters = []
        for p in node.params.params:
            kind = squeeze(self.tree.text(p.annotation.annotation)) if p.annotation else ""
            constexpr = kind.strip("\"'") in ("tl.constexpr", "constexpr")
            parameters.append(Parameter(p.name.value, constexpr, p.default is not None, p))
        return Jit(node.name.value, node, tuple(parameters), self.body(node))

    def _loop(self, jit: Jit, node: cst.For) -> Loop | None:
        call = node.iter
        if not isinstance(call, cst.Call) or not isinstance(node.target, cst.Name) or node.orelse:
            return None
        kind = squeeze(self.tree.text(call.func))
        places = [self.tree.text(arg.value) for arg in call.args if arg.keyword is None]
        if kind not in RANGES or any(arg.star for arg in call.args) or not 1 <= len(places) <= 3:
            return None
        start, stop, step = ("0", places[0], "1") if len(places) == 1 else (*places, "1")[:3]
        keywords = {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}
        depth = sum(isinstance(above, cst.For | cst.While) for above in self.tree.above(node))
        return Loop(
            jit, node, node.target.value, kind, call, start, stop, step, keywords, depth, self.body(node)
        )

    def _launch(self, call: cst.Call) -> Launch | None:
        func = call.func
        if not isinstance(func, cst.Subscript) or not isinstance(func.value, cst.Name):
            return None
        jit = next((jit for jit in self.jits if jit.name == func.value.value), None)
        hosts = [node for node in self.tree.above(call) if isinstance(node, cst.FunctionDef)]
        lines = [node for node in self.tree.above(call) if isinstance(node, cst.SimpleStatementLine)]
        index = func.slice[0].slice
        if jit is None or not hosts or not lines or not isinstance(index, cst.Index) or len(func.slice) > 1:
            return None
        given: dict[str, cst.BaseExpression] = {}
        options: dict[str, cst.BaseExpression] = {}
        config, star, clear = tuple[str, ...](), "", True
        places: Iterator[Parameter] = iter(jit.parameters)
        for arg in call.args:
            packed = _assigned_tuple(hosts[-1], arg.value) if arg.star == "*" else None
            if packed is not None:
                given |= {p.name: e.value for e, p in zip(packed.elements, places, strict=False)}
            elif arg.star == "*":
                places = iter(())  # how many it fills is not known
            elif (entries := _assigned_dict(hosts[-1], arg.value)) is not None:
                given |= {name: value for name, value in entries.items() if jit.parameter(name)}
                options |= {name: value for name, value in entries.items() if not jit.parameter(name)}
            elif arg.star:
                star, config = self.tree.text(arg.value), self._dicts(hosts[-1], arg.value)
                clear = clear and "CONFIG" in config and "" not in config
            elif arg.keyword is None:
                place = next(places, None)
                if place is not None:
                    given[place.name] = arg.value
            elif jit.parameter(arg.keyword.value):
                given[arg.keyword.value] = arg.value
            else:
                options[arg.keyword.value] = arg.value
        return Launch(jit, call, index.value, given, options, config, star, clear, hosts[-1], lines[0])

    def _dicts(self, host: cst.FunctionDef, node: cst.BaseExpression) -> tuple[str, ...]:
        """The module's dicts that an expression may stand for: ``CONFIG``, or a choice of it and others."""
        if isinstance(node, cst.IfExp):
            return (*self._dicts(host, node.body), *self._dicts(host, node.orelse))
        if not isinstance(node, cst.Name):
            return ("",)
        if self.literal(node.value) is not None:
            return (node.value,)
        bound = _assigned_value(host, node)
        return ("",) if bound is None or isinstance(bound, cst.Name) else self._dicts(host, bound)

    def value(self, launch: Launch, name: str) -> str | None:
        """What a launch passes for a parameter, as a text that holds in the host function."""
        if name in launch.given:
            return self.tree.text(launch.given[name])
        return f'{launch.star}["{name}"]' if launch.config and name in self.config else None

    def host_names(self, launch: Launch) -> Iterator[tuple[str, cst.Assign]]:
        """Plain assignments in the launching function, by name."""
        for assign in self.tree.find(launch.host, cst.Assign):
            for target in assign.targets:
                if isinstance(target.target, cst.Name):
                    yield target.target.value, assign

    def host_value(self, launch: Launch, node: cst.BaseExpression) -> cst.BaseExpression:
        """What an expression stands for: a name that is assigned once is looked through."""
        if isinstance(node, cst.Name):
            found = [assign for name, assign in self.host_names(launch) if name == node.value]
            return found[0].value if len(found) == 1 else node
        return node


def _assigned_tuple(host: cst.FunctionDef, node: cst.BaseExpression) -> cst.Tuple | None:
    """The tuple that a name in the body of a function stands for."""
    value = _assigned_value(host, node)
    if not isinstance(value, cst.Tuple) or any(isinstance(e, cst.StarredElement) for e in value.elements):
        return None
    return value


def _assigned_dict(host: cst.FunctionDef, node: cst.BaseExpression) -> dict[str, cst.BaseExpression] | None:
    """The entries of the dict that a name in the body of a function stands for; the keys are literals."""
    value = _assigned_value(host, node)
    if not isinstance(value, cst.Dict):
        return None
    found = {}
    for element in value.elements:
        if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
            return None
        found[str(element.key.evaluated_value)] = element.value
    return found


def _assigned_value(host: cst.FunctionDef, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What a name is bound to in the body of a function, once."""
    lines = host.body.body if isinstance(host.body, cst.IndentedBlock) else ()
    small = [s for line in lines if isinstance(line, cst.SimpleStatementLine) for s in line.body]
    found = [
        s.value
        for s in small
        if isinstance(s, cst.Assign) and any(t.target.deep_equals(node) for t in s.targets)
    ]
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=256)
def unit_of(source: str) -> Unit:
    """The parsed source.

    Raises:
        ParserSyntaxError: it is no Python.
    """
    return Unit(tree_of(source))

"""NumpyProgram: a graph as one Python function that calls NumPy, where nothing native is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.compile.cpp.entry import shown
from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.compile.ir.lower import lower
from gtape.compile.ir.nodes import Elem, Hosted, InputNode, Product, Value, View, v_root
from gtape.compile.numpy import blocks
from gtape.compile.numpy.names import Names, view_text
from gtape.compile.numpy.plan import NUMPY, Arenas, NumpyPlan
from gtape.compile.numpy.steps import Statements, Step, Steps, reading
from gtape.compile.schedule.fuse import FusionGroup
from gtape.compile.schedule.plan import numpy_dtype
from gtape.compile.schedule.regrouping import JoinedGroups
from gtape.core import nest
from gtape.core.device import CPU, ignore, restore
from gtape.core.tensor import EagerTensor, Tensor
from gtape.opdef.numpy_code import define
from gtape.opdef.primitive import Primitive, boxed

#: Names of larger arrays are deleted when nothing reads them any more.
_DELETED = 1 << 12


class NumpyWriter:
    """Writes a program's text: `function(structure)` gives it as a function of tensors."""

    def __init__(self, traced: ClosedGraph) -> None:
        self._traced, self._names = traced, Names()
        self._module = lower(traced, NUMPY)
        self._plan = NumpyPlan(self._module)
        self._lines: list[str] = []
        #: By the number of a value, the names of views of it.
        self._views: dict[int, list[str]] = {}
        self._quiet = all(isinstance(n.op, Primitive) for n in self._module.nodes
                          if isinstance(n, Hosted))
        self._names.space.update(
            Tensor=EagerTensor, ignore=ignore, restore=restore, pack=traced.packed)
        self._inputs()
        self._body()
        self._stores()

    def function(self, structure: Any) -> Callable[..., Any]:
        """The program as a function of tensors, whose result has a structure of places."""
        traced, names = self._traced, self._names
        results = [f"Tensor({self._ready(v)}, {self._type(v)})" for v in self._module.results]
        packed = shown(structure, results)
        if packed is None or _repeats(structure):
            packed = f"pack([{', '.join(results)}])"
        lines = [*self._lines, f"return {packed}"]
        body = "".join(f"        {line}\n" for line in lines)
        tensors = ", ".join(f"t{i}" for i in range(len(traced.arguments)))
        last = "" if self._quiet else "if errors is not None: "
        source = (f"def program({tensors}):\n    errors = ignore()\n    try:\n{body}"
                  f"    finally:\n        {last}restore(errors)\n")
        return define(source, "program", names.space)

    # ------------------------------------------------------------------ begin and end

    def _inputs(self) -> None:
        """Names for the arguments, captures, states and constants."""
        for node in self._module.nodes:
            if isinstance(node, InputNode):
                self._input(node, node.outputs[0])

    def _input(self, node: InputNode, value: Value) -> None:
        names, traced, at = self._names, self._traced, node.what
        if node.role == "constant":
            names.called(value, names.numbered(at[()] if _scalar(value) else at, "c"))
            return
        if node.role == "argument":
            text = f"t{at}._a"
        elif node.role == "capture":
            text = names.numbered(traced.captured[at]._a, "c")
        else:
            text = names.numbered(at, "state") + "._initial_()._a"
        if value.shape and text.isidentifier():
            names.called(value, text)
        else:
            self._lines.append(f"{names.give(value)} = {text}{_scalar(value)}")

    def _stores(self) -> None:
        """The new values go to their states, and the arena to the next call."""
        for ref, value in self._module.writes:
            state = self._names.numbered(ref, "state")
            self._lines.append(f"{state}._commit_(Tensor({self._ready(value)}, "
                               f"{self._type(value)}))")
        for value in self._module.results:
            self._ready(value)
        if self._plan.taken:
            self._lines.append("arenas.append(arena)")

    def _type(self, value: Value) -> str:
        kind = CPU.type_of(numpy_dtype(value.dtype))
        return self._names.bound(kind, f"{kind.dtype.name}_type")

    # ------------------------------------------------------------------ units

    def _body(self) -> None:
        taken = self._plan.taken
        if taken:
            arenas = Arenas([(v.shape, numpy_dtype(v.dtype), self._plan.places[v.number].at)
                             for v in taken.values()], self._plan.arena)
            self._names.space["arenas"] = arenas
            self._lines.append("arena = arenas.take()")
            self._lines.append(f"{', '.join(f'a{i}' for i in range(len(taken)))}, = arena")
        self._arrays = {number: f"a{i}" for i, number in enumerate(taken)}
        last = {number: at for at, unit in enumerate(self._plan.groups) for number in unit.reads}
        needed = {v_root(v).number for v in self._module.needed()}
        roots = {o.number: o for n in self._module.nodes for o in n.outputs}
        for at, unit in enumerate(self._plan.groups):
            self._unit(unit)
            gone = [roots[n] for n in unit.reads if last[n] == at and n in roots
                    and n not in needed]
            names = [name for value in gone if value.size >= _DELETED and not isinstance(
                value.node, InputNode) and not _is_constant(value) for name in self._all(value)]
            if names:
                self._lines.append(f"del {', '.join(dict.fromkeys(names))}")

    def _all(self, value: Value) -> list[str]:
        """The names of a value and its views."""
        name = self._names.of(value)
        return [*self._views.get(value.number, ()), *([name] if name is not None else [])]

    def _ready(self, value: Value) -> str:
        """The name of a value; a view gets one where it is first read."""
        name, node, names = self._names.of(value), value.node, self._names
        if name is not None:
            return name
        if not isinstance(node, View):
            return names.constant(value)
        root = self._ready(node.inputs[0])
        text = view_text(names, node, value.shape, root)
        if text == root:
            return names.called(value, root)
        name = names.give(value)
        self._lines.append(f"{name} = {text}{_scalar(value)}")
        self._views.setdefault(node.inputs[0].number, []).append(name)
        return name

    def _unit(self, unit: FusionGroup) -> None:
        if isinstance(unit, JoinedGroups):
            self._joined(unit)
            return
        node = unit.nodes[0]
        if unit.is_loop:
            stored = self._plan.stored
            self._loop(unit, [o for n in unit.nodes for o in n.outputs if o.number in stored])
        elif isinstance(node, Product):
            self._product(node)
        else:
            assert isinstance(node, Hosted)
            self._hosted(node)

    def _loop(self, group: FusionGroup, stored: Sequence[Value]) -> None:
        values = [v for v in stored if not _is_constant(v)]
        loop = blocks.looped(group)
        steps = Steps(group.nodes, lambda value: value.shape) if loop is None else loop[1]
        for value in steps.reads:
            self._ready(value)
        for value in values:
            same = steps.of[value.number]
            if isinstance(same, Value):
                self._names.called(value, reading(self._names, same))
        values = [v for v in values if isinstance(steps.of[v.number], Step)]
        taken = {v.number: self._arrays[v.number] for v in values if v.number in self._arrays}
        if loop is None:
            self._lines += Statements(self._names, steps, values, taken).lines
        elif values:
            self._lines += blocks.Loop(self._names, *loop, values, taken).lines()

    def _joined(self, unit: JoinedGroups) -> None:
        names = self._names
        for whole, parts in unit.laid:
            texts = [self._ready(v) if len(v.shape) == 1 else f"{self._ready(v)}.ravel()"
                     for v in parts]
            self._lines.append(f"{names.give(whole)} = concatenate(({', '.join(texts)}))")
        self._loop(unit.whole, [whole for whole, _ in unit.cut])
        for whole, parts in unit.cut:
            start = 0
            for value in parts:
                end = start + value.size
                shape = "" if len(value.shape) == 1 else f".reshape({value.shape!r})"
                self._lines.append(f"{names.give(value)} = {names.of(whole)}[{start}:{end}]{shape}")
                start = end

    def _product(self, node: Product) -> None:
        args = [self._ready(v) for v in node.inputs]
        value = node.outputs[0]
        if value.number in self._arrays:
            args.append(self._arrays[value.number])
        text = f"{args[0]}.dot({', '.join(args[1:])})" if all(
            len(v.shape) == 2 for v in node.inputs) else (
            f"{self._names.bound(np.matmul, 'matmul')}({', '.join(args)})")
        self._lines.append(f"{self._names.give(value)} = {text}")

    # ------------------------------------------------------------------ ops by themselves

    def _hosted(self, node: Hosted) -> None:
        args = [self._ready(v) for v in node.inputs]
        if not isinstance(node.op, Primitive):
            self._applied(node, args)
            return
        text, many = self._call(node.op, node, args), node.op.many
        if len(node.outputs) == 1 and not many:
            value = node.outputs[0]
            if value.dtype == "string":
                text = f"{self._names.bound(boxed, 'boxed')}({text})"
            self._lines.append(f"{self._names.give(value)} = {text}{_scalar(value)}")
            return
        given = [self._names.give(v) for v in node.outputs]
        self._lines.append(f"{', '.join(given)}, = {text}" if given else text)
        self._lines += [f"{name} = {name}[()]" for name, v in zip(given, node.outputs)
                        if _scalar(v)]

    def _call(self, op: Primitive, node: Hosted, args: Sequence[str]) -> str:
        given = [f"{k}={self._attribute(v)}" for k, v in zip(op.attr_names, node.attrs)]
        function = self._names.bound(op._fn, op.name.rstrip("_"))
        return f"{function}({', '.join(['np', *args, *given])})"

    def _attribute(self, value: Any) -> str:
        plain = value is None or type(value) in (bool, int, str) or (
            type(value) is tuple and all(type(v) in (bool, int) for v in value))
        return repr(value) if plain else self._names.numbered(value, "attribute")

    def _applied(self, node: Hosted, args: Sequence[str]) -> None:
        """An op in Python, where NumPy's warnings are as they are outside."""
        names = self._names
        tensors = ", ".join(f"Tensor({a}, {self._type(v)})" for a, v in zip(args, node.inputs))
        call = (f"{names.bound(node.op.reapply, names.fresh('apply'))}([{tensors}], "
                f"{self._attribute(node.attrs)})")
        given = [names.give(v) for v in node.outputs]
        self._lines += ["restore(errors)", "errors = None",
                        f"{', '.join(given)}, = {call}" if given else call, "errors = ignore()"]
        self._lines += [f"{n} = {n}._a{_scalar(v)}" for n, v in zip(given, node.outputs)]


def _scalar(value: Value) -> str:
    """What makes NumPy's scalar of an array without axes."""
    return "[()]" if not value.shape and value.dtype != "string" else ""


def _is_constant(value: Value) -> bool:
    return isinstance(value.node, Elem) and value.node.body.is_constant


def _repeats(structure: Any) -> bool:
    """Whether a place is in a structure twice: there, one tensor is meant."""
    places = [part for part in nest.flatten(structure) if type(part) is int]
    return len(set(places)) < len(places)


def on_host(traced: ClosedGraph) -> bool:
    """Whether all arrays of a graph are in the host's memory."""
    return all(t._t.device.is_host for t in traced.graph.tensors)


class NumpyProgram:
    """`run(tensors)` gives the results; the states are updated. Threads may run it side by side.

    `reason` says why the graph was not compiled.
    """

    def __init__(self, traced: ClosedGraph, reason: str) -> None:
        self.reason = reason
        self.graph = traced.graph
        self._count = traced.results
        self._writer = NumpyWriter(traced)
        #: Takes the arguments as tensors, and gives the result as the traced function does.
        self.entry = self._writer.function(traced.structure)
        self._flat: Callable[..., Any] | None = None  # few ask for it: calls go by `entry`

    def inspect(self) -> str:
        """Why it is not native, the graph, and the function that is made of it."""
        source = self.entry.__source__  # type: ignore[attr-defined]
        return f"computed by NumPy: {self.reason}\n{self.graph}\n{source}"

    def run(self, tensors: Sequence[EagerTensor]) -> tuple[Tensor, ...]:
        """The results for arguments of the right shapes and dtypes."""
        if self._flat is None:
            self._flat = self._writer.function(tuple(range(self._count)))
        return self._flat(*tensors)

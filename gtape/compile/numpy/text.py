"""A program as the text of one Python function that calls NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.compile.cpp.entry import shown
from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.compile.numpy.blocks import Piece, written
from gtape.compile.numpy.clusters import Cluster, JoinedClusters, Unit, units_of
from gtape.compile.numpy.joining import joined_lines
from gtape.compile.numpy.lower import Steps
from gtape.compile.numpy.names import Names
from gtape.compile.numpy.pools import pools_of, take
from gtape.compile.numpy.values import (
    ArrayCall,
    ArrayProduct,
    ArrayValue,
    ArrayView,
    NumpyStep,
    Spread,
    Sum,
    TensorStep,
    UfuncStep,
)
from gtape.core.device import CPU
from gtape.core.fp_errors import ignore, restore
from gtape.core.tensor import EagerTensor
from gtape.numerics.sums import BLOCK
from gtape.opdef.printers.numpy import define
from gtape.ops.shape.layout import broadcast_to_

#: Names of larger arrays are deleted when nothing reads them any more.
_DELETED = 1 << 12
#: Sums of no more terms than these along rows are products with ones, which BLAS adds in lanes:
#: faster, and as exact.
_SUMMED = 1 << 10


class NumpyWriter:
    """Writes a program's text: `function(structure)` gives it as a function of tensors."""

    def __init__(self, traced: ClosedGraph) -> None:
        self._traced, self._names = traced, Names()
        self._made = made = Steps(traced)
        self._units = units_of(made.steps, made.outputs)
        self._lines: list[str] = []
        alone = not any(isinstance(s, TensorStep) for u in self._units for s in u.steps)
        self._last = "" if alone else "if errors is not None: "
        self._names.space.update(
            Tensor=EagerTensor, ignore=ignore, restore=restore, pack=traced.packed)
        self._inputs()
        self._body()
        self._stores()

    def function(self, structure: Any) -> Callable[..., Any]:
        """The program as a function of tensors, whose result has a structure of places."""
        traced, names = self._traced, self._names
        results = [f"Tensor({self._result(v)}, {self._type(v)})"
                   for v in self._made.outputs[: traced.results]]
        packed = shown(structure, results)
        if packed is None or _repeats(structure):
            packed = f"pack([{', '.join(results)}])"
        lines = [*self._lines, f"return {packed}"]
        body = "".join(f"        {line}\n" for line in lines)
        tensors = ", ".join(f"t{i}" for i in range(len(traced.arguments)))
        source = (f"def program({tensors}):\n    errors = ignore()\n    try:\n{body}"
                  f"    finally:\n        {self._last}restore(errors)\n")
        return define(source, "program", names.space)

    # ------------------------------------------------------------------ begin and end

    def _inputs(self) -> None:
        """Names for the arguments, captures and states that are read."""
        names, traced = self._names, self._traced
        read = {id(v) for u in self._units for v in u.reads}
        read |= {id(v) for v in self._made.outputs}
        for value in self._made.inputs:
            kind, at = value.place  # type: ignore[misc]
            if id(value) not in read:
                continue
            if kind == "argument":
                text = f"t{at}._a"
            elif kind == "capture":
                text = names.numbered(traced.captured[at]._a, "c")
            else:
                text = names.numbered(traced.states[at].ref, "state") + "._initial_()._a"
            if value.shape and text.isidentifier():
                names.called(value, text)
            else:
                self._lines.append(f"{names.give(value)} = {text}{_scalar(value)}")

    def _stores(self) -> None:
        """The new values go to their states."""
        for use, value in zip(self._traced.written, self._made.outputs[self._traced.results:]):
            state = self._names.numbered(use.ref, "state")
            self._lines.append(f"{state}._commit_(Tensor({self._result(value)}, "
                               f"{self._type(value)}))")

    def _result(self, value: ArrayValue) -> str:
        return self._names.text(value)

    def _type(self, value: ArrayValue) -> str:
        found = CPU.type_of(value.dtype)
        return self._names.bound(found, f"{found.dtype.name}_type")

    # ------------------------------------------------------------------ units

    def _body(self) -> None:
        last: dict[int, int] = {}
        for at, unit in enumerate(self._units):
            for value in unit.reads:
                last[id(value)] = at
        outside = {id(v) for v in self._made.outputs}
        self._pools = pools_of(self._units, outside)
        for at, unit in enumerate(self._units):
            self._lines += self._unit(unit, {*last, *outside})
            gone = [v for v in unit.reads if last[id(v)] == at and v.size >= _DELETED
                    and v.step is not None and id(v) not in outside]
            self._lines += [f"{self._pool(v)}.append({self._names.text(v)})"
                            for v in gone if id(v) in self._pools]
            if gone:
                self._lines.append(f"del {', '.join(self._names.text(v) for v in gone)}")

    def _pool(self, value: ArrayValue) -> str:
        return self._names.numbered(self._pools[id(value)], "pool")

    def _take(self, value: ArrayValue) -> str:
        """What gives an array of a value's shape and dtype to write to."""
        names = self._names
        return (f"{names.bound(take, 'take')}({self._pool(value)}, {value.shape!r}, "
                f"{names.dtype(value.dtype)})")

    def _unit(self, unit: Unit, used: set[int]) -> list[str]:
        if isinstance(unit, JoinedClusters):
            return joined_lines(self._names, unit, used)
        if isinstance(unit, Cluster) or isinstance(unit.steps[0], UfuncStep):
            shape = unit.steps[0].outputs[0].shape
            made = {id(v) for v in unit.makes if id(v) in used}
            taken = {id(v): self._take(v) for v in unit.makes if id(v) in self._pools}
            return written(Piece(self._names, unit.steps, shape, made, taken))
        (step,) = unit.steps
        return self._single(step)

    def _single(self, step: NumpyStep) -> list[str]:
        names = self._names
        args = [names.text(v) for v in step.inputs]
        if isinstance(step, TensorStep):
            return self._applied(step, args)
        if isinstance(step, ArrayCall):
            text = self._call(step, args)
        elif isinstance(step, ArrayView):
            text = step.text.format(*args)
        elif isinstance(step, Spread):
            text = self._spread(step, args[0])
        elif isinstance(step, Sum):
            text = self._sum(step, args[0])
        else:
            assert isinstance(step, ArrayProduct)
            text = self._product(step, args)
        if len(step.outputs) == 1 and not (isinstance(step, ArrayCall) and step.op.many):
            value = step.outputs[0]
            return [f"{names.give(value)} = {text}{_scalar(value)}"]
        made = [names.give(v) for v in step.outputs]
        lines = [f"{', '.join(made)}, = {text}"] if made else [text]
        return lines + [f"{names.text(v)} = {names.text(v)}[()]" for v in step.outputs
                        if _scalar(v)]

    def _call(self, step: ArrayCall, args: Sequence[str]) -> str:
        names, op = self._names, step.op
        given = [f"{k}={self._attribute(v)}" for k, v in step.attrs.items()]
        text = f"{names.bound(op._fn, op.name.rstrip('_'))}({', '.join(['np', *args, *given])})"
        if len(step.outputs) == 1 and step.outputs[0].dtype.kind == "O" and not op.many:
            return f"{names.bound(_boxed, 'boxed')}({text})"
        return text

    def _attribute(self, value: Any) -> str:
        plain = value is None or type(value) in (bool, int, str) or (
            type(value) is tuple and all(type(v) in (bool, int) for v in value))
        return repr(value) if plain else self._names.numbered(value, "attribute")

    def _applied(self, step: TensorStep, args: Sequence[str]) -> list[str]:
        """An op in Python, where NumPy's warnings are as they are outside."""
        names = self._names
        tensors = ", ".join(f"Tensor({a}, {names.bound(t, t.dtype.name + '_type')})"
                            for a, t in zip(args, step.types))
        call = f"{names.bound(step.op.reapply, names.fresh('apply'))}([{tensors}], " \
               f"{self._attribute(step.attrs)})"
        made = [names.give(v) for v in step.outputs]
        lines = ["restore(errors)", "errors = None",
                 f"{', '.join(made)}, = {call}" if made else call, "errors = ignore()"]
        return lines + [f"{n} = {n}._a{_scalar(v)}" for n, v in zip(made, step.outputs)]

    def _spread(self, step: Spread, text: str) -> str:
        value, shape = step.inputs[0], step.outputs[0].shape
        fn, names = broadcast_to_._fn, self._names
        if value.number is not None:
            return names.numbered(fn(np, value.number, shape=shape), "c")
        return f"{names.bound(fn, 'broadcast_to')}(np, {text}, shape={shape!r})"

    def _sum(self, step: Sum, text: str) -> str:
        value, axes = step.inputs[0], step.axes
        count = math.prod(value.shape[a] for a in axes)
        if step.total and count <= _SUMMED:
            flat = text if len(value.shape) == 1 else f"{text}.ravel()"
            return f"{flat}.dot({self._ones(count, value.dtype)})"
        if len(value.shape) == 2 and count <= (BLOCK if axes == (0,) else _SUMMED):
            ones = self._ones(count, value.dtype)
            return f"{ones}.dot({text})" if axes == (0,) else f"{text}.dot({ones})"
        return f"total({text}, {axes!r})"

    def _ones(self, count: int, dtype: np.dtype) -> str:
        name = f"ones{count}_{dtype.name}"
        self._names.space.setdefault(name, np.ones(count, dtype))
        return name

    def _product(self, step: ArrayProduct, args: Sequence[str]) -> str:
        flat = all(len(v.shape) == 2 for v in step.inputs)
        turned = ".T" if flat else ".swapaxes(-1, -2)"
        given = [f"{text}{turned}" if t else text for text, t in zip(args, step.transposed)]
        if id(step.outputs[0]) in self._pools:
            given.append(self._take(step.outputs[0]))
        if flat:
            return f"{given[0]}.dot({', '.join(given[1:])})"
        return f"{self._names.bound(np.matmul, 'matmul')}({', '.join(given)})"


def _scalar(value: ArrayValue) -> str:
    """What makes NumPy's scalar of an array without axes."""
    return "[()]" if not value.shape and value.dtype.kind != "O" else ""


def _repeats(structure: Any) -> bool:
    """Whether a place is in a structure twice: there, one tensor is meant."""
    found: list[int] = []

    def collect(part: Any) -> None:
        if type(part) is int:
            found.append(part)
        elif isinstance(part, dict):
            for value in part.values():
                collect(value)
        elif isinstance(part, (list, tuple)):
            for value in part:
                collect(value)

    collect(structure)
    return len(set(found)) < len(found)


def _boxed(made: Any) -> Any:
    """`made` as an array: NumPy hands out one string of an array as bare bytes."""
    return np.array(made, object) if type(made) is bytes else made

"""The formulas of a group as steps: one call of NumPy each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from gtape.compile.ir.nodes import (
    Elem,
    InputNode,
    IrNode,
    Reduce,
    Shape,
    Value,
    View,
    broadcast,
    v_root,
)
from gtape.compile.numpy.names import Names, view_text
from gtape.compile.schedule.plan import numpy_dtype
from gtape.numerics.sums import BLOCK
from gtape.opdef.elementwise import ScalarOp
from gtape.opdef.numpy_code import number_text
from gtape.opdef.scalar_graph import Number, topological
from gtape.ops.elementwise import scalars

#: How deep expressions are nested.
_NESTED = 12
#: Sums of no more terms than these along rows are products with ones, which BLAS adds in lanes:
#: faster, and as exact.
_SUMMED = 1 << 10
_MULTIPLY = scalars.multiply.op


class Step:
    """`kind` says what makes an array of `args`: "call" of the scalar op, "cast", "copy", "spread"
    to the shape, "number", "view" or "sum", of which `node` knows the rest."""

    __slots__ = ("args", "dtype", "kind", "node", "op", "shape")

    def __init__(self, kind: str, args: Sequence[Operand], shape: Shape, dtype: np.dtype,
                 op: ScalarOp | None = None, node: IrNode | None = None) -> None:
        self.kind, self.args, self.shape, self.dtype = kind, tuple(args), shape, dtype
        self.op, self.node = op, node

    @property
    def writes(self) -> Callable[..., Any] | None:
        """The function of the op that writes into an array that it is given. What stands in for the
        op's own spelling does so for real numbers alone: NumPy's complex log1p loses small ones."""
        if self.op is None or (self.dtype.kind == "c" and self.op.ufunc is not self.op.on(np)):
            return None
        return self.op.ufunc

    @property
    def is_ufunc(self) -> bool:
        """Whether it writes into any array that it is given."""
        return isinstance(self.writes, np.ufunc)


#: What steps read: another step, a value from outside of the group, or a Python number.
Operand: TypeAlias = Step | Value | Number


class Steps:
    """`list` are the steps of some nodes in order; `of` what the nodes' values are, by number.

    Args:
        shape_of: the shape that steps take a value in.
        natural: whether that is its own, so that views within the group count.
    """

    def __init__(self, nodes: Sequence[IrNode], shape_of: Callable[[Value], Shape],
                 natural: bool = True) -> None:
        self.list: list[Step] = []
        self.of: dict[int, Operand] = {}
        self._shape_of, self._natural = shape_of, natural
        self._known: dict[Any, Step] = {}
        for node in nodes:
            out = node.outputs[0]
            operand = self._elem(node, out) if isinstance(node, Elem) else self._sum(node, out)
            if operand is not None:
                self.of[out.number] = operand

    @property
    def reads(self) -> list[Value]:
        """The values from outside, each once."""
        operands = [*(a for s in self.list for a in s.args), *self.of.values()]
        return list({v.number: v for v in operands if isinstance(v, Value)}.values())

    def uses(self) -> dict[int, int]:
        """How often each step is read, by its id."""
        counts: dict[int, int] = {}
        for step in self.list:
            for arg in step.args:
                counts[id(arg)] = counts.get(id(arg), 0) + 1
        return counts

    # ------------------------------------------------------------------ nodes

    def _operand(self, value: Value) -> Operand:
        root = v_root(value)
        if root.number not in self.of or value is root:
            return self.of.get(value.number, value)
        inner = self.of[root.number]
        if not self._natural:
            return inner
        if isinstance(inner, Value):
            return value
        return self._add("view", [inner], value.shape, dtype_of(inner), node=value.node)

    def _elem(self, node: Elem, out: Value) -> Operand | None:
        if node.body.is_constant:
            return None
        dtype = numpy_dtype(out.dtype)
        parts: dict[int, Operand] = {}
        named = {name: self._operand(v) for name, v in zip(node.names, node.inputs)}
        for part in topological([node.body]):
            if part.op is None:
                parts[id(part)] = named[part.value] if part.is_input else part.value
            else:
                parts[id(part)] = self._call(part.op, [parts[id(a)] for a in part.args])
        result = parts[id(node.body)]
        if not isinstance(result, (Step, Value)):
            result = self._add("number", [result], (), dtype)
        elif dtype_of(result) != dtype:
            result = self._cast(result, dtype)
        elif node.body.is_input and not (isinstance(result, Value) and isinstance(
                v_root(result).node, InputNode)):
            result = self._add("copy", [result], self._shape(result), dtype)
        shape = self._shape_of(out)
        if self._shape(result) != shape:
            result = self._add("spread", [result], shape, dtype)
        return result

    def _sum(self, node: IrNode, out: Value) -> Step:
        assert isinstance(node, Reduce) and node.how == "sum"
        return self._add("sum", [self._operand(node.inputs[0])], self._shape_of(out),
                         numpy_dtype(out.dtype), node=node)

    # ------------------------------------------------------------------ steps

    def _add(self, kind: str, args: Sequence[Operand], shape: Shape, dtype: np.dtype,
             op: ScalarOp | None = None, node: IrNode | None = None) -> Step:
        key = (kind, shape, dtype, op, id(node), *(
            id(a) if isinstance(a, Step) else ("value", a.number) if isinstance(a, Value)
            else (type(a), repr(a)) for a in args))
        if key not in self._known:
            self._known[key] = Step(kind, args, shape, dtype, op, node)
            self.list.append(self._known[key])
        return self._known[key]

    def _call(self, op: ScalarOp, args: list[Operand]) -> Operand:
        arrays = [a for a in args if isinstance(a, (Step, Value))]
        if not arrays:
            return folded(op, args)
        kinds: list[Any] = [dtype_of(a) if isinstance(a, (Step, Value)) else type(a) for a in args]
        if op is _MULTIPLY and {k.kind for k in kinds if isinstance(k, np.dtype)} == {"b", "f"}:
            # A product of floats and bools is five times as slow as one of floats.
            wide = next(k for k in kinds if isinstance(k, np.dtype) and k.kind == "f")
            args = [a if k == wide else self._cast(a, wide) for a, k in zip(args, kinds)]
            kinds = [wide] * 2
        shape = broadcast([self._shape(a) for a in arrays])
        try:
            dtype = _result(op, *kinds)
        except (AttributeError, TypeError):  # a function that asks a number for its dtype
            wide = np.result_type(*(k for k in kinds if isinstance(k, np.dtype)), *(
                k(1) for k in kinds if not isinstance(k, np.dtype)))
            args = [a if isinstance(a, (Step, Value)) else self._add("number", [a], (), wide)
                    for a in args]
            dtype = _result(op, *(k if isinstance(k, np.dtype) else wide for k in kinds))
        return self._add("call", args, shape, dtype, op)

    def _cast(self, value: Operand, dtype: np.dtype) -> Step:
        return self._add("cast", [value], self._shape(value), dtype)

    def _shape(self, operand: Operand) -> Shape:
        return operand.shape if isinstance(operand, Step) else self._shape_of(
            operand) if isinstance(operand, Value) else ()


def dtype_of(operand: Any) -> np.dtype:
    return operand.dtype if isinstance(operand, Step) else numpy_dtype(operand.dtype)


# An entry is a dtype. There are some 200 scalar ops, of which a model uses a few dozen.
@lru_cache(4096)
def _result(op: ScalarOp, *kinds: Any) -> np.dtype:
    """The dtype that a scalar op gives for arrays of these dtypes, and numbers of these types."""
    with np.errstate(all="ignore"):
        return np.asarray(op.on(np)(*[
            np.ones((), k) if isinstance(k, np.dtype) else k(1) for k in kinds])).dtype


def folded(op: ScalarOp, numbers: Sequence[object]) -> Number:
    """A scalar op of numbers."""
    with np.errstate(all="ignore"):
        return np.asarray(op.on(np)(*[np.asarray(a)[()] for a in numbers])).item()


# ---------------------------------------------------------------------- text

class Statements:
    """Steps as statements, one for each value that is used more than once; the others stand within
    these.

    Args:
        values: those that others read: they get names.
        taken: by number, the name of the array to write one to.
    """

    def __init__(self, names: Names, steps: Steps, values: Sequence[Value],
                 taken: dict[int, str]) -> None:
        self._names, self._uses = names, steps.uses()
        self._results: dict[int, list[Value]] = {}
        for value in values:
            self._results.setdefault(id(steps.of[value.number]), []).append(value)
        self._taken = {id(steps.of[n]): text for n, text in taken.items() if n in steps.of}
        #: By the id of a step: its text, whether that is an operator's, and how deep it is.
        self._text: dict[int, tuple[str, bool, int]] = {}
        self.lines: list[str] = []
        for step in steps.list:
            self._step(step)

    def _step(self, step: Step) -> None:
        args = [self._arg(step, a) for a in step.args]
        depth = 1 + max((d for _, _, d in args), default=0)
        infix = step.op.infix if step.op is not None else None
        target = self._taken.get(id(step)) if step.is_ufunc else None
        if target is not None:
            texts = ", ".join([text for text, _, _ in args] + [f"out={target}"])
            assert step.op is not None
            text, infix = f"{self._names.bound(step.op.ufunc, step.op.name)}({texts})", None
        else:
            brackets = infix is not None or step.kind != "call"
            text = step_text(self._names, step, [
                f"({text})" if operator and brackets else text for text, operator, _ in args])
        values = self._results.get(id(step), ())
        if self._uses.get(id(step)) == 1 and not values and depth < _NESTED:
            self._text[id(step)] = text, infix is not None, depth
            return
        name = self._names.fresh("v")
        self.lines.append(f"{name} = {text}")
        self._text[id(step)] = name, False, 0
        for value in values:
            self._names.called(value, name)

    def _arg(self, step: Step, arg: Operand) -> tuple[str, bool, int]:
        if isinstance(arg, Step):
            return self._text[id(arg)]
        return operand_text(self._names, step, arg), False, 0


def reading(names: Names, value: Value) -> str:
    """The name of a value from outside."""
    return names.of(value) or names.constant(value)


def operand_text(names: Names, step: Step, arg: Any) -> str:
    """A value from outside, or a number: of the dtype that NumPy gives it beside the others."""
    if isinstance(arg, Value):
        return reading(names, arg)
    if step.kind == "number":
        return names.number(arg, step.dtype, False)
    others = [dtype_of(a) for a in step.args if isinstance(a, (Step, Value))]
    if not step.is_ufunc:
        return number_text(arg)
    return names.number(arg, np.result_type(arg, *others), bool(step.shape))


def step_text(names: Names, step: Step, args: Sequence[str]) -> str:
    """A step as an expression."""
    (first, *_) = args
    if step.kind == "cast":
        if not step.shape and step.dtype.kind == "f":
            return f"{names.bound(step.dtype.type, step.dtype.name)}({first})"
        return f"{first}.astype({names.dtype(step.dtype)})"
    if step.kind == "spread":
        return f"{names.bound(np.broadcast_to, 'broadcast_to')}({first}, {step.shape!r})"
    if step.kind == "copy":
        return f"{first}.copy()"
    if step.kind == "number":
        return first
    if step.kind == "view":
        assert isinstance(step.node, View)
        return view_text(names, step.node, step.shape, first)
    if step.kind == "sum":
        return _sum_text(names, step, first)
    assert step.op is not None
    if step.op.infix is not None:
        return step.op.infix.format(*args)
    function = step.op.ufunc if step.is_ufunc else step.op.on(np)
    text = f"{names.bound(function, step.op.name)}({', '.join(args)})"
    return text if step.shape or step.is_ufunc else f"{text}[()]"


def _sum_text(names: Names, step: Step, text: str) -> str:
    node = step.node
    assert isinstance(node, Reduce)
    value, axes = node.inputs[0], node.axes
    if node.keepdims:
        return f"total({text}, {axes!r}, True)"
    count = math.prod(value.shape[a] for a in axes)
    if len(axes) == len(value.shape) and count <= _SUMMED:
        flat = text if len(value.shape) == 1 else f"{text}.ravel()"
        return f"{flat}.dot({_ones(names, count, step.dtype)})"
    if len(value.shape) == 2 and count <= (BLOCK if axes == (0,) else _SUMMED):
        ones = _ones(names, count, step.dtype)
        return f"{ones}.dot({text})" if axes == (0,) else f"{text}.dot({ones})"
    return f"total({text}, {axes!r})"


def _ones(names: Names, count: int, dtype: np.dtype) -> str:
    name = f"ones{count}_{dtype.name}"
    names.space.setdefault(name, np.ones(count, dtype))
    return name

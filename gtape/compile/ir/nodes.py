"""The compiler's own form of a graph: few kinds of nodes, and values known by shape and dtype.

Everything a program computes is one of
    Elem         one formula of scalar ops over broadcast inputs,
    Reduce       a combination of elements over some axes,
    View         the elements of a value in another arrangement, nothing computed,
    Product      a matrix product,
    LibraryCall  a function of the runtime's C++ templates (convolution, gather …),
    Hosted       a step in Python: an op that has no C++, or a user's own code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from gtape.core.errors import InternalError
from gtape.opdef.scalar_graph import Expr
from gtape.trace.graph import live_nodes

Shape = tuple[int, ...]


class Value:
    """What a node makes: an array of known shape and dtype (by name)."""

    __slots__ = ("dtype", "node", "number", "shape")

    def __init__(self, shape: Shape, dtype: str, node: IrNode, number: int) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.node = node
        self.number = number

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"%{self.number}: {self.dtype}[{','.join(map(str, self.shape))}]"


class IrNode:
    """Makes `outputs` of `inputs`."""

    __slots__ = ("inputs", "label", "outputs")

    def __init__(self, inputs: Sequence[Value], label: str = "") -> None:
        self.inputs = tuple(inputs)
        self.outputs: tuple[Value, ...] = ()
        self.label = label or type(self).__name__.lower()

    @property
    def has_side_effect(self) -> bool:
        return False


class InputNode(IrNode):
    """A value that is there before the program runs: `role` "argument", "state" or "constant", and
    `what`, the position of the argument, the state, or the array."""

    __slots__ = ("role", "what")

    def __init__(self, role: str, what: Any) -> None:
        super().__init__((), role)
        self.role = role
        self.what = what


class Elem(IrNode):
    """`body` over inputs called `names`, which broadcast to the shape of the result."""

    __slots__ = ("body", "name", "names")

    def __init__(self, name: str, body: Expr, names: Sequence[str],
                 inputs: Sequence[Value]) -> None:
        super().__init__(inputs, name)
        self.name = name
        self.body = body
        self.names = tuple(names)


class Reduce(IrNode):
    """`how` ("sum", "max", "min", "prod", "all", "any") over `axes`, which are kept with length 1
    or dropped."""

    __slots__ = ("axes", "how", "keepdims")

    def __init__(self, how: str, x: Value, axes: Sequence[int], keepdims: bool) -> None:
        super().__init__((x,), f"{how} over {','.join(map(str, axes))}")
        self.how = how
        self.axes = tuple(axes)
        self.keepdims = keepdims


class StridedLayout(NamedTuple):
    """Where the elements of a value lie in a dense array: strides and offset in elements."""

    strides: tuple[int, ...]
    offset: int = 0


class View(IrNode):
    """The elements of a dense value at other places. `axes` says of each axis which axis of the
    input it is, or None for an axis of length 1 or one that repeats; it is None where axes are
    split, joined or cut. Views of different `remat_stage` are different values: what is computed
    of one is computed anew of the other."""

    __slots__ = ("axes", "layout", "remat_stage")

    def __init__(self, x: Value, layout: StridedLayout, axes: tuple[int | None, ...] | None,
                 remat_stage: int = 0) -> None:
        super().__init__((x,))
        self.layout = layout
        self.axes = axes
        self.remat_stage = remat_stage


class Product(IrNode):
    """y[…,i,k] = Σⱼ a[…,i,j] b[…,j,k]; transposes are views."""

    __slots__ = ()


class LibraryCall(IrNode):
    """`call` makes the text of the call: `emit(inputs, outputs)` from C++ pointers.

    `key` says all that decides the text besides the shapes; `headers` are included. `scratch` is
    how many bytes the call needs besides, which its text calls `scratch`, or gives the C++ that
    says it.
    """

    __slots__ = ("checks", "emit", "headers", "key", "name", "parts", "premise", "scratch",
                 "takes_place")

    def __init__(self, name: str, inputs: Sequence[Value], key: Any, headers: Sequence[str],
                 emit: Any, scratch: object = 0, checks: str = "") -> None:
        super().__init__(inputs, name)
        self.name = name
        self.key = key
        self.headers = tuple(headers)
        self.emit = emit
        self.scratch = scratch
        #: What is wrong when the call gives false; empty for calls that always succeed.
        self.checks = checks
        #: Whether the call runs as Python then.
        self.premise = False
        #: The number of the input that the result may take the place of.
        self.takes_place: int | None = None
        #: Where its inputs lie in the result, which they cover, each element once; else empty.
        self.parts: tuple[StridedLayout, ...] = ()

    @property
    def has_side_effect(self) -> bool:
        return bool(self.checks)


class Hosted(IrNode):
    """An op applied by NumPy, or a user's Python code."""

    __slots__ = ("attrs", "op")

    def __init__(self, op: Any, attrs: tuple[Any, ...], inputs: Sequence[Value]) -> None:
        super().__init__(inputs, f"host {op.name}")
        self.op = op
        self.attrs = attrs

    @property
    def has_side_effect(self) -> bool:
        return self.op.has_side_effect or self.op.refuses


class IrModule(NamedTuple):
    """A whole program: nodes in order, results, and the states that it writes with their values."""

    nodes: tuple[IrNode, ...]
    results: tuple[Value, ...]
    writes: tuple[tuple[Any, Value], ...]
    #: The numbers of values that another program computes again, or reads.
    shared: frozenset[int] = frozenset()

    def needed(self) -> list[Value]:
        return [*self.results, *(v for _, v in self.writes)]

    def live(self) -> IrModule:
        """Without the nodes that nothing needs."""
        nodes, _ = live_nodes(self.nodes, self.needed(), key=lambda v: v.number,
                              stays=lambda node: node.has_side_effect)
        return self._replace(nodes=nodes)

    def check(self) -> None:
        """Raises InternalError: a value is read before it is made, or shapes contradict."""
        made: set[int] = set()
        for node in self.nodes:
            for value in node.inputs:
                if value.number not in made:
                    raise InternalError(f"{node.label} reads {value!r} before it is made")
            _check_node(node)
            made |= {o.number for o in node.outputs}
        for value in self.needed():
            if value.number not in made:
                raise InternalError(f"the program gives {value!r}, which it does not make")

    def __str__(self) -> str:
        lines = []
        for node in self.nodes:
            outs = ", ".join(map(repr, node.outputs))
            lines.append(f"{outs} = {_text(node)}" if outs else _text(node))
        lines.append("results " + ", ".join(f"%{v.number}" for v in self.results))
        lines += [f"{getattr(state, 'name', state)} <- %{v.number}" for state, v in self.writes]
        return "\n".join(lines)


def _text(node: IrNode) -> str:
    """A node as the right side of a line: formulas with the values in them."""
    if isinstance(node, Elem):
        named = dict(zip(node.names, node.inputs))
        # `Builder` calls inputs n and their number, which may be those of another value by now.
        return re.sub(r"\bn\d+\b", lambda m: f"%{named[m[0]].number}", repr(node.body))
    return f"{node.label}({', '.join(f'%{v.number}' for v in node.inputs)})"


def _check_node(node: IrNode) -> None:
    (out, *_) = node.outputs or (None,)
    if isinstance(node, Elem):
        shape = broadcast([v.shape for v in node.inputs])
        if len(node.names) != len(node.inputs) or broadcast([shape, out.shape]) != out.shape:  # type: ignore[union-attr]
            raise InternalError(f"{node.label} of {node.inputs} cannot make {out!r}")
    elif isinstance(node, Reduce):
        (x,) = node.inputs
        kept = tuple(1 if i in node.axes else n for i, n in enumerate(x.shape)
                     if node.keepdims or i not in node.axes)
        if kept != out.shape:  # type: ignore[union-attr]
            raise InternalError(f"{node.label} of {x!r} cannot make {out!r}")
    elif isinstance(node, View):
        (x,) = node.inputs
        low, high = extent(out.shape, node.layout)  # type: ignore[union-attr]
        if out.size and (low < 0 or high >= x.size):  # type: ignore[union-attr]
            raise InternalError(f"a view of {x!r} as {out!r} reaches {low} … {high}")
    elif isinstance(node, Product):
        a, b = node.inputs
        if a.shape[-1] != b.shape[-2]:
            raise InternalError(f"a product of {a!r} and {b!r}")


def v_root(value: Value) -> Value:
    """The dense value behind a view."""
    return value.node.inputs[0] if isinstance(value.node, View) else value


def extent(shape: Shape, layout: StridedLayout) -> tuple[int, int]:
    """The first and last place that a view touches."""
    low = high = layout.offset
    for n, stride in zip(shape, layout.strides):
        low += min(0, (n - 1) * stride)
        high += max(0, (n - 1) * stride)
    return low, high


def dense(shape: Shape) -> tuple[int, ...]:
    """The strides of a dense array, in elements."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The common shape; -1 where two lengths differ and neither is 1."""
    rank = max((len(s) for s in shapes), default=0)
    made = []
    for lengths in zip(*[(1,) * (rank - len(s)) + tuple(s) for s in shapes]):
        real = {n for n in lengths if n != 1}
        made.append(1 if not real else real.pop() if len(real) == 1 else -1)
    return tuple(made)

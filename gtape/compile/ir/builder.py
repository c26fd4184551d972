"""Builder: makes nodes of the compiler's form, simplified where they are made.

The same node on the same values is made once (common subexpressions); formulas of constants fold;
a view of a view is one view; views that change nothing disappear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gtape.compile.compile_cost import is_cheap
from gtape.compile.ir.nodes import (
    Elem,
    Hosted,
    InputNode,
    IrNode,
    LibraryCall,
    Product,
    Reduce,
    Shape,
    StridedLayout,
    Value,
    View,
    broadcast,
    dense,
)
from gtape.core.dtypes import FLOATS, INTEGERS, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.opdef.cuda_text import C_TYPES, NARROW, compute_dtype
from gtape.opdef.scalar_graph import Expr, ScalarGraph, substitute, topological
from gtape.ops.shape.identity import identity_

if TYPE_CHECKING:
    from gtape.compile.ir.lower import Target


def same_axes(old: Shape, new: Shape) -> Axes:
    """Which old axis each new one is, where only axes of length 1 come and go; else None."""
    places = [i for i, n in enumerate(old) if n != 1]
    if [old[i] for i in places] != [n for n in new if n != 1]:
        return None
    rest = iter(places)
    return tuple(None if n == 1 else next(rest) for n in new)


def moved(stride: int, shape: Shape, places: Sequence[int],
           strides: Sequence[int]) -> int | None:
    """What a step of `stride` places in a dense array of `shape` is in a view with `strides`."""
    if stride == 0:
        return 0
    for n, place, actual in zip(shape, places, strides):
        if n > 1 and place <= abs(stride) and stride % place == 0 and abs(stride) < place * n:
            return stride // place * actual
    return None


def restrided(shape: Shape, strides: Sequence[int], new: Shape) -> tuple[int, ...] | None:
    """The strides of a view under another shape; None where it would have to be copied."""
    old = [(n, s) for n, s in zip(shape, strides) if n != 1]
    made: list[int] = []
    position = 0
    left: list[tuple[int, int]] = []
    for n in new:
        if n == 1:
            made.append(0)
            continue
        if not left:
            if position >= len(old):
                return None
            left, position = [old[position]], position + 1
        while math.prod(m for m, _ in left) < n or math.prod(m for m, _ in left) % n:
            if position >= len(old):
                return None
            left.append(old[position])
            position += 1
        if not _joined(left):
            return None
        total, inner = math.prod(m for m, _ in left), left[-1][1]
        rest = total // n
        made.append(inner * rest)
        left = [(rest, inner)] if rest > 1 else []
    return tuple(made)


def _joined(axes: Sequence[tuple[int, int]]) -> bool:
    """Whether axes lie in memory like one."""
    return all(outer == inner * n for (_, outer), (n, inner) in pairwise(axes))


#: See `View.axes`.
Axes: TypeAlias = tuple[int | None, ...] | None


class Builder:
    """Collects nodes for a target."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.nodes: list[IrNode] = []
        self._known: dict[Any, tuple[Value, ...]] = {}
        self._count = 0
        self._remat_stages = 0
        self.scalar_graph = ScalarGraph()

    def add(self, node: IrNode, specs: Sequence[tuple[Shape, str]],
            key: object = None) -> tuple[Value, ...]:
        """A node; the one that is there already where `key` was used before."""
        known = None if key is None else self._known.get(key)
        if known is not None:
            return known
        node.outputs = tuple([Value(shape, dtype, node, i)
                              for i, (shape, dtype) in enumerate(specs, self._count)])
        self._count += len(specs)
        self.nodes.append(node)
        if key is not None:
            self._known[key] = node.outputs
        return node.outputs

    # ------------------------------------------------------------------ sources

    def source(self, role: str, what: object, shape: Shape, dtype: str, key: object) -> Value:
        return self.add(InputNode(role, what), [(shape, dtype)], (role, key))[0]

    def constant(self, array: Any, dtype: str) -> Value:
        """An array of the trace. One number becomes part of the formulas that read it."""
        array = np.asarray(array)
        if dtype in _NUMBERS and (array.size == 1 or (
                array.size > 1 and array.dtype.kind != "O" and _uniform(array))):
            return self.splat(array.reshape(-1)[0].item(), array.shape, dtype)
        # NumPy gives an array of rank 0 one axis.
        kept = np.ascontiguousarray(array).reshape(array.shape)
        # Equal small arrays are one; to compare large ones byte by byte costs more than it saves.
        key = (kept.shape, kept.tobytes()) if kept.nbytes <= 4096 else id(array)
        return self.source("constant", kept, kept.shape, dtype, (dtype, key))

    def splat(self, number: Any, shape: Shape, dtype: str) -> Value:
        """One number everywhere, as `dtype` has it."""
        # Rounded once here, as an array of it would be.
        if dtype in NARROW:
            number = np.asarray(number, as_dtype(dtype).as_numpy_dtype).item()
        body = self.scalar_graph.constant(number)
        return self._elem("constant", body, (), (), shape, dtype)

    # ------------------------------------------------------------------ formulas

    def elem(self, name: str, expression: Any, inputs: Sequence[Value], dtype: str,
             shape: Shape | None = None) -> Value:
        """`expression(scope, args)` of values that broadcast; constants become part of it."""
        whole = broadcast([v.shape for v in inputs]) if shape is None else shape
        numbers = [number_of(v) for v in inputs]
        args = [self.scalar_graph.input(_called(v)) if n is None else self.scalar_graph.constant(n)
                for v, n in zip(inputs, numbers)]
        kept = list({v.number: v for v, n in zip(inputs, numbers) if n is None}.values())
        names = list(map(_called, kept))
        body = expression(self.scalar_graph, args)
        if not isinstance(body, Expr):
            body = self.scalar_graph.constant(body)
        if self.target.shares_parts and any(a.op is not None for a in body.args) and all(
                v.dtype == dtype for v in kept):
            body, names, kept = self._parted(body, names, kept, dtype)
        body, names, kept = _trimmed(body, names, kept)
        if body.is_input and kept[0].dtype == dtype:
            return self.stretched(kept[0], whole)
        return self._elem(name, body, names, kept, whole, dtype)

    def _parted(self, body: Expr, names: list[str], inputs: list[Value], dtype: str,
                ) -> tuple[Expr, list[str], list[Value]]:
        """A formula whose costly parts are values of their own."""
        names, inputs = list(names), list(inputs)
        made: dict[int, Expr] = {}
        for part in () if is_cheap(body) else topological([body])[:-1]:
            (inner,) = substitute([part], made, self.scalar_graph)
            inner, own, read = _trimmed(inner, names, inputs)
            if read and not is_cheap(inner) and not part.op.makes_bool:
                value = self._elem(part.op.name, inner, own, read, broadcast(
                    [v.shape for v in read]), dtype)
                names.append(_called(value))
                inputs.append(value)
                made[id(part)] = self.scalar_graph.input(_called(value))
        return substitute([body], made, self.scalar_graph)[0] if made else body, names, inputs

    def _elem(self, name: str, body: Expr, names: Sequence[str], inputs: Sequence[Value],
              shape: Shape, dtype: str) -> Value:
        key = ("elem", id(body), repr(body) if body.is_constant else "", tuple(names),
               tuple(v.number for v in inputs), tuple(shape), dtype)
        return self.add(Elem(name, body, names, inputs), [(shape, dtype)], key)[0]

    def copied(self, x: Value) -> Value:
        """The elements of `x`, dense."""
        key = ("copy", x.number)
        if x.dtype.startswith("complex"):  # of which generated code knows nothing
            return self.add(Hosted(identity_, (), [x]), [(x.shape, x.dtype)], key)[0]
        name = _called(x)
        body = self.scalar_graph.input(name)
        return self.add(Elem("copy", body, (name,), (x,)), [(x.shape, x.dtype)], key)[0]

    def cast(self, x: Value, dtype: str) -> Value:
        if x.dtype == dtype:
            return x
        name = _called(x)
        body = self.scalar_graph.input(name)
        number = number_of(x)
        if number is not None and dtype in _NUMBERS:
            return self.splat(np.asarray(number, x.dtype).astype(dtype).item(), x.shape, dtype)
        made = self._elem(f"cast {dtype}", body, (name,), (x,), x.shape, dtype)
        if dtype in FLOATS and _cut_off(x):
            # GCC makes one cut of both casts, which keeps the sign of what becomes 0.
            return self.elem("add", lambda s, a: a[0] + 0.0, [made], dtype)
        return made

    # ------------------------------------------------------------------ arrangement

    def stretched(self, x: Value, shape: Shape) -> Value:
        """x repeated along new axes and axes of length 1."""
        if x.shape == tuple(shape):
            return x
        number = number_of(x)
        if number is not None:
            return self.splat(number, shape, x.dtype)
        new = len(shape) - len(x.shape)
        axes = tuple(None if i < new or x.shape[i - new] != n else i - new
                     for i, n in enumerate(shape))
        layout = dense(x.shape)
        strides = tuple(0 if a is None else layout[a] for a in axes)
        return self.view(x, shape, StridedLayout(strides), axes)

    def transposed(self, x: Value, perm: Sequence[int]) -> Value:
        if tuple(perm) == tuple(range(len(x.shape))):
            return x
        layout = dense(x.shape)
        return self.view(x, tuple(x.shape[i] for i in perm),
                         StridedLayout(tuple(layout[i] for i in perm)), tuple(perm))

    def reshaped(self, x: Value, shape: Shape) -> Value:
        """The same elements in row-major order."""
        shape = tuple(shape)
        if shape == x.shape:
            return x
        if math.prod(shape) != x.size:  # a trace for other lengths, which the op refuses here
            raise InvalidArgumentError(
                f"reshape: {x.size} elements, shape {list(x.shape)}, do not fit shape "
                f"{list(shape)}")
        number = number_of(x)
        if number is not None:
            return self.splat(number, shape, x.dtype)
        if 0 in shape:
            return self.view(x, shape, StridedLayout(dense(shape)), None)
        axes = same_axes(x.shape, shape)
        node = x.node
        if isinstance(node, View):
            strides = restrided(x.shape, node.layout.strides, shape)
            if strides is None:
                return self.reshaped(self.copied(x), shape)
            return self._view(node.inputs[0], shape, StridedLayout(strides, node.layout.offset),
                              _through(axes, node.axes), node.remat_stage)
        return self._view(x, shape, StridedLayout(dense(shape)), axes)

    def sliced(self, x: Value, starts: Sequence[int], steps: Sequence[int], shape: Shape) -> Value:
        """x[starts[i] + steps[i] j …]."""
        if all(s == 0 for s in starts) and all(s == 1 for s in steps) and shape == x.shape:
            return x
        layout = dense(x.shape)
        strides = tuple(step * s for step, s in zip(steps, layout))
        offset = sum(start * s for start, s in zip(starts, layout))
        return self.view(x, shape, StridedLayout(strides, offset), None)

    def view(self, x: Value, shape: Shape, layout: StridedLayout,
             axes: Axes) -> Value:
        """A view of `x`, whose layout is in terms of a dense x."""
        node = x.node
        if 0 in shape:
            root = node.inputs[0] if isinstance(node, View) else x
            return self._view(root, shape, StridedLayout(dense(shape)), None)
        if not isinstance(node, View):
            return self._view(x, shape, layout, axes)
        whole = node.layout
        places = dense(x.shape)
        strides, offset = [], whole.offset
        rest = layout.offset
        for n, place, stride in zip(x.shape, places, whole.strides):
            at, rest = divmod(rest, place) if n > 1 else (0, rest)
            offset += at * stride
        for n, stride in zip(shape, layout.strides):
            step = moved(stride, x.shape, places, whole.strides) if n > 1 else 0
            if step is None:
                return self.view(self.copied(x), shape, layout, axes)
            strides.append(step)
        return self._view(node.inputs[0], shape, StridedLayout(tuple(strides), offset),
                          _through(axes, node.axes), node.remat_stage)

    def _view(self, x: Value, shape: Shape, layout: StridedLayout,
              axes: Axes, remat_stage: int = 0) -> Value:
        if not remat_stage and tuple(shape) == x.shape and layout.offset == 0 and all(
                s == d for s, d, n in zip(layout.strides, dense(x.shape), shape) if n > 1):
            return x
        key = ("view", x.number, tuple(shape), layout, remat_stage)
        return self.add(View(x, layout, axes, remat_stage), [(tuple(shape), x.dtype)], key)[0]

    def optimization_barrier(self, x: Value) -> Value:
        """x as another value: nothing computed of it is shared with what is computed of x."""
        self._remat_stages += 1
        node = x.node
        if isinstance(node, View):
            return self._view(node.inputs[0], x.shape, node.layout, node.axes, self._remat_stages)
        return self._view(x, x.shape, StridedLayout(dense(x.shape)), tuple(range(len(x.shape))),
                          self._remat_stages)

    # ------------------------------------------------------------------ the rest

    def reduced(self, how: str, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
        """Elements combined over axes. A sum over axes along which x repeats is a product."""
        axes = tuple(sorted(axes))
        shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape)
                      if keepdims or i not in axes)
        if not [a for a in axes if x.shape[a] != 1]:
            return self.reshaped(x, shape)
        if how == "sum":
            lighter = self._without_repeats(x, axes)
            if lighter is not None:
                return self.reshaped(lighter, shape)
        inside = self._inside(how, x, axes)
        if inside is not None:
            return self.reshaped(inside, shape)
        key = ("reduce", how, x.number, axes, keepdims)
        return self.add(Reduce(how, x, axes, keepdims), [(shape, x.dtype)], key)[0]

    def _inside(self, how: str, x: Value, axes: Sequence[int]) -> Value | None:
        """The reduction over axes that are neither the last nor the first ones, in steps that are;
        None where they are."""
        # Loops finish sums with a row, for each column, or at their end: a sum over axes in the
        # middle is none of these.
        long = [i for i, n in enumerate(x.shape) if n != 1]
        wanted = [i for i, a in enumerate(long) if a in axes]
        last, first = len(long) - 1, 0
        if wanted[-1] - wanted[0] + 1 == len(wanted) and (wanted[0] == 0 or wanted[-1] == last):
            return None
        if wanted[-1] == last:
            while last - 1 in wanted:
                last -= 1
            part = [a for a in long[last:] if a in axes]
        elif wanted[0] == 0:
            while first + 1 in wanted:
                first += 1
            part = [a for a in long[:first + 1] if a in axes]
        else:
            kept = [i for i in range(len(x.shape)) if i not in axes]
            moved = self.transposed(x, (*axes, *kept))
            return self.reduced(how, moved, range(len(axes)), False)
        wide = _running(how, x.dtype)
        rest = self.reduced(how, self.cast(x, wide), part, True)
        made = self.reduced(how, rest, [a for a in axes if a not in part], True)
        return self.cast(made, x.dtype)

    def _without_repeats(self, x: Value, axes: Sequence[int]) -> Value | None:
        """Σ over axes along which x only repeats, with the axes kept; None where there are none."""
        repeated = [a for a in axes if x.shape[a] > 1 and _repeats(x, a)]
        if not repeated or x.dtype not in FLOATS:
            return None
        count = math.prod(x.shape[a] for a in repeated)
        short = self.sliced(x, [0] * len(x.shape), [1] * len(x.shape),
                            tuple(1 if a in repeated else n for a, n in enumerate(x.shape)))
        # In the dtype of sums, since a count need not be a number of a 16-bit float.
        wide = _running("sum", x.dtype)
        made = self.elem("multiply", lambda s, a: a[0] * count, [self.cast(short, wide)], wide)
        rest = [a for a in axes if a not in repeated]
        return self.cast(self.reduced("sum", made, rest, True) if rest else made, x.dtype)

    def product(self, a: Value, b: Value) -> Value:
        """a @ b. Where one has a single row or column it is a formula, which fuses with others."""
        batch = broadcast([a.shape[:-2], b.shape[:-2]])
        shape = (*batch, a.shape[-2], b.shape[-1])
        # An outer product has one multiplication for each element, and fuses with what reads it.
        if a.shape[-1] == 1:
            return self.elem("multiply", _times, [a, b], a.dtype)
        vectors = self.target.fuses_vectors
        if vectors and len(shape) == 2 and shape[1] == 1:
            return self.reshaped(self._by_vector(a, b), shape)
        if vectors and len(shape) == 2 and shape[0] == 1:
            return self.reshaped(
                self._by_vector(self.transposed(b, (1, 0)), self.transposed(a, (1, 0))), shape)
        key = ("product", a.number, b.number)
        return self.add(Product((a, b)), [(shape, a.dtype)], key)[0]

    def _by_vector(self, a: Value, b: Value) -> Value:
        """The product of a matrix and one column, with sums along what lies together."""
        node = a.node
        # Transposed: loops then run along memory.
        if isinstance(node, View) and node.layout.strides[1] != 1:
            terms = self.elem("multiply", _times, [self.transposed(a, (1, 0)), b], a.dtype)
            return self.reduced("sum", terms, (0,), False)
        row = self.reshaped(b, (1, b.shape[0]))
        return self.reduced("sum", self.elem("multiply", _times, [a, row], a.dtype), (1,), False)

    def library(self, node: LibraryCall, specs: Sequence[tuple[Shape, str]]) -> tuple[Value, ...]:
        key = ("library", node.name, node.key, tuple(v.number for v in node.inputs), tuple(specs))
        return self.add(node, specs, key)

    def compact(self, x: Value) -> Value:
        """`x` itself, or a dense copy of a view."""
        return self.copied(x) if isinstance(x.node, View) else x

    def call(self, name: str, text: Callable[..., str], inputs: Sequence[Value], result: Any = None,
             headers: Sequence[str] = (), *, key: object = None, scratch: int = 0,
             checks: str = "", premise: bool = False) -> Any:
        """The result of `text(*pointers)`, C++ of pointers to the inputs, made dense, and to the
        result, which has the shape and dtype `result`; None where that is None."""
        def emit(program: Any, node: LibraryCall) -> str:
            made = text(*[program.pointer(v) for v in (*node.inputs, *node.outputs)])
            # A check is part of a condition.
            return made if checks or made.endswith("}") else f"{made};"

        if key is None:
            # All that decides the text is in it, whatever the pointers are called.
            key = text(*[f"p{i}" for i in range(len(inputs) + (result is not None))]), checks
        node = LibraryCall(name, [self.compact(v) for v in inputs], key, headers, emit, scratch,
                           checks)
        node.premise = premise
        if result is None:
            self.library(node, ())
            return None
        shape, dtype = result
        kind = dtype if isinstance(dtype, str) else dtype.name
        return self.library(node, [(tuple(shape), kind)])[0]


def _through(axes: Axes, inner: Axes) -> Axes:
    """The axes of a view of a view, as those of what the inner one is of."""
    if axes is None or inner is None:
        return None
    return tuple(None if a is None else inner[a] for a in axes)


def _running(how: str, dtype: str) -> str:
    """The dtype in which what reductions leave between two steps is kept."""
    return compute_dtype(dtype) if how in ("sum", "prod") else dtype


def _times(scope: ScalarGraph, args: Sequence[Expr]) -> Expr:
    product: Any = args[0]
    return product * args[1]


_NUMBERS = (*FLOATS, *INTEGERS, "bool")


def _uniform(array: np.ndarray) -> bool:
    """Whether all elements are one number, bit for bit. Arrays of data are seen at once not to
    be."""
    if all(s == 0 for s, n in zip(array.strides, array.shape) if n > 1):
        return True
    bits = np.ascontiguousarray(array).reshape(-1).view(f"u{array.itemsize}")
    # Three numbers tell data from constants before all are compared.
    return bits[0] == bits[-1] == bits[bits.size // 2] and bool((bits == bits[0]).all())


def _called(value: Value) -> str:
    """The name of a value in formulas: the same in all of them, so that they share their parts."""
    return f"n{value.number}"


def number_of(value: Value) -> Any:
    """The number that a value has everywhere, or None."""
    node = value.node
    return node.body.value if isinstance(node, Elem) and node.body.is_constant else None


def _trimmed(body: Expr, names: list[str], inputs: list[Value]) -> tuple[Expr, Any, Any]:
    """Without the inputs that the formula does not read."""
    read = {n.value for n in topological([body]) if n.is_input}
    pairs = [(n, v) for n, v in zip(names, inputs) if n in read]
    return body, [n for n, _ in pairs], [v for _, v in pairs]


def _cut_off(x: Value) -> bool:
    """Whether a value is floats cast to integers, or a view of them."""
    node = x.node.inputs[0].node if isinstance(x.node, View) else x.node
    return (isinstance(node, Elem) and node.name == f"cast {x.dtype}"
            and x.dtype in ("int32", "int64") and node.inputs[0].dtype in FLOATS)


def _repeats(x: Value, axis: int) -> bool:
    node = x.node
    return isinstance(node, View) and node.layout.strides[axis] == 0


def elementwise(builder: Builder, op: Any, *values: Value) -> Value:
    """A scalar op or function on values; the first says the dtype."""
    op = getattr(op, "op", op)
    dtype = "bool" if getattr(op, "makes_bool", False) else values[-1].dtype
    return builder.elem(op.name, op.expression, list(values), dtype)


def formula(builder: Builder, name: str, fn: Callable[..., object], *values: Value,
            dtype: str | None = None) -> Value:
    """A formula in Python's operators and scalar ops on expressions."""
    return builder.elem(name, lambda scope, args: fn(*args), list(values),
                        dtype or values[0].dtype)


def iota(builder: Builder, count: int, dtype: str) -> Value:
    return builder.constant(np.arange(count, dtype=dtype), dtype)


def invoked(function: str, *arguments: object) -> Callable[..., str]:
    """For `Builder.call`: the function of all pointers, then of the arguments."""
    return lambda *pointers: f"{function}({', '.join(map(str, (*pointers, *arguments)))})"


def ready(*values: Value) -> bool:
    """Whether the runtime's templates can read these values, and there is something in them."""
    return all(v.dtype in C_TYPES and v.size for v in values)


#: The attributes of an op by name.
Attrs = dict[str, Any]
#: (builder, values, attributes by name, specs of the results) -> values, or None where the op has
#: to run in Python for these inputs.
Rule = Callable[[Builder, list[Value], Attrs, Sequence[Spec]], Any]


def lowers(*ops: Any) -> Callable[[Rule], Rule]:
    """Decorator: how these ops are made of the compiler's nodes."""
    def declare(rule: Rule) -> Rule:
        for op in ops:
            op.lower = rule if isinstance(op, Op) else staticmethod(rule)
        return rule

    return declare

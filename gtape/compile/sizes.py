"""Open lengths: a trace made once for stand-in lengths, and made again for others without Python.

The stand-ins are primes that no other trace uses and that are far from the numbers of programs. A
number in a finished trace that is a multiple of one, or close to it, has lost its polynomial, and
the trace cannot be trusted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gtape.compile.traced import Traced, _Slices
from gtape.core import nest
from gtape.core.device import ArrayType, Device
from gtape.core.dtypes import DType
from gtape.core.graph import Node
from gtape.core.lengths import Length, Sizes, SizeNeeded, number
from gtape.core.op import declared
from gtape.core.shape import TensorShape
from gtape.core.spec import Spec
from gtape.core.state import paused
from gtape.core.symbols import SymbolicTensor
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.tracer import CellUse, Tracer
from gtape.kinds.composite import Composite
from gtape.kinds.elementwise import Elementwise, Formula
from gtape.kinds.expr import topological
from gtape.kinds.primitive import Primitive

#: How far from a multiple of a stand-in a number may lie and still come from it.
_NEAR = 8
#: Factors by which a number may have been multiplied or divided.
_FACTORS = (1, 2, 3, 4, 6, 8, 12, 16)
#: Larger constants are judged by their shapes alone.
_LARGE = 4096


def _primes() -> Iterator[int]:
    """Primes of some size, none near a multiple of 50 or of 64."""
    for n in itertools.count(2003, 2):
        far = all(_NEAR < n % k < k - _NEAR for k in (50, 64))
        if far and all(n % d for d in range(3, math.isqrt(n) + 1, 2)):
            yield n


_stand_ins = _primes()


class Template:
    """A trace for open lengths.

    Args:
        shapes: the shapes of the tensors in the call.
        open_axes: (tensor, axis) of every open length.
        run: gives the trace for shapes.

    Raises:
        SizeNeeded: the function, or an operation in it, needs the lengths.
    """

    def __init__(self, shapes: Sequence[Any], open_axes: Sequence[tuple[int, int]],
                 run: Callable[[Sequence[Any]], Traced]) -> None:
        self.open_axes = tuple(open_axes)
        self.alike = alike(shapes, open_axes)
        self.sizes = Sizes()
        stand_ins = {group: next(_stand_ins) for group in sorted(set(self.alike))}
        wide = [list(dims) for dims in shapes]
        for i, ((tensor, axis), group) in enumerate(zip(open_axes, self.alike)):
            wide[tensor][axis] = self.sizes.length(i, stand_ins[group])
        try:
            self.traced = run([tuple(dims) for dims in wide])
        finally:
            self.sizes.closed = True
        self._stand_ins = tuple(stand_ins.values())
        if self.sizes.needed or not self._sound():
            raise SizeNeeded

    # ------------------------------------------------------------------ trust

    def _sound(self) -> bool:
        """Whether every length in the trace has kept its polynomial."""
        traced = self.traced
        if traced.captured or any(_open(use.present.spec.shape) for use in traced.cells) or any(
                getattr(use.cell, "_declared", None) is not None for use in traced.cells):
            return False
        known = {id(op) for op in declared()}
        constants = [v for v in traced.graph.outputs if type(v) is EagerTensor]
        for node in traced.graph.nodes:
            if not self._node_is_sound(node, known):
                return False
            constants += [v for v in node.inputs if type(v) is EagerTensor]
        shapes = [at.shape for at in nest.flatten(traced.structure) if isinstance(at, _Slices)]
        constants += [shape for shape in shapes if shape is not None]
        return not any(self._tells(v) for v in constants)

    def _node_is_sound(self, node: Node, known: set[int]) -> bool:
        op = node.op
        if op is number:
            return True
        if not isinstance(op, (Primitive, Elementwise, Composite)) or node.lasting:
            return False
        if isinstance(op, Formula):
            numbers = [e.value for e in topological([op.body()]) if e.is_constant]
            if any(self._suspect(n) for n in numbers):
                return False
        elif id(op) not in known:
            return False
        return self._attribute_is_sound(node.attrs) and not self._suspect(len(node.outputs))

    def _attribute_is_sound(self, value: Any) -> bool:
        if isinstance(value, (tuple, frozenset)):
            return all(self._attribute_is_sound(v) for v in value)
        if type(value) is Length or value is None or isinstance(
                value, (str, bytes, bool, DType, ArrayType, Device, np.dtype, type)):
            return True
        if isinstance(value, (int, float, complex, np.number)):
            return not self._suspect(value)
        return value is ...

    def _tells(self, constant: EagerTensor) -> bool:
        """Whether a constant may have been computed from a length."""
        if any(self._suspect(n) for n in constant._a.shape):
            return True
        if constant._a.size > _LARGE or constant.dtype.np_dtype.kind not in "iufc":
            return False
        return any(self._suspect(n) for n in np.asarray(constant._peek()).reshape(-1).tolist())

    def _suspect(self, number: Any) -> bool:
        """Whether a number, its inverse, its square or the inverse of that may be of a length."""
        if isinstance(number, complex):
            return self._suspect(number.real) or self._suspect(number.imag)
        size = abs(float(number))
        if not size or not math.isfinite(size) or number is True:
            return False
        forms = (size,) if isinstance(number, (int, np.integer)) else (
            size, 1 / size, size * size, 1 / (size * size))
        return any(self._near(form * factor) for form in forms for factor in _FACTORS)

    def _near(self, number: float) -> bool:
        nearest = round(number) if number < 2**53 else 0
        if abs(number - nearest) > 1e-6 * number:
            return False
        return any(nearest >= p - _NEAR and min(nearest % p, -nearest % p) <= _NEAR
                   for p in self._stand_ins)

    # ------------------------------------------------------------------ other lengths

    def at(self, shapes: Sequence[Any]) -> Traced | None:
        """The trace for other shapes; None where the Python code might have done otherwise."""
        lengths = [shapes[tensor][axis] for tensor, axis in self.open_axes]
        if not self.sizes.hold(lengths):
            return None
        with paused():
            try:
                return _resized(self.traced, lengths)
            except (ValueError, TypeError, LookupError, NotImplementedError, ArithmeticError):
                # The function itself will say it better.
                return None


def _open(shape: Sequence[int]) -> bool:
    return any(type(n) is Length for n in shape)


def _resized(traced: Traced, lengths: Sequence[int]) -> Traced | None:
    tracer = Tracer()
    values: dict[int, Tensor] = {}

    def fresh(old: Any) -> SymbolicTensor:
        made = tracer.symbol(Spec(_at(old.spec.shape, lengths), old.dtype), old._t)
        values[id(old)] = made
        return made

    arguments = [fresh(symbol) for symbol in traced.arguments]
    starts = [fresh(use.start) for use in traced.cells]
    if not tracer.run(lambda: all(_again(n, values, lengths) for n in traced.graph.nodes)):
        return None
    tracer.finished = True
    results = [values.get(id(v), v) for v in traced.graph.outputs[: traced.results]]
    for use, start in zip(traced.cells, starts):
        again = tracer.cells[use.cell._k] = CellUse(use.cell, start)
        again.present = values.get(id(use.present), use.present)
    return Traced(arguments, tracer, results, traced.structure)


def _again(node: Node, values: dict[int, Tensor], lengths: Sequence[int]) -> bool:
    """Apply a node for other lengths; whether the results have the shapes that were foretold."""
    made = node.op.reapply([values.get(id(v), v) for v in node.inputs], _at(node.attrs, lengths))
    values.update({id(v): o for v, o in zip(node.outputs, made)})
    return len(made) == len(node.outputs) and all(
        o.spec.shape == _at(v.spec.shape, lengths) for v, o in zip(node.outputs, made))


def _at(value: Any, lengths: Sequence[int]) -> Any:
    """An attribute for these open lengths."""
    if type(value) is Length:
        return value.at(lengths)
    if type(value) is tuple:
        return tuple([_at(v, lengths) for v in value])
    if isinstance(value, tuple):
        return type(value)(*[_at(v, lengths) for v in value])
    return value


def alike(shapes: Sequence[Any], open_axes: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """For every open length the first that is equal to it: equal ones may have to be."""
    lengths = [shapes[tensor][axis] for tensor, axis in open_axes]
    return tuple([lengths.index(n) for n in lengths])


def open_axes(shapes: Sequence[Any], specs: Sequence[Any]) -> list[tuple[int, int]]:
    """(tensor, axis) of the lengths that the specs leave open."""
    def is_open(shape: TensorShape, axis: int) -> bool:
        return shape.dims is None or shape.dims[axis] is None

    return [(i, axis) for i, (dims, spec) in enumerate(zip(shapes, specs))
            for axis in range(len(dims)) if is_open(spec.shape, axis)]

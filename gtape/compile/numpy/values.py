"""The steps of a traced function as NumPy's functions on arrays.

An `ArrayValue` is an array whose shape and dtype are known. Steps that compute element by element
are `UfuncStep`s: one ufunc each, so that they can be grouped and run block by block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

#: Python's operators where ufuncs have one: on NumPy's scalars they are ten times as fast.
_INFIX = {"add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}",
          "divide": "{0} / {1}", "negative": "-{0}", "power": "{0} ** {1}",
          "greater": "{0} > {1}", "greater_equal": "{0} >= {1}", "less": "{0} < {1}",
          "less_equal": "{0} <= {1}", "equal": "{0} == {1}", "not_equal": "{0} != {1}"}


class ArrayValue:
    """An array of a program. `place` says where one comes from that no step makes."""

    #: Arrays of so many elements are computed block by block.
    LARGE = 1 << 16

    __slots__ = ("dtype", "place", "shape", "step")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, step: NumpyStep | None = None,
                 place: tuple[str, Any] | None = None) -> None:
        self.shape, self.dtype, self.step, self.place = shape, dtype, step, place

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def large(self) -> bool:
        return bool(self.shape) and self.size >= ArrayValue.LARGE

    @property
    def number(self) -> Any:
        """The array of a constant without axes; None for all others."""
        constant = self.place is not None and self.place[0] == "constant" and not self.shape
        return self.place[1] if constant else None  # type: ignore[index]


class NumpyStep:
    """What makes values of values; kept where nobody reads them if it `has_side_effect`."""

    has_side_effect = False

    def __init__(self, inputs: Sequence[ArrayValue],
                 specs: Sequence[tuple[tuple[int, ...], np.dtype]]) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(ArrayValue(shape, dtype, self) for shape, dtype in specs)


class ArrayFunction:
    """A function of arrays, element by element. `ufunc`: it takes an array to write into."""

    __slots__ = ("call", "infix", "name", "ufunc")

    def __init__(self, name: str, call: Callable[..., Any], ufunc: bool = False) -> None:
        self.name, self.call, self.ufunc = name, call, ufunc
        self.infix = _INFIX.get(name) if ufunc else None


class UfuncStep(NumpyStep):
    """A function of broadcast arrays, element by element."""

    def __init__(self, function: ArrayFunction, inputs: Sequence[ArrayValue],
                 shape: tuple[int, ...], dtype: np.dtype) -> None:
        super().__init__(inputs, [(shape, dtype)])
        self.function = function


class Cast(UfuncStep):
    """Another dtype."""


class Spread(NumpyStep):
    """An array broadcast to a shape; `UfuncStep`s read it as it was before."""


class Sum(NumpyStep):
    """The sum over axes, which are gone afterwards."""

    def __init__(self, value: ArrayValue, axes: tuple[int, ...]) -> None:
        shape = tuple(n for i, n in enumerate(value.shape) if i not in axes)
        super().__init__([value], [(shape, value.dtype)])
        self.axes = axes

    @property
    def total(self) -> bool:
        return len(self.axes) == len(self.inputs[0].shape)


class ArrayView(NumpyStep):
    """The same elements in the same memory, as `text` says it of the array {0}."""

    def __init__(self, value: ArrayValue, shape: tuple[int, ...], text: str) -> None:
        super().__init__([value], [(shape, value.dtype)])
        self.text = text


class ArrayProduct(NumpyStep):
    """A product of two matrices or stacks of them, each as it is or transposed."""

    def __init__(self, a: ArrayValue, b: ArrayValue, transposed: tuple[bool, bool],
                 spec: tuple[tuple[int, ...], np.dtype]) -> None:
        super().__init__([a, b], [spec])
        self.transposed = transposed


class ArrayCall(NumpyStep):
    """A primitive's array function with its attributes."""

    def __init__(self, op: Any, attrs: dict[str, Any], inputs: Sequence[ArrayValue],
                 specs: Sequence[tuple[tuple[int, ...], np.dtype]], has_side_effect: bool) -> None:
        super().__init__(inputs, specs)
        self.op, self.attrs, self.has_side_effect = op, attrs, has_side_effect


class TensorStep(NumpyStep):
    """An op applied to tensors."""

    def __init__(self, op: Any, attrs: tuple[Any, ...], inputs: Sequence[ArrayValue],
                 types: Sequence[Any], specs: Sequence[tuple[tuple[int, ...], np.dtype]],
                 has_side_effect: bool) -> None:
        super().__init__(inputs, specs)
        self.op, self.attrs, self.types = op, attrs, tuple(types)
        self.has_side_effect = has_side_effect

"""Arrays of a trace: update rules, written for NumPy arrays, applied to them make graph nodes.

A rule changes its state in place and computes with `xp` and NumPy scalars. A `TracedArray` looks
like an array to it; what is written in place gives it another tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.dtypes import of_numpy
from gtape.core.errors import NotTraceableError
from gtape.core.tensor import Tensor
from gtape.ops import scalars as s
from gtape.ops.casting import cast
from gtape.ops.indexing import getitem
from gtape.ops.layout import reshape_, transpose
from gtape.ops.operators import absolute
from gtape.ops.products import matmul
from gtape.ops.reductions import reduce_mean, reduce_sum


class NeedsNumber(TypeError):
    """A rule asked for the number behind a traced array, as `float(x)` does."""


class TracedArray:
    """A tensor in the place of an array. The dtypes of results are those of NumPy."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @property
    def dtype(self) -> Any:
        return self.tensor.dtype.np_dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.spec.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> TracedArray:
        return TracedArray(transpose(self.tensor))

    def astype(self, dtype: Any) -> TracedArray:
        if self.dtype == np.dtype(dtype):
            return TracedArray(self.tensor)
        return TracedArray(cast(self.tensor, of_numpy(np.dtype(dtype))))

    def reshape(self, *shape: Any) -> TracedArray:
        return TracedArray(reshape_(self.tensor, shape=np.empty(self.shape, bool).reshape(
            *shape).shape))

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> TracedArray:
        """The sum in the dtype of the array, which is what `dtype` says."""
        return _sum(self, axis, keepdims)

    def __getitem__(self, key: Any) -> TracedArray:
        return TracedArray(getitem(self.tensor, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write at integers along some axes, and at all places along the others."""
        entries = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in entries:
            at = entries.index(Ellipsis)
            entries[at: at + 1] = [slice(None)] * (self.ndim - len(entries) + 1)
        entries += [slice(None)] * (self.ndim - len(entries))
        mask = np.ones((), bool)
        for axis, entry in enumerate(entries):
            if isinstance(entry, int):
                shape = [1] * self.ndim
                shape[axis] = -1
                mask = mask & (np.arange(self.shape[axis]) == entry).reshape(shape)
        spread = value[tuple([None if isinstance(e, int) else slice(None) for e in entries])]
        chosen = convert(mask, None, self.tensor._t.device)
        self._become(TracedArray(s.where(chosen, *_alike(spread, self))))

    def _become(self, other: Any) -> TracedArray:
        self.tensor = other.astype(self.dtype).tensor
        return self

    def _number(self, *args: Any, **kwargs: Any) -> Any:
        raise NeedsNumber("the value of a traced array is not known yet")

    __float__ = __int__ = __index__ = __bool__ = __array__ = _number
    __hash__ = None  # type: ignore[assignment]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        function = _UFUNCS.get(ufunc.__name__)
        if function is None or method != "__call__" or options:
            raise NotTraceableError(f"an update rule uses np.{ufunc.__name__}, which cannot be "
                                    f"traced; use {', '.join(sorted(_UFUNCS))}")
        return function(*inputs)


def _dtype_of(values: tuple[Any, ...]) -> np.dtype:
    """NumPy's result dtype: Python numbers adapt."""
    strong = {v.dtype for v in values if hasattr(v, "dtype")}
    found = np.result_type(*strong) if len(strong) > 1 else strong.pop()
    if found.kind in "iub" and any(isinstance(v, float) for v in values):
        return np.dtype(np.float64)
    return found


def _alike(*values: Any) -> list[Tensor]:
    """Tensors of one dtype, at least one of which is traced."""
    dtype = _dtype_of(values)
    device = next(v.tensor._t.device for v in values if isinstance(v, TracedArray))
    return [v.astype(dtype).tensor if isinstance(v, TracedArray)
            else convert(np.asarray(v, dtype), None, device) for v in values]


def _on_two(function: Callable[..., Any]) -> Callable[..., TracedArray]:
    return lambda a, b: TracedArray(function(*_alike(a, b)))


def _on_one(function: Callable[..., Any]) -> Callable[..., TracedArray]:
    return lambda a: TracedArray(function(a.tensor))


def _on_floats(function: Callable[..., Any]) -> Callable[..., TracedArray]:
    return lambda a, b: TracedArray(function(*_floating(_alike(a, b))))


def _floating(tensors: list[Tensor]) -> list[Tensor]:
    return [t if t.dtype.is_floating else cast(t, of_numpy(np.dtype(np.float64)))
            for t in tensors]


def _power(a: Any, b: Any) -> TracedArray:
    """a to the b. Of numbers in float64: 1 - betaᵗ would show an error in the last place."""
    x, y = _alike(a, b)
    if x.spec.shape or y.spec.shape or not x.dtype.is_floating:
        return TracedArray(s.power(x, y))
    wide = of_numpy(np.dtype(np.float64))
    return TracedArray(cast(s.power(cast(x, wide), cast(y, wide)), x.dtype))


_BINARY: dict[str, Callable[..., TracedArray]] = {
    "add": _on_two(s.add), "sub": _on_two(s.subtract), "mul": _on_two(s.multiply),
    "truediv": _on_floats(s.divide), "floordiv": _on_two(s.floordiv), "mod": _on_two(s.floormod),
    "pow": _power, "matmul": _on_two(matmul)}
_COMPARED = {"lt": s.less, "le": s.less_equal, "gt": s.greater, "ge": s.greater_equal,
             "eq": s.equal, "ne": s.not_equal, "and": s.logical_and, "or": s.logical_or}
_UNARY = {"neg": s.negative, "abs": absolute, "invert": s.logical_not}


def _install() -> None:
    for name, function in _BINARY.items():
        setattr(TracedArray, f"__{name}__", function)
        setattr(TracedArray, f"__r{name}__", lambda self, other, f=function: f(other, self))
        setattr(TracedArray, f"__i{name}__",
                lambda self, other, f=function: self._become(f(self, other)))
    for name, compared in _COMPARED.items():
        setattr(TracedArray, f"__{name}__", _on_two(compared))
    for name, one in _UNARY.items():
        setattr(TracedArray, f"__{name}__", _on_one(one))


_install()


def _written(function: Callable[..., TracedArray]) -> Callable[..., TracedArray]:
    """`function` with `out=`, as NumPy's functions have it."""
    def with_out(*args: Any, out: TracedArray | None = None) -> TracedArray:
        made = function(*args)
        return made if out is None else out._become(made)

    return with_out


def _clip(a: Any, low: Any, high: Any) -> TracedArray:
    return TracedArray(s.clip(*_alike(a, low, high)))


def _where(condition: Any, a: Any, b: Any) -> TracedArray:
    if not any(isinstance(v, TracedArray) for v in (a, b)):
        a = TracedArray(convert(np.asarray(a), None, condition.tensor._t.device))
    return TracedArray(s.where(condition.tensor, *_alike(a, b)))


def _sum(a: TracedArray, axis: Any = None, keepdims: bool = False) -> TracedArray:
    return TracedArray(reduce_sum(a.tensor, axis, keepdims))


def _mean(a: TracedArray, axis: Any = None, keepdims: bool = False) -> TracedArray:
    return TracedArray(reduce_mean(a.tensor, axis, keepdims))


_FUNCTIONS: dict[str, Callable[..., TracedArray]] = {
    "add": _BINARY["add"], "subtract": _BINARY["sub"], "multiply": _BINARY["mul"],
    "divide": _BINARY["truediv"], "power": _power, "maximum": _on_two(s.maximum),
    "minimum": _on_two(s.minimum), "clip": _clip, "abs": _on_one(absolute),
    "sqrt": _on_one(s.sqrt), "square": _on_one(s.square), "sign": _on_one(s.sign),
    "negative": _on_one(s.negative), "exp": _on_one(s.exp), "log": _on_one(s.log),
    "cos": _on_one(s.cos), "floor": _on_one(s.floor), "ceil": _on_one(s.ceil)}

#: The functions of NumPy that update rules use, on traced arrays.
xp = SimpleNamespace(
    float32=np.float32, float64=np.float64, where=_where, sum=_sum, mean=_mean,
    equal=_on_two(s.equal),
    isfinite=_on_one(s.is_finite), **{name: _written(f) for name, f in _FUNCTIONS.items()})

_UFUNCS: dict[str, Callable[..., Any]] = _FUNCTIONS | {
    "absolute": _FUNCTIONS["abs"], "true_divide": _FUNCTIONS["divide"],
    "isfinite": xp.isfinite, "less": _on_two(s.less), "less_equal": _on_two(s.less_equal),
    "greater": _on_two(s.greater), "greater_equal": _on_two(s.greater_equal)}


class TracedReal:
    """A NumPy scalar type that takes traced arrays too: `real(x)`."""

    __slots__ = ("type",)

    def __init__(self, real: Any) -> None:
        self.type = real

    def __call__(self, value: Any) -> Any:
        return value.astype(self.type) if isinstance(value, TracedArray) else self.type(value)

"""What public functions accept, brought to what ops take: shapes, axes, dtypes, tensors."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core.convert import convert, convert_like
from gtape.core.dtypes import DType, as_dtype, string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.shape import TensorShape
from gtape.core.state_ref import Readable
from gtape.core.symbolic_dim import SymbolicDim
from gtape.core.tensor import Tensor


def host_value(value: Any, what: str) -> np.ndarray:
    """The numbers of an argument that must be known before computing: a shape, an axis, a count.

    Raises:
        InvalidArgumentError: they are known only at a call, or there are none.
    """
    if isinstance(value, (Tensor, Readable)):
        tensor = value._read_() if isinstance(value, Readable) else value
        if not hasattr(tensor, "_peek"):
            raise InvalidArgumentError(f"{what} must be known while tracing; got {tensor.spec}")
        return np.asarray(tensor._peek())
    if isinstance(value, (str, bytes)):
        return np.asarray(value, object)
    try:
        found = np.asarray(value)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise InvalidArgumentError(f"{what} must be a number or a list of numbers; got "
                                   f"{shown(value)} ({error})") from None
    if found.dtype.kind == "O" and not any(type(n) is SymbolicDim for n in found.flat):
        raise InvalidArgumentError(f"{what} must be a number or a list of numbers; got "
                                   f"{shown(value)}")
    return found


def as_int(value: Any, what: str) -> int:
    """One integer.

    Raises:
        TypeError: `value` is no integer.
    """
    if isinstance(value, (Tensor, Readable)):
        value = host_value(value, what)[()]
    try:
        return value if type(value) is SymbolicDim else operator.index(value)  # type: ignore[return-value]
    except TypeError:
        raise TypeError(f"{what} must be an integer; got {shown(value)}") from None


def as_float(value: Any, what: str) -> float:
    """One real number.

    Raises:
        InvalidArgumentError: `value` is none.
    """
    found = host_value(value, what)
    if found.ndim or (found.dtype.kind not in "fiub" and found.dtype.name != "bfloat16"):
        raise InvalidArgumentError(f"{what} must be one real scalar; got {shown(value)}")
    return float(found)


def as_items(value: Any, what: str) -> list[Any]:
    """The items of a list or another iterable.

    Raises:
        TypeError: `value` is none.
    """
    try:
        return list(value)
    except TypeError:
        raise TypeError(f"{what} must be a list; got {shown(value)}") from None


def as_strings(value: Any, what: str) -> Tensor:
    """A tensor of strings, also from an empty list.

    Raises:
        InvalidArgumentError: `value` is none.
    """
    empty = isinstance(value, (list, tuple)) and not value
    found = convert(value, string if empty else None)
    if found.dtype is not string:
        raise InvalidArgumentError(f"{what} takes strings; got {found.spec}. Write "
                                   f"tf.strings.as_string(x) for the digits of numbers")
    return found


def as_bytes(value: Any, what: str) -> bytes:
    """The bytes of a string: a str is encoded as UTF-8.

    Raises:
        TypeError: `value` is no string, and no scalar of strings.
    """
    found = value
    if isinstance(value, Tensor):
        found = host_value(value, what)
        found = found.item() if found.ndim == 0 else value
    if isinstance(found, str):
        return found.encode()
    if not isinstance(found, bytes):
        raise TypeError(f"{what} must be a string; got {shown(value)}")
    return found


def as_function(value: Any, what: str) -> Callable[..., Any]:
    """A function, or another object that can be called.

    Raises:
        TypeError: `value` is none.
    """
    if not callable(value):
        raise TypeError(f"{what} must be a function; got {shown(value)}")
    return value  # type: ignore[no-any-return]


def as_ints(value: Any, what: str) -> tuple[int, ...]:
    """A tuple of integers from an int, a sequence, a TensorShape or an integer tensor.

    Raises:
        TypeError: it holds something else. Floating scalars in a list, if tensors, are cut off.
    """
    if isinstance(value, TensorShape):
        return tuple(value.as_list())  # type: ignore[arg-type]
    if isinstance(value, (int, np.integer)):
        return (int(value),)
    if isinstance(value, (list, tuple)):
        return tuple([as_int(v, what) if not isinstance(v, Tensor) else _cut(v, what)
                      for v in value])
    array = host_value(value, what)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{what} must hold integers; got {shown(value)}")
    return tuple(int(n) for n in array.reshape(-1))


def _cut(value: Tensor, what: str) -> int:
    """The integer that a scalar of a list holds; in a list floats are cast, as TensorFlow does."""
    if value.dtype.is_floating:
        found = float(host_value(value, what))
        return as_int(int(found) if math.isfinite(found) else value, what)
    return as_int(value, what)


def as_shape(value: Any, what: str = "shape") -> tuple[int, ...]:
    """A shape without negative lengths.

    Raises:
        InvalidArgumentError: a length is negative.
    """
    shape = as_ints(value, what)
    if any(n < 0 for n in shape):
        raise InvalidArgumentError(f"{what} must not hold negative lengths; got {shape}")
    return shape


def axes_of(axis: Any) -> int | tuple[int, ...] | None:
    """An `axis` argument as None, an int or a tuple of ints."""
    if axis is None or isinstance(axis, int):
        return axis
    if isinstance(axis, (list, tuple)):
        return as_ints(axis, "axis")
    return as_ints(axis, "axis") if host_value(axis, "axis").ndim else as_int(axis, "axis")


def as_tensors(values: Any, name: str) -> list[Tensor]:
    """A list of tensors of one dtype: the first tensor among them sets it, else the first value."""
    if isinstance(values, (Tensor, Readable)):
        raise TypeError(f"{name} takes a list of tensors; got one: {shown(values)}. "
                        f"Write [x, …], or tf.unstack(x)")
    if not hasattr(values, "__iter__"):
        raise TypeError(f"{name} takes a list of tensors; got {shown(values)}")
    like = next((v for v in values if isinstance(v, (Tensor, Readable))), None)
    if like is None:
        values = list(values)
        made = [convert(values[0])] if values else []
        return made + [convert_like(v, made[0]._t, name) for v in values[1:]]
    return [convert_like(v, like._t, name) for v in values]


def one_dtype(name: str, tensors: Sequence[Any]) -> DType:
    """The common dtype of tensors or specs.

    Raises:
        InvalidArgumentError: they differ.
    """
    first = tensors[0].dtype
    for other in tensors[1:]:
        if other.dtype is not first:
            raise InvalidArgumentError(
                f"{name}: the tensors must have one dtype; got "
                f"{', '.join(t.dtype.name for t in tensors)}. Use tf.cast")
    return first


def optional_dtype(dtype: Any) -> DType | None:
    return None if dtype is None else as_dtype(dtype)


def index_tensor(value: Any, name: str, like: Any) -> Tensor:
    """An integer tensor of indices on the device of `like`.

    Raises:
        InvalidArgumentError: it does not hold integers.
    """
    found = convert(value, None, like._t.device)
    if not found.dtype.is_integer:
        if not found.spec.shape or 0 not in found.spec.shape:
            raise InvalidArgumentError(
                f"{name}: indices must be integers; got {found.spec}. "
                f"Write tf.cast(indices, tf.int32)")
        from gtape.core.dtypes import int32

        found = convert(np.zeros(found.spec.shape, np.int32), int32, like._t.device)
    return found

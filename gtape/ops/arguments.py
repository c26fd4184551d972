"""What public functions accept, brought to what ops take: shapes, axes, dtypes, tensors."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert, convert_like
from gtape.core.dtypes import DType, as_dtype, int32, string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec, TensorShape
from gtape.core.symbolic_dim import SymbolicDim
from gtape.core.tensor import Readable, Tensor


def host_value(value: TensorLike, what: str) -> np.ndarray:
    """The numbers of an argument that must be known before computing: a shape, an axis, a count.
    Raises InvalidArgumentError: they are known only at a call, or there are none."""
    if isinstance(value, (Tensor, Readable)):
        tensor = value._read_() if isinstance(value, Readable) else value
        # Symbolic tensors have no `_peek`: a shape or axis cannot wait for the call.
        if not hasattr(tensor, "_peek"):
            raise InvalidArgumentError(f"{what} must be known while tracing; got {tensor.spec}")
        return np.asarray(tensor._peek())
    # NumPy would drop trailing zero bytes of a string of fixed width.
    if isinstance(value, (str, bytes)):
        return np.asarray(value, object)  # an object keeps them
    try:
        found = np.asarray(value)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise InvalidArgumentError(f"{what} must be a number or a list of numbers; got "
                                   f"{shown(value)} ({error})") from None
    # Symbolic lengths make arrays of objects too, and are numbers that a trace can use.
    if found.dtype.kind == "O" and not any(type(n) is SymbolicDim for n in found.flat):
        raise InvalidArgumentError(f"{what} must be a number or a list of numbers; got "
                                   f"{shown(value)}")
    return found


def host(tensor: Tensor) -> np.ndarray:
    """The numbers of a tensor in host memory. Raises NotTraceableError: they are not known while
    tracing."""
    return np.asarray(tensor._peek())


def as_int(value: Any, what: str) -> int:
    """One integer.

    Raises:
        TypeError: `value` is no integer.
    """
    if isinstance(value, (Tensor, Readable)):
        value = host_value(value, what)[()]
    try:
        # `operator.index` takes NumPy's integers and refuses 2.0, as TensorFlow's attributes do.
        return value if type(value) is SymbolicDim else operator.index(value)  # type: ignore[return-value]
    except TypeError:
        raise TypeError(f"{what} must be an integer; got {shown(value)}") from None


def as_float(value: TensorLike, what: str) -> float:
    """One real number. Raises InvalidArgumentError: `value` is none."""
    array = host_value(value, what)
    if array.ndim or (array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16"):
        raise InvalidArgumentError(f"{what} must be one real scalar; got {shown(value)}")
    return float(array)


def as_items(value: Any, what: str) -> list[Any]:
    """The items of a list or another iterable. Raises TypeError: `value` is none."""
    try:
        return list(value)
    except TypeError:
        raise TypeError(f"{what} must be a list; got {shown(value)}") from None


def as_strings(value: TensorLike, what: str) -> Tensor:
    """A tensor of strings, also from an empty list. Raises InvalidArgumentError: `value` is
    none."""
    empty = isinstance(value, (list, tuple)) and not value
    x = convert(value, string if empty else None)
    if x.dtype is not string:
        raise InvalidArgumentError(f"{what} takes strings; got {x.spec}. Write "
                                   f"tf.strings.as_string(x) for the digits of numbers")
    return x


def as_bytes(value: TensorLike, what: str) -> bytes:
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


def as_function(value: Callable[..., object], what: str) -> Callable[..., Any]:
    """A function, or another object that can be called. Raises TypeError: `value` is none."""
    if not callable(value):
        raise TypeError(f"{what} must be a function; got {shown(value)}")
    return value


def as_ints(value: Any, what: str) -> tuple[int, ...]:
    """A tuple of integers from an int, a sequence, a TensorShape or an integer tensor. Raises
    TypeError: it holds something else. Floating scalars in a list, if tensors, are cut off."""
    if isinstance(value, TensorShape):
        return tuple(value.as_list())  # type: ignore[arg-type]
    if isinstance(value, (int, np.integer)):
        return (int(value),)  # one number is a shape of one axis
    if isinstance(value, (list, tuple)):
        return tuple([as_int(v, what) if not isinstance(v, Tensor) else _cut(v, what)
                      for v in value])
    array = host_value(value, what)
    # An empty list is float64 to NumPy, and no shape or axis all the same.
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{what} must hold integers; got {shown(value)}")
    return tuple(int(n) for n in array.reshape(-1))


def _cut(value: Tensor, what: str) -> int:
    """The integer that a scalar of a list holds; in a list floats are cast, as TensorFlow does."""
    if value.dtype.is_floating:
        found = float(host_value(value, what))
        return as_int(int(found) if math.isfinite(found) else value, what)
    return as_int(value, what)


def as_shape(value: TensorLike, what: str = "shape") -> tuple[int, ...]:
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


def as_tensors(values: object, name: str) -> list[Tensor]:
    """A list of tensors of one dtype: the first tensor among them sets it, else the first value."""
    if isinstance(values, (Tensor, Readable)):
        raise TypeError(f"{name} takes a list of tensors; got one: {shown(values)}. "
                        f"Write [x, …], or tf.unstack(x)")
    if not hasattr(values, "__iter__"):
        raise TypeError(f"{name} takes a list of tensors; got {shown(values)}")
    # Python numbers beside tensors take their dtype and device, wherever in the list they stand.
    like = next((v for v in values if isinstance(v, (Tensor, Readable))), None)
    if like is None:
        values = list(values)
        result = [convert(values[0])] if values else []
        return result + [convert_like(v, result[0]._t, name) for v in values[1:]]
    return [convert_like(v, like._t, name) for v in values]


def one_dtype(name: str, tensors: tuple[Spec, ...]) -> DType:
    """The common dtype of tensors or specs. Raises InvalidArgumentError: they differ."""
    first = tensors[0].dtype
    for other in tensors[1:]:
        if other.dtype is not first:
            raise InvalidArgumentError(
                f"{name}: the tensors must have one dtype; got "
                f"{', '.join(t.dtype.name for t in tensors)}. Use tf.cast")
    return first


#: What ops take, as their errors say it.
_TAKEN: dict[str, Callable[[DType], bool]] = {
    "real floating tensors": lambda dtype: dtype.is_floating,
    "floating tensors": lambda dtype: dtype.is_differentiable,
    "floating or complex tensors": lambda dtype: dtype.is_differentiable,
    "real numbers": lambda dtype: dtype.is_floating or dtype.is_integer,
    "numbers": lambda dtype: dtype.is_differentiable or dtype.is_integer}


def taken(name: str, what: str, x: Spec, hint: str = "") -> Spec:
    """`x`, of which `name` takes `what`. Raises InvalidArgumentError: it is something else."""
    if not _TAKEN[what](x.dtype):
        raise InvalidArgumentError(f"{name} takes {what}; got {x}{hint}")
    return x


def named(function: Callable[..., object], name: str, doc: str,
          module: str | None = None) -> Callable[..., Any]:
    """`function`, a member of a family that one function makes, with its own name and text."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = module or function.__module__
    function.__doc__ = doc
    return function


def optional_dtype(dtype: object) -> DType | None:
    return None if dtype is None else as_dtype(dtype)


def index_tensor(value: TensorLike, name: str, like: Tensor) -> Tensor:
    """An integer tensor of indices on the device of `like`. Raises InvalidArgumentError: it does
    not hold integers."""
    x = convert(value, None, like._t.device)
    if not x.dtype.is_integer:
        # [] is float32 to `convert`, but no index in it can be wrong.
        if not x.spec.shape or 0 not in x.spec.shape:
            raise InvalidArgumentError(
                f"{name}: indices must be integers; got {x.spec}. "
                f"Write tf.cast(indices, tf.int32)")
        x = convert(np.zeros(x.spec.shape, np.int32), int32, like._t.device)
    return x

"""Assertions on dtypes, shapes and containers: they raise, or give None."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype, float32
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.introspection import is_tensor
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_items


def _typed(value: object) -> Any:
    return value if is_tensor(value) else convert(value)


def assert_type(tensor: TensorLike, tf_type: DType, message: str | None = None,
                name: str | None = None) -> None:
    """Check the dtype.

    Raises:
        TypeError: it is another.
    """
    wanted, found = as_dtype(tf_type), _typed(tensor).dtype
    if found is not wanted:
        raise TypeError(f"{message + ': ' if message else ''}the tensor must be {wanted!r}; got "
                        f"{found!r}. Write tf.cast(x, tf.{wanted.name})")


def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> None:
    """Check that the dtype is an integer type.

    Raises:
        TypeError: it is not.
    """
    kind = _typed(x).dtype
    if not kind.is_integer:
        raise TypeError(f"{message + ': ' if message else ''}the tensor must be of an integer "
                        f"type; got {kind!r}. Write tf.cast(x, tf.int32)")


def assert_same_float_dtype(tensors: TensorLike | None = None, dtype: object = None) -> DType:
    """The one floating dtype of `tensors` (None entries are left out); float32 for none.

    Raises:
        ValueError: they differ from each other or from `dtype`, or it is not floating.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    for tensor in () if tensors is None else as_items(tensors, "assert_same_float_dtype: tensors"):
        if tensor is None:
            continue
        kind = _typed(tensor).dtype
        if wanted is None:
            wanted = kind
        elif kind is not wanted:
            raise ValueError(f"the tensors must all be {wanted!r}; got {kind!r}")
    wanted = wanted or float32
    if not wanted.is_floating:
        raise ValueError(f"the dtype must be real and floating; got {wanted!r}")
    return wanted


def assert_proper_iterable(values: TensorLike) -> None:
    """Check that `values` is a list of things: no tensor, array or string.

    Raises:
        TypeError: it is one of those, or cannot be iterated over.
    """
    unwanted = (Tensor, IndexedSlices, np.ndarray, bytes, str)
    if isinstance(values, unwanted) or is_tensor(values):
        raise TypeError(f"expected a list of values, and not one {type(values).__name__}; write "
                        f"[value]")
    if not hasattr(values, "__iter__"):
        raise TypeError(f"expected a list of values; got {type(values).__name__}")


def is_numeric_tensor(tensor: TensorLike) -> bool:
    """Whether `tensor` is a Tensor of numbers; bools and strings are none."""
    return isinstance(tensor, Tensor) and (
        tensor.dtype.is_differentiable or tensor.dtype.is_integer)


# ---------------------------------------------------------------- shapes
def assert_shapes(shapes: TensorLike, data: TensorLike | None = None, summarize: int | None = None,
                  message: str | None = None, name: str | None = None) -> None:
    """Check the shapes of several tensors, and that lengths of one name are equal.

        tf.debugging.assert_shapes([(x, ("N", "D")), (w, ("D", 3)), (y, ("N", 3))])

    A length is a number, a name, or None or '.' for any. A shape that begins with `...` or '*'
    speaks of the last axes only; () is a scalar.

    Raises:
        ValueError: a rank or length is not as stated.
    """
    pairs = as_items(shapes.items() if isinstance(shapes, Mapping) else shapes,
                     "assert_shapes: shapes")
    if any(not isinstance(pair, (list, tuple)) or len(pair) != 2 for pair in pairs):
        raise TypeError(f"assert_shapes takes pairs (tensor, shape); got {shown(shapes)}")
    known: dict[Any, tuple[int, str]] = {}
    for position, (tensor, wanted) in enumerate(pairs):
        if hasattr(tensor, "deref"):
            tensor = tensor.deref()
        found = tuple(_typed(tensor).shape)
        _check_shape(found, _entries(wanted), f"tensor {position} of shape {list(found)}", known,
                     f"{message}: " if message else "")


def _entries(wanted: Any) -> tuple[object, ...]:
    if isinstance(wanted, (int, np.integer)) or wanted is None:
        return (wanted,)
    return tuple(wanted)


def _check_shape(shape: tuple[int, ...], wanted: tuple[object, ...], what: str,
                 known: dict[Any, tuple[int, str]], prefix: str) -> None:
    open_front = bool(wanted) and (wanted[0] is Ellipsis or wanted[0] == "*")
    named = wanted[1:] if open_front else wanted
    if len(shape) < len(named) or (len(shape) > len(named) and not open_front):
        least = "at least " if open_front else ""
        raise ValueError(f"{prefix}{what} must have {least}{len(named)} axes, as {list(wanted)}")
    for axis, (length, entry) in enumerate(zip(shape[len(shape) - len(named):], named)):
        if entry is None or entry == ".":
            continue
        number = _number(entry)
        if number is not None:
            if length != number:
                raise ValueError(f"{prefix}{what} must have length {number} at axis {axis} of "
                                 f"{list(wanted)}; it has {length}")
            continue
        first = known.setdefault(entry, (length, what))
        if first[0] != length:
            raise ValueError(f"{prefix}{what} has length {length} for {entry!r}, but {first[1]} "
                             f"has {first[0]}")


def _number(entry: Any) -> int | None:
    try:
        return int(entry)
    except (TypeError, ValueError):
        return None

"""Traced sequences: what a `for` can run over by a counter; range, enumerate and zip of them."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import gtape as tf
from gtape.autograph.calls import callee
from gtape.autograph.conditions import traced_tensor
from gtape.core.annotations import TensorLike
from gtape.core.dtypes import DType, int32
from gtape.core.tensor import Tensor
from gtape.ops.shape.creation import range_


class Sequence(NamedTuple):
    """Elements by number: `item(k)` for a counter k of `dtype`, from 0 to `length`."""

    length: Any
    item: Callable[[Any], Any]
    dtype: DType


def sequence(value: object) -> Sequence | None:
    """`value` as a traced sequence, or None where Python can iterate over it.

    Raises:
        TypeError: a traced scalar.
    """
    if type(value) is Sequence:
        return value
    tensor = traced_tensor(value)
    return None if tensor is None else _rows(tensor)


def _rows(tensor: Tensor) -> Sequence:
    if not tensor.ndim:
        raise TypeError(f"a scalar tensor cannot be iterated over; got {tensor.spec}. Write "
                        f"for i in range(n), or tf.range(n)")
    return Sequence(tensor.spec.shape[0], lambda k: tf.gather(tensor, k), int32)


def iterator(function: object) -> Any:
    """The form of range, enumerate, zip or tf.range that accepts traced values; any other as it is
    called elsewhere."""
    found = _FORMS.get(id(function))
    return callee(function) if found is None else found


def _range(*args: Any) -> Any:
    traced = next((t for t in map(traced_tensor, args) if t is not None), None)
    if traced is None or not 1 <= len(args) <= 3:
        return range(*args)
    if not traced.dtype.is_integer:
        raise TypeError(f"range takes integers; got {traced.spec}. Write tf.cast(n, tf.int32)")
    dtype = traced.dtype
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    start, stop, step = (_integer(a, dtype) for a in (start, stop, step))
    length = tf.maximum(-((start - stop) // step), tf.zeros((), dtype))
    return Sequence(length, lambda k: start + k * step, dtype)


def _tensor_range(*args: Any, **named: Any) -> Any:
    """tf.range, of traced numbers by a counter too, where nothing else is asked for."""
    found = inspect.signature(tf.range).bind(*args, **named).arguments
    given = [found[k] for k in ("start", "limit", "delta") if k in found and found[k] is not None]
    first = next((t for t in map(traced_tensor, given) if t is not None), None)
    if first is None or "dtype" in found or not first.dtype.is_integer:
        return tf.range(*args, **named)
    return _range(*((0, *given) if len(given) == 2 and "limit" not in found else given))


def _integer(value: TensorLike, dtype: DType) -> Any:
    found = traced_tensor(value)
    return tf.constant(value, dtype) if found is None else tf.cast(found, dtype)


def _enumerate(iterable: Any, start: int = 0) -> Any:
    found = sequence(iterable)
    if found is None:
        return enumerate(iterable, start)
    return Sequence(found.length, lambda k: (k + start, found.item(k)), found.dtype)


def _zip(*iterables: object, strict: bool = False) -> Any:
    found = [sequence(i) for i in iterables]
    if all(f is None for f in found):
        return zip(*iterables, strict=strict)
    rows = [_rows(i) if f is None and isinstance(i, Tensor) else f
            for i, f in zip(iterables, found)]
    known = [r for r in rows if r is not None and isinstance(r.length, int)]
    lengths = [r.length for r in known]
    if len(known) < len(iterables) or (strict and len(set(lengths)) > 1):
        raise ValueError(f"zip of traced tensors takes tensors of known lengths, with strict=True "
                         f"of one length; got {len(iterables)} arguments of lengths {lengths}")
    return Sequence(min(lengths), lambda k: tuple(r.item(k) for r in known), int32)


_FORMS = {id(builtins.range): _range, id(builtins.enumerate): _enumerate, id(builtins.zip): _zip,
          id(range_): _tensor_range}

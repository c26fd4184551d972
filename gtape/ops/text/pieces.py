"""Strings as bytes and characters: their length, case, parts, and joining them."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import int32, int64, string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec, broadcast_shapes, check_size, normal_axes, reduced, room_for
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int, as_items, axes_of, host, named
from gtape.ops.text.steps import array_of, each, one_of, one_string, per_value, strings
from gtape.trace.host_steps import step

if TYPE_CHECKING:
    from gtape.ops.ragged.ragged_tensor import RaggedTensor

_UNITS = ("BYTE", "UTF8_CHAR")


def _characters(text: bytes) -> list[int]:
    """Where each UTF-8 character begins; bytes that begin none belong to the one before."""
    # 10xxxxxx is a continuation in UTF-8, whatever comes before it.
    return [i for i, b in enumerate(text) if b & 0xC0 != 0x80]


@per_value
def length(input: TensorLike, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """How many bytes, or UTF-8 characters, each string has: int32. Raises InvalidArgumentError: no
    strings, or another unit than 'BYTE' and 'UTF8_CHAR'."""
    one_of("tf.strings.length: unit", unit, _UNITS)
    count: Callable[[bytes], int] = len
    if unit == "UTF8_CHAR":
        count = lambda text: len(_characters(text))
    return each("length", count, strings(input, "length"), int32)


def _cased(case: str, of_bytes: Callable[[bytes], bytes], of_text: Callable[[str], str],
           ) -> Callable[..., Tensor]:
    def cased(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
        one_of(f"tf.strings.{case}: encoding", encoding, ("", "utf-8"))
        function = of_bytes
        if encoding:
            function = lambda b: of_text(b.decode("utf-8", "replace")).encode()
        return each(case, function, strings(input, case), string)

    return per_value(named(cased, case, f"""Each string in {case} case: its ASCII letters, or with \
encoding='utf-8' all of them.

    Raises:
        InvalidArgumentError: no strings, or another encoding.
    """))


lower = _cased("lower", bytes.lower, str.lower)
upper = _cased("upper", bytes.upper, str.upper)


@per_value
def strip(input: TensorLike, name: str | None = None) -> Tensor:
    """Each string without the ASCII white space at its ends."""
    return each("strip", bytes.strip, strings(input, "strip"), string)


def join(inputs: TensorLike, separator: str = "", name: str | None = None) -> Any:
    """The strings of several tensors of one shape, or scalars, put together element by element.
    Raises InvalidArgumentError: no strings, or their shapes differ."""
    items = as_items(inputs, "tf.strings.join: inputs")
    ragged = next((x for x in items if hasattr(x, "with_flat_values")), None)
    if ragged is not None:
        return ragged.with_flat_values(join([_flat(x, ragged) for x in items], separator))
    parts = [strings(x, "join") for x in items]
    shapes = [p.spec.shape for p in parts if p.ndim]
    shape = shapes[0] if shapes else ()
    if any(s != shape for s in shapes):
        raise InvalidArgumentError(f"tf.strings.join: the inputs must be scalars or have one "
                                   f"shape; got {', '.join(str(p.spec) for p in parts)}")
    between = host(one_string(separator, "join", "separator")).item()

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        # The shapes of a trace may be open: those of the arrays are what is there.
        wide = next((a.shape for a in arrays if a.ndim), ())
        rows = [np.broadcast_to(a, wide).reshape(-1) for a in arrays]
        joined = [between.join(row) for row in zip(*rows)] if rows else [b""]
        return [array_of(joined, wide, string)]

    return step("join", run, parts, [Spec(shape, string)])[0]


def _flat(value: Any, like: RaggedTensor) -> Tensor:
    """The flat values of an input of `join` that stands beside a ragged one."""
    if not hasattr(value, "with_flat_values"):
        tensor = strings(value, "join")
        if not tensor.ndim:
            return tensor
    elif [s.numpy().tolist() for s in value.nested_row_splits] == [
            s.numpy().tolist() for s in like.nested_row_splits]:
        return value.flat_values
    raise InvalidArgumentError(f"tf.strings.join: beside a RaggedTensor there may be scalars and "
                               f"RaggedTensors of rows of the same lengths; got {shown(value)}")


def reduce_join(inputs: Any, axis: IntsLike | None = None, keepdims: bool = False,
                separator: str = "", name: str | None = None) -> Tensor:
    """The strings along axes put together; along a list of axes, the first changes fastest. Raises
    InvalidArgumentError: no strings, an axis outside the rank, or one named twice."""
    if hasattr(inputs, "with_flat_values"):
        if axis is None and not keepdims:
            return reduce_join(inputs.flat_values, None, False, separator)
        return _rows_joined(inputs, axis, keepdims, separator)
    x = strings(inputs, "reduce_join")
    between = host(one_string(separator, "reduce_join", "separator")).item()
    given = axes_of(axis)
    given = (given,) if isinstance(given, int) else given
    within = normal_axes("tf.strings.reduce_join", given, x.ndim)
    # The list says in which order axes are joined; `within` is sorted, for the shape.
    order = within if given is None else tuple(a % x.ndim for a in given)[::-1]

    def run(array: np.ndarray) -> list[np.ndarray]:
        kept = [i for i in range(array.ndim) if i not in order]
        last = array.transpose([*kept, *order])
        count = int(np.prod([array.shape[i] for i in kept]))
        rows = last.reshape(count, -1) if array.size else np.empty((count, 0), object)
        return [array_of([between.join(row) for row in rows],
                         reduced(array.shape, within, keepdims), string)]

    return step("reduce_join", run, [x], [Spec(reduced(x.spec.shape, within, keepdims), string)])[0]


def _rows_joined(ragged: Any, axis: object, keepdims: bool, separator: str) -> Any:
    """`reduce_join` of a RaggedTensor over its last axis."""
    rank = ragged.shape.rank
    if rank != ragged.ragged_rank + 1 or keepdims or axis not in (-1, rank - 1):
        raise InvalidArgumentError(
            f"tf.strings.reduce_join: of a RaggedTensor only the last axis, a ragged one, can be "
            f"joined, without keepdims; got axis={axis} of rank {rank}")
    between = host(one_string(separator, "reduce_join", "separator")).item()
    *outer, splits = [s.numpy() for s in ragged.nested_row_splits]
    flat = ragged.flat_values.numpy()
    joined: Any = convert(array_of([between.join(flat[a:b]) for a, b in pairwise(splits)],
                                   (len(splits) - 1,), string))
    return type(ragged).from_nested_row_splits(joined, outer) if outer else joined


def _part(text: bytes, pos: int, size: int, unit: str) -> bytes:
    starts = _characters(text) if unit == "UTF8_CHAR" else range(len(text))
    count = len(starts)
    if not -count <= pos <= count:
        raise InvalidArgumentError(f"tf.strings.substr: pos {pos} is out of range for the string "
                                   f"{shown(text)} of {count} {unit}")
    first = pos + count if pos < 0 else pos
    end = count if size < 0 else min(first + size, count)
    bounds = [*starts, len(text)]
    return text[bounds[first]:bounds[end]]


@per_value
def substr(input: TensorLike, pos: TensorLike, len: TensorLike, unit: str = "BYTE",
           name: str | None = None) -> Tensor:
    """`len` bytes, or UTF-8 characters, of each string from `pos`: shorter at the end.

    Args:
        input: strings.
        pos, len: integers whose shapes broadcast with that of `input`; a negative `pos` counts
            from the end, a negative `len` means up to the end.
        unit: 'BYTE' or 'UTF8_CHAR'.

    Raises:
        InvalidArgumentError: `pos` lies outside a string, the shapes do not fit, or no integers.
    """
    one_of("tf.strings.substr: unit", unit, _UNITS)
    parts = [strings(input, "substr"), convert(pos), convert(len)]
    if any(p.dtype not in (int32, int64) for p in parts[1:]):
        raise InvalidArgumentError(f"tf.strings.substr: pos and len must be int32 or int64; got "
                                   f"{parts[1].spec} and {parts[2].spec}")
    shape = broadcast_shapes("tf.strings.substr", *[p.spec for p in parts])

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        wide = np.broadcast_shapes(*[a.shape for a in arrays])
        rows = [np.broadcast_to(a, wide).reshape(-1) for a in arrays]
        return [array_of([_part(text, int(p), int(n), unit) for text, p, n in zip(*rows)], wide,
                         string)]

    return step("substr", run, parts, [Spec(shape, string)])[0]


def unsorted_segment_join(inputs: TensorLike, segment_ids: TensorLike, num_segments: TensorLike,
                          separator: Any = "", name: str | None = None) -> Tensor:
    """The strings of each segment put together, in the order in which they come. Raises
    InvalidArgumentError: an id outside [0, num_segments), or the shapes do not fit."""
    x, ids = strings(inputs, "unsorted_segment_join"), convert(segment_ids)
    if not ids.dtype.is_integer:
        raise InvalidArgumentError(f"tf.strings.unsorted_segment_join: segment_ids must be "
                                   f"integers; got {ids.spec}")
    count = as_int(num_segments, "unsorted_segment_join: num_segments")
    between = host(one_string(separator, "unsorted_segment_join", "separator")).item()
    rank = ids.ndim
    if x.spec.shape[:rank] != ids.spec.shape:
        raise InvalidArgumentError(f"tf.strings.unsorted_segment_join: the shape of segment_ids "
                                   f"must begin that of inputs; got {ids.spec} and {x.spec}")
    result = Spec((count, *x.spec.shape[rank:]), string)
    check_size("unsorted_segment_join", result)

    def run(array: np.ndarray, at: np.ndarray) -> list[np.ndarray]:
        if at.size and not 0 <= at.min() <= at.max() < count:
            raise InvalidArgumentError(f"tf.strings.unsorted_segment_join: segment_ids must lie in "
                                       f"[0, {count}); got {at.min()} to {at.max()}")
        rows = array.reshape(at.size, math.prod(array.shape[rank:]))
        with room_for("unsorted_segment_join", result):
            joined = np.full((count, rows.shape[1]), b"", object)
        for i in np.unique(at):
            joined[i] = [between.join(column) for column in rows[at.reshape(-1) == i].T]
        return [joined.reshape(count, *array.shape[rank:])]

    return step("unsorted_segment_join", run, [x, ids], [result])[0]

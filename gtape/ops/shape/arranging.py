"""tile, repeat, reverse, roll and meshgrid: the same elements, repeated or moved."""

from __future__ import annotations

import numpy as np

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.composite_tensor import takes_composites
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule, at_home
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec, check_size, normal_axes
from gtape.core.tensor import Tensor
from gtape.opdef.composite import composite
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, as_ints, host_value, index_tensor
from gtape.ops.indexing.gathering import gather_, rows_or_zero_, within
from gtape.ops.indexing.getitem import WHOLE_AXIS, getitem_
from gtape.ops.reductions.reductions import reduce_sum_
from gtape.ops.shape.layout import broadcast_to_, reshape, reshape_
from gtape.ops.shape.packing import concat_, split_

Ints = tuple[int, ...]


@composite(tf_name="Tile")
def tile_(x: Tensor, *, multiples: Ints) -> Tensor:
    """x, multiples[i] times along axis i."""
    shape = x.spec.shape
    # A view until the last reshape: one copy, as NumPy's tile makes.
    apart = reshape_(x, shape=tuple(n for length in shape for n in (1, length)))
    wide = broadcast_to_(apart, shape=tuple(n for pair in zip(multiples, shape) for n in pair))
    return reshape_(wide, shape=tuple(n * m for n, m in zip(shape, multiples)))


@tile_.vjp("x")
def _(g: Tensor, x_spec: Spec, *, multiples: Ints) -> Tensor:
    split = tuple(n for pair in zip(multiples, x_spec.shape) for n in pair)
    return reduce_sum_(reshape_(g, shape=split), axis=tuple(range(0, len(split), 2)))


tile_.cases = [case((2, 3), multiples=(2, 1)), case((), multiples=()), case((2,), multiples=(0,))]


@takes_composites
def tile(input: TensorLike, multiples: IntsLike, name: str | None = None) -> Tensor:
    """`input` laid side by side, multiples[i] times along axis i.

    Raises:
        InvalidArgumentError: `multiples` does not hold one number >= 0 for each axis.
    """
    x, counts = convert(input), as_ints(multiples, "tile: multiples")
    # Unlike NumPy's tile, TensorFlow's wants a number for each axis.
    if len(counts) != x.ndim or any(m < 0 for m in counts):
        raise InvalidArgumentError(f"tile: multiples must hold {x.ndim} numbers >= 0, one for each "
                                   f"axis of {x.spec}; got {list(counts)}")
    # By its own name: what cannot be would else be refused as a broadcast.
    check_size("tile", x.spec.reshaped(tuple(n * m for n, m in zip(x.spec.shape, counts))))
    return tile_(x, multiples=counts)


@composite(tf_name="Repeat")
def repeat_(x: Tensor, *, repeats: int, axis: int) -> Tensor:
    """Every slice along `axis`, `repeats` times in a row."""
    before, length, after = x.spec.shape[:axis], x.spec.shape[axis], x.spec.shape[axis + 1:]
    wide = broadcast_to_(reshape_(x, shape=(*before, length, 1, *after)),
                         shape=(*before, length, repeats, *after))
    return reshape_(wide, shape=(*before, length * repeats, *after))


@repeat_.vjp("x")
def _(g: Tensor, x_spec: Spec, *, repeats: int, axis: int) -> Tensor:
    split = (*x_spec.shape[:axis + 1], repeats, *x_spec.shape[axis + 1:])
    return reduce_sum_(reshape_(g, shape=split), axis=(axis + 1,))


repeat_.cases = [case((2, 3), repeats=2, axis=1), case((3,), repeats=0, axis=0)]


def repeat(input: TensorLike, repeats: IntsLike, axis: IntsLike | None = None,
           name: str | None = None) -> Tensor:
    """Every slice of `input` along `axis` repeated in place.

    Args:
        repeats: how often: one number, or one for each slice.
        axis: the axis; None flattens `input` first.

    Raises:
        InvalidArgumentError: a negative number, another count of them, or no such axis.
    """
    x = convert(input)
    if axis is None:
        x, at = reshape(x, (-1,)), 0
    else:
        (at,) = normal_axes("repeat", as_int(axis, "repeat: axis"), x.ndim)
    times = host_value(repeats, "repeat: repeats")
    if times.dtype.kind not in "iu" or times.ndim > 1 or bool((times < 0).any()):
        raise InvalidArgumentError(f"repeat: repeats must be one integer >= 0 or a vector of them; "
                                   f"got {shown(times)}")
    # A vector of one number repeats all slices as often, as in NumPy.
    if times.size == 1:
        count, shape = int(times.reshape(-1)[0]), x.spec.shape
        check_size("repeat", x.spec.reshaped((*shape[:at], shape[at] * count, *shape[at + 1:])))
        return repeat_(x, repeats=count, axis=at)
    length = x.spec.shape[at]
    if times.size != length:
        raise InvalidArgumentError(f"repeat: axis {at} of {x.spec} has {length} slices; got "
                                   f"{times.size} repeats")
    # A gather: the pieces differ in length, so that no reshape says this. Along the first axis
    # rows_or_zero_ gives a dense gradient, where gather_'s is an IndexedSlices.
    index = convert(np.repeat(np.arange(length), times), None, x._t.device)
    return rows_or_zero_(x, index) if at == 0 else gather_(x, index, axis=at)


@composite(tf_name="ReverseV2")
def reverse_(x: Tensor, *, axis: Ints) -> Tensor:
    """x backwards along `axis`; its own adjoint."""
    return getitem_(x, key=tuple(("slice", None, None, -1) if i in axis else WHOLE_AXIS
                                 for i in range(x.ndim)))


reverse_.vjp(x=lambda g, *, axis: reverse_(g, axis=axis))
reverse_.cases = [case((2, 3), axis=(0, 1)), case((2, 3), axis=())]


@takes_composites
def reverse(tensor: TensorLike, axis: IntsLike, name: str | None = None) -> Tensor:
    """`tensor` backwards along the axes in the list `axis`.

    Raises:
        InvalidArgumentError: no such axis, or one named twice.
    """
    x = convert(tensor)
    return reverse_(x, axis=normal_axes("reverse", as_ints(axis, "reverse: axis"), x.ndim))


@primitive(linear="x", tf_name="ReverseSequence")
def reverse_sequence_(xp: ArrayModule, x: Array, lengths: Array, *, seq_axis: int, batch_axis: int,
                      ) -> Array:
    """Row b of x along `batch_axis`: its first lengths[b] entries backwards; its own adjoint."""
    moved = xp.moveaxis(x, (batch_axis, seq_axis), (0, 1))
    place, ends = xp.arange(moved.shape[1]), lengths[:, None]
    # An involution for each row, so that the op is its own adjoint.
    order = xp.where(place < ends, ends - 1 - place, place)
    y = moved[xp.arange(moved.shape[0])[:, None], order]
    return xp.moveaxis(y, (0, 1), (batch_axis, seq_axis))


@reverse_sequence_.infer
def _(x: Spec, lengths: Spec, *, seq_axis: int, batch_axis: int) -> Spec:
    if seq_axis == batch_axis or lengths.shape != (x.shape[batch_axis],):
        raise InvalidArgumentError(f"reverse_sequence: seq_lengths must have shape "
                                   f"[{x.shape[batch_axis]}], the length of axis {batch_axis} of "
                                   f"{x}, and seq_axis must be another; got {lengths} and seq_axis "
                                   f"{seq_axis}")
    return x


reverse_sequence_.vjp(x=lambda g, lengths, **attrs: reverse_sequence_(g, lengths, **attrs))
reverse_sequence_.cases = [case((2, 4), np.array([3, 1]), seq_axis=1, batch_axis=0),
                           case((3, 2, 2), np.array([2, 3]), seq_axis=0, batch_axis=2)]


@at_home
def reverse_sequence(input: TensorLike, seq_lengths: TensorLike, seq_axis: IntsLike | None = None,
                     batch_axis: IntsLike | None = None, name: str | None = None) -> Tensor:
    """Each row along `batch_axis` (0 unless given) with its first seq_lengths[row] entries along
    `seq_axis` backwards, and the rest unchanged.

    Raises:
        InvalidArgumentError: lengths do not fit.
        TypeError: no `seq_axis`.
    """
    x = convert(input)
    lengths = index_tensor(seq_lengths, "reverse_sequence", x)
    (along,) = normal_axes("reverse_sequence", as_int(seq_axis, "reverse_sequence: seq_axis"),
                           x.ndim)
    batch = 0 if batch_axis is None else as_int(batch_axis, "reverse_sequence: batch_axis")
    (rows,) = normal_axes("reverse_sequence", batch, x.ndim)
    lengths = within(lengths, 0, x.spec.shape[along] + 1, "reverse_sequence: seq_lengths")
    return reverse_sequence_(x, lengths, seq_axis=along, batch_axis=rows)


@composite(tf_name="Roll")
def roll_(x: Tensor, *, shift: Ints, axis: Ints) -> Tensor:
    """x moved by shift[i] along axis[i]; what leaves at one end enters at the other."""
    for by, at in zip(shift, axis):
        length = x.spec.shape[at]
        # The last `by` slices come first. None move along an axis without any.
        by = by % length if length else 0
        if by:
            x = concat_(*split_(x, sizes=(length - by, by), axis=at)[::-1], axis=at)
    return x


roll_.vjp(x=lambda g, *, shift, axis: roll_(g, shift=tuple(-n for n in shift), axis=axis))
roll_.cases = [case((2, 3), shift=(1, -2), axis=(0, 1)), case((4,), shift=(1, 1), axis=(0, 0))]


def roll(input: TensorLike, shift: TensorLike, axis: IntsLike, name: str | None = None) -> Tensor:
    """`input` moved by shift[i] places along axis[i]; what leaves at one end enters at the other.

    Raises:
        InvalidArgumentError: a scalar, no such axis, or unequal numbers of shifts and axes.
    """
    x = convert(input)
    shifts, axes = as_ints(shift, "roll: shift"), as_ints(axis, "roll: axis")
    if not x.ndim or len(shifts) != len(axes):
        raise InvalidArgumentError(f"roll: needs a rank of 1 or more, and one shift for each axis; "
                                   f"got {x.spec}, shift={list(shifts)}, axis={list(axes)}")
    normal = tuple(normal_axes("roll", a, x.ndim)[0] for a in axes)
    return roll_(x, shift=shifts, axis=normal)


def meshgrid(*args: object, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """The coordinates of a grid: each vector repeated along the axes of the others.

    Args:
        indexing: 'ij' gives [len(a), len(b), …]; 'xy' exchanges the first two axes.

    Raises:
        ValueError: another `indexing`.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij'; got {shown(indexing)}")
    vectors = [reshape(convert(a), (-1,)) for a in args]
    axes = list(range(len(vectors)))
    if indexing == "xy":
        # TensorFlow's default is that of image coordinates: x runs along the second axis.
        axes[:2] = axes[:2][::-1]
    lengths = [vectors[axes.index(i)].spec.shape[0] for i in range(len(axes))]
    return [broadcast_to_(reshape_(v, shape=tuple(n if i == axis else 1
                                                  for i, n in enumerate(lengths))),
                          shape=tuple(lengths)) for axis, v in zip(axes, vectors)]

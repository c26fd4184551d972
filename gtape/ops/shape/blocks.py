"""Blocks of cells as further batch entries or channels, and back; patches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import int32
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import windows
from gtape.numerics.windows import Pads
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_function, as_int, as_ints, host_value
from gtape.ops.indexing.getitem import getitem_
from gtape.ops.nn.window_arguments import (
    channels_first,
    channels_last,
    is_channels_first,
    require_rank,
)
from gtape.ops.shape.layout import reshape_, transpose_
from gtape.ops.shape.padding import pad_, pads_of

Ints = tuple[int, ...]


@primitive(linear="x", tf_name="ExtractVolumePatches")
def patches_(xp: ArrayModule, x: Array, *, sizes: Ints, strides: Ints, rates: Ints, pads: Pads,
             ) -> Array:
    """Each window of x [N, *spatial, C] as one vector: [N, *out, Π sizes · C]."""
    # Overlapping strides, and no copy until the reshape below.
    view = windows.patches(xp, windows.pad(xp, x, pads), sizes, strides, rates)
    return view.reshape((*view.shape[:1 + len(sizes)], math.prod(sizes) * x.shape[-1]))


@patches_.infer
def _(x: Spec, *, sizes: Ints, strides: Ints, rates: Ints, pads: Pads) -> Spec:
    outs = windows.out_sizes(x.shape[1:-1], sizes, strides, rates, pads)
    return x.reshaped((x.shape[0], *outs, math.prod(sizes) * x.shape[-1]))


patches_.vjp(x=lambda g, x_spec, **attrs: fold_(g, shape=x_spec.shape, **attrs))


_WINDOW: dict[str, Any] = {"sizes": (2, 2), "strides": (1, 2), "rates": (2, 1),
                           "pads": ((1, 0), (0, 1))}
patches_.cases = [case((1, 4, 3, 2), **_WINDOW)]


@primitive(linear="x", tf_name="ExtractVolumePatchesGrad")
def fold_(xp: ArrayModule, x: Array, *, shape: Ints, sizes: Ints, strides: Ints, rates: Ints,
          pads: Pads) -> Any:
    """Windows added up where they overlap: the adjoint of patches."""
    split = x.reshape((*x.shape[:-1], *sizes, shape[-1]))
    whole = windows.fold(xp, split, windows.padded_shape(shape, pads), sizes, strides, rates)
    # A view of the padded array would keep all of it alive.
    return xp.ascontiguousarray(windows.crop(whole, pads))


fold_.infer(lambda x, *, shape, **_: x.reshaped(shape))
fold_.vjp(x=lambda g, *, shape, **attrs: patches_(g, **attrs))
fold_.cases = [case((1, 3, 2, 8), shape=(1, 4, 3, 2), **_WINDOW)]


def extract_volume_patches(input: TensorLike, ksizes: TensorLike, strides: IntsLike, padding: str,
                           name: str | None = None) -> Tensor:
    """Each window of a volume [N, D, H, W, C] as one vector: [N, d, h, w, Π ksizes · C].

    Args:
        ksizes, strides: [1, depth, height, width, 1].
        padding: 'SAME' or 'VALID'.

    Raises:
        InvalidArgumentError: ranks or sizes that do not fit.
        ValueError: another padding.
    """
    x = convert(input)
    given = [as_ints(v, "extract_volume_patches") for v in (ksizes, strides)]
    if x.ndim != 5 or any(len(v) != 5 or v[0] != 1 or v[4] != 1 or min(v) < 1 for v in given):
        raise InvalidArgumentError(f"extract_volume_patches: the input must have rank 5; ksizes and"
                                   f" strides must be [1, depth, height, width, 1], positive; got "
                                   f"{x.spec}, {list(given[0])}, {list(given[1])}")
    size, steps = (v[1:4] for v in given)
    rates = (1, 1, 1)
    pads = windows.padding(padding, x.spec.shape[1:4], size, steps, rates)
    return patches_(x, sizes=size, strides=steps, rates=rates, pads=pads)


def _block(name: str, x: Tensor, block_shape: IntsLike) -> Ints:
    block = as_ints(block_shape, f"{name}: block_shape")
    if x.ndim < 1 + len(block) or any(b < 1 for b in block):
        raise InvalidArgumentError(f"{name}: block_shape must hold numbers >= 1, one for each axis "
                                   f"after the first that is cut; got {list(block)} for {x.spec}")
    return block


def space_to_batch_nd(input: TensorLike, block_shape: IntsLike, paddings: TensorLike,
                      name: str | None = None) -> Tensor:
    """Cells of each block of the first M = len(block_shape) spatial axes as batch entries.

    [N, *spatial, …] is padded with zeros, then becomes [N · Π block, *(spatial / block), …].

    Args:
        paddings: [M, 2], cells before and after each spatial axis.

    Raises:
        InvalidArgumentError: padded lengths are no multiples of the block, or ranks do not fit.
    """
    x = convert(input)
    block = _block("space_to_batch", x, block_shape)
    m = len(block)
    pads = pads_of("space_to_batch", paddings, m)
    batch, *rest = x.spec.shape
    lengths = [n + b + a for n, (b, a) in zip(rest, pads)]
    if any(n % b for n, b in zip(lengths, block)):
        raise InvalidArgumentError(f"space_to_batch: the padded lengths {lengths} must be multiples"
                                   f" of the block {list(block)}")
    if any(b or a for b, a in pads):
        x = pad_(x, paddings=((0, 0), *pads, *[(0, 0)] * (len(rest) - m)))
    tail = rest[m:]
    split = [n for length, b in zip(lengths, block) for n in (length // b, b)]
    apart = reshape_(x, shape=(batch, *split, *tail))
    # Axes are N, then pairs (block number, cell): cells go in front of N, the batch's slowest part.
    perm = (*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), *range(2 * m + 1, apart.ndim))
    smaller = [length // b for length, b in zip(lengths, block)]
    return reshape_(transpose_(apart, perm=perm),
                    shape=(batch * math.prod(block), *smaller, *tail))


def space_to_batch(input: TensorLike, block_shape: IntsLike, paddings: TensorLike,
                   name: str | None = None) -> Tensor:
    """`space_to_batch_nd`."""
    return space_to_batch_nd(input, block_shape, paddings)


def batch_to_space(input: TensorLike, block_shape: IntsLike, crops: TensorLike,
                   name: str | None = None) -> Tensor:
    """Batch entries as cells of blocks of the spatial axes, then cropped: undoes `space_to_batch`.

    [N · Π block, *spatial, …] becomes [N, *(spatial · block), …] less crops[i] = (before, after)
    cells of each spatial axis i.

    Raises:
        InvalidArgumentError: the batch is no multiple of Π block, or crops that do not fit.
    """
    x = convert(input)
    block = _block("batch_to_space", x, block_shape)
    # TensorFlow's batch_to_space takes one number for all axes that `crops` speaks of.
    if len(block) == 1:
        block = block * len(host_value(crops, "batch_to_space: crops"))
    m, cells = len(block), math.prod(block)
    cuts = pads_of("batch_to_space", crops, m, "crops")
    batch, *rest = x.spec.shape
    lengths = [n * b for n, b in zip(rest, block)]
    if batch % cells or any(b + a > n for n, (b, a) in zip(lengths, cuts)):
        raise InvalidArgumentError(f"batch_to_space: the batch of {x.spec} must be a multiple of "
                                   f"{cells}, the cells of a block, and crops at most the lengths "
                                   f"{lengths}; got crops {list(cuts)}")
    apart = reshape_(x, shape=(*block, batch // cells, *rest))
    # Back from cells in front of N: each cell axis goes behind its block number.
    pairs = [axis for i in range(m) for axis in (m + 1 + i, i)]
    perm = (m, *pairs, *range(2 * m + 1, apart.ndim))
    whole = reshape_(transpose_(apart, perm=perm), shape=(batch // cells, *lengths, *rest[m:]))
    if not any(b or a for b, a in cuts):
        return whole
    inner = [("slice", b, n - a, None) for n, (b, a) in zip(lengths, cuts)]
    return getitem_(whole, key=(("slice", None, None, None), *inner))


def _int32(values: np.ndarray) -> np.ndarray:
    """Integers within int32 as int64, so that their sums fit."""
    return np.asarray(convert(values.tolist(), int32).numpy()).reshape(values.shape).astype(
        np.int64)


def required_space_to_batch_paddings(input_shape: IntsLike, block_shape: IntsLike,
                                     base_paddings: TensorLike | None = None,
                                     name: str | None = None) -> tuple[Tensor, Tensor]:
    """(paddings, crops), int32 [n, 2]: what makes each length a multiple of its block.

    Args:
        base_paddings: [n, 2]: what there is to be at least; zeros unless given.

    Raises:
        ValueError: shapes that do not fit each other, or a block below 1.
        TypeError: numbers that are no integers or do not fit int32.
    """
    lengths = _int32(np.array(as_ints(input_shape, "input_shape")))
    blocks = _int32(np.array(as_ints(block_shape, "block_shape")))
    given = np.zeros((len(blocks), 2), np.int64) if base_paddings is None else _int32(host_value(
        base_paddings, "base_paddings"))
    if lengths.shape != blocks.shape or given.shape != (len(blocks), 2) or (blocks < 1).any():
        raise ValueError(f"required_space_to_batch_paddings takes input_shape [n], positive "
                         f"block_shape [n] and base_paddings [n, 2]; got {lengths}, {blocks} and "
                         f"{list(given.shape)}")
    before, after = given.T
    # What is missing to the next multiple; Python's and NumPy's % is never negative here.
    more = -(before + lengths + after) % blocks
    return tuple(convert(_int32(np.stack(pair, 1)).astype(np.int32))  # type: ignore[return-value]
                 for pair in ([before, after + more], [np.zeros_like(more), more]))


# ---------------------------------------------------------------- blocks as channels
def _prepared(name: str, input: TensorLike, block_size: int, data_format: str,
              ) -> tuple[Tensor, int, bool]:
    x = convert(input)
    require_rank(name, "the input", x.spec, 4)
    block = as_int(block_size, f"{name}: block_size")
    if block < 2:
        raise InvalidArgumentError(f"{name}: block_size must be 2 or more; got {block}")
    first = is_channels_first(name, data_format, 2)
    return (channels_last(x) if first else x), block, first


def space_to_depth(input: TensorLike, block_size: Any, data_format: str = "NHWC",
                   name: str | None = None) -> Tensor:
    """[N, H, W, C] to [N, H / b, W / b, b b C]: each block of b by b pixels becomes channels.

    Raises:
        InvalidArgumentError: b does not divide H and W, or the rank is not 4.
    """
    x, b, first = _prepared("space_to_depth", input, block_size, data_format)
    n, height, width, channels = x.spec.shape
    if height % b or width % b:
        raise InvalidArgumentError(f"space_to_depth: the block size {b} must divide the height "
                                   f"and the width of the image; got {height} by {width}")
    cut = reshape_(x, shape=(n, height // b, b, width // b, b, channels))
    moved = transpose_(cut, perm=(0, 1, 3, 2, 4, 5))
    y = reshape_(moved, shape=(n, height // b, width // b, b * b * channels))
    return channels_first(y) if first else y


def depth_to_space(input: TensorLike, block_size: Any, data_format: str = "NHWC",
                   name: str | None = None) -> Tensor:
    """[N, H, W, b b C] to [N, H b, W b, C]: the inverse of `space_to_depth`.

    Raises:
        InvalidArgumentError: b b does not divide the channels, or the rank is not 4.
    """
    x, b, first = _prepared("depth_to_space", input, block_size, data_format)
    n, height, width, depth = x.spec.shape
    if depth % (b * b):
        raise InvalidArgumentError(f"depth_to_space: the square of the block size {b} must divide "
                                   f"the channels; got {depth}")
    channels = depth // (b * b)
    cut = reshape_(x, shape=(n, height, width, b, b, channels))
    moved = transpose_(cut, perm=(0, 1, 3, 2, 4, 5))
    y = reshape_(moved, shape=(n, height * b, width * b, channels))
    return channels_first(y) if first else y


def with_space_to_batch(input: TensorLike, dilation_rate: TensorLike, padding: str,
                        op: Callable[..., object], filter_shape: IntsLike | None = None,
                        spatial_dims: Any = None, data_format: str | None = None) -> Tensor:
    """`op(x, number of spatial axes, 'VALID')` with its window dilated by `dilation_rate`.

    The pixels of equal remainder modulo the rates become images of their own, to which `op` is
    applied; 'SAME' pads for windows of `filter_shape`.

    Raises:
        ValueError: 'SAME' without filter_shape, or spatial axes other than those after the batch.
    """
    name = "with_space_to_batch"
    if not isinstance(padding, str) or padding.upper() not in ("SAME", "VALID"):
        raise ValueError(f"{name}: padding must be 'SAME' or 'VALID'; got {shown(padding)}")
    x, op = convert(input), as_function(op, f"{name}: op")
    rates = as_ints(dilation_rate, f"{name}: dilation_rate")
    axes = tuple(range(1, len(rates) + 1)) if spatial_dims is None else tuple(spatial_dims)
    if axes != tuple(range(1, len(rates) + 1)):
        raise ValueError(f"{name}: the spatial axes must be 1 … {len(rates)}; got {list(axes)}")
    if all(rate == 1 for rate in rates):
        return op(x, num_spatial_dims=len(rates), padding=padding)
    before = [0] * len(rates)
    after = [0] * len(rates)
    if padding.upper() == "SAME":
        if filter_shape is None:
            raise ValueError(f"{name}: padding 'SAME' needs filter_shape")
        reach = [(k - 1) * r for k, r in zip(as_ints(filter_shape, "filter_shape"), rates)]
        # TensorFlow's 'SAME' puts the odd cell behind.
        before = [n // 2 for n in reach]
        after = [n - n // 2 for n in reach]
    lengths = [x.spec.shape[a] + p + q for a, p, q in zip(axes, before, after)]
    # Only behind, and cropped at the end: 'SAME' padding must not shift.
    fill = [-n % r for n, r in zip(lengths, rates)]
    pads = [[p, q + f] for p, q, f in zip(before, after, fill)]
    parts = op(space_to_batch(x, rates, pads), num_spatial_dims=len(rates), padding="VALID")
    return batch_to_space(parts, rates, [[0, f] for f in fill])

"""Blocks of pixels moved into the channels, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_function, as_int, as_ints
from gtape.ops.nn.window_arguments import (
    channels_first,
    channels_last,
    is_channels_first,
    require_rank,
)
from gtape.ops.shape.layout import reshape_, transpose_


def _prepared(name: str, input: Any, block_size: Any, data_format: str) -> tuple[Tensor, int, bool]:
    x = convert(input)
    require_rank(name, "the input", x.spec, 4)
    block = as_int(block_size, f"{name}: block_size")
    if block < 2:
        raise InvalidArgumentError(f"{name}: block_size must be 2 or more; got {block}")
    first = is_channels_first(name, data_format, 2)
    return (channels_last(x) if first else x), block, first


def space_to_depth(input: Any, block_size: Any, data_format: str = "NHWC",
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


def depth_to_space(input: Any, block_size: Any, data_format: str = "NHWC",
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


def with_space_to_batch(input: Any, dilation_rate: Any, padding: str, op: Callable[..., Any],
                        filter_shape: Any = None, spatial_dims: Any = None,
                        data_format: str | None = None) -> Tensor:
    """`op(x, number of spatial axes, 'VALID')` with its window dilated by `dilation_rate`.

    The pixels of equal remainder modulo the rates become images of their own, to which `op` is
    applied; 'SAME' pads for windows of `filter_shape`.

    Raises:
        ValueError: 'SAME' without filter_shape, or spatial axes other than those after the batch.
    """
    from gtape.ops.shape.batch_blocks import batch_to_space, space_to_batch

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
        before = [n // 2 for n in reach]
        after = [n - n // 2 for n in reach]
    lengths = [x.spec.shape[a] + p + q for a, p, q in zip(axes, before, after)]
    fill = [-n % r for n, r in zip(lengths, rates)]
    pads = [[p, q + f] for p, q, f in zip(before, after, fill)]
    parts = op(space_to_batch(x, rates, pads), num_spatial_dims=len(rates), padding="VALID")
    return batch_to_space(parts, rates, [[0, f] for f in fill])

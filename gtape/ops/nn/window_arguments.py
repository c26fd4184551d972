"""What convolution and pooling share: layouts, strides, dilations, paddings and ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gtape.core.annotations import TensorLike
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics.windows import Pads, out_sizes, padding, span
from gtape.ops.arguments import as_ints, as_items
from gtape.ops.shape.layout import transpose_

Sizes = tuple[int, ...]

#: A padded image of more cells than this is beyond the addresses of a process.
_MOST_CELLS = 2 ** 45
#: Padding that may make it so.
_WIDE = 2 ** 14

_CHANNELS_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
CHANNELS_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def is_channels_first(name: str, data_format: str | None, rank: int) -> bool:
    """Whether `data_format` puts the channels before the `rank` spatial axes."""
    if data_format is None or data_format == _CHANNELS_LAST[rank]:
        return False
    if data_format == CHANNELS_FIRST[rank]:
        return True
    raise ValueError(f"{name}: data_format must be '{_CHANNELS_LAST[rank]}' or "
                     f"'{CHANNELS_FIRST[rank]}' for {rank} spatial axes; got {shown(data_format)}")


def channels_last(x: Tensor) -> Tensor:
    """[N, C, *spatial] as [N, *spatial, C]."""
    return transpose_(x, perm=(0, *range(2, x.ndim), 1))


def channels_first(x: Tensor) -> Tensor:
    """[N, *spatial, C] as [N, C, *spatial]."""
    return transpose_(x, perm=(0, x.ndim - 1, *range(1, x.ndim - 1)))


def spatial_sizes(name: str, what: str, value: TensorLike | None, rank: int, first: bool) -> Sizes:
    """Strides, dilations or window sizes: one number, one per spatial axis, or one per axis."""
    numbers = (1,) if value is None else as_ints(value, f"{name}: {what}")
    # One number for each of TensorFlow's three spellings.
    if len(numbers) == 1:
        numbers = numbers * rank
    elif len(numbers) == rank + 2:
        at = 1 if first else rank + 1
        if numbers[0] != 1 or numbers[at] != 1:
            raise InvalidArgumentError(f"{name}: {what} must be 1 for the batch and the channels; "
                                       f"got {list(numbers)}")
        numbers = numbers[2:] if first else numbers[1:-1]
    if len(numbers) != rank:
        raise ValueError(f"{name}: {what} must hold 1, {rank} or {rank + 2} numbers; got "
                         f"{list(numbers)}")
    if any(not 1 <= n < 2 ** 31 for n in numbers):
        raise InvalidArgumentError(f"{name}: {what} must be 1 or more and below 2**31; got "
                                   f"{list(numbers)}")
    return numbers


def spatial_pads(name: str, kind: TensorLike, in_sizes: Sequence[int], sizes: Sequence[int],
                 strides: Sequence[int], dilations: Sequence[int], first: bool) -> Pads:
    """Cells to add before and after each spatial axis for 'SAME', 'VALID' or explicit pairs, those
    of each spatial axis, or of each axis with zeros for batch and channels."""
    rank = len(in_sizes)
    if kind is None:
        raise InvalidArgumentError(f"{name}: padding must be 'SAME', 'VALID' or pairs (before, "
                                   f"after); got None")
    if not isinstance(kind, str):
        pairs = [as_ints(pair, f"{name}: padding") for pair in as_items(kind, f"{name}: padding")]
        if len(pairs) == rank + 2:
            outer = (pairs[0], pairs[1 if first else rank + 1])
            if any(n for pair in outer for n in pair):
                raise InvalidArgumentError(f"{name}: batch and channels cannot be padded; got "
                                           f"{pairs}")
            pairs = pairs[2:] if first else pairs[1:-1]
        kind = pairs
    # Without dilation the window is the filter, whose memory is there.
    if max(dilations) > 1 and any(span(*pair) >= 2 ** 31 for pair in zip(sizes, dilations)):
        raise InvalidArgumentError(f"{name}: a window must span fewer than 2**31 cells of an axis; "
                                   f"got sizes {list(sizes)} and dilations {list(dilations)}")
    try:
        pads = padding(kind, in_sizes, sizes, strides, dilations)
    except ValueError as error:
        raise InvalidArgumentError(f"{name}: {error}") from None
    # Looked at only where it may matter: this runs for every eager convolution.
    if any(after > _WIDE for _, after in pads):
        padded = [n + before + after for n, (before, after) in zip(in_sizes, pads)]
        if math.prod(padded) > _MOST_CELLS:
            raise InvalidArgumentError(f"{name}: an image must have fewer than 2**45 cells; got "
                                       f"{padded} after padding")
    return pads


class Windows:
    """The windows of a public function: its arguments checked, images with their channels last.

    `shape` is that of the images that the windows move over, in the layout `data_format`.
    """

    __slots__ = ("attrs", "first", "shape")

    def __init__(self, name: str, shape: Sizes, size: Sizes, strides: Any, padding: Any,
                 data_format: str | None, dilations: Any, rank: int = 2) -> None:
        self.first = first = is_channels_first(name, data_format, rank)
        steps = spatial_sizes(name, "strides", strides, rank, first)
        gaps = spatial_sizes(name, "dilations", dilations, rank, first)
        # Ops know images with channels last alone: one set of rules and kernels for both layouts,
        # at the price of a transposition.
        self.shape = (shape[0], *shape[2:], shape[1]) if first else shape
        pads = spatial_pads(name, padding, self.shape[1:-1], size, steps, gaps, first)
        #: What ops of windows take.
        self.attrs: dict[str, Any] = {"strides": steps, "dilations": gaps, "pads": pads}

    def last(self, x: Tensor) -> Tensor:
        """`x` with its channels last."""
        return channels_last(x) if self.first else x

    def laid_out(self, y: Tensor) -> Tensor:
        """`y`, whose channels are last, in the layout asked for."""
        return channels_first(y) if self.first else y


def window_outputs(name: str, in_sizes: Sequence[int], sizes: Sequence[int],
                   strides: Sequence[int], dilations: Sequence[int], pads: Pads) -> Sizes:
    """The spatial sizes of the result; no window may be larger than its padded input."""
    try:
        return out_sizes(in_sizes, sizes, strides, dilations, pads)
    except ValueError as error:
        raise InvalidArgumentError(f"{name}: {error}") from None


def require_rank(name: str, what: str, spec: Spec, ndim: int) -> None:
    """Raises InvalidArgumentError unless the tensor has `ndim` axes."""
    if spec.ndim != ndim:
        raise InvalidArgumentError(f"{name}: {what} must have rank {ndim}; got {spec}. Use "
                                   f"tf.expand_dims to add a batch or channel axis")


def spatial_rank(name: str, x: Spec) -> int:
    """The number of spatial axes of a batch with channels: 1, 2 or 3."""
    if not 3 <= x.ndim <= 5:
        raise InvalidArgumentError(f"{name}: the input must have a batch axis, 1 to 3 spatial axes "
                                   f"and channels; got {x}")
    return x.ndim - 2

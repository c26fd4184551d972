"""Depthwise convolution: each channel has its own filters.

x is [N, *spatial, C], a filter [*size, C, M], the result [N, *out, C * M], channel major.  With
every channel of x repeated M times there is one filter per channel, and the work is a product
and a sum per filter cell; no channel is summed, so a matrix product would gain nothing.
"""

from collections.abc import Iterator
from math import prod
from types import ModuleType

from .blocks import blocks
from .precision import working
from .windows import (
    Array,
    Pads,
    Sizes,
    cells,
    crop,
    out_sizes,
    pad,
    padded_shape,
)

# The products of one filter cell should stay in a core's cache until they are summed; measured
# 1.5 to 2.5 times faster than whole batches of 28x28x16.
HOST_BLOCK = 1 << 19


def depthwise_forward(xp: ModuleType, x: Array, filters: Array, strides: Sizes, dilations: Sizes,
                      pads: Pads) -> Array:
    """y[n, o, c * M + m] = sum over window cells k of x[n, o * stride + k * dilation, c]
    * filters[k, c, m], with x padded by zeros.

    Raises ValueError unless x and the filter have the same channels.
    """
    dtype = x.dtype
    x, filters = working(xp, x), working(xp, filters)
    *size, channels, multiplier = filters.shape
    _check_channels(x.shape, filters.shape)
    outs = out_sizes(x.shape[1:-1], size, strides, dilations, pads)
    padded = pad(xp, _repeated(xp, x, multiplier), pads)
    rows = _filter_rows(xp, filters, outs)
    y = xp.zeros((x.shape[0], *outs, channels * multiplier), x.dtype)
    for block in _blocks(xp, y):
        part, source = y[block], padded[block]
        products = xp.empty_like(part)
        for cell, where in cells(size, outs, strides, dilations):
            part += xp.multiply(source[where], rows[cell], out=products)
    return y.astype(dtype, copy=False)


def depthwise_input_grad(xp: ModuleType, g: Array, filters: Array, shape: Sizes, strides: Sizes,
                         dilations: Sizes, pads: Pads) -> Array:
    """The adjoint of `depthwise_forward` in x: g [N, *out, C * M] -> `shape` [N, *spatial, C]."""
    dtype = g.dtype
    g, filters = working(xp, g), working(xp, filters)
    *size, channels, multiplier = filters.shape
    _check_channels(shape, filters.shape)
    outs = g.shape[1:-1]
    rows = _filter_rows(xp, filters, outs)
    total = xp.zeros((*padded_shape(shape, pads)[:-1], channels * multiplier), g.dtype)
    for block in _blocks(xp, g):
        part, source = total[block], g[block]
        products = xp.empty_like(source)
        for cell, where in cells(size, outs, strides, dilations):
            part[where] += xp.multiply(source, rows[cell], out=products)
    inner = crop(total, pads)
    if multiplier > 1:
        inner = inner.reshape(*inner.shape[:-1], channels, multiplier).sum(axis=-1)
    return inner.astype(dtype, copy=False)


def depthwise_filter_grad(xp: ModuleType, x: Array, g: Array, size: Sizes, strides: Sizes,
                          dilations: Sizes, pads: Pads) -> Array:
    """The adjoint of `depthwise_forward` in the filter: x, g [N, *out, C * M] -> [*size, C, M]."""
    dtype = g.dtype
    x, g = working(xp, x), working(xp, g)
    channels, features = x.shape[-1], g.shape[-1]
    padded = pad(xp, _repeated(xp, x, features // channels), pads)
    filters = xp.zeros((*size, features), g.dtype)
    for block in _blocks(xp, g):
        part, source = g[block], padded[block]
        products = xp.empty_like(part)
        # As a product with ones BLAS adds rows in less than half of NumPy's time (sums.py).
        ones = xp.ones(prod(part.shape[:-1]), g.dtype)
        for cell, where in cells(size, g.shape[1:-1], strides, dilations):
            xp.multiply(source[where], part, out=products)
            filters[cell] += ones @ products.reshape(ones.size, features)
    return filters.reshape(*size, channels, -1).astype(dtype, copy=False)


def _repeated(xp: ModuleType, x: Array, multiplier: int) -> Array:
    """x with each channel `multiplier` times in a row."""
    return x if multiplier == 1 else xp.repeat(x, multiplier, axis=-1)


def _filter_rows(xp: ModuleType, filters: Array, outs: Sizes) -> Array:
    """Filters [*size, C, M] as [*size, W, C * M], repeated along the last spatial dimension W of
    the output, so that a product's inner loop is a whole row and not one cell's channels."""
    size = filters.shape[:-2]
    rows = filters.reshape(*size, 1, -1)
    return xp.repeat(rows, outs[-1], axis=-2)


def _blocks(xp: ModuleType, y: Array) -> Iterator[slice]:
    """Slices of the batch y whose values fill at most one block."""
    return blocks(xp, y.shape[0], prod(y.shape[1:]) * y.dtype.itemsize, HOST_BLOCK)


def _check_channels(in_shape: Sizes, filter_shape: Sizes) -> None:
    if in_shape[-1] != filter_shape[-2]:
        raise ValueError(
            "depthwise convolution: the filter must have one row per input channel; got input "
            f"{tuple(in_shape)}, filter {tuple(filter_shape)}; a depthwise filter is [*size, "
            "channels, multiplier]"
        )

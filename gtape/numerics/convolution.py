"""Convolution (cross-correlation), channels last, 1 to 3 spatial dimensions.

x is [N, *spatial, C], a filter [*size, C / groups, F], the result [N, *out, F]; the layout is
im2col (Chellapilla, Puri & Simard 2006, "High performance convolutional neural networks for
document processing"), so that the work is matrix products.  A depthwise filter is [*size, C, M],
the result [N, *out, C * M], channel major: with every channel of x repeated M times there is one
filter per channel, and the work is a product and a sum per filter cell; no channel is summed, so
a matrix product would gain nothing.

The forward maps and their two gradients are bilinear in their arguments and derivatives of one
another, so they are enough for every order; float16 is summed in float32.
"""

from collections.abc import Iterator
from math import prod
from types import ModuleType

from .arrays import blocks, working
from .windows import Array, Pads, Sizes, cells, crop, out_sizes, pad, padded_shape, patches

# Patches repeat each input cell once per filter cell; images are taken in blocks of this size
# so that memory stays bounded.  On 28x28x16 batches one block is as fast as smaller ones.
HOST_BLOCK = 1 << 26
# The product of one filter cell is added at once, so it should stay in a core's cache.
HOST_PRODUCT = 1 << 19


def conv_forward(xp: ModuleType, x: Array, filters: Array, strides: Sizes, dilations: Sizes,
                 pads: Pads, groups: int = 1) -> Array:
    """y[n, o, f] = sum over window cells k and channels c of x[n, o * stride + k * dilation, c] *
    filters[k, c, f], with x padded by zeros. Raises ValueError where channels, groups and filter
    shape do not agree."""
    dtype = x.dtype
    x, filters = working(xp, x), working(xp, filters)
    *size, depth, features = filters.shape
    check_channels(x.shape, filters.shape, groups)
    outs = out_sizes(x.shape[1:-1], size, strides, dilations, pads)
    windows = patches(xp, pad(xp, x, pads), size, strides, dilations)
    matrix = filters.reshape(prod(size) * depth, groups, features // groups).swapaxes(0, 1)
    # Group first: each matmul then writes one block of memory, and is transposed once at the end.
    y = xp.empty((groups, x.shape[0], prod(outs), features // groups), x.dtype)
    for block in _blocks(xp, windows):
        columns = _columns(windows[block], len(size), groups)
        xp.matmul(columns, matrix, out=y[:, block].reshape(*columns.shape[:2], features // groups))
    by_place = y.transpose(1, 2, 0, 3).reshape(x.shape[0], *outs, features)
    return by_place.astype(dtype, copy=False)


def conv_input_grad(xp: ModuleType, g: Array, filters: Array, shape: Sizes, strides: Sizes,
                    dilations: Sizes, pads: Pads, groups: int = 1) -> Array:
    """The adjoint of `conv_forward` in x: g [N, *out, F] -> an array of `shape` [N, *spatial, C].
    One product per filter cell, added where that cell reads: measured 1.2 to 2 times faster than
    folding one large product, and than a convolution with the flipped filter."""
    dtype = g.dtype
    g, filters = working(xp, g), working(xp, filters)
    *size, depth, features = filters.shape
    check_channels(shape, filters.shape, groups)
    outs = g.shape[1:-1]
    total = xp.zeros(padded_shape(shape, pads), g.dtype)
    per_image = prod(outs) * shape[-1] * g.dtype.itemsize
    for block in blocks(xp, shape[0], per_image, HOST_PRODUCT):
        source, part = g[block], total[block]
        # No -1: without features nothing would say how many rows there are.
        rows = source.reshape(len(source) * prod(outs), groups, features // groups).swapaxes(0, 1)
        # One array for the products of all filter cells, which stays in the cache.
        products = xp.empty((groups, rows.shape[1], depth), g.dtype)
        by_place = products.swapaxes(0, 1)
        for cell, where in cells(size, outs, strides, dilations):
            matrix = filters[cell].reshape(depth, groups, features // groups).transpose(1, 2, 0)
            xp.matmul(rows, matrix, out=products)
            part[where] += by_place.reshape(source.shape[0], *outs, shape[-1])
    return crop(total, pads).astype(dtype, copy=False)


def conv_filter_grad(xp: ModuleType, x: Array, g: Array, size: Sizes, strides: Sizes,
                     dilations: Sizes, pads: Pads, groups: int = 1) -> Array:
    """The adjoint of `conv_forward` in the filter: x, g [N, *out, F] -> [*size, C / groups, F]."""
    dtype = g.dtype
    x, g = working(xp, x), working(xp, g)
    depth, features = x.shape[-1] // groups, g.shape[-1]
    windows = patches(xp, pad(xp, x, pads), size, strides, dilations)
    total = xp.zeros((groups, prod(size) * depth, features // groups), g.dtype)
    for block in _blocks(xp, windows):
        columns = _columns(windows[block], len(size), groups)
        rows = g[block].reshape(columns.shape[1], groups, features // groups).swapaxes(0, 1)
        total += xp.matmul(columns.swapaxes(1, 2), rows)
    filters = total.swapaxes(0, 1).reshape(*size, depth, features)
    return filters.astype(dtype, copy=False)


def check_channels(in_shape: Sizes, filter_shape: Sizes, groups: int) -> None:
    """Raises ValueError unless C = groups * filter depth and F divides into groups."""
    *_, depth, features = filter_shape
    if in_shape[-1] != groups * depth or features % groups:
        raise ValueError(
            f"convolution: the input's channels must equal groups times the filter's depth, and "
            f"groups must divide the filter's outputs; got input {tuple(in_shape)}, filter "
            f"{tuple(filter_shape)}, groups {groups}; a filter is [*size, channels / groups, "
            f"outputs], channels last")


def _columns(windows: Array, rank: int, groups: int) -> Array:
    """Windows [n, *out, *size, C] as matrices [groups, n * out, size * C / groups] (im2col)."""
    n, channels = windows.shape[0], windows.shape[-1]
    outs, size = windows.shape[1 : 1 + rank], windows.shape[1 + rank : -1]
    depth = channels // groups
    split = windows.reshape(*windows.shape[:-1], groups, depth)
    by_group = split.transpose(split.ndim - 2, *range(split.ndim - 2), split.ndim - 1)
    return by_group.reshape(groups, n * prod(outs), prod(size) * depth)


def _blocks(xp: ModuleType, windows: Array) -> Iterator[slice]:
    """Slices of the batch whose patches fill at most one block."""
    per_image = prod(windows.shape[1:]) * windows.dtype.itemsize
    return blocks(xp, windows.shape[0], per_image, HOST_BLOCK)


# The products of one filter cell should stay in a core's cache until they are summed; measured
# 1.5 to 2.5 times faster than whole batches of 28x28x16.
HOST_ROWS = 1 << 19


def depthwise_forward(xp: ModuleType, x: Array, filters: Array, strides: Sizes, dilations: Sizes,
                      pads: Pads) -> Array:
    """y[n, o, c * M + m] = sum over window cells k of x[n, o * stride + k * dilation, c] *
    filters[k, c, m], with x padded by zeros. Raises ValueError unless x and the filter have the
    same channels."""
    dtype = x.dtype
    x, filters = working(xp, x), working(xp, filters)
    *size, channels, multiplier = filters.shape
    _check_depthwise(x.shape, filters.shape)
    outs = out_sizes(x.shape[1:-1], size, strides, dilations, pads)
    padded = pad(xp, _repeated(xp, x, multiplier), pads)
    rows = _filter_rows(xp, filters, outs)
    y = xp.zeros((x.shape[0], *outs, channels * multiplier), x.dtype)
    for block in _cached(xp, y):
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
    _check_depthwise(shape, filters.shape)
    outs = g.shape[1:-1]
    rows = _filter_rows(xp, filters, outs)
    total = xp.zeros((*padded_shape(shape, pads)[:-1], channels * multiplier), g.dtype)
    for block in _cached(xp, g):
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
    for block in _cached(xp, g):
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


def _cached(xp: ModuleType, y: Array) -> Iterator[slice]:
    """Slices of the batch y whose values fill at most one block."""
    return blocks(xp, y.shape[0], prod(y.shape[1:]) * y.dtype.itemsize, HOST_ROWS)


def _check_depthwise(in_shape: Sizes, filter_shape: Sizes) -> None:
    if in_shape[-1] != filter_shape[-2]:
        raise ValueError(
            f"depthwise convolution: the filter must have one row per input channel; got input "
            f"{tuple(in_shape)}, filter {tuple(filter_shape)}; a depthwise filter is [*size, "
            f"channels, multiplier]")

"""Max and average pooling, channels last, 1 to 3 spatial dimensions: [N, *spatial, C].

Max pooling also says which cell of each window won.  With that, its gradient (`unpool`) and
the gradient of its gradient (`pick`) are an adjoint pair of linear maps.
"""

from math import prod
from types import ModuleType

from .arrays import Array, working
from .windows import Pads, Sizes, cells, crop, out_sizes, pad, padded_shape


def max_pool(xp: ModuleType, x: Array, size: Sizes, strides: Sizes, dilations: Sizes,
             pads: Pads) -> Array:
    """The largest value of each window [N, *out, C]; padded cells never win, a NaN always does."""
    outs = out_sizes(x.shape[1:-1], size, strides, dilations, pads)
    padded = pad(xp, x, pads, lowest(xp, x.dtype))
    windows = cells(size, outs, strides, dilations)
    # Cell by cell of the window, each over all windows: as many passes as a window has cells, all
    # of them long.
    best = padded[next(windows)[1]].copy()
    for _, where in windows:
        xp.maximum(best, padded[where], out=best)
    return best


def winners(xp: ModuleType, x: Array, best: Array, size: Sizes, strides: Sizes, dilations: Sizes,
            pads: Pads) -> Array:
    """The row-major number of the first cell of each window that holds `best`, the result of
    `max_pool`: uint8, or int32 for windows of more than 256 cells."""
    padded = pad(xp, x, pads, lowest(xp, x.dtype))
    places = xp.zeros(best.shape, xp.uint8 if prod(size) <= 256 else xp.int32)
    missed = xp.ones(best.shape, bool)
    windows = list(cells(size, best.shape[1:-1], strides, dilations))
    for _, where in windows[:-1]:
        cell = padded[where]
        # A nan is unequal to itself too; it won where it comes first.
        missed &= (cell != best) & (cell == cell)
        # The number of the first winner is how many cells before it did not win: a sum of truth
        # values, for which eight bits are enough.
        places += missed
    return places


def unpool(xp: ModuleType, g: Array, places: Array, shape: Sizes, size: Sizes, strides: Sizes,
           dilations: Sizes, pads: Pads) -> Array:
    """g [N, *out, C] added to the winning cells of an array of zeros of `shape`."""
    total = xp.zeros(padded_shape(shape, pads), g.dtype)
    windows = cells(size, g.shape[1:-1], strides, dilations)
    for number, (_, where) in enumerate(windows):
        total[where] += _only(xp, g, places == number)
    return crop(total, pads)


def pick(xp: ModuleType, x: Array, places: Array, size: Sizes, strides: Sizes, dilations: Sizes,
         pads: Pads) -> Array:
    """The values of x [N, *spatial, C] at the winning cells; the adjoint of `unpool`."""
    padded = pad(xp, x, pads)
    values = xp.zeros(places.shape, x.dtype)
    for number, (_, where) in enumerate(cells(size, places.shape[1:-1], strides, dilations)):
        values = xp.where(places == number, padded[where], values)
    return values


def flat_index(xp: ModuleType, places: Array, shape: Sizes, size: Sizes, strides: Sizes,
               dilations: Sizes, pads: Pads, include_batch: bool = False) -> Array:
    """int64 positions of the winners in one flattened image [*spatial, C], or in the whole
    flattened batch of `shape` where `include_batch` holds."""
    rank = len(size)
    rest = places.astype(xp.int64)
    index = xp.zeros(places.shape, xp.int64)
    weight = shape[-1]
    for d in reversed(range(rank)):
        step = rest % size[d] * dilations[d] - pads[d][0]
        rest = rest // size[d]
        index += weight * (step + _along(xp, places.shape[d + 1], d + 1, rank) * strides[d])
        weight *= shape[d + 1]
    index += xp.arange(shape[-1])
    return index + _along(xp, shape[0], 0, rank) * weight if include_batch else index


def avg_pool(xp: ModuleType, x: Array, size: Sizes, strides: Sizes, dilations: Sizes,
             pads: Pads) -> Array:
    """The mean of each window [N, *out, C] over the cells that are not padding."""
    dtype = x.dtype
    padded = pad(xp, working(xp, x), pads)
    outs = out_sizes(x.shape[1:-1], size, strides, dilations, pads)
    total = xp.zeros((x.shape[0], *outs, x.shape[-1]), padded.dtype)
    for _, where in cells(size, outs, strides, dilations):
        total += padded[where]
    total /= window_counts(xp, x.shape, size, strides, dilations, pads).astype(total.dtype)
    return total.astype(dtype, copy=False)


def avg_pool_grad(xp: ModuleType, g: Array, shape: Sizes, size: Sizes, strides: Sizes,
                  dilations: Sizes, pads: Pads) -> Array:
    """The adjoint of `avg_pool`: g [N, *out, C] -> an array of `shape` [N, *spatial, C]."""
    dtype = g.dtype
    g = working(xp, g)
    share = g / window_counts(xp, shape, size, strides, dilations, pads).astype(g.dtype)
    total = xp.zeros(padded_shape(shape, pads), g.dtype)
    for _, where in cells(size, g.shape[1:-1], strides, dilations):
        total[where] += share
    return crop(total, pads).astype(dtype, copy=False)


def window_counts(xp: ModuleType, shape: Sizes, size: Sizes, strides: Sizes, dilations: Sizes,
                  pads: Pads) -> Array:
    """How many cells of each window lie inside the input, as [*out, 1], at least 1."""
    ones = xp.ones((1, *shape[1:-1], 1), xp.int32)
    outs = out_sizes(shape[1:-1], size, strides, dilations, pads)
    inside = pad(xp, ones, pads)
    counts = xp.zeros((1, *outs, 1), xp.int32)
    for _, where in cells(size, outs, strides, dilations):
        counts += inside[where]
    return xp.maximum(counts[0], 1)


def lowest(xp: ModuleType, dtype: object) -> float:
    """The value of `dtype` that no other is below: -inf, or the least integer."""
    kind = xp.dtype(dtype)
    return -float("inf") if kind.kind in "fV" else int(xp.iinfo(kind).min)


def _only(xp: ModuleType, g: Array, hit: Array) -> Array:
    """g where `hit` holds, else 0.  By bits: three times as fast as `where` on the host, and an
    infinite g leaves zeros elsewhere, which a product would not."""
    bits = g.view(f"i{g.dtype.itemsize}")
    return (bits & -hit.view(xp.int8)).view(g.dtype)


def _along(xp: ModuleType, length: int, axis: int, rank: int) -> Array:
    """0, 1, ... along one axis of [N, *out, C], broadcasting along the others."""
    shape = [1] * (rank + 2)
    shape[axis] = length
    return xp.arange(length).reshape(shape)

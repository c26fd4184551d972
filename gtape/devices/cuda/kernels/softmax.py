"""softmax, log-sum-exp, softmax cross entropy and their gradients, a launch each; None for arrays
that are not of one of the dtypes FLOATS, or whose shapes do not fit.

A row is read once where it fits: in the registers of part of a warp ("lanes") or of a block
("block"), or in shared memory ("shared"). A longer one is read twice ("stream"). Each name is the
end of a kernel's name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.runtime.executor import Executor, Grid, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel

if TYPE_CHECKING:
    import numpy as np

    from gtape.core.device import Array

_LANES_BLOCK = 128
_REGISTER_BLOCK = 256
_TILE_BLOCK = 512
_GRID_LIMIT = 2**31 - 1
#: Kept free for a kernel's static shared memory.
_STATIC_BYTES = 512


class RowValues(NamedTuple):
    """How many values of a row a thread holds: of a short row, of a longer one, and of a tile of a
    row that is copied to shared memory or read twice."""

    short: int
    long: int
    shared: int
    stream: int


#: By bytes of an element: 16 or 32 bytes of a short row, 32 to 64 of others. 64 bytes in flight
#: for each of 1024 threads keep the memory of a multiprocessor busy; more values of two bytes,
#: which are computed in four, do not fit into registers.
ONE_ROW = {2: RowValues(8, 32, 24, 16), 4: RowValues(8, 16, 16, 16), 8: RowValues(4, 8, 4, 8)}
#: The same where two rows are held.
TWO_ROWS = {2: RowValues(8, 16, 8, 16), 4: RowValues(8, 16, 8, 8), 8: RowValues(4, 4, 4, 4)}


class RowGeometry(NamedTuple):
    """A launch for rows: the kernel's form and its number of values, and how it is launched."""

    form: str
    values: int
    grid: Grid
    block: Grid
    smem: int
    #: How many lanes share a row in the form "lanes", as the kernel's last argument.
    lanes: tuple[int, ...]


def shared_bytes(gpu: Executor) -> int:
    """The dynamic shared memory that a block on `gpu` may have."""
    return gpu.shared_bytes - _STATIC_BYTES


def geometry(gpu: Executor, rows: int, cols: int, dtype: np.dtype, values: dict[int, RowValues],
             cached: int = 1) -> RowGeometry:
    """The launch for `rows` rows of `cols` elements.

    Args:
        values: ONE_ROW or TWO_ROWS.
        cached: how many rows "shared" keeps; 0: reading a row once needs no copy of it.
    """
    return _geometry(rows, cols, dtype.itemsize, values[dtype.itemsize], cached,
                     shared_bytes(gpu), gpu.multiprocessors)


# As in `reduction_geometry`: shapes recur, and this takes longer than a launch.
@lru_cache(4096)
def _geometry(rows: int, cols: int, itemsize: int, values: RowValues, cached: int, shared: int,
              multiprocessors: int) -> RowGeometry:
    if cols <= 32 * values.long:
        return _in_lanes(rows, cols, values)
    grid = (min(rows, _GRID_LIMIT), 1, 1)
    if cached and cols <= _REGISTER_BLOCK * values.long:
        threads = _warps(cols, values.long)
        return RowGeometry("block", values.long, grid, (threads, 1, 1), 0, ())
    smem = cached * (-(-cols * itemsize // 16) * 16)
    fits = 0 < smem <= shared
    # One block on a multiprocessor, for want of shared memory or of rows, is a large one.
    alone = (fits and 2 * smem > shared) or rows <= multiprocessors
    most = (2 if alone else 1) * _TILE_BLOCK
    each = values.shared if fits else values.stream
    tiles = -(-cols // (most * each))
    threads = _warps(-(-cols // tiles), each)
    return RowGeometry("shared" if fits else "stream", each, grid, (threads, 1, 1),
                       smem if fits else 0, ())


def _warps(cols: int, values: int) -> int:
    """The threads, a multiple of 32, that hold `cols` columns."""
    return -(-cols // (32 * values)) * 32


def _in_lanes(rows: int, cols: int, values: RowValues) -> RowGeometry:
    each = values.short if cols <= 32 * values.short else values.long
    # Four threads read 64 bytes together, which is two whole sectors of memory.
    lanes = 4
    while lanes * each < cols:
        lanes *= 2
    grid = (min(-(-rows * lanes // _LANES_BLOCK), _GRID_LIMIT), 1, 1)
    return RowGeometry("lanes", each, grid, (_LANES_BLOCK, 1, 1), 0, (lanes,))


def forms(values: RowValues, once: bool = False) -> Iterator[tuple[str, int]]:
    """Every form with its number of values; `once`: those that `cached=0` can choose."""
    yield from dict.fromkeys([("lanes", values.short), ("lanes", values.long)])
    if not once:
        yield "block", values.long
        yield "shared", values.shared
    yield "stream", values.stream


#: What a launch writes beside the losses: `output` in the kernels.
_NOTHING, _PROBABILITIES, _GRADIENT = range(3)
#: Dense labels are read when their row of logits is on chip, so that a tile has one row in flight.
_VALUES = {"SparseLabels": ONE_ROW, "DenseLabels": TWO_ROWS | {2: TWO_ROWS[2]._replace(shared=16)}}
_GRAD_BLOCK = 256
_GRAD_VALUES = {2: 16, 4: 16, 8: 8}


def instances() -> Iterator[Kernel]:
    for dtype in FLOATS:
        size = numpy_dtype(dtype).itemsize
        for result in ("Softmax", "LogSoftmax", "Share", "LogSumExp"):
            for form, values in forms(ONE_ROW[size], once=result == "LogSumExp"):
                yield shipped_kernel("softmax.cu", f"softmax_{form}", dtype, values, result)
        for result in ("SoftmaxGrad", "LogSoftmaxGrad"):
            for form, values in forms(TWO_ROWS[size]):
                yield shipped_kernel("softmax_grad.cu", f"softmax_grad_{form}", dtype, values,
                                     result)
        for labels, held in _VALUES.items():
            for form, each in forms(held[size]):
                yield shipped_kernel("cross_entropy.cu", f"cross_entropy_{form}", dtype, each,
                                     labels)
        for targets in ("SparseTargets", "DenseTargets"):
            yield shipped_kernel("cross_entropy_grad.cu", "cross_entropy_grad", dtype,
                                 _GRAD_VALUES[size], targets)


def softmax(gpu: Executor, x: Array, axis: int = -1) -> Any:
    """eˣ / Σ eˣ along `axis`; nan where a row has nan or +inf, or -inf alone."""
    return _along(gpu, axis, "Softmax", x)


def log_softmax(gpu: Executor, x: Array, axis: int = -1) -> Any:
    """x - log Σ eˣ along `axis`; nan where a row has nan or +inf, or -inf alone."""
    return _along(gpu, axis, "LogSoftmax", x)


def logsumexp(gpu: Executor, x: Array) -> Any:
    """log Σ eˣ over the last axis; -inf for -inf alone or for no elements, inf where +inf is."""
    if dtype_name(x.dtype) not in FLOATS:
        return None
    x = gpu.contiguous(x)
    y = gpu.empty(x.shape[:-1], x.dtype)
    _launch_rows(gpu, "LogSumExp", x, x, y, cached=0)
    return y


def reduce_logsumexp(gpu: Executor, x: Array, axis: tuple[int, ...], keepdims: bool) -> Any:
    """log Σ eˣ over the axes `axis`; None where others come after them, or as in `logsumexp`."""
    rows = _trailing(x, axis)
    reduced = None if rows is None else logsumexp(gpu, rows)
    return None if reduced is None else reduced.reshape(
        rows.shape[:-1] + (1,) * len(axis) if keepdims else rows.shape[:-1])


def reduce_logsumexp_grad(gpu: Executor, g: Array, x: Array, axis: tuple[int, ...]) -> Any:
    """g times the shares of x of Σ eˣ over the axes `axis`; None as in `reduce_logsumexp`."""
    rows = _trailing(x, axis)
    gradient = None if rows is None else logsumexp_grad(gpu, g.reshape(rows.shape[:-1]), rows)
    return None if gradient is None else gradient.reshape(x.shape)


def _trailing(x: Array, axis: tuple[int, ...]) -> Any:
    """x with `axis` as its last one; None where other axes come after them."""
    kept = x.ndim - len(axis)
    if not axis or tuple(sorted(axis)) != tuple(range(kept, x.ndim)):
        return None
    return x.reshape((*x.shape[:kept], math.prod(x.shape[kept:])))


def softmax_grad(gpu: Executor, g: Array, y: Array, axis: int = -1) -> Any:
    """y g - y Σ y g along `axis`: the adjoint derivative of softmax at the result y, applied to
    g."""
    return _along(gpu, axis, "SoftmaxGrad", y, g)


def log_softmax_grad(gpu: Executor, g: Array, y: Array, axis: int = -1) -> Any:
    """g - e^y Σ g along `axis`: the adjoint derivative of log_softmax at the result y, applied
    to g."""
    return _along(gpu, axis, "LogSoftmaxGrad", y, g)


def logsumexp_grad(gpu: Executor, g: Array, x: Array) -> Any:
    """g eˣ / Σ eˣ over the last axis, where g has the shape of x without it; 0 for a row of -inf.
    Made of x and not of log Σ eˣ, which a two-byte float holds too coarsely."""
    if dtype_name(x.dtype) not in FLOATS or g.dtype != x.dtype or g.shape != x.shape[:-1]:
        return None
    x, g = gpu.contiguous(x), gpu.contiguous(g)
    y = gpu.empty(x.shape, x.dtype)
    _launch_rows(gpu, "Share", x, g, y)
    return y


def _along(gpu: Executor, axis: int, result: str, *arrays: Any) -> Any:
    """The kernel of `result` on arrays of one shape and dtype, with `axis` moved to the end and
    back."""
    x = arrays[0]
    if dtype_name(x.dtype) not in FLOATS or any(
            a.dtype != x.dtype or a.shape != x.shape for a in arrays):
        return None
    last = axis in (-1, x.ndim - 1)
    if not last:
        arrays = tuple(gpu.xp.moveaxis(a, axis, -1) for a in arrays)
    given = [gpu.contiguous(a) for a in arrays]
    y = gpu.empty(given[0].shape, x.dtype)
    if y.size:
        _launch_rows(gpu, result, given[0], given[-1], y, cached=len(given))
    return y if last else gpu.contiguous(gpu.xp.moveaxis(y, -1, axis))


def _launch_rows(gpu: Executor, result: str, x: Array, second: Array, y: Array, cached: int = 1,
                 ) -> None:
    """Kernels of one array take it twice: only LogSumExp's gradient has weights to read there."""
    name, values = ("softmax_grad", TWO_ROWS) if result.endswith("Grad") else ("softmax", ONE_ROW)
    cols, rows = x.shape[-1], math.prod(x.shape[:-1])
    to = geometry(gpu, rows, cols, x.dtype, values, cached)
    kernel = shipped_kernel(f"{name}.cu", f"{name}_{to.form}", dtype_name(x.dtype), to.values,
                            result)
    gpu.launch(kernel, to.grid, to.block, (x, second, y, rows, cols, *to.lanes), to.smem)


# ---------------------------------------------------------------- cross entropy
# Labels are classes by number (integers of any dtype, of the shape of the logits without the last
# axis; one outside [0, classes) makes nan of its row, as TensorFlow's GPU kernels do) or dense (of
# the shape and dtype of the logits). All functions return None for other arrays.
def cross_entropy_loss(gpu: Executor, logits: Array, labels: object) -> Any:
    """ℓ = -Σ labels log softmax(logits), or -log softmax(logits)[label]."""
    if _labels(logits, labels) is None:
        return None
    return _launch_losses(gpu, logits, labels, _NOTHING)[0]


def cross_entropy(gpu: Executor, logits: object, labels: object) -> Any:
    """(ℓ, softmax(logits))."""
    if _labels(logits, labels) is None:
        return None
    return _launch_losses(gpu, logits, labels, _PROBABILITIES)


def cross_entropy_and_gradient(gpu: Executor, logits: Array, labels: object,
                               weights: Array | None = None, scale: float = 1.0,
                               in_place: bool = False) -> Any:
    """(ℓ, w (softmax(logits) - labels)), classes by number as one-hot rows.

    The gradient takes labels to sum to 1, whatever they are.

    Args:
        weights: the cotangent of each loss, of its shape and of the dtype of the logits.
        scale: w is `scale`, times the row's weight where weights are given.
        in_place: whether the gradient may take the memory of the logits. It does so where they
            are contiguous.
    """
    if _labels(logits, labels) is None or (weights is not None and (
            weights.shape != logits.shape[:-1] or weights.dtype != logits.dtype)):
        return None
    return _launch_losses(gpu, logits, labels, _GRADIENT, weights, float(scale), in_place)


def cross_entropy_grad(gpu: Executor, a: Any, probs: Any, labels: object) -> Any:
    """a (probs - labels), classes by number as one-hot rows: the gradient for the logits where
    the losses have the cotangent a, made of the probabilities."""
    kind = _labels(probs, labels)
    if kind is None or a.dtype != probs.dtype or a.shape != probs.shape[:-1]:
        return None
    a, probs, labels = gpu.contiguous(a), gpu.contiguous(probs), gpu.contiguous(labels)
    y = gpu.empty(probs.shape, probs.dtype)
    if probs.size:
        cols = probs.shape[-1]
        rows = probs.size // cols
        values = _GRAD_VALUES[probs.dtype.itemsize]
        # Four lanes at least: 64 bytes together, two whole sectors of memory.
        team = 4
        while team < _GRAD_BLOCK and team * values < cols:
            team *= 2
        kernel = shipped_kernel("cross_entropy_grad.cu", "cross_entropy_grad",
                                dtype_name(probs.dtype), values,
                                "SparseTargets" if kind else "DenseTargets")
        gpu.launch(kernel, gpu.blocks(rows, _GRAD_BLOCK // team, waves=64), (_GRAD_BLOCK, 1, 1),
                   (a, probs, labels, y, rows, cols, kind, team))
    return y


def _labels(logits: Any, labels: Any) -> int | None:
    """0 for dense labels, `kind` of kernels/class_labels.cuh for classes; None: not served."""
    if dtype_name(logits.dtype) not in FLOATS or not logits.ndim:
        return None
    if labels.dtype == logits.dtype:
        return 0 if labels.shape == logits.shape else None
    if labels.dtype.kind not in "iu" or labels.shape != logits.shape[:-1]:
        return None
    size = int(labels.dtype.itemsize)
    return -size if labels.dtype.kind == "u" else size


def _launch_losses(gpu: Executor, logits: Any, labels: object, output: int,
                   weights: Array | None = None, scale: float = 1.0,
                   in_place: bool = False) -> tuple[Any, Any]:
    kind = _labels(logits, labels)
    x, labels = gpu.contiguous(logits), gpu.contiguous(labels)
    losses = gpu.empty(x.shape[:-1], x.dtype)
    # Where nothing is written beside the losses, x and the losses stand for arrays not used.
    second = x if output == _NOTHING or (in_place and x is logits) else gpu.empty(x.shape, x.dtype)
    weighted = weights is not None
    given = gpu.contiguous(weights) if weighted else losses
    cols = x.shape[-1]
    rows = math.prod(x.shape[:-1])
    name = "SparseLabels" if kind else "DenseLabels"
    # Losses of classes by number need their row once, and nothing of it afterwards.
    once = output == _NOTHING and bool(kind)
    to = geometry(gpu, rows, cols, x.dtype, _VALUES[name], cached=0 if once else 1)
    kernel = shipped_kernel("cross_entropy.cu", f"cross_entropy_{to.form}", dtype_name(x.dtype),
                            to.values, name)
    gpu.launch(kernel, to.grid, to.block,
               (x, labels, given, losses, second, rows, cols, kind, output, int(weighted), scale,
                *to.lanes), to.smem)
    return losses, second

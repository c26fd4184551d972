"""softmax, log_softmax, log-sum-exp and their gradients along an axis, a launch each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.kernels.row_geometry import ONE_ROW, TWO_ROWS, forms, geometry
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel

if TYPE_CHECKING:
    from gtape.core.device import Array


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


def softmax(gpu: Executor, x: Array, axis: int = -1) -> Any:
    """eˣ / Σ eˣ along `axis`; nan where a row has nan or +inf, or -inf alone.

    Returns:
        An array like x, or None: not of the dtypes FLOATS.
    """
    return _along(gpu, axis, "Softmax", _forward, x)


def log_softmax(gpu: Executor, x: Array, axis: int = -1) -> Any:
    """x - log Σ eˣ along `axis`; nan where a row has nan or +inf, or -inf alone.

    Returns:
        An array like x, or None: not of the dtypes FLOATS.
    """
    return _along(gpu, axis, "LogSoftmax", _forward, x)


def logsumexp(gpu: Executor, x: Array) -> Any:
    """log Σ eˣ over the last axis; -inf for -inf alone or for no elements, inf where +inf is.

    Returns:
        An array of the shape of x without its last axis, or None: not of the dtypes FLOATS.
    """
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
    """y g - y Σ y g along `axis`: the adjoint derivative of softmax at the result y, applied to g.

    Returns:
        An array like y, or None: not two arrays of one shape and one of the dtypes FLOATS.
    """
    return _along(gpu, axis, "SoftmaxGrad", _backward, y, g)


def log_softmax_grad(gpu: Executor, g: Array, y: Array, axis: int = -1) -> Any:
    """g - e^y Σ g along `axis`: the adjoint derivative of log_softmax at the result y, applied
    to g.

    Returns:
        An array like y, or None: not two arrays of one shape and one of the dtypes FLOATS.
    """
    return _along(gpu, axis, "LogSoftmaxGrad", _backward, y, g)


def logsumexp_grad(gpu: Executor, g: Array, x: Array) -> Any:
    """g eˣ / Σ eˣ over the last axis, where g has the shape of x without it; 0 for a row of -inf.

    Made of x and not of log Σ eˣ, which a two-byte float holds too coarsely.

    Returns:
        An array like x, or None: another shape of g, or not of one of the dtypes FLOATS.
    """
    if dtype_name(x.dtype) not in FLOATS or g.dtype != x.dtype or g.shape != x.shape[:-1]:
        return None
    x, g = gpu.contiguous(x), gpu.contiguous(g)
    y = gpu.empty(x.shape, x.dtype)
    _launch_rows(gpu, "Share", x, g, y)
    return y


def _along(gpu: Executor, axis: int, result: str, run: Any, *arrays: Any) -> Any:
    """`run` on arrays of one shape and dtype, with `axis` moved to the end and back."""
    x = arrays[0]
    if dtype_name(x.dtype) not in FLOATS or any(
            a.dtype != x.dtype or a.shape != x.shape for a in arrays):
        return None
    last = axis in (-1, x.ndim - 1)
    if not last:
        arrays = tuple(gpu.xp.moveaxis(a, axis, -1) for a in arrays)
    y = run(gpu, result, *[gpu.contiguous(a) for a in arrays])
    return y if last else gpu.contiguous(gpu.xp.moveaxis(y, -1, axis))


def _forward(gpu: Executor, result: str, x: Array) -> Any:
    y = gpu.empty(x.shape, x.dtype)
    if x.size:
        _launch_rows(gpu, result, x, x, y)
    return y


def _launch_rows(gpu: Executor, result: str, x: Array, weights: Array, y: Array, cached: int = 1,
                 ) -> None:
    cols = x.shape[-1]
    rows = math.prod(x.shape[:-1])
    to = geometry(gpu, rows, cols, x.dtype, ONE_ROW, cached)
    kernel = shipped_kernel("softmax.cu", f"softmax_{to.form}", dtype_name(x.dtype), to.values,
                            result)
    gpu.launch(kernel, to.grid, to.block, (x, weights, y, rows, cols, *to.lanes), to.smem)


def _backward(gpu: Executor, result: str, y: Array, g: Array) -> Any:
    dx = gpu.empty(y.shape, y.dtype)
    if y.size:
        cols = y.shape[-1]
        rows = y.size // cols
        to = geometry(gpu, rows, cols, y.dtype, TWO_ROWS, cached=2)
        kernel = shipped_kernel("softmax_grad.cu", f"softmax_grad_{to.form}", dtype_name(y.dtype),
                                to.values, result)
        gpu.launch(kernel, to.grid, to.block, (y, g, dx, rows, cols, *to.lanes), to.smem)
    return dx

"""Batch normalisation with the channels last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gtape.devices.cuda.kernels.column_tiles import (
    COMPUTE,
    THREADS,
    finish,
    finishing,
    tiles,
    width,
)
from gtape.devices.cuda.runtime.executor import Executor
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel

_BLOCK = (THREADS, 1, 1)


def batch_norm_training(gpu: Executor, x: object, scale: object, shift: object,
                        eps: float) -> tuple[Any, Any, Any]:
    """y = (x - μ) / √(σ² + eps) · scale + shift, with μ and σ² of each channel.

    Ioffe & Szegedy 2015, arXiv:1502.03167.

    Args:
        gpu: where to run.
        x: [..., channels] of a float dtype.
        scale, shift: [channels] of x's dtype.
        eps: added to the variance.

    Returns:
        y of x's shape and dtype; μ and σ² [channels], float64 for float64 and else float32.
    """
    x = gpu.contiguous(x)
    mean, variance = _moments(gpu, x)
    return batch_norm(gpu, x, mean, variance, scale, shift, eps), mean, variance


def batch_norm(gpu: Executor, x: Any, mean: Any, variance: object, scale: object, shift: object,
               eps: float) -> Any:
    """y = (x - mean) / √(variance + eps) · scale + shift, as in inference.

    Args:
        gpu: where to run.
        x: [..., channels] of a float dtype.
        mean, variance: [channels], both of x's dtype or both of the dtype to compute in.
        scale, shift: [channels] of x's dtype.
        eps: added to the variance.
    """
    x, mean, variance, scale, shift = (
        gpu.contiguous(a) for a in (x, mean, variance, scale, shift))
    rows, cols = _shape(x)
    y = gpu.empty(x.shape, x.dtype)
    over = tiles(gpu, rows, cols, dtype_name(x.dtype))
    gpu.launch(_applying(dtype_name(x.dtype), dtype_name(mean.dtype)), over.grid, _BLOCK,
               (x, mean, variance, scale, shift, y, rows, cols, over.lanes, over.each, eps))
    return y


def batch_norm_backward(gpu: Executor, g: object, x: Any, scale: object, mean: object,
                        variance: object, eps: float) -> tuple[Any, Any, Any]:
    """The gradients of x, scale and shift for the cotangent g of y in training.

    With n = (x - μ) f, f = 1 / √(σ² + eps) and N values in a channel: dshift = Σ g,
    dscale = Σ g n and dx = scale f (g - dshift / N - n dscale / N). mean and variance are of the
    dtype to compute in. The sums are deterministic.
    """
    g, x, scale, mean, variance = (gpu.contiguous(a) for a in (g, x, scale, mean, variance))
    rows, cols = _shape(x)
    dtype = dtype_name(x.dtype)
    over = tiles(gpu, rows, cols, dtype)
    partial = gpu.empty((2, over.chunks, cols), COMPUTE[dtype])
    gpu.launch(_kernel("sums", dtype), over.grid, _BLOCK,
               (g, x, mean, variance, partial, rows, cols, over.lanes, over.each, eps))
    # dx needs both sums over the whole channel, so x and g are read twice; a channel is too long to
    # be held meanwhile.
    sums = finish(gpu, partial, COMPUTE[dtype])
    d_x, d_scale, d_shift = (gpu.empty(s, x.dtype) for s in (x.shape, (cols,), (cols,)))
    gpu.launch(_kernel("backward", dtype), over.grid, _BLOCK,
               (g, x, scale, mean, variance, sums, d_x, d_scale, d_shift, rows, cols, over.lanes,
                over.each, eps))
    return d_x, d_scale, d_shift


def _moments(gpu: Executor, x: Any) -> tuple[Any, Any]:
    """The mean and the variance of each channel."""
    rows, cols = _shape(x)
    dtype = dtype_name(x.dtype)
    compute = COMPUTE[dtype]
    over = tiles(gpu, rows, cols, dtype)
    partial = gpu.empty((2, over.chunks, cols), compute)
    gpu.launch(_kernel("moments", dtype), over.grid, _BLOCK,
               (x, partial, rows, cols, over.lanes, over.each))
    mean, variance = gpu.empty((cols,), compute), gpu.empty((cols,), compute)
    gpu.launch(_merging(compute), (-(-cols * 32 // THREADS), 1, 1), _BLOCK,
               (partial, mean, variance, over.chunks, rows, cols, over.each))
    return mean, variance


def _shape(x: Any) -> tuple[int, int]:
    """Rows and channels."""
    cols = x.shape[-1]
    return x.size // max(cols, 1), cols


def _kernel(what: str, dtype: str) -> Kernel:
    return shipped_kernel("batch_norm.cu", f"batch_norm_{what}", dtype, width(dtype))


def _applying(dtype: str, of: str) -> Kernel:
    return shipped_kernel("batch_norm.cu", "batch_norm_apply", dtype, of, width(dtype))


def _merging(compute: str) -> Kernel:
    return shipped_kernel("batch_norm.cu", "batch_norm_merge", compute)


def instances() -> Iterator[Kernel]:
    """Every kernel that can be launched."""
    for dtype, compute in COMPUTE.items():
        for what in ("moments", "sums", "backward"):
            yield _kernel(what, dtype)
        for of in sorted({dtype, compute}):
            yield _applying(dtype, of)
    for compute in sorted(set(COMPUTE.values())):
        yield _merging(compute)
    yield from finishing()

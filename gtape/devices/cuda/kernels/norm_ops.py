"""The normalisations as the ops have them: over any last axes, or over all but the last."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gtape.devices.cuda.kernels import batch_norm as batch
from gtape.devices.cuda.kernels import layer_norm as layer
from gtape.devices.cuda.kernels import rms_norm as rms
from gtape.devices.cuda.kernels.column_tiles import COMPUTE
from gtape.devices.cuda.runtime.executor import Executor
from gtape.devices.cuda.runtime.kernel import dtype_name

if TYPE_CHECKING:
    from gtape.core.device import Array

Axes = tuple[int, ...]


def _served(x: Any, params: tuple[object, ...], shape: tuple[int, ...]) -> bool:
    """Whether x is of a float dtype and each parameter of it, and of `shape` after axes of
    length 1."""
    def fits(p: Any) -> bool:
        before = p.ndim - len(shape)
        return (0 <= before <= x.ndim - len(shape) and p.shape == (1,) * before + shape
                and p.dtype == x.dtype)

    return dtype_name(x.dtype) in COMPUTE and all(fits(p) for p in params)


def _rows(x: Any, axes: Axes, params: tuple[object, ...]) -> int | None:
    """How long a row is where the kernels of rows serve these axes and parameters."""
    first = x.ndim - len(axes)
    if not axes or axes != tuple(range(first, x.ndim)) or not _served(x, params, x.shape[first:]):
        return None
    return math.prod(x.shape[first:])


def _by_rows(gpu: Executor, x: Any, cols: int) -> Any:
    """x as [rows, cols]."""
    return gpu.contiguous(x).reshape((x.size // max(cols, 1), cols))


def _kept(x: Any, axes: Axes) -> tuple[int, ...]:
    """The shape of x with `axes` of length 1."""
    return tuple(1 if i in axes else n for i, n in enumerate(x.shape))


def layer_norm(gpu: Executor, x: Any, scale: object, shift: object, axes: Axes,
               eps: float) -> tuple[object, ...] | None:
    """(y, mean, factor); None where the kernels do not serve these arrays."""
    cols = _rows(x, axes, (scale, shift))
    if not cols:
        return None
    y, *kept = layer.layer_norm(gpu, _by_rows(gpu, x, cols), _flat(gpu, scale),
                                _flat(gpu, shift), eps)
    return (y.reshape(x.shape), *(a.reshape(_kept(x, axes)) for a in kept))


def layer_norm_grad(gpu: Executor, g: Array, x: Array, scale: Array, mean: Array, factor: object,
                    axes: Axes, shift_shape: tuple[int, ...]) -> tuple[object, ...] | None:
    """(dx, dscale, dshift); None where the kernels do not serve these arrays."""
    cols = _rows(x, axes, (scale,))
    if not cols or not _statistics(x, mean, factor) or math.prod(shift_shape) != cols:
        return None
    d_x, d_scale, d_shift = layer.layer_norm_backward(
        gpu, _by_rows(gpu, g, cols), _by_rows(gpu, x, cols), _flat(gpu, scale),
        _flat(gpu, mean), _flat(gpu, factor))
    return d_x.reshape(x.shape), d_scale.reshape(scale.shape), d_shift.reshape(shift_shape)


def rms_norm(gpu: Executor, x: Array, scale: Array, axes: Axes,
             eps: float) -> tuple[object, ...] | None:
    """(y, factor); None where the kernels do not serve these arrays."""
    cols = _rows(x, axes, (scale,))
    if not cols:
        return None
    y, factor = rms.rms_norm(gpu, _by_rows(gpu, x, cols), _flat(gpu, scale), eps)
    return y.reshape(x.shape), factor.reshape(_kept(x, axes))


def rms_norm_grad(gpu: Executor, g: Array, x: Array, scale: Array, factor: object,
                  axes: Axes) -> tuple[object, ...] | None:
    """(dx, dscale); None where the kernels do not serve these arrays."""
    cols = _rows(x, axes, (scale,))
    if not cols or not _statistics(x, factor):
        return None
    d_x, d_scale = rms.rms_norm_backward(
        gpu, _by_rows(gpu, g, cols), _by_rows(gpu, x, cols), _flat(gpu, scale),
        _flat(gpu, factor))
    return d_x.reshape(x.shape), d_scale.reshape(scale.shape)


def batch_norm_training(gpu: Executor, x: object, scale: object, shift: object, axes: Axes,
                        eps: float) -> tuple[object, ...] | None:
    """(y, mean, variance); None where the kernels do not serve these arrays."""
    if not _channels_last(x, axes, (scale, shift)):
        return None
    y, *kept = batch.batch_norm_training(gpu, x, _flat(gpu, scale), _flat(gpu, shift), eps)
    return (y, *(a.reshape(_kept(x, axes)) for a in kept))


def batch_norm_grad(gpu: Executor, g: object, x: Any, scale: Any, mean: object, variance: object,
                    axes: Axes, eps: float,
                    shift_shape: tuple[int, ...]) -> tuple[object, ...] | None:
    """(dx, dscale, dshift); None where the kernels do not serve these arrays."""
    if not (_channels_last(x, axes, (scale,)) and _statistics(x, mean, variance)
            and math.prod(shift_shape) == x.shape[-1]):
        return None
    d_x, d_scale, d_shift = batch.batch_norm_backward(
        gpu, g, x, _flat(gpu, scale), _flat(gpu, mean), _flat(gpu, variance), eps)
    return d_x, d_scale.reshape(scale.shape), d_shift.reshape(shift_shape)


def batch_norm(gpu: Executor, x: Any, mean: object, variance: object, offset: object, scale: object,
               eps: float) -> Any:
    """y of inference; None where the kernels do not serve these arrays."""
    params = (mean, variance, scale, offset)
    if not _channels_last(x, tuple(range(x.ndim - 1)), params):
        return None
    return batch.batch_norm(gpu, x, _flat(gpu, mean), _flat(gpu, variance), _flat(gpu, scale),
                            _flat(gpu, offset), eps)


def _channels_last(x: Any, axes: Axes, params: tuple[object, ...]) -> bool:
    return (x.ndim > 1 and x.size > 0 and axes == tuple(range(x.ndim - 1))
            and _served(x, params, x.shape[-1:]))


def _statistics(x: Any, *kept: Any) -> bool:
    """Whether saved values are of the dtype that the kernels compute in."""
    return all(dtype_name(a.dtype) == COMPUTE[dtype_name(x.dtype)] for a in kept)


def _flat(gpu: Executor, array: Any) -> Any:
    return gpu.contiguous(array).reshape((array.size,))

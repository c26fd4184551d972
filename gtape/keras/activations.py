"""Activation functions under the names and with the arguments of `keras.activations`."""

from __future__ import annotations

from typing import Any

from gtape.core.convert import convert
from gtape.core.tensor import Tensor
from gtape.keras.lookup import resolve
from gtape.ops import activations as _ops
from gtape.ops import softmax as _softmax
from gtape.ops.activations import (
    celu,
    exponential,
    gelu,
    glu,
    hard_shrink,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    linear,
    log_sigmoid,
    mish,
    relu6,
    selu,
    silu,
    soft_shrink,
    softplus,
    softsign,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh_shrink,
    threshold,
)
from gtape.ops.scalars import minimum, sigmoid, tanh


def relu(x: Any, negative_slope: float = 0.0, max_value: float | None = None,
         threshold: float = 0.0) -> Tensor:
    """max(x, 0); with the arguments: negative_slope (x - threshold) below `threshold`, x above
    it, at most `max_value`.

    Raises:
        ValueError: a negative slope or limit.
    """
    if not (negative_slope or threshold) and max_value is None:
        return _ops.relu(x)
    if negative_slope < 0 or threshold < 0 or (max_value is not None and max_value < 0):
        raise ValueError(f"relu: negative_slope, max_value and threshold must not be negative; "
                         f"got {negative_slope}, {max_value}, {threshold}")
    x = convert(x)
    made: Any = _ops.relu(x) if not threshold else _ops.threshold(x, threshold, 0.0)
    if max_value is not None:
        made = minimum(made, max_value)
    if negative_slope:
        made = made - negative_slope * _ops.relu(threshold - x)
    return made


def leaky_relu(x: Any, negative_slope: float = 0.2) -> Tensor:
    """x where it is positive, else negative_slope x."""
    return _ops.leaky_relu(x, negative_slope)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """x where it is positive, else alpha (eˣ - 1) (arXiv:1511.07289)."""
    if alpha == 1:
        return _ops.elu(x)
    x = convert(x)
    return _ops.relu(x) + alpha * _ops.elu(minimum(x, 0.0))


def softmax(x: Any, axis: Any = -1) -> Any:
    """eˣ / Σ eˣ along `axis`, which may be several axes.

    Raises:
        InvalidArgumentError: no such axis.
    """
    if isinstance(axis, int):
        return _softmax.softmax(x, axis)
    return _over_axes(_softmax.softmax, convert(x), tuple(axis))


def log_softmax(x: Any, axis: Any = -1) -> Any:
    """log softmax(x) along `axis`, which may be several axes."""
    if isinstance(axis, int):
        return _softmax.log_softmax(x, axis)
    return _over_axes(_softmax.log_softmax, convert(x), tuple(axis))


def _over_axes(function: Any, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """`function` along the axes taken as one."""
    import numpy as np

    from gtape.ops.layout import reshape, transpose

    axes = tuple(a % x.ndim for a in axes)
    order = [a for a in range(x.ndim) if a not in axes] + list(axes)
    moved = transpose(x, order)
    kept = moved.shape[: x.ndim - len(axes)]
    made = function(reshape(moved, [*kept, -1]), -1)
    return transpose(reshape(made, moved.shape), [int(i) for i in np.argsort(order)])


def sparsemax(x: Any, axis: int = -1) -> Tensor:
    """The point of the probability simplex nearest to x (arXiv:1602.02068)."""
    return _softmax.sparsemax(x, axis)


_TABLE: dict[str, Any] = {
    f.__name__: f for f in (relu, leaky_relu, elu, softmax, log_softmax, sparsemax, gelu, glu,
                            hard_shrink, silu, soft_shrink, squareplus, threshold, celu, linear)}
_TABLE |= {
    "exponential": exponential, "hard_sigmoid": hard_sigmoid, "hard_silu": hard_silu,
    "hard_swish": hard_swish, "hard_tanh": hard_tanh, "log_sigmoid": log_sigmoid, "mish": mish,
    "relu6": relu6, "selu": selu, "sigmoid": sigmoid, "softplus": softplus, "softsign": softsign,
    "sparse_plus": sparse_plus, "sparse_sigmoid": sparse_sigmoid, "swish": swish, "tanh": tanh,
    "tanh_shrink": tanh_shrink}


def get(identifier: Any) -> Any:
    """The function of a name such as 'relu'; None is `linear`, functions stay.

    Raises:
        ValueError: an unknown name.
    """
    return linear if identifier is None else resolve("activation", _TABLE, identifier)

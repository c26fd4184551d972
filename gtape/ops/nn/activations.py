"""Activation functions: the nonlinearities of neural networks, element by element."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import float32
from gtape.core.tensor import Tensor
from gtape.ops.elementwise import scalar_numpy as spelled
from gtape.ops.elementwise import scalars as s
from gtape.ops.elementwise.scalars import scalar_function, scalar_op
from gtape.ops.shape.casting import cast
from gtape.ops.shape.packing import concat

if TYPE_CHECKING:
    from gtape.opdef.scalar_graph import Expr

_FEATURES = ("features",)
#: gelu with tanh u is x sigmoid(2u): twice √(2/π).
_SLOPE = 2 * math.sqrt(2 / math.pi)
#: The fixed point of mean 0 and variance 1 (Klambauer et al. 2017, arXiv:1706.02515).
_SELU_SCALE = 1.0507009873554805
_SELU_TAIL = _SELU_SCALE * 1.6732632423543772


def _selu(xp: Any, x: Any) -> Any:
    return xp.where(x > 0, _SELU_SCALE * x, _SELU_TAIL * xp.expm1(xp.minimum(x, 0)))


def _softsign(xp: Any, x: object) -> Any:
    return x / (1 + xp.abs(x))


def _normal_cdf(xp: ArrayModule, x: Array) -> Array:
    from gtape.numerics.special import normal_cdf

    return normal_cdf(xp, xp.asarray(x))


def _normal_cdf_out(x: np.ndarray, out: np.ndarray) -> None:
    out[...] = _normal_cdf(np, x)


_normal_cdf.with_out = _normal_cdf_out  # type: ignore[attr-defined]


# ---------------------------------------------------------------- rectifiers
relu_gate: Any = scalar_op("relu_gate(a, b)", numpy=spelled.relu_gate, cuda="b > 0 ? a : 0",
                   types="real", doc="a where b is positive, else 0: the gradient of relu.",
                   d_a=lambda g, b: relu_gate(g, b), d_b=lambda g: s.zero(g))
relu = scalar_op("relu(x)", numpy=spelled.relu, cuda="larger(x, 0)", types="real", names=_FEATURES,
                 doc="max(x, 0); its gradient at 0 is 0.", d_x=lambda g, y: relu_gate(g, y))
relu6_gate: Any = scalar_op("relu6_gate(a, b)", numpy=spelled.relu6_gate,
                    cuda="b > 0 && b < 6 ? a : 0", types="real",
                    doc="a where b lies in (0, 6), else 0: the gradient of relu6.",
                    d_a=lambda g, b: relu6_gate(g, b), d_b=lambda g: s.zero(g))
relu6 = scalar_op("relu6(x)", numpy=spelled.relu6, cuda="smaller(larger(x, 0), 6)", types="real",
                  names=_FEATURES, doc="min(max(x, 0), 6); its gradient at 0 and 6 is 0.",
                  d_x=lambda g, y: relu6_gate(g, y))
leaky_gate: Any = scalar_op("leaky_gate(a, x, alpha)", numpy=spelled.leaky_gate,
                    cuda="x > 0 ? a : a * alpha", types="real_float",
                    doc="a where x is positive, else alpha a: the gradient of leaky_relu.",
                    d_a=lambda g, x, alpha: leaky_gate(g, x, alpha), d_x=lambda g: s.zero(g),
                    d_alpha=lambda g, a, x: s.where(x > 0, 0, g * a))
leaky_relu_ = scalar_op("leaky_relu(x, alpha)", numpy=spelled.leaky_relu,
                        cuda="x > 0 ? x : x * alpha", types="real_float",
                        doc="x where it is positive, else alpha x.",
                        d_x=lambda g, x, alpha: leaky_gate(g, x, alpha),
                        d_alpha=lambda g, x: s.where(x > 0, 0, g * x))


def leaky_relu(features: TensorLike, alpha: TensorLike = 0.2, name: str | None = None) -> Tensor:
    """x where it is positive, else alpha x; the slope at 0 is alpha. Integers give float32.

    Maas, Hannun & Ng 2013, "Rectifier nonlinearities improve neural network acoustic models".
    """
    x = convert(features)
    # TensorFlow casts integers here; its other activations refuse them, or keep them.
    return leaky_relu_(cast(x, float32) if x.dtype.is_integer else x, alpha)


def crelu(features: TensorLike, axis: IntsLike = -1, name: str | None = None) -> Tensor:
    """relu(x) and relu(-x), one after another along `axis`, which doubles in length.

    Shang, Sohn, Almeida & Lee 2016, arXiv:1603.05201.
    """
    x = convert(features)
    return relu(concat([x, s.negative(x)], axis))


# ---------------------------------------------------------------- exponential units
elu = scalar_op("elu(x)", numpy=spelled.elu, cuda="x > 0 ? x : expm1(x)", types="real_float",
                names=_FEATURES, doc="x where it is positive, else eˣ - 1 (arXiv:1511.07289).",
                d_x=lambda g, y: s.where(y > 0, g, g * (y + 1)))
selu = scalar_op("selu(x)", numpy=_selu,
                 cuda=f"x > 0 ? {_SELU_SCALE} * x : {_SELU_TAIL} * expm1(x)", types="real_float",
                 names=_FEATURES, doc="The scaled elu, which keeps mean 0 and variance 1 "
                 "(arXiv:1706.02515).",
                 d_x=lambda g, y: s.where(y < 0, g * (y + _SELU_TAIL), g * _SELU_SCALE))


# ---------------------------------------------------------------- sigmoid units
softplus = scalar_op("softplus(x)", numpy=spelled.softplus,
                     cuda="larger(x, 0) + log1p(exp(-absolute(x)))", types="real_float",
                     names=_FEATURES, doc="log(1 + eˣ), without overflow.",
                     d_x=lambda g, x: g * s.sigmoid(x))
log_sigmoid = scalar_op("log_sigmoid(x)", numpy=spelled.log_sigmoid,
                        cuda="smaller(x, 0) - log1p(exp(-absolute(x)))", types="real_float",
                        doc="log(sigmoid(x)), without overflow.",
                        d_x=lambda g, x: g * s.sigmoid(-x))
softsign = scalar_op("softsign(x)", numpy=_softsign, cuda="x / (1 + absolute(x))",
                     types="real_float", names=_FEATURES, doc="x / (1 + |x|).",
                     d_x=lambda g, x: g / s.square(1 + s.real_abs(x)))
normal_cdf = scalar_op("normal_cdf(x)", numpy=_normal_cdf, cuda="normcdf(x)", types="real_float",
                       doc="The distribution function of the standard normal distribution.",
                       d_x=lambda g, x: g * s.exp(-0.5 * (x * x)) * (0.5 * math.sqrt(2 / math.pi)))


def _gelu(x: Expr) -> Expr:
    """x Φ(x)."""
    return x * normal_cdf(x)


def _gelu_tanh(x: Any) -> Expr:
    """x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2."""
    return x * _gelu_gate(x, s.square(x))


def _gelu_gate(x: Any, w: Any) -> Expr:
    # (1 + tanh u) / 2 = sigmoid(2u), which does not cancel where u is far below 0.
    return s.sigmoid(x * (_SLOPE + (0.044715 * _SLOPE) * w))


def _gelu_tanh_gradient(g: Expr, x: Any) -> Expr:
    """g times the slope of gelu, in its form with tanh, at x."""
    w = s.square(x)
    gate = _gelu_gate(x, w)
    inner = _SLOPE + (3 * 0.044715 * _SLOPE) * w
    y = x * gate  # the value itself, which a compiler finds here again
    return g * (gate + (y - y * gate) * inner)


gelu_ = scalar_function(_gelu, types="real_float", name="gelu")
gelu_tanh_ = scalar_function(_gelu_tanh, types="real_float", name="gelu_tanh",
                             pullback=_gelu_tanh_gradient)
gelu_tanh_gradient = scalar_function(_gelu_tanh_gradient, types="real_float",
                                     name="gelu_tanh_gradient")


def gelu(features: TensorLike, approximate: bool = False, name: str | None = None) -> Tensor:
    """x Φ(x), Φ the normal distribution function, or its approximation by tanh.

    Hendrycks & Gimpel 2016, arXiv:1606.08415.

    Raises InvalidArgumentError: not real floating numbers."""
    return gelu_tanh_(features) if approximate else gelu_(features)


def _silu(x: Expr) -> Expr:
    """x sigmoid(x)."""
    return x * s.sigmoid(x)


def _swish(x: Any, beta: Any) -> Expr:
    """x sigmoid(beta x)."""
    return x * s.sigmoid(beta * x)


silu_ = scalar_function(_silu, types="real_float", name="silu")
swish_ = scalar_function(_swish, types="real_float", name="swish")


def silu(features: TensorLike, beta: TensorLike = 1.0) -> Tensor:
    """x sigmoid(beta x). Ramachandran, Zoph & Le 2017, arXiv:1710.05941."""
    # A number 1 is not multiplied by; any tensor may be trained.
    if type(beta) in (float, int) and beta == 1:
        return silu_(features)
    return swish_(features, beta)


swish = silu

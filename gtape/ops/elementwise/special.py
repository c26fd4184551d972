"""Error, gamma, beta and Bessel functions, computed by `gtape.numerics.special`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.tensor import Tensor
from gtape.opdef.scalar_graph import Expr
from gtape.ops.elementwise.scalars import (
    divide_no_nan,
    equal,
    exp,
    log,
    log1p,
    scalar_function,
    scalar_op,
    sign,
    where,
    xlogy,
)
from gtape.ops.reductions.cumulative import cumsum
from gtape.ops.reductions.reductions import reduce_sum_
from gtape.ops.shape.packing import split_

_ROOT_PI = math.sqrt(math.pi)


def _arrays(xp: Any, values: tuple[TensorLike, ...]) -> list[Array]:
    """Numbers beside arrays as arrays of their dtype; numbers alone are of float64."""
    dtype = next((v.dtype for v in values if hasattr(v, "dtype")), np.float64)
    return [xp.asarray(v, dtype=dtype) for v in values]


def _special(name: str) -> Callable[..., Any]:
    """The array spelling of a function of `numerics.special`, imported at its first call."""
    def spelling(xp: ArrayModule, *values: Any) -> Array:
        from gtape.numerics import special

        return getattr(special, name)(xp, *_arrays(xp, values))

    return spelling


def _declare(signature: str, function: str, **declared: Any) -> Any:
    return scalar_op(signature, numpy=_special(function), types="real_float", **declared)


# ---------------------------------------------------------------- error functions
erf = _declare("erf(x)", "erf", doc="2/√π ∫₀ˣ exp(-t²) dt.",
               d_x=lambda g, x: g * (2 / _ROOT_PI) * exp(-(x * x)))
erfc = _declare("erfc(x)", "erfc", doc="1 - erf(x), exact for large x.",
                d_x=lambda g, x: -g * (2 / _ROOT_PI) * exp(-(x * x)))
erfinv = _declare("erfinv(x)", "erfinv", doc="The inverse of erf, for -1 < x < 1.",
                  domain=(-0.8, 0.8), d_x=lambda g, y: g * (_ROOT_PI / 2) * exp(y * y))
ndtri = _declare("ndtri(x)", "ndtri", doc="The quantile function of the standard normal.",
                 cuda="normcdfinv(x)", domain=(0.1, 0.9),
                 d_x=lambda g, y: g * math.sqrt(2 * math.pi) * exp(y * y / 2))


@partial(scalar_function, types="real_float", domain=(0.2, 1.8))
def erfcinv(x: Any) -> Expr:
    """The inverse of erfc, for 0 < x < 2."""
    return -ndtri(0.5 * x) * math.sqrt(0.5)


# ---------------------------------------------------------------- gamma functions
lgamma = _declare("lgamma(x)", "lgamma", doc="log |Γ(x)|.", domain=(0.5, 3.0),
                  d_x=lambda g, x: g * digamma(x))
digamma: Any = _declare("digamma(x)", "digamma", doc="ψ(x), the derivative of log Γ.",
                   domain=(0.5, 3.0), d_x=lambda g, x: g * polygamma(1, x))
polygamma: Any = _declare("polygamma(a, x)", "polygamma", names=("a", "x"), domain=None, cuda="",
                     doc="The derivative of order a of ψ. None flows to a.", d_a=None,
                     d_x=lambda g, a, x: g * polygamma(a + 1, x))
# Orders are whole numbers, which are not drawn.
_ORDERS = [1.0, 2.0, 3.0]
polygamma.op.cases = [case(np.array(_ORDERS, dtype), (2, 3), domain=(0.5, 3.0), dtypes=(dtype,))
                      for dtype in ("float32", "float64")]
zeta: Any = _declare("zeta(x, q)", "zeta", names=("x", "q"), domain=(1.5, 3.0), cuda="",
                doc="Σ (q + k)⁻ˣ over k >= 0, the Hurwitz zeta function. None flows to x.",
                d_x=None, d_q=lambda g, x, q: -g * x * zeta(x + 1, q))


def _igamma_series(order: int) -> Callable[..., Any]:
    """∂P/∂a or ∂²P/∂a² by the terms xᵃ⁺ⁿ e⁻ˣ / Γ(a + n + 1) of P(a, x): DLMF 8.7.1. A term's
    logarithm has the slope s = log x - ψ(a + n + 1) in a, and that the slope -ψ'."""
    def spelling(xp: ArrayModule, a: Array, x: Array) -> Array:
        from gtape.numerics import special

        given = _arrays(xp, (a, x))
        a, x = (v.astype(np.float64) for v in xp.broadcast_arrays(*given))
        inside = (x > 0) & (a > 0) & xp.isfinite(x) & xp.isfinite(a)
        # Where P is 0 or 1 whatever a is; elsewhere it is nan, or has no slope to both sides.
        flat = (x >= 0) & (a > 0) & (xp.isfinite(x) | xp.isfinite(a))
        a, x = xp.where(inside, a, 1.0), xp.where(inside, x, 1.0)
        slope, trigamma = xp.log(x) - special.digamma(xp, a + 1), special.zeta(xp, a * 0 + 2, a + 1)
        term, total = xp.exp(a * xp.log(x) - x - special.lgamma(xp, a + 1)), 0.0
        for n in range(1, 20000):  # an end in any case: huge x would take as many terms
            total = total + term * (slope if order == 1 else slope * slope - trigamma)
            term = term * (x / (a + n))
            slope = slope - 1 / (a + n)
            trigamma = trigamma - 1 / (a + n) ** 2
            # Looking waits for a GPU, so that only every 16th term is looked at. Terms grow while
            # a + n < x; behind that 1e-18 is below the rounding of float64.
            if n % 16 == 0 and not bool(((term > 1e-18) | (a + n < x)).any()):
                break
        return xp.where(inside, total, xp.where(flat, 0.0, np.nan)).astype(given[0].dtype)

    return spelling


gamma_density: Any = _declare(
    "gamma_density(a, x)", "gamma_density", names=("a", "x"), domain=(0.5, 3.0), cuda="",
    doc="xᵃ⁻¹ e⁻ˣ / Γ(a), the density of the gamma distribution.",
    d_a=lambda g, a, x, y: g * y * (log(x) - digamma(a)),
    d_x=lambda g, a, x, y: g * y * ((a - 1) / x - 1))
_IGAMMA: dict[str, Any] = {"types": "real_float", "names": ("a", "x"), "tf_name": "IgammaGradA",
                           "domain": (0.5, 3.0), "cuda": ""}
igamma_slope = scalar_op("igamma_slope(a, x)", numpy=_igamma_series(1), doc="∂P(a, x)/∂a.",
                         d_a=lambda g, a, x: g * igamma_curve(a, x),
                         d_x=lambda g, a, x: g * gamma_density(a, x) * (log(x) - digamma(a)),
                         **_IGAMMA)
igamma_curve: Any = scalar_op("igamma_curve(a, x)", numpy=_igamma_series(2),
                      doc="∂²P(a, x)/∂a². No gradient is registered.", **_IGAMMA)
igamma_slope.op.cases = [case((2, 3), (2, 3), domain=(0.5, 3.0), orders=1)]
igamma = _declare("igamma(a, x)", "igamma", names=("a", "x"), domain=(0.5, 3.0), cuda="",
                  doc="P(a, x), the lower regularised incomplete gamma function.",
                  d_a=lambda g, a, x: g * igamma_slope(a, x),
                  d_x=lambda g, a, x: g * gamma_density(a, x))
igammac = _declare("igammac(a, x)", "igammac", names=("a", "x"), domain=(0.5, 3.0), cuda="",
                   doc="Q(a, x) = 1 - P(a, x).",
                   d_a=lambda g, a, x: -g * igamma_slope(a, x),
                   d_x=lambda g, a, x: -g * gamma_density(a, x))

# ---------------------------------------------------------------- beta functions
log_beta = _declare("log_beta(a, b)", "lbeta", domain=(0.5, 2.0), cuda="log_of_beta(a, b)",
                    doc="log Γ(a) + log Γ(b) - log Γ(a + b).",
                    d_a=lambda g, a, b: g * (digamma(a) - digamma(a + b)),
                    d_b=lambda g, a, b: g * (digamma(b) - digamma(a + b)))
betainc = _declare("betainc(a, b, x)", "betainc", names=("a", "b", "x"), domain=(0.2, 0.8), cuda="",
                   doc="Iₓ(a, b), the regularised incomplete beta function. None flows to a, b.",
                   d_a=None, d_b=None,
                   d_x=lambda g, a, b, x: g * exp(
                       (b - 1) * log1p(-x) + xlogy(a - 1, x) - log_beta(a, b)))


def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
    """Σ log |Γ(xᵢ)| - log |Γ(Σ xᵢ)| over the last axis.

    Raises:
        InvalidArgumentError: a scalar, or not real floating.
    """
    tensor = convert(x)
    if not tensor.ndim:
        raise InvalidArgumentError(f"lbeta needs at least one axis; got {tensor.spec}")
    last, count = tensor.ndim - 1, tensor.spec.shape[-1]
    if count < 2:  # one number, or none, makes no pair
        return (reduce_sum_(lgamma(tensor), axis=(last,))
                - lgamma(reduce_sum_(tensor, axis=(last,))))
    # Beta functions of the sum so far and the next number: a difference of sums of lgamma would
    # cancel where the numbers are large.
    sums, _ = split_(cumsum(tensor, last), sizes=(count - 1, 1), axis=last)
    _, following = split_(tensor, sizes=(1, count - 1), axis=last)
    return reduce_sum_(log_beta(sums, following), axis=(last,))


# ---------------------------------------------------------------- Bessel functions
bessel_i0 = _declare("bessel_i0(x)", "i0", doc="I₀(x).", cuda="cyl_bessel_i0(x)",
                     tf_name="BesselI0", d_x=lambda g, x: g * bessel_i1(x))
bessel_i1: Any = _declare("bessel_i1(x)", "i1", doc="I₁(x).", cuda="cyl_bessel_i1(x)",
                     tf_name="BesselI1", domain=(0.2, 2.0),
                     d_x=lambda g, x, y: g * where(
                         equal(x, 0), 0.5, bessel_i0(x) - divide_no_nan(y, x)))
bessel_i0e = _declare("bessel_i0e(x)", "i0e", doc="e^-|x| I₀(x).", tf_name="BesselI0e",
                      cuda="", domain=(0.2, 2.0),
                      d_x=lambda g, x, y: g * (bessel_i1e(x) - sign(x) * y))
bessel_i1e: Any = _declare("bessel_i1e(x)", "i1e", doc="e^-|x| I₁(x).", tf_name="BesselI1e",
                      cuda="", domain=(0.2, 2.0),
                      d_x=lambda g, x, y: g * where(
                          equal(x, 0), 0.5,
                          bessel_i0e(x) - y * sign(x) - divide_no_nan(y, x)))

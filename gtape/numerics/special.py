"""The special functions, by name.  Each takes (xp, float arrays), broadcasts, computes in
float64 (erf of float32 in float32) and returns the dtype of its first array."""

from .bessel import i0, i0e, i1, i1e
from .error_function import erf, erfc, erfinv, ndtri, normal_cdf
from .gamma_function import digamma, lbeta, lgamma, polygamma, zeta
from .incomplete import betainc, gamma_density, igamma, igammac

__all__ = [
    "betainc", "digamma", "erf", "erfc", "erfinv", "gamma_density", "i0", "i0e", "i1", "i1e",
    "igamma", "igammac", "lbeta", "lgamma", "ndtri", "normal_cdf", "polygamma", "zeta"]

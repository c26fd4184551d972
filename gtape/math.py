"""gtape.math: mathematical functions, with TensorFlow's names and arguments."""

from __future__ import annotations

from typing import Any

from gtape.ops.elementwise.more_math import (
    angle,
    confusion_matrix,
    conj,
    imag,
    invert_permutation,
    is_non_decreasing,
    is_strictly_increasing,
    nextafter,
    polyval,
    real,
    reciprocal_no_nan,
)
from gtape.ops.elementwise.operators import absolute as abs
from gtape.ops.elementwise.operators import divide_no_nan, truediv
from gtape.ops.elementwise.operators import round_ as round
from gtape.ops.elementwise.operators import signum as sign
from gtape.ops.elementwise.operators import truediv as divide
from gtape.ops.elementwise.scalars import (
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    cos,
    cosh,
    equal,
    exp,
    expm1,
    floor,
    floordiv,
    floormod,
    greater,
    greater_equal,
    is_finite,
    is_inf,
    is_nan,
    less,
    less_equal,
    log,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    multiply_no_nan,
    negative,
    not_equal,
    reciprocal,
    rint,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    square,
    squared_difference,
    subtract,
    tan,
    tanh,
    xdivy,
    xlog1py,
    xlogy,
)
from gtape.ops.elementwise.scalars import floormod as mod
from gtape.ops.elementwise.scalars import power as pow
from gtape.ops.elementwise.special import (
    bessel_i0,
    bessel_i0e,
    bessel_i1,
    bessel_i1e,
    betainc,
    digamma,
    erf,
    erfc,
    erfcinv,
    erfinv,
    igamma,
    igammac,
    lbeta,
    lgamma,
    ndtri,
    polygamma,
    zeta,
)
from gtape.ops.indexing.segments import (
    segment_max,
    segment_mean,
    segment_min,
    segment_prod,
    segment_sum,
    unsorted_segment_max,
    unsorted_segment_mean,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sqrt_n,
    unsorted_segment_sum,
)
from gtape.ops.indexing.sorting import (
    approx_max_k,
    approx_min_k,
    argmax,
    argmin,
    in_top_k,
    top_k,
)
from gtape.ops.linalg.norms import (
    l2_normalize,
)
from gtape.ops.nn.activations import (
    log_sigmoid,
    softplus,
    softsign,
)
from gtape.ops.nn.softmax import (
    log_softmax,
    softmax,
)
from gtape.ops.reductions.cumulative import (
    cumprod,
    cumsum,
    cumulative_logsumexp,
)
from gtape.ops.reductions.histograms import (
    bincount,
)
from gtape.ops.reductions.more_reductions import (
    count_nonzero,
    reduce_all,
    reduce_any,
    reduce_euclidean_norm,
    reduce_logsumexp,
    reduce_prod,
    reduce_std,
    reduce_variance,
    zero_fraction,
)
from gtape.ops.reductions.reductions import reduce_max, reduce_mean, reduce_min, reduce_sum
from gtape.ops.reductions.sums import accumulate_n, add_n, scalar_mul

__all__ = [
    "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "angle", "approx_max_k",
    "approx_min_k", "argmax", "argmin", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0",
    "bessel_i0e", "bessel_i1", "bessel_i1e", "betainc", "bincount", "ceil", "confusion_matrix",
    "conj", "cos", "cosh", "count_nonzero", "cumprod", "cumsum", "cumulative_logsumexp", "digamma",
    "divide", "divide_no_nan", "equal", "erf", "erfc", "erfcinv", "erfinv", "exp", "expm1",
    "floor", "floordiv", "floormod", "greater", "greater_equal", "igamma", "igammac", "imag",
    "in_top_k", "invert_permutation", "is_finite", "is_inf", "is_nan", "is_non_decreasing",
    "is_strictly_increasing", "l2_normalize", "lbeta", "less", "less_equal", "lgamma", "log",
    "log1p", "log_sigmoid", "log_softmax", "logical_and", "logical_not", "logical_or",
    "logical_xor", "maximum", "minimum", "mod", "multiply", "multiply_no_nan", "ndtri", "negative",
    "nextafter", "not_equal", "polygamma", "polyval", "pow", "real", "reciprocal",
    "reciprocal_no_nan", "reduce_all", "reduce_any", "reduce_euclidean_norm", "reduce_logsumexp",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_std", "reduce_sum",
    "reduce_variance", "rint", "round", "rsqrt", "scalar_mul", "segment_max", "segment_mean",
    "segment_min", "segment_prod", "segment_sum", "sigmoid", "sign", "sin", "sinh", "softmax",
    "softplus", "softsign", "sqrt", "square", "squared_difference", "subtract", "tan", "tanh",
    "top_k", "truediv", "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min",
    "unsorted_segment_prod", "unsorted_segment_sqrt_n", "unsorted_segment_sum", "xdivy", "xlog1py",
    "xlogy", "zero_fraction", "zeta",
]

_ABSENT = {
    "sobol_sample": "use scipy.stats.qmc.Sobol, and tf.constant of its samples",
    "special": "the special functions it has are in gtape.math itself",
}


def __getattr__(name: str) -> Any:
    raise AttributeError(f"gtape.math has no '{name}'"
                         + (f": {_ABSENT[name]}" if name in _ABSENT else ""))

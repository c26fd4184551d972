"""gtape.math: mathematical functions, with TensorFlow's names and arguments."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.ops.elementwise.operators": """
        abs=absolute angle conj divide=truediv divide_no_nan imag polyval real round=round_
        sign=signum truediv""",
    "gtape.ops.elementwise.scalars": """
        acos acosh add asin asinh atan atan2 atanh ceil cos cosh equal exp expm1 floor floordiv
        floormod greater greater_equal is_finite is_inf is_nan less less_equal log log1p logical_and
        logical_not logical_or logical_xor maximum minimum multiply multiply_no_nan negative
        nextafter not_equal reciprocal reciprocal_no_nan rint rsqrt sigmoid sin sinh sqrt square
        squared_difference subtract tan tanh xdivy xlog1py xlogy mod=floormod pow=power""",
    "gtape.ops.elementwise.special": """
        bessel_i0 bessel_i0e bessel_i1 bessel_i1e betainc digamma erf erfc erfcinv erfinv igamma
        igammac lbeta lgamma ndtri polygamma zeta""",
    "gtape.ops.indexing.segments": """
        segment_max segment_mean segment_min segment_prod segment_sum unsorted_segment_max
        unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n
        unsorted_segment_sum""",
    "gtape.ops.indexing.sorting": """
        approx_max_k approx_min_k argmax argmin in_top_k invert_permutation is_non_decreasing
        is_strictly_increasing top_k""",
    "gtape.ops.linalg.norms": "l2_normalize reduce_euclidean_norm",
    "gtape.ops.nn.activations": "log_sigmoid softplus softsign",
    "gtape.ops.nn.softmax": "log_softmax softmax",
    "gtape.ops.reductions.cumulative": "cumprod cumsum cumulative_logsumexp",
    "gtape.ops.reductions.histograms": "bincount confusion_matrix",
    "gtape.ops.reductions.sums": "accumulate_n add_n reduce_logsumexp scalar_mul",
    "gtape.ops.reductions.reductions": """
        count_nonzero reduce_all reduce_any reduce_max reduce_mean reduce_min reduce_prod
        reduce_sum zero_fraction""",
    "gtape.ops.reductions.moments": "reduce_std reduce_variance",
}

_ABSENT = {
    "sobol_sample": "use scipy.stats.qmc.Sobol, and tf.constant of its samples",
    "special": "the special functions it has are in gtape.math itself",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE, _ABSENT)

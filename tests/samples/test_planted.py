"""The checks of the samples checked: planted wrong values and rules are seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.core.errors import EagerFunctionWarning, GradientMismatch, NotTraceableError
from tests.samples import checks, reducing, scalar
from tests.samples.findings import findings
from tests.samples.sample import Sample, arrays, of, sample
from tests.samples.test_findings import _check


def _with_rule(value: Callable[..., Any], rule: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one tensor with a gradient of its own."""
    @tf.custom_gradient
    def made(x: Any) -> Any:
        return value(x), lambda g: rule(g, x)

    return made


def _sample(function: Callable[..., Any], **options: Any) -> Sample:
    return sample("planted", of(3, 5, low=0.5), function=function, **options)


def test_a_wrong_value_is_seen() -> None:
    wrong = _sample(lambda x: tf.exp(x) * (1 + 1e-5), reference=np.exp, near=4, mixed=False)
    with pytest.raises(AssertionError, match="planted float32, result 0"):
        checks.check_value(wrong, "float32")
    checks.check_value(wrong, "float16")


def test_a_wrong_value_at_one_end_of_the_range_is_seen() -> None:
    def softplus(x: Any) -> Any:
        return tf.math.log(1.0 + tf.exp(x))

    ends = scalar.extremes("float32")
    wrong = sample("planted", ends, function=softplus, dtypes=("float32",),
                   reference=lambda x: np.logaddexp(0, x))
    with pytest.raises(AssertionError, match="inf"):
        checks.check_value(wrong, "float32")


def test_a_rule_wrong_by_a_thousandth_is_seen() -> None:
    wrong = _with_rule(tf.tanh, lambda g, x: g * (1 - 0.999 * tf.tanh(x) ** 2))
    with pytest.raises(GradientMismatch, match="order 1"):
        checks.check_derivatives(_sample(wrong))


def test_a_rule_wrong_at_second_order_is_seen() -> None:
    def moments(x: Any) -> Any:
        # The mean held constant: right at first order, where its part is zero.
        return tf.reduce_mean((x - tf.stop_gradient(tf.reduce_mean(x, 0))) ** 2, 0)

    checks.check_derivatives(_sample(moments, orders=1))
    with pytest.raises(GradientMismatch, match="order 2"):
        checks.check_derivatives(_sample(moments))


def test_a_gradient_that_overflows_in_short_floats_is_seen() -> None:
    wrong = _with_rule(lambda x: x * 1.0, lambda g, x: g * (x * 1e5) / 1e5 / x)
    with pytest.raises(AssertionError, match="float16, gradient 0"):
        checks.check_short_gradient(_sample(wrong), "float16")
    checks.check_short_gradient(_sample(wrong), "float32")


def test_a_function_that_differs_from_the_eager_call_is_seen() -> None:
    def wrong(x: Any) -> Any:
        return x * 2.0 if tf.inside_function() else x + x + 1e-3

    with pytest.raises(AssertionError, match="in a function, result 0"):
        checks.check_function([_sample(wrong)], ["float32"])


def test_a_function_that_runs_eagerly_is_no_proof() -> None:
    with pytest.raises((NotTraceableError, EagerFunctionWarning)):
        checks.check_function([_sample(tf.nn.isotonic_regression)], ["float32"])


def test_views_are_views() -> None:
    for shape in ((3, 5), (1,), (4, 1, 3), (2, 0)):
        array = arrays(sample("planted", of(*shape)), "float32")[0]
        view = checks.strided(array)
        np.testing.assert_array_equal(view, array)
        assert 0 in shape or shape == (1,) or not view._array_().flags.c_contiguous

    def wrong(x: Any) -> Any:
        flags = x._array_().flags if x.ndim == 2 else None
        return x * (1.0 if flags is None or flags.c_contiguous else 2.0)

    with pytest.raises(AssertionError, match="strided"):
        checks.check_strided(_sample(wrong), "float32")


def test_nan_where_none_should_be_is_seen() -> None:
    finding = next(f for f in findings() if f.name == "segment_prod beside nan")
    ids = np.array([0, 0, 1, 1, 2, 3])

    def poisoned(x: Any) -> Any:
        products = tf.math.segment_prod(x, ids)
        return [tf.gather(products, ids) / x]

    with pytest.raises(AssertionError, match="segment_prod beside nan"):
        _check(finding, poisoned(*map(tf.constant, finding.inputs)))


def test_means_of_integers_are_exact() -> None:
    for s in reducing._integers():
        if s.name == "reduce_mean" and s.inputs[0].dtype == np.uint8:
            wrong = s._replace(function=lambda x: tf.reduce_sum(x) // tf.constant(3, x.dtype))
            with pytest.raises(AssertionError):
                checks.check_value(wrong, "float32")

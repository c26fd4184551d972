"""What ops are, written in other ops: at the edges of the floats too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.opdef.primitive import Primitive
from gtape.ops.nn.softmax import log_softmax_, softmax_
from gtape.ops.reductions.moments import reduce_variance_
from gtape.ops.reductions.sums import reduce_logsumexp_, share_

_INF, _NAN = np.inf, np.nan
_EDGES = np.array([[1e308, -1e308, 0.0], [_INF, 0.0, 1.0], [-_INF, 0.0, 1.0], [-_INF] * 3,
                   [_INF, -_INF, 0.0], [_NAN, 0.0, 1.0]])


@pytest.mark.parametrize("op, attrs", [
    (softmax_, {"axis": 1}), (log_softmax_, {"axis": 1}), (share_, {"axis": (1,)}),
    (reduce_logsumexp_, {"axis": (1,), "keepdims": False})], ids=lambda x: getattr(x, "name", ""))
def test_a_definition_knows_infinities_and_nan(op: Primitive, attrs: dict[str, Any]) -> None:
    x = tf.constant(_EDGES)
    np.testing.assert_allclose(op.definition(x, **attrs), op(x, **attrs), rtol=1e-14)


def test_the_variance_of_complex_numbers_is_real() -> None:
    x = tf.constant([1 + 2j, 3 - 1j, -2 + 0.5j])
    attrs = {"axis": (0,), "keepdims": False}
    got = reduce_variance_.definition(x, **attrs)
    assert got.dtype == tf.float64
    np.testing.assert_allclose(got, np.var(x.numpy()), rtol=1e-14)
    np.testing.assert_allclose(got, reduce_variance_(x, **attrs), rtol=1e-14)


def test_a_definition_of_other_parameters_is_refused_at_import() -> None:
    op = Primitive(lambda xp, x, *, axis: x)
    with pytest.raises(TypeError, match="takes x and, by keyword, axis"):
        op.defined(lambda x, *, axes: x)
    with pytest.raises(TypeError, match="takes x and, by keyword, axis"):
        op.defined(lambda y, *, axis: y)

"""Failures of linear algebra are errors on GPUs too, where CuPy tells of them only when asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import linalg


@pytest.mark.parametrize("call, matrix", [
    (linalg.inv, [[1.0, 2.0], [2.0, 4.0]]), (linalg.cholesky, [[1.0, 2.0], [2.0, 1.0]]),
    (lambda a: linalg.solve(a, tf.ones_like(a)), [[1.0, 2.0], [2.0, 4.0]]),
    (lambda a: linalg.triangular_solve(a, tf.ones_like(a)), [[0.0, 2.0], [2.0, 4.0]])])
def test_a_matrix_without_an_answer_is_an_error(gpus: Any, call: Any, matrix: Any) -> None:
    with tf.device("GPU:0"), pytest.raises(tf.errors.InvalidArgumentError):
        call(tf.constant(matrix))


@pytest.mark.parametrize("call", [
    linalg.det, linalg.inv, linalg.cholesky, linalg.sqrtm, linalg.expm,
    lambda a: linalg.slogdet(a)[1], lambda a: linalg.lu(a).lu, lambda a: linalg.eigh(a)[0],
    lambda a: linalg.svd(a)[0]])
def test_nan_gives_nan(gpus: Any, call: Any) -> None:
    with tf.device("GPU:0"):
        made = call(tf.constant([[[2.0, 0.5], [0.5, 1.0]], [[np.nan, 0.0], [0.0, 1.0]]])).numpy()
    assert np.isfinite(made[0]).all() and np.isnan(made[1]).all()

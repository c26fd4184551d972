"""Matrices without an answer are errors, matrices with nan give nan, eagerly and in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import linalg

_NAN, _INF = np.nan, np.inf
_SINGULAR = [[1.0, 2.0], [2.0, 4.0]]
_INDEFINITE = [[1.0, 2.0], [2.0, 1.0]]
_ZERO_ON_DIAGONAL = [[0.0, 3.0], [1.0, 2.0]]
_B = [[1.0], [2.0]]

_WITHOUT_ANSWER = {
    "inv": (linalg.inv, _SINGULAR), "solve": (lambda a: linalg.solve(a, _B), _SINGULAR),
    "lstsq": (lambda a: linalg.lstsq(a, _B), _SINGULAR),
    "cholesky": (linalg.cholesky, _INDEFINITE), "logdet": (linalg.logdet, _INDEFINITE),
    "triangular": (lambda a: linalg.triangular_solve(a, _B), _ZERO_ON_DIAGONAL),
    "cholesky_solve": (lambda a: linalg.cholesky_solve(a, _B), _ZERO_ON_DIAGONAL),
    "tridiagonal": (lambda a: linalg.tridiagonal_solve(a, _B, diagonals_format="matrix"),
                    _SINGULAR),
    "logm": (lambda a: linalg.logm(tf.complex(a, 0 * a)), _SINGULAR),
    "sqrtm": (linalg.sqrtm, [[0.0, 1.0], [0.0, 0.0]]),
    "lu_solve": (lambda a: linalg.lu_solve(*linalg.lu(a), tf.constant(_B)), _SINGULAR)}


@pytest.mark.parametrize("name", _WITHOUT_ANSWER)
def test_a_matrix_without_an_answer_is_an_error(name: str) -> None:
    function, matrix = _WITHOUT_ANSWER[name]
    batch = tf.constant([np.eye(2), matrix], tf.float32)
    for call in (function, tf.function(function)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"not |singular"):
            call(tf.constant(matrix))
        if name not in ("lstsq", "solve", "triangular", "cholesky_solve", "tridiagonal",
                        "lu_solve"):
            with pytest.raises(tf.errors.InvalidArgumentError):
                call(batch)


@pytest.mark.native
@pytest.mark.parametrize("name", ["cholesky", "triangular", "inv"])
def test_it_is_an_error_in_native_programs(name: str) -> None:
    function, matrix = _WITHOUT_ANSWER[name]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"not "):
        tf.function(lambda a: function(2.0 * a) + 1.0)(tf.constant(matrix))


def test_what_exists_of_a_singular_matrix_is_given() -> None:
    a = tf.constant([[2.0, 4.0], [1.0, 2.0]])
    assert linalg.det(a).numpy() == 0.0
    sign, logabs = linalg.slogdet(a)
    assert sign.numpy() == 0.0 and logabs.numpy() == -_INF
    lu, order = linalg.lu(a)
    assert lu.numpy().tolist() == [[2.0, 4.0], [0.5, 0.0]] and order.numpy().tolist() == [0, 1]
    assert linalg.lu(tf.zeros((2, 2))).lu.numpy().tolist() == [[0.0, 0.0], [0.0, 0.0]]
    np.testing.assert_allclose(linalg.sqrtm(a) @ linalg.sqrtm(a), a, atol=1e-6)
    assert not linalg.sqrtm(tf.zeros((2, 2))).numpy().any()
    assert linalg.matrix_rank(a).numpy() == 1
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = linalg.lu(a).lu
    with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
        tape.gradient(y, a)


def _first(made: Any) -> Any:
    return made[0] if isinstance(made, (tuple, list)) else made


def _complex(function: Any) -> Any:
    return lambda a: function(tf.complex(a, 0 * a))


_CARRIED = {
    "det": linalg.det, "slogdet": linalg.slogdet, "logabs": lambda a: linalg.slogdet(a)[1],
    "inv": linalg.inv, "cholesky": linalg.cholesky, "logdet": linalg.logdet,
    "lu": linalg.lu, "svd": linalg.svd, "qr": linalg.qr, "eigh": linalg.eigh,
    "eigvalsh": linalg.eigvalsh, "eig": linalg.eig, "pinv": linalg.pinv, "expm": linalg.expm,
    "sqrtm": linalg.sqrtm, "logm": _complex(linalg.logm),
    "solve": lambda a: linalg.solve(a, tf.ones_like(a)),
    "triangular": lambda a: linalg.triangular_solve(a, tf.ones_like(a))}
_WITH_NAN = [[[_NAN, 1, 1], [1, 1, 1], [1, 1, 1]], [[1, 0, 0], [_NAN, 1, 0], [0, 0, 1]],
             [[2, 0, 0], [0, 2, 0], [0, 0, _NAN]], [[_INF, 0, 0], [_NAN, 1, 0], [0, 1, 1]]]


@pytest.mark.parametrize("name", _CARRIED)
@pytest.mark.parametrize("matrix", _WITH_NAN)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_gives_nan_and_leaves_the_rest_of_a_batch_alone(
        name: str, matrix: Any, dtype: str) -> None:
    good = np.array([[2.0, 0.1, 0.0], [0.1, 3.0, 0.2], [0.0, 0.2, 4.0]], dtype)
    batch = tf.constant([good, matrix, good + np.eye(3)], dtype)
    function = _CARRIED[name]
    for call in (function, tf.function(function)):
        alone = _first(call(batch[:1])).numpy()
        made = _first(call(batch)).numpy()
        assert np.isnan(made[1]).all()
        np.testing.assert_array_equal(made[0], alone[0])
        assert np.isfinite(made[2]).all()


@pytest.mark.parametrize("name", sorted(_CARRIED.keys() - {"svd", "eig", "eigh", "slogdet"}))
def test_the_gradient_of_nan_is_nan_and_that_of_the_rest_its_own(name: str) -> None:
    good = np.array([[2.0, 0.1, 0.0], [0.1, 3.0, 0.2], [0.0, 0.2, 4.0]])

    def slope(values: Any) -> Any:
        x = tf.constant(values, tf.float64)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = _first(_CARRIED[name](x))
        return tape.gradient(y, x).numpy()

    made = slope([good, _WITH_NAN[0]])
    assert np.isnan(made[1]).any()
    np.testing.assert_allclose(made[0], slope([good])[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("matrix, wanted", [
    ([[_INF, 0.0], [0.0, 1.0]], _INF), ([[1.0, 0.0], [0.0, -_INF]], -_INF),
    ([[_INF, 1.0], [1.0, 1.0]], _INF), ([[0.0, _INF], [1.0, 1.0]], -_INF),
    ([[_INF, 1.0], [_INF, 1.0]], _NAN), ([[0.0, _INF], [0.0, 1.0]], _NAN),
    ([[_INF, 1.0], [_NAN, 1.0]], _NAN)])
def test_determinants_of_matrices_with_inf(matrix: Any, wanted: float) -> None:
    a = tf.constant(matrix, tf.float64)
    np.testing.assert_array_equal(linalg.det(a), wanted)
    sign, logabs = linalg.slogdet(a)
    np.testing.assert_array_equal(logabs, _INF if abs(wanted) == _INF else _NAN)
    np.testing.assert_array_equal(sign, np.sign(wanted))


def test_inf_goes_through_elimination() -> None:
    a = tf.constant([[_INF, 0.0], [0.0, 2.0]])
    assert linalg.inv(a).numpy().tolist() == [[0.0, 0.0], [0.0, 0.5]]
    assert linalg.solve(a, [[1.0], [1.0]]).numpy().tolist() == [[0.0], [0.5]]
    assert linalg.cholesky(a).numpy()[0, 0] == _INF


def test_only_the_triangle_that_is_read_counts() -> None:
    a = tf.constant([[4.0, _NAN], [0.0, 9.0]])
    assert linalg.cholesky(a).numpy()[1].tolist() == [0.0, 3.0]
    assert linalg.eigvalsh(a).numpy().tolist() == [4.0, 9.0]
    assert linalg.triangular_solve(a, [[4.0], [9.0]]).numpy().tolist() == [[1.0], [1.0]]
    assert np.isnan(linalg.triangular_solve(a, [[4.0], [9.0]], lower=False).numpy()).all()


def test_a_large_finite_matrix_is_no_infinite_one() -> None:
    a = np.diag([1e200, 2.0])
    np.testing.assert_allclose(linalg.eigvalsh(a), [2.0, 1e200])
    np.testing.assert_allclose(linalg.det(a), 2e200)

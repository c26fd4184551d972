"""jacobian and batch_jacobian: values, shapes, structures, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf
from gtape.vmap import jacobian


def test_the_jacobian_of_a_linear_map_is_its_matrix() -> None:
    matrix = np.arange(6.0).reshape(2, 3)
    x = tf.Variable([1.0, 2.0, 3.0], dtype=tf.float64)
    with tf.GradientTape() as tape:
        y = tf.linalg.matvec(tf.constant(matrix), x)
    np.testing.assert_array_equal(tape.jacobian(y, x), matrix)


def test_shapes_are_joined() -> None:
    x, w = tf.Variable(np.ones((2, 3))), tf.Variable(np.ones((3, 4)))
    with tf.GradientTape() as tape:
        y = x @ w
    jx, jw = tape.jacobian(y, [x, w])
    assert jx.shape == (2, 4, 2, 3)
    assert jw.shape == (2, 4, 3, 4)
    np.testing.assert_array_equal(jx[0, 1, 0], np.ones(3))
    np.testing.assert_array_equal(jx[0, 1, 1], np.zeros(3))


def test_a_scalar_target_gives_the_gradient() -> None:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x ** 3)
    np.testing.assert_array_equal(tape.jacobian(y, x), [3.0, 12.0])


def test_hessian_and_newton_step() -> None:
    x = tf.Variable([1.0, -2.0], dtype=tf.float64)
    matrix = np.array([[3.0, 1.0], [1.0, 2.0]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = 0.5 * tf.reduce_sum(x * tf.linalg.matvec(tf.constant(matrix), x))
        g = inner.gradient(y, x)
    hessian = outer.jacobian(g, x)
    np.testing.assert_allclose(hessian, matrix)
    x.assign_sub(tf.linalg.matvec(tf.linalg.inv(hessian), g))
    np.testing.assert_allclose(x, [0.0, 0.0], atol=1e-12)


def test_the_jacobian_is_itself_recorded() -> None:
    x = tf.Variable([0.3, 0.4], dtype=tf.float64)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.sin(x)
        j = inner.jacobian(y, x)
        total = tf.reduce_sum(j * j)
    np.testing.assert_allclose(outer.gradient(total, x), -np.sin([0.6, 0.8]))


def test_unconnected_and_structures() -> None:
    x, other = tf.Variable([1.0, 2.0]), tf.Variable([[3.0]])
    with tf.GradientTape(persistent=True) as tape:
        y = x * 2.0
    found = tape.jacobian(y, {"a": x, "b": other})
    assert list(found) == ["a", "b"]
    assert found["b"] is None
    zeros = tape.jacobian(y, other, unconnected_gradients="zero")
    assert zeros.shape == (2, 1, 1)


def test_gathered_sources_give_dense_jacobians() -> None:
    table = tf.Variable(np.ones((4, 2)))
    with tf.GradientTape() as tape:
        y = tf.gather(table, [1, 1, 3])
    j = tape.jacobian(y, table)
    assert j.shape == (3, 2, 4, 2)
    assert float(j[0, 1, 1, 1]) == 1.0
    assert float(tf.reduce_sum(j)) == 6.0


def test_no_pfor_needs_a_persistent_tape() -> None:
    x = tf.Variable([1.0])
    with tf.GradientTape() as tape:
        y = x * 2.0
    with pytest.raises(RuntimeError, match="persistent"):
        tape.jacobian(y, x, experimental_use_pfor=False)
    np.testing.assert_array_equal(tape.jacobian(y, x), [[2.0]])


@pytest.mark.parametrize("target", [None, [], [1.0], 3.0, "y"])
def test_one_tensor_is_asked_for(target: object) -> None:
    x = tf.Variable([1.0])
    with tf.GradientTape() as tape:
        y = x * 2.0
    with pytest.raises(TypeError):
        tape.jacobian(target, x)
    assert tape.jacobian(y, x).shape == (1, 1)


def test_empty_targets() -> None:
    x = tf.Variable(np.ones((0, 2)))
    with tf.GradientTape() as tape:
        y = x * 2.0
    assert tape.jacobian(y, x).shape == (0, 2, 0, 2)


# -------------------------------------------------------------------------- batch_jacobian


def test_batch_jacobian_is_the_diagonal_of_the_jacobian() -> None:
    rng = np.random.default_rng(0)
    x, w = tf.Variable(rng.standard_normal((5, 3))), tf.constant(rng.standard_normal((3, 4)))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.tanh(x @ w)
    full, batch = tape.jacobian(y, x).numpy(), tape.batch_jacobian(y, x).numpy()
    assert batch.shape == (5, 4, 3)
    np.testing.assert_allclose(batch, full[np.arange(5), :, np.arange(5), :])


def test_batch_jacobian_of_images() -> None:
    x = tf.Variable(np.random.default_rng(1).standard_normal((2, 3, 4)))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x * x, axis=2)
    found = tape.batch_jacobian(y, x)
    assert found.shape == (2, 3, 3, 4)
    np.testing.assert_allclose(found[1, 2, 2], 2 * x[1, 2])
    np.testing.assert_allclose(found[1, 2, 1], np.zeros(4))


def test_batch_jacobian_is_recorded() -> None:
    x = tf.Variable(np.ones((2, 2)) * 0.5)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x ** 3
        j = inner.batch_jacobian(y, x)
    np.testing.assert_allclose(outer.gradient(j, x), 6 * 0.5 * np.ones((2, 2)))


def test_batch_jacobian_refuses() -> None:
    x = tf.Variable(np.ones((2, 3)))
    with tf.GradientTape(persistent=True) as tape:
        flat, short, y = tf.reduce_sum(x, axis=1), (x * 2.0)[:1], x * x
    with pytest.raises(ValueError, match="rank at least 2"):
        tape.batch_jacobian(flat, x)
    with pytest.raises(ValueError, match="Need first dimension"):
        tape.batch_jacobian(short, x)
    with pytest.raises(TypeError):
        tape.batch_jacobian([y], x)
    assert tape.batch_jacobian(y, x).shape == (2, 3, 3)


def test_batch_jacobian_unconnected_is_zeros() -> None:
    x, other = tf.Variable(np.ones((2, 3))), tf.Variable(np.ones((2, 1)))
    with tf.GradientTape() as tape:
        y = other * 2.0
    np.testing.assert_array_equal(tape.batch_jacobian(y, x), np.zeros((2, 1, 3)))


# -------------------------------------------------------------------------- all rows at once


@tf.custom_gradient
def _cubed(x):
    return x ** 3, lambda g: 3.0 * g * x * x


@tf.custom_gradient
def _doubled_by_numbers(x):
    return 2.0 * x, lambda g: tf.constant(2.0 * g.numpy())


def _layer_normed(x):
    from gtape.ops.nn.normalization import layer_norm

    return layer_norm(x, tf.ones((1, 4), tf.float64), tf.zeros((1, 4), tf.float64), axes=(1,),
                      eps=1e-3)


_W = np.random.default_rng(3).standard_normal((4, 3))
#: Programs of x [3, 4].
_PROGRAMS = {
    "mlp": lambda x: tf.tanh(tf.tanh(x @ _W) @ _W.T),
    "elementwise": lambda x: tf.sin(x) * tf.exp(x) / (1.0 + x * x),
    "broadcast": lambda x: x[:, None] * x[None] - tf.reduce_sum(x, axis=0),
    "softmax": lambda x: tf.nn.softmax(x) + tf.nn.log_softmax(x, axis=0),
    "cross_entropy": lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([0, 2, 1], x),
    "norms": lambda x: x / tf.norm(x, axis=1, keepdims=True) * tf.reduce_logsumexp(x),
    "layer_norm": _layer_normed,
    "gather": lambda x: tf.gather(x, [2, 0, 0]) * tf.gather(x, [1, 1, 3, 0], axis=1),
    "slices": lambda x: tf.concat([x[1:, ::2], tf.reverse(x[:2, :2], [0])], axis=1),
    "segments": lambda x: tf.math.unsorted_segment_max(x, [0, 1, 0], 2),
    "scatter": lambda x: tf.tensor_scatter_nd_update(x * x, [[1]], x[:1]),
    "einsum": lambda x: tf.einsum("ij,kj->ik", x, x),
    "solve": lambda x: tf.linalg.solve(x[:, :3] @ tf.transpose(x[:, :3]) + 3.0 * np.eye(3), x),
    "cholesky": lambda x: tf.linalg.cholesky(x @ tf.transpose(x) + np.eye(3)),
    "cumulative": lambda x: tf.cumsum(x * x, axis=1) + tf.math.cumprod(x, axis=1),
    "sorted": lambda x: tf.sort(x) + tf.math.top_k(x, 4).values,
    "extremes": lambda x: tf.reduce_max(x, axis=0) * tf.reduce_prod(x[:, 0]),
    "convolution": lambda x: tf.nn.conv2d(tf.reshape(x, (1, 3, 2, 2)), tf.reshape(_W, (1, 2, 2, 3)),
                                          1, "SAME"),
    "filters": lambda x: tf.nn.conv2d(np.ones((2, 4, 4, 2)), tf.reshape(x, (1, 2, 2, 3)), 1,
                                      "VALID"),
    "pool": lambda x: tf.nn.max_pool2d(tf.reshape(x, (1, 3, 4, 1)), 2, 1, "SAME"),
    "custom": lambda x: _cubed(x) * x,
    "recomputed": lambda x: tf.recompute_grad(lambda y: tf.tanh(y @ _W))(x),
    "complex": lambda x: tf.math.real(tf.signal.fft(tf.cast(x, tf.complex128))),
    "cond": lambda x: tf.cond(x[0, 0] > 0, lambda: x * x, lambda: -x),
    "switches": lambda x: tf.where(x > 0, x * x, tf.nn.relu(x) + x),
}


def _point() -> np.ndarray:
    return np.random.default_rng(11).standard_normal((3, 4))


def _by_rows(monkeypatch: pytest.MonkeyPatch, by_rows: bool) -> None:
    monkeypatch.setattr(jacobian._Rows, "_few", lambda self, count: by_rows)


def _jacobian(program) -> np.ndarray:
    x = tf.constant(_point())
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = program(x)
    return tape.jacobian(y, x).numpy()


@pytest.mark.parametrize("name", sorted(_PROGRAMS))
def test_rows_at_once_equal_rows_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _by_rows(monkeypatch, True)
    wanted = _jacobian(_PROGRAMS[name])
    _by_rows(monkeypatch, False)
    monkeypatch.setattr(jacobian, "_UNTRACEABLE", ())
    np.testing.assert_allclose(_jacobian(_PROGRAMS[name]), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", sorted(_PROGRAMS))
def test_a_jacobian_in_a_function_equals_the_eager_one(name: str) -> None:
    inside = tf.function(lambda x: _of(_PROGRAMS[name], x))
    np.testing.assert_allclose(inside(tf.constant(_point())), _jacobian(_PROGRAMS[name]),
                               rtol=1e-8, atol=1e-10)


def _of(program, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = program(x)
    return tape.jacobian(y, x)


@pytest.mark.parametrize("name", sorted(_PROGRAMS))
def test_a_jacobian_can_be_differentiated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Along a direction, against central differences of the jacobian."""
    x, d = tf.constant(_point()), np.random.default_rng(5).standard_normal((3, 4))
    with tf.GradientTape() as tape:
        tape.watch(x)
        j = _of(_PROGRAMS[name], x)
        total = tf.reduce_sum(tf.cos(tf.range(tf.size(j), dtype=tf.float64))
                              * tf.reshape(j, (-1,)))
    found = tape.gradient(total, x, unconnected_gradients="zero")

    def at(step: float) -> float:
        made = _of(_PROGRAMS[name], tf.constant(_point() + step * d)).numpy()
        return float(np.sum(np.cos(np.arange(made.size)) * made.reshape(-1)))

    wanted = (at(1e-5) - at(-1e-5)) / 2e-5
    np.testing.assert_allclose(np.sum(found.numpy() * d), wanted, rtol=1e-5, atol=1e-5)


def test_rows_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _jacobian(_PROGRAMS["mlp"])
    _by_rows(monkeypatch, False)
    monkeypatch.setattr(jacobian, "_CHUNK", 5 * 12 * 8)
    np.testing.assert_allclose(_jacobian(_PROGRAMS["mlp"]), whole, rtol=1e-12)
    x = tf.constant(_point())
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = _PROGRAMS["mlp"](x)
    pieces = tape.batch_jacobian(y, x)
    monkeypatch.undo()
    np.testing.assert_allclose(pieces, tape.batch_jacobian(y, x), rtol=1e-12)


def test_a_gradient_in_numbers_is_asked_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    _by_rows(monkeypatch, False)
    np.testing.assert_array_equal(_jacobian(_doubled_by_numbers).reshape(12, 12), 2 * np.eye(12))


def test_only_what_is_asked_for_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradients of the weights, which the walk passes by, are 100 times as large."""
    from gtape.ops.linalg.products import matmul_

    sizes = []
    function = matmul_._fn

    def noted(xp, a, b, **attrs):
        made = function(xp, a, b, **attrs)
        sizes.append(made.size)
        return made

    x, w = tf.constant(np.ones((1, 100))), tf.Variable(np.ones((100, 100)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.tanh(tf.tanh(x @ w) @ w)
    monkeypatch.setattr(matmul_, "_fn", noted)
    tape.jacobian(y, x)
    assert sizes
    assert max(sizes) <= 10_000


@pytest.mark.parametrize("name", ["mlp", "elementwise", "softmax", "custom", "layer_norm",
                                  "gather"])
def test_batch_jacobians_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.constant(_point())
    found = []
    for by_rows in (True, False):
        _by_rows(monkeypatch, by_rows)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = _PROGRAMS[name](x)
        found.append(tape.batch_jacobian(y, x).numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-10, atol=1e-12)
    inside = tf.function(lambda x: _batched(_PROGRAMS[name], x))(x)
    np.testing.assert_allclose(inside, found[0], rtol=1e-8, atol=1e-10)


def _batched(program, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = program(x)
    return tape.batch_jacobian(y, x)


def test_jacobians_of_jacobians(monkeypatch: pytest.MonkeyPatch) -> None:
    _by_rows(monkeypatch, False)
    x = tf.Variable([0.3, 0.4], dtype=tf.float64)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.stack([x[0] ** 3, x[0] * x[1] ** 2])
        j = inner.jacobian(y, x)
    found = outer.jacobian(j, x)
    np.testing.assert_allclose(found, [[[6 * 0.3, 0], [0, 0]], [[0, 0.8], [0.8, 0.6]]])


def test_a_variable_in_a_function() -> None:
    w = tf.Variable(np.ones((4, 3)))

    @tf.function
    def jacobians(x):
        with tf.GradientTape(persistent=True) as tape:
            y = tf.tanh(x @ w)
        w.assign_add(np.ones((4, 3)))
        return tape.jacobian(y, w)

    x = _point()
    for step in (1.0, 2.0):
        slope = 1 - np.tanh(x @ np.full((4, 3), step)) ** 2
        wanted = np.einsum("bo,bi,op->boip", slope, x, np.eye(3))
        np.testing.assert_allclose(jacobians(tf.constant(x)), wanted, rtol=1e-10, atol=1e-12)

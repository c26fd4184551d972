"""map_fn, vectorized_map, scan, folds, while_loop."""

from __future__ import annotations

from typing import Any

import pytest

import gtape as tf

_X = [1.0, 2.0, 3.0]


def _grad(function: Any, x: Any) -> Any:
    t = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(t)
        y = function(t)
    return tape.gradient(y, t)


def test_map_fn() -> None:
    assert tf.map_fn(lambda x: x * x, tf.constant(_X)).numpy().tolist() == [1, 4, 9]
    both = tf.map_fn(lambda x: (x, x * 2), tf.constant(_X),
                     fn_output_signature=(tf.float32, tf.float32))
    assert [t.numpy().tolist() for t in both] == [[1, 2, 3], [2, 4, 6]]
    pairs = {"a": tf.constant(_X), "b": tf.constant(_X)}
    assert tf.map_fn(lambda d: d["a"] + d["b"], pairs).numpy().tolist() == [2, 4, 6]
    assert _grad(lambda x: tf.map_fn(lambda q: q * q, x), _X).numpy().tolist() == [2, 4, 6]


def test_map_fn_of_nothing() -> None:
    assert tf.map_fn(lambda q: q * [1.0, 2.0], tf.zeros([0])).shape == [0, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="unknown"):
        tf.map_fn(lambda q: q[5], tf.zeros([0, 2]))


def test_map_fn_errors() -> None:
    for elems in (tf.constant(1.0), (tf.constant(_X), tf.constant(_X[:2])), ()):
        with pytest.raises(ValueError):
            tf.map_fn(lambda q: q, elems)
    with pytest.raises(tf.errors.InvalidArgumentError, match="signature"):
        tf.map_fn(lambda q: q, tf.constant(_X), fn_output_signature=tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        tf.map_fn(lambda q: tf.range(q), tf.constant([1, 2]))


def test_vectorized_map() -> None:
    m, x = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([1.0, 2.0])
    assert tf.vectorized_map(lambda q: q[0] * q[1], (m, x)).numpy().tolist() == [[1, 2], [6, 8]]
    assert tf.vectorized_map(lambda q: q[0] * q[1], (m, x[1:])).numpy().tolist() == [[2, 4], [6, 8]]
    assert tf.vectorized_map(lambda q: tf.constant(1.0), x).numpy().tolist() == [1, 1]


@pytest.mark.parametrize("options, wanted", [
    ({}, [1, 3, 6]), ({"initializer": 10.0}, [11, 13, 16]), ({"reverse": True}, [6, 5, 3]),
    ({"initializer": 10.0, "reverse": True}, [16, 15, 13])])
def test_scan(options: Any, wanted: Any) -> None:
    assert tf.scan(lambda a, q: a + q, tf.constant(_X), **options).numpy().tolist() == wanted


def test_scan_of_structures_and_of_nothing() -> None:
    total, product = tf.scan(lambda a, q: (a[0] + q, a[1] * q), tf.constant(_X), (0.0, 1.0))
    assert total.numpy().tolist() == [1, 3, 6] and product.numpy().tolist() == [1, 2, 6]
    assert tf.scan(lambda a, q: a, tf.zeros([0]), tf.zeros([2])).shape == [0, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="initializer"):
        tf.scan(lambda a, q: a, tf.zeros([0]))
    assert _grad(lambda x: tf.scan(lambda a, q: a * q, x), [2.0, 3.0]).numpy().tolist() == [4, 2]


def test_folds() -> None:
    x = tf.constant(_X)
    assert tf.foldl(lambda a, q: a - q, x).numpy() == -4
    assert tf.foldr(lambda a, q: a - q, x).numpy() == 0
    assert tf.foldl(lambda a, q: a - q, x, initializer=1).numpy() == -5
    assert tf.foldl(lambda a, q: a, tf.zeros([0]), initializer=1.0).numpy() == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="initializer"):
        tf.foldr(lambda a, q: a, tf.zeros([0]))


def test_back_prop_false_cuts_the_gradient() -> None:
    assert _grad(lambda x: tf.foldl(lambda a, q: a * q, x, back_prop=False), _X) is None
    assert _grad(lambda x: tf.map_fn(lambda q: q, x, back_prop=False), _X) is None


def test_while_loop() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        turns, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, 1.0])
    assert turns.numpy() == 3 and y.numpy() == 8 and tape.gradient(y, x).numpy() == 12


def test_while_loop_keeps_the_kind_of_its_variables() -> None:
    def body(i: Any) -> Any:
        return [i + 1]

    assert type(tf.while_loop(lambda i: i < 3, body, (0,))) is tuple
    assert type(tf.while_loop(lambda i: i < 3, body, [0])) is list
    assert tf.while_loop(lambda i: True, body, [0], maximum_iterations=2)[0].numpy() == 2
    array = tf.TensorArray(tf.int32, 3)
    _, filled = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, i * i)),
                              (0, array))
    assert filled.stack().numpy().tolist() == [0, 1, 4]


@pytest.mark.parametrize("cond, body, values, error", [
    (1, lambda i: i, [0], TypeError), (lambda i: i < 1, lambda i: i, [], ValueError),
    (lambda i: i < 1, lambda i: i, 0, ValueError),
    (lambda i, j: i < 1, lambda i, j: (i + 1,), (0, 1), ValueError)])
def test_while_loop_errors(cond: Any, body: Any, values: Any, error: Any) -> None:
    with pytest.raises(error):
        tf.while_loop(cond, body, values)


def test_batch_function() -> None:
    @tf.nondifferentiable_batch_function(1, 4, 0)
    def double(x: Any) -> Any:
        return x * 2.0

    x = tf.constant(_X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = double(x)
    assert y.numpy().tolist() == [2, 4, 6] and tape.gradient(y, x) is None
    small = tf.nondifferentiable_batch_function(1, 2, 0, enable_large_batch_splitting=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 2"):
        small(lambda q: q)(x)

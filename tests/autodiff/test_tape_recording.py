"""What a tape records: operations on what it knows, while it is active in this thread."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import gtape as tf


def test_an_op_on_a_watched_tensor_is_recorded() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0


def test_an_op_on_an_unwatched_tensor_is_not() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x) is None


def test_watching_late_makes_the_earlier_use_a_constant() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        early = x * x
        tape.watch(x)
        y = early * x
    assert float(tape.gradient(y, x)) == 9.0


def test_what_is_computed_before_or_after_the_block_is_not_recorded() -> None:
    x = tf.Variable(2.0)
    before = x * x
    with tf.GradientTape(persistent=True) as tape:
        inside = x * 5.0
    after = inside * x
    assert tape.gradient(before, x) is None
    assert float(tape.gradient(inside, x)) == 5.0
    assert tape.gradient(after, x) is None


def test_several_targets_are_added_and_may_be_of_any_shape() -> None:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        square, double = x * x, 2.0 * x
    np.testing.assert_allclose(tape.gradient([square, double], x), [4.0, 6.0])
    np.testing.assert_allclose(tape.gradient({"a": square, "b": (double,)}, x), [4.0, 6.0])
    np.testing.assert_allclose(tape.gradient(square, x), [2.0, 4.0])


def test_a_target_that_is_its_own_source_gives_one() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        pass
    np.testing.assert_array_equal(tape.gradient(x, x), [1.0, 1.0])


def test_a_source_does_not_cut_the_path_to_another() -> None:
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
        z = y * y
    dx, dy = tape.gradient(z, [x, y])
    assert (float(dx), float(dy)) == (32.0, 8.0)


def test_a_source_named_twice_gets_the_whole_gradient_twice() -> None:
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
    assert [float(g) for g in tape.gradient(y, [x, x])] == [4.0, 4.0]


def test_a_variable_can_be_the_target() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        x.read_value()
    assert float(tape.gradient(x, x)) == 1.0


def test_gradients_of_shared_values_add_up() -> None:
    x = tf.Variable(1.5)
    with tf.GradientTape() as tape:
        shared = tf.exp(x)
        y = shared * shared + shared
    assert float(tape.gradient(y, x)) == pytest.approx(2 * np.exp(3.0) + np.exp(1.5), rel=1e-6)


def test_loops_and_branches_are_recorded_as_they_ran() -> None:
    def f(x: tf.Tensor, n: int) -> tf.Tensor:
        y = tf.constant(1.0)
        for i in range(n):
            if i % 2:
                y = y * x
            else:
                y = y + x
        return y

    x = tf.constant(2.0)
    for n, wanted in ((1, 1.0), (2, 5.0), (3, 6.0)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, n)
        assert float(tape.gradient(y, x)) == wanted


def test_the_branch_taken_decides_who_gets_a_gradient() -> None:
    x, a, b = tf.constant(1.0), tf.Variable(2.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = a if x > 0.0 else b ** 2
    da, db = tape.gradient(y, [a, b])
    assert float(da) == 1.0
    assert db is None


@pytest.mark.parametrize("make", [
    lambda x: tf.floor(x), lambda x: tf.round(x), lambda x: tf.math.ceil(x),
    lambda x: tf.cast(x > 1.0, tf.float32), lambda x: x // 2.0,
    lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32)])
def test_steps_without_a_slope_give_none(make: object) -> None:
    x = tf.Variable(1.5)
    with tf.GradientTape() as tape:
        y = make(x)  # type: ignore[operator]
    assert tape.gradient(y, x) is None


def test_the_sign_is_connected_with_slope_zero() -> None:
    x = tf.Variable([1.5, -2.0])
    with tf.GradientTape() as tape:
        y = tf.sign(x)
    np.testing.assert_array_equal(tape.gradient(y, x), [0.0, 0.0])


def test_the_gradient_has_the_dtype_of_the_source() -> None:
    x = tf.Variable(2.0, dtype=tf.float64)
    with tf.GradientTape() as tape:
        y = tf.cast(tf.cast(x, tf.float32) ** 2, tf.float16)
    g = tape.gradient(y, x)
    assert g.dtype == tf.float64
    assert float(g) == 4.0


def test_broadcast_inputs_get_summed_gradients() -> None:
    row, column = tf.Variable([[1.0, 2.0, 3.0]]), tf.Variable([[10.0], [20.0]])
    scalar = tf.Variable(0.5)
    with tf.GradientTape() as tape:
        y = row * column + scalar
    dr, dc, ds = tape.gradient(y, [row, column, scalar])
    np.testing.assert_allclose(dr, [[30.0, 30.0, 30.0]])
    np.testing.assert_allclose(dc, [[6.0], [6.0]])
    assert float(ds) == 6.0


def test_python_and_numpy_operands_are_constants_on_either_side() -> None:
    x = tf.Variable([1.0, 2.0])
    array = np.array([3.0, 4.0], np.float32)
    for f, wanted in ((lambda: array * x, [3.0, 4.0]), (lambda: x * array, [3.0, 4.0]),
                      (lambda: 2 - x, [-1.0, -1.0]), (lambda: 6.0 / x, [-6.0, -1.5]),
                      (lambda: 2.0 ** x, [2 * np.log(2), 4 * np.log(2)])):
        with tf.GradientTape() as tape:
            y = f()
        np.testing.assert_allclose(tape.gradient(y, x), wanted, rtol=1e-6)


def test_slicing_and_iterating_are_recorded() -> None:
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        total = tf.constant(0.0)
        for row in x:
            total = total + row[0] * row[-1]
    np.testing.assert_allclose(tape.gradient(total, x), [[2.0, 1.0], [4.0, 3.0]])


def test_copies_are_the_tensor_itself() -> None:
    x = tf.constant([1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = copy.deepcopy(x) * copy.copy(x)
    np.testing.assert_allclose(tape.gradient(y, x), [2.0])


# -------------------------------------------------------------------------- structures


def test_the_answer_has_the_structure_of_the_sources() -> None:
    from collections import OrderedDict, deque, namedtuple

    Pair = namedtuple("Pair", "a b")
    x, y = tf.Variable(2.0), tf.Variable(3.0)

    def ask(sources: object) -> object:
        with tf.GradientTape() as tape:
            z = x * y
        return tape.gradient(z, sources)

    assert float(ask(x)) == 3.0
    assert [float(g) for g in ask([x, y])] == [3.0, 2.0]
    assert isinstance(ask((x, y)), tuple)
    found = ask({"y": y, "x": [x]})
    assert list(found) == ["y", "x"]
    assert float(found["x"][0]) == 3.0
    assert ask(Pair(x, y))._fields == ("a", "b")
    assert isinstance(ask(deque([x, y])), deque)
    assert isinstance(ask(OrderedDict(b=x, a=y)), OrderedDict)
    assert ask([]) == []
    assert float(ask([x, [], {"k": y}])[2]["k"]) == 2.0


def test_unconnected_sources_are_none_or_zeros() -> None:
    x, other = tf.Variable([1.0]), tf.Variable([[1.0, 2.0]], dtype=tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        y = x * 2.0
    assert tape.gradient(y, other) is None
    for zero in ("zero", tf.UnconnectedGradients.ZERO):
        g = tape.gradient(y, [x, other], unconnected_gradients=zero)
        np.testing.assert_array_equal(g[1], [[0.0, 0.0]])
        assert g[1].dtype == tf.float64
    assert tape.gradient(y, other, unconnected_gradients="none") is None


def test_output_gradients_weigh_the_targets() -> None:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y, z = x * x, 3.0 * x
    np.testing.assert_allclose(
        tape.gradient(y, x, output_gradients=tf.constant([10.0, 1.0])), [20.0, 4.0])
    np.testing.assert_allclose(
        tape.gradient([y, z], x, output_gradients=[None, tf.constant([1.0, 0.0])]), [5.0, 4.0])
    np.testing.assert_allclose(tape.gradient(y, x, np.array([1.0, 1.0])), [2.0, 4.0])


def test_the_second_derivative_is_none_where_no_op_reads_the_source() -> None:
    def second(f: object) -> object:
        x = tf.Variable(3.0)
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = f(x)  # type: ignore[operator]
            g = inner.gradient(y, x)
        return outer.gradient(g, x)

    assert second(lambda x: 3.0 * x) is None
    assert second(lambda x: x + x) is None
    assert float(second(lambda x: x ** 2)) == 2.0
    assert float(second(lambda x: x * x)) == 2.0


def test_a_second_tape_after_the_first_sees_nothing_of_it() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as first:
        y = x * x
    with tf.GradientTape() as second:
        g = first.gradient(y, x)
    assert second.gradient(g, x) is None

"""tf.inspect.specs: what a function gives, without computing it."""

from __future__ import annotations

from typing import Any

import pytest

import gtape as tf

_ROWS = tf.TensorSpec([None, 3])


def test_lengths_that_depend_on_open_ones_are_open() -> None:
    assert tf.inspect.specs(tf.matmul, _ROWS, tf.TensorSpec([3, 4])) == tf.TensorSpec([None, 4])
    assert tf.inspect.specs(tf.transpose, _ROWS) == tf.TensorSpec([3, None])
    assert tf.inspect.specs(tf.argmax, _ROWS, axis=1) == tf.TensorSpec([None], tf.int64)
    assert tf.inspect.specs(tf.reduce_sum, _ROWS, 0) == tf.TensorSpec([3])


def test_specs_stand_in_nests_and_all_else_is_given_as_it_is() -> None:
    def function(pair: Any, scale: float, named: dict[str, Any]) -> Any:
        return {"sum": pair[0] + pair[1] * scale, "rest": [named["x"], None, scale]}

    found = tf.inspect.specs(function, (_ROWS, tf.ones([3])), 2.0, named={"x": tf.ones([2])})
    assert found == {"sum": _ROWS, "rest": [tf.TensorSpec([2]), None, 2.0]}


def test_the_function_sees_no_number_for_an_open_length() -> None:
    seen = []
    tf.inspect.specs(lambda x: seen.append(x.shape), _ROWS)
    assert seen == [tf.TensorShape([None, 3])]


def test_where_a_number_is_needed_two_are_tried() -> None:
    def looped(x: Any, y: Any) -> Any:
        rows = tf.get_static_value(tf.shape(x))
        return tf.zeros([rows[0] // 2, 5]), tf.zeros([rows[1]]), x, y

    assert tf.inspect.specs(looped, _ROWS, tf.TensorSpec([2], tf.int32)) == (
        tf.TensorSpec([None, 5]), tf.TensorSpec([3]), _ROWS, tf.TensorSpec([2], tf.int32))


def test_code_that_goes_on_without_the_number_runs_again_with_one() -> None:
    def stubborn(x: Any) -> Any:
        try:
            rows = int(tf.shape(x)[0])
        except BaseException:
            rows = 0
        return tf.zeros([rows + 1])

    assert tf.inspect.specs(stubborn, _ROWS) == tf.TensorSpec([None])


def test_sparse_tensors() -> None:
    x = tf.SparseTensorSpec([None, 3])
    assert tf.inspect.specs(tf.sparse.sparse_dense_matmul, x, tf.TensorSpec([3, 2])) == (
        tf.TensorSpec([None, 2]))
    assert tf.inspect.specs(lambda x: -2.0 * x, x) == x
    assert tf.inspect.specs(lambda x: x.values, x) == tf.TensorSpec([None])
    assert tf.inspect.specs(tf.RaggedTensor.from_tensor, _ROWS) == tf.RaggedTensorSpec([None, 3])


def test_nothing_is_computed_assigned_or_recorded() -> None:
    v = tf.Variable(1.0)

    def function(x: Any) -> Any:
        v.assign_add(tf.reduce_sum(x))
        tf.debugging.assert_less(x, -1.0)
        return v * x

    with tf.GradientTape() as tape:
        assert tf.inspect.specs(function, tf.TensorSpec([4])) == tf.TensorSpec([4])
    assert v.numpy() == 1.0 and not tape.watched_variables()


def test_conditions_on_tensors_are_those_of_a_traced_function() -> None:
    def function(x: Any) -> Any:
        if tf.reduce_sum(x) > 0:
            return x
        return tf.zeros_like(x)

    assert tf.inspect.specs(function, _ROWS) == _ROWS


def test_inside_a_traced_function_values_around_it_may_be_used() -> None:
    @tf.function
    def function(x: Any) -> Any:
        found = tf.inspect.specs(lambda y: y @ x, tf.TensorSpec([7, 2]))
        return tf.zeros(found.shape) + tf.reduce_sum(x)

    assert function(tf.ones([2, 3])).shape == [7, 3]


def test_what_cannot_be_known_is_an_error() -> None:
    with pytest.raises(tf.errors.NotTraceableError, match="depends on the values"):
        tf.inspect.specs(tf.where, tf.TensorSpec([3], tf.bool))
    with pytest.raises(tf.errors.InvalidArgumentError, match="matmul"):
        tf.inspect.specs(tf.matmul, _ROWS, tf.TensorSpec([4, 4]))


@pytest.mark.parametrize("spec", [
    tf.TensorSpec(None), tf.SparseTensorSpec(None), tf.RaggedTensorSpec([None, None])])
def test_specs_that_are_not_taken(spec: Any) -> None:
    with pytest.raises(ValueError, match="of known rank; got"):
        tf.inspect.specs(tf.identity, [spec])

"""Calls of traced functions with tuples, lists and dicts of tensors."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import gtape as tf

A, B, THREE = tf.constant([1.0, 2.0]), tf.constant([3.0, 5.0]), tf.constant(3.0)

#: Arguments that are told from each other, though some hold the same tensors.
DIFFERENT: list[Any] = [
    (A, B), [A, B], (A, (B,)), ((A, B), None), (A, B, None), {"a": A, "b": B}, {"b": A, "a": B},
    ((A, 1), B), ((A, True), B), ((A, "1"), B), ({"a": (A,)}, [B]), (A, tf.constant([3, 5])),
    (A, tf.constant([[3.0, 5.0]])), ((), A, B), {"a": A, "b": [B, 2]}]


def _digest(value: Any) -> Any:
    """Something that depends on every leaf and its place."""
    total = tf.zeros([2])
    for place, leaf in enumerate(tf.nest.flatten(value), 1):
        if isinstance(leaf, tf.Tensor):
            total += place * tf.reshape(tf.cast(leaf, tf.float32), [-1])
        elif isinstance(leaf, int):
            total += 100 * place * leaf
    return total


@pytest.mark.parametrize("value", DIFFERENT, ids=str)
def test_a_nest_gives_what_it_gives_eagerly_again_and_again(value: Any) -> None:
    f = tf.function(_digest)
    expected = _digest(value).numpy()
    for _ in range(3):
        np.testing.assert_array_equal(f(value), expected)
    assert f.experimental_get_tracing_count() == 1


def test_every_structure_has_its_own_trace() -> None:
    f = tf.function(_digest)
    for _ in range(2):
        for value in DIFFERENT:
            np.testing.assert_array_equal(f(value), _digest(value))
    assert f.experimental_get_tracing_count() == len(DIFFERENT)


def test_the_second_call_looks_at_the_tensors_of_the_second_call() -> None:
    @tf.function
    def f(pair: Any, scale: Any) -> Any:
        return {"sum": pair["x"] + pair["y"], "scaled": (pair["x"] * scale,)}

    for x, y, scale in ((A, B, 2.0), (B, A, 2.0), (A, A, 2.0), (B, B, 3.0)):
        found = f({"x": x, "y": y}, tf.constant(scale))
        np.testing.assert_array_equal(found["sum"], x + y)
        np.testing.assert_array_equal(found["scaled"][0], x * scale)


def test_one_tensor_twice_is_two_arguments() -> None:
    f = tf.function(lambda pair: pair[0] + 10.0 * pair[1])
    np.testing.assert_array_equal(f((A, A)), 11 * A.numpy())
    np.testing.assert_array_equal(f((A, B)), (A + 10 * B).numpy())


def test_what_is_no_plain_container_goes_the_long_way() -> None:
    f = tf.function(_digest)
    for value in (OrderedDict(b=A, a=B), {1: A, 2: B}, (A, 2.5), (A, tf.Variable([1.0, 2.0]))):
        for _ in range(2):
            np.testing.assert_array_equal(f(value), _digest(value))


def test_a_nest_that_contains_itself_is_refused() -> None:
    endless: list[Any] = [A]
    endless.append(endless)
    with pytest.raises(ValueError, match="contain itself"):
        tf.function(lambda value: value[0])(endless)


def test_a_list_as_long_as_before_with_other_numbers_is_traced_anew() -> None:
    f = tf.function(lambda value: value[0] * value[1])
    numbers: list[Any] = [A, 2]
    np.testing.assert_array_equal(f(numbers), 2 * A.numpy())
    numbers[1] = 3
    np.testing.assert_array_equal(f(numbers), 3 * A.numpy())


@pytest.mark.parametrize("calls", [([3.0, 4.0], (5.0, 6.0)), (A, [3.0, 4.0]), ([3.0, 4.0], A)],
                         ids=["lists", "tensor, list", "list, tensor"])
def test_an_input_signature_makes_tensors_of_numbers_at_every_call(calls: Any) -> None:
    f = tf.function(lambda x: 2 * x, input_signature=[tf.TensorSpec([2])])
    for _ in range(3):
        for value in calls:
            np.testing.assert_array_equal(f(value), 2 * np.asarray(value, np.float32))


def test_an_input_signature_makes_a_tensor_of_a_number_at_every_call() -> None:
    f = tf.function(lambda x: 2 * x, input_signature=[tf.TensorSpec([])])
    assert [float(f(x)) for x in (3, 4, tf.constant(5.0), 3, 4)] == [6, 8, 10, 6, 8]


def test_a_default_that_is_a_tensor_is_one_of_the_arguments() -> None:
    @tf.function
    def f(pair: Any, scale: Any = THREE) -> Any:
        return pair[0] * scale

    for _ in range(3):
        np.testing.assert_array_equal(f((A, B)), 3 * A.numpy())
        np.testing.assert_array_equal(f((A, B), tf.constant(2.0)), 2 * A.numpy())


def test_empty_optionals_share_a_trace() -> None:
    f = tf.function(lambda batch: batch[0] * 2)
    for _ in range(4):
        np.testing.assert_array_equal(f((A, tf.experimental.Optional.empty(None))), 2 * A.numpy())
    assert f.experimental_get_tracing_count() == 1

"""Elements that may be missing."""

from __future__ import annotations

import pytest

import gtape as tf

Optional = tf.experimental.Optional


def test_the_end_of_an_iterator_is_an_empty_optional() -> None:
    iterator = iter(tf.data.Dataset.range(1))
    first, second = iterator.get_next_as_optional(), iterator.get_next_as_optional()
    assert first.has_value() and not second.has_value()
    assert int(first.get_value()) == 0
    assert first.element_spec == second.element_spec == tf.TensorSpec([], tf.int64)


def test_an_empty_optional_has_no_value() -> None:
    empty = Optional.empty(tf.TensorSpec([], tf.int32))
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not have a value"):
        empty.get_value()


def test_the_specs_of_optionals_are_those_of_their_values() -> None:
    found = Optional.from_value((1, {"a": [1.0, 2.0]}))
    assert found.element_spec == (tf.TensorSpec([], tf.int32), {"a": tf.TensorSpec([2])})
    assert tf.OptionalSpec(found.element_spec).is_compatible_with(found)

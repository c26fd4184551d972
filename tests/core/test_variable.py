"""Variables: made, named, read, assigned, and what they refuse."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import gtape as tf


def test_dtype_and_shape_come_from_the_value() -> None:
    assert tf.Variable(1.0).dtype == tf.float32
    assert tf.Variable(1).dtype == tf.int32
    assert tf.Variable(np.ones((2, 3))).dtype == tf.float64
    assert tf.Variable([[1.0, 2.0]]).shape == (1, 2)
    assert tf.Variable(1, dtype=tf.float64).dtype == tf.float64
    assert tf.Variable(lambda: tf.ones([2])).shape == (2,)
    assert tf.Variable(tf.Variable([3.0])).numpy() == [3.0]


def test_names_take_scopes_and_are_not_made_unique() -> None:
    assert tf.Variable(1.0).name == "Variable:0"
    assert tf.Variable(1.0, name="w").name == tf.Variable(2.0, name="w").name == "w:0"
    with tf.name_scope("outer"), tf.name_scope("inner"):
        assert tf.Variable(1.0, name="w").name == "outer/inner/w:0"
    with pytest.raises(ValueError, match="name"):
        tf.Variable(1.0, name=3)


def test_name_and_trainable_cannot_be_set() -> None:
    v = tf.Variable(1.0, trainable=False)
    assert v.trainable is False
    for attribute in ("name", "trainable", "dtype", "shape"):
        with pytest.raises(AttributeError):
            setattr(v, attribute, None)


def test_text_forms() -> None:
    v = tf.Variable(20.0, name="w")
    assert repr(v) == str(v) == "<tf.Variable 'w:0' shape=() dtype=float32, numpy=20.0>"
    assert "shape=(2,)" in repr(tf.Variable([1.0, 2.0]))
    assert f"{tf.Variable(1.23456):.2f}" == "1.23"


def test_assign_replaces_and_returns_something_to_read() -> None:
    v = tf.Variable([1.0, 2.0])
    before = v.value()
    result = v.assign([3.0, 4.0])
    np.testing.assert_array_equal(v, [3.0, 4.0])
    np.testing.assert_array_equal(before, [1.0, 2.0])
    np.testing.assert_array_equal(result, [3.0, 4.0])
    assert v.assign([5.0, 6.0], read_value=False) is None
    np.testing.assert_array_equal(v.assign_add([1.0, 1.0]).assign_sub([2.0, 2.0]), [4.0, 5.0])
    np.testing.assert_array_equal(v.assign(np.array([1, 2])), [1.0, 2.0])


def test_what_an_assignment_refuses_changes_nothing() -> None:
    v = tf.Variable([1.0, 2.0])
    for value, error in (([1.0, 2.0, 3.0], ValueError), (1.0, ValueError),
                         ([[1.0, 2.0]], ValueError),
                         (tf.constant([1.0, 2.0], tf.float64), ValueError),
                         (tf.constant([1, 2]), ValueError), (["a", "b"], (TypeError, ValueError)),
                         (None, (TypeError, ValueError))):
        with pytest.raises(error):
            v.assign(value)
        np.testing.assert_array_equal(v, [1.0, 2.0])
    for shift in (1.0, [1.0, 2.0, 3.0]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            v.assign_add(shift)
    integer = tf.Variable([1, 2])
    with pytest.raises(TypeError):
        integer.assign([1.5, 2.5])
    with pytest.raises(TypeError, match="truncated"):
        integer.assign(np.array([1.5, 2.5]))


def test_a_declared_shape_may_leave_lengths_free() -> None:
    v = tf.Variable(np.zeros((2, 3)), shape=[None, 3])
    v.assign(np.ones((5, 3)))
    assert v.numpy().shape == (5, 3)
    assert v.shape.as_list() == [None, 3]
    with pytest.raises(ValueError):
        v.assign(np.ones((5, 4)))
    with pytest.raises(ValueError):
        tf.Variable(np.zeros(2), shape=[3])


def test_no_initial_value() -> None:
    with pytest.raises(ValueError, match="initial_value"):
        tf.Variable()


def test_in_place_python_operators_are_refused() -> None:
    v = tf.Variable(1.0)
    with pytest.raises(RuntimeError, match="assign_add"):
        v += 1.0
    with pytest.raises(RuntimeError):
        v *= 2.0
    with pytest.raises(TypeError, match="item assignment"):
        tf.Variable([1.0])[0] = 2.0
    with pytest.raises(TypeError, match="item assignment"):
        tf.constant([1.0])[0] = 2.0


def test_slices_can_be_assigned() -> None:
    v = tf.Variable(np.zeros((2, 3), np.float32))
    v[0].assign([1.0, 2.0, 3.0])
    v[:, 1].assign([7.0, 8.0])
    np.testing.assert_array_equal(v, [[1.0, 7.0, 3.0], [0.0, 8.0, 0.0]])
    v[1, 2].assign_add(5.0)
    assert float(v[1, 2]) == 5.0


def test_scatter_adds_up_duplicates() -> None:
    v = tf.Variable(np.zeros((3, 2), np.float32))
    rows = tf.IndexedSlices(tf.constant([[1.0, 1.0], [2.0, 2.0]]), tf.constant([1, 1]),
                            tf.constant([3, 2]))
    v.scatter_add(rows)
    np.testing.assert_array_equal(v, [[0, 0], [3, 3], [0, 0]])
    v.scatter_nd_update([[0], [2]], [[9.0, 9.0], [8.0, 8.0]])
    np.testing.assert_array_equal(v, [[9, 9], [3, 3], [8, 8]])


def test_identity_and_equality() -> None:
    v, w = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 3.0])
    np.testing.assert_array_equal(v == w, [True, False])
    assert (v == None) is False  # noqa: E711
    with pytest.raises(TypeError, match="ref"):
        {v: 1}
    assert v.ref() == v.ref() and v.ref() != w.ref()
    assert {v.ref(): 1}[v.ref()] == 1
    assert v.ref().deref() is v
    assert copy.copy(v) is v


def test_deepcopy_and_pickle_make_new_variables() -> None:
    v = tf.Variable([1.0, 2.0], name="w", trainable=False)
    for other in (copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        other.assign([9.0, 9.0])
        np.testing.assert_array_equal(v, [1.0, 2.0])
        assert other.name == "w:0"
        assert other.trainable is False


def test_python_protocol() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    assert len(v) == 3
    assert [float(x) for x in v] == [1.0, 2.0, 3.0]
    assert float(tf.Variable(2.5)) == 2.5
    assert int(tf.Variable(2)) == 2
    assert bool(tf.Variable(True)) is True
    assert [10, 20, 30][tf.Variable(1)] == 20
    np.testing.assert_array_equal(np.asarray(v), [1.0, 2.0, 3.0])
    with pytest.raises(TypeError):
        iter(tf.Variable(1.0))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(v)
    assert tf.is_tensor(v)
    assert isinstance(v, tf.Variable)
    assert type(v).__name__ == "ResourceVariable"


def test_arithmetic_gives_tensors() -> None:
    v = tf.Variable([1.0, 4.0])
    for made, wanted in ((v + v, [2, 8]), (2.0 - v, [1, -2]), (v / 2.0, [0.5, 2]), (-v, [-1, -4]),
                         (v ** 0.5, [1, 2]), (abs(-v), [1, 4])):
        assert isinstance(made, tf.Tensor)
        np.testing.assert_allclose(made, wanted)


def test_constraints_are_remembered() -> None:
    clip = lambda x: tf.clip_by_value(x, 0.0, 1.0)
    assert tf.Variable(1.0, constraint=clip).constraint is clip

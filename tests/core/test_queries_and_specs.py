"""TensorSpec, and questions about values."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gtape as tf

_SLICES = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]), tf.constant([2]))


@pytest.mark.parametrize("value, wanted", [
    (tf.constant(1.0), True), (tf.Variable(1.0), True), (_SLICES, True), (1.0, False),
    (np.ones(2), False), (tf.Variable, False), (None, False)])
def test_is_tensor(value, wanted):
    assert tf.is_tensor(value) is wanted


def test_modes():
    assert tf.executing_eagerly() and not tf.inside_function()
    assert not tf.is_symbolic_tensor(tf.constant(1.0)) and not tf.is_symbolic_tensor(3)
    assert tf.get_logger().name == "gtape"


def test_static_values():
    assert tf.get_static_value(tf.constant([1, 2])).tolist() == [1, 2]
    assert tf.get_static_value(tf.constant(3)) == 3
    assert tf.get_static_value(tf.Variable(1.0)) is None
    assert tf.get_static_value("kept") == "kept"


@pytest.mark.parametrize("fn", [tf.gradients, tf.hessians])
def test_graph_functions_say_what_to_use(fn):
    with pytest.raises(RuntimeError, match="tape"):
        fn(1.0, 2.0)


def test_tensor_spec():
    spec = tf.TensorSpec([2, None], tf.float32, "x")
    assert repr(spec) == "TensorSpec(shape=(2, None), dtype=tf.float32, name='x')"
    assert (spec.shape.as_list(), spec.dtype, spec.name) == ([2, None], tf.float32, "x")
    assert spec.is_compatible_with(tf.ones((2, 3)))
    assert not spec.is_compatible_with(tf.ones((3, 3)))
    assert not spec.is_compatible_with(tf.ones((2, 3), tf.int32))
    assert spec.is_compatible_with(np.ones((2, 1), np.float32))
    assert spec == tf.TensorSpec([2, None], "float32", "x") and spec != tf.TensorSpec([2])
    assert len({spec, tf.TensorSpec.from_spec(spec)}) == 1
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_spec_relations():
    narrow, wide = tf.TensorSpec([2, 3]), tf.TensorSpec([None, 3])
    assert narrow.is_subtype_of(wide) and not wide.is_subtype_of(narrow)
    assert narrow.is_subtype_of(tf.TensorSpec(None))
    assert narrow.most_specific_common_supertype([tf.TensorSpec([4, 3])]) == wide
    assert narrow.most_specific_common_supertype([tf.TensorSpec([2, 3], tf.int32)]) is None


def test_specs_of_values():
    assert tf.TensorSpec.from_tensor(tf.Variable([1, 2])) == tf.TensorSpec([2], tf.int32)
    assert tf.type_spec_from_value(3.0) == tf.TensorSpec([], tf.float32)
    assert tf.type_spec_from_value(None) == tf.NoneTensorSpec()
    assert tf.NoneTensorSpec().is_compatible_with(None)
    with pytest.raises(ValueError, match="convert_to_tensor"):
        tf.TensorSpec.from_tensor(3.0)
    with pytest.raises(TypeError, match="no TypeSpec"):
        tf.type_spec_from_value(object())


def test_dtypes_namespace():
    assert tf.dtypes.as_dtype("float32") is tf.float32
    assert tf.dtypes.bool is tf.bool
    with pytest.raises(AttributeError, match="float128"):
        tf.dtypes.float128

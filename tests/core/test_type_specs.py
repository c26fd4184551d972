"""TypeSpecs: what they say, what fits them, what covers two of them."""

from __future__ import annotations

import pickle

import pytest

import gtape as tf

SPARSE = tf.SparseTensor([[0, 1]], [1.0], [5, 3])
SPECS = [tf.TensorSpec([None, 3]), tf.SparseTensorSpec([None, 3]), tf.IndexedSlicesSpec([4, 1]),
         tf.NoneTensorSpec()]


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_equal_specs_are_equal_and_hash_alike(spec: tf.TypeSpec) -> None:
    again = pickle.loads(pickle.dumps(spec))
    assert isinstance(spec, tf.TypeSpec)
    assert spec == again and hash(spec) == hash(again)
    assert all(spec != other for other in SPECS if other is not spec)


def test_specs_of_values() -> None:
    assert tf.type_spec_from_value(SPARSE) == tf.SparseTensorSpec([5, 3], tf.float32)
    assert tf.SparseTensorSpec.from_value(SPARSE) == tf.type_spec_from_value(SPARSE)
    slices = tf.IndexedSlices([[1.0]], [0], [4, 1])
    assert tf.type_spec_from_value(slices) == tf.IndexedSlicesSpec(
        [4, 1], tf.float32, tf.int32, tf.int32, [1])
    with pytest.raises(TypeError):
        tf.type_spec_from_value(object())
    with pytest.raises(TypeError):
        tf.SparseTensorSpec.from_value(tf.ones([2]))


def test_representations_are_tensorflows() -> None:
    assert repr(tf.SparseTensorSpec([None, 3], tf.int32)) == (
        "SparseTensorSpec(TensorShape([None, 3]), tf.int32)")
    assert repr(tf.IndexedSlicesSpec()) == (
        "IndexedSlicesSpec(TensorShape(None), tf.float32, tf.int64, None, TensorShape([None]))")


def test_what_fits() -> None:
    wide, narrow = tf.SparseTensorSpec([None, 3]), tf.SparseTensorSpec([2, 3])
    assert wide.is_compatible_with(narrow) and wide.is_compatible_with(SPARSE)
    assert not narrow.is_compatible_with(SPARSE)
    assert not wide.is_compatible_with(tf.ones([2, 3])) and not wide.is_compatible_with(3)
    assert not tf.TensorSpec([5, 3]).is_compatible_with(SPARSE)
    assert narrow.is_subtype_of(wide) and not wide.is_subtype_of(narrow)


def test_what_covers_two() -> None:
    a, b = tf.SparseTensorSpec([2, 3]), tf.SparseTensorSpec([4, 3])
    assert a.most_specific_common_supertype([b]) == tf.SparseTensorSpec([None, 3])
    assert a.most_specific_common_supertype([tf.TensorSpec([2, 3])]) is None
    assert a.most_specific_common_supertype([tf.SparseTensorSpec([2, 3], tf.int32)]) is None
    assert a.most_specific_compatible_type(b) == tf.SparseTensorSpec([None, 3])
    with pytest.raises(ValueError, match="no TypeSpec is compatible"):
        a.most_specific_compatible_type(tf.TensorSpec([2, 3]))


def test_classes_of_values() -> None:
    assert tf.TensorSpec([]).value_type is tf.Tensor
    assert tf.SparseTensorSpec([1]).value_type is tf.SparseTensor
    assert tf.IndexedSlicesSpec().value_type is tf.IndexedSlices


def test_a_shape_becomes_a_tensor() -> None:
    assert tf.convert_to_tensor(tf.TensorShape([2, 3])).numpy().tolist() == [2, 3]
    with pytest.raises(ValueError, match="not known"):
        tf.convert_to_tensor(tf.TensorShape([2, None]))


def test_specs_of_tensor_arrays() -> None:
    array = tf.TensorArray(tf.float32, 2, element_shape=[3])
    spec = tf.type_spec_from_value(array)
    assert spec == tf.TensorArraySpec([3], tf.float32) == tf.TensorArraySpec.from_value(array)
    assert repr(tf.TensorArraySpec()) == (
        "TensorArraySpec(TensorShape(None), tf.float32, False, True)")
    assert spec.value_type is tf.TensorArray and not spec.is_compatible_with(tf.ones([2, 3]))
    (whole,) = spec._to_components(array.unstack(tf.ones([2, 3])))
    assert spec._from_components([whole]).read(1).numpy().tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="TensorArray"):
        tf.TensorArraySpec.from_value(3)

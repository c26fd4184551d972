"""Arguments that TensorFlow refuses are refused, eagerly and in functions, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf

_Bad, _Full = tf.errors.InvalidArgumentError, tf.errors.ResourceExhaustedError
_Four, _Image = np.arange(4.0, dtype=np.float32), np.ones((2, 2, 3), np.float32)
_Batch, _Filter = np.ones((1, 4, 4, 1), np.float32), np.ones((2, 2, 1, 1), np.float32)


def _turns(x: Any) -> Any:
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.cast(y, tf.float64)), (0, 1.0))


_REFUSED: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "split: sizes below -1": (lambda x: tf.split(x, [5, -1]), _Four, _Bad),
    "split: a negative size": (lambda x: tf.split(x, [6, -2]), _Four, _Bad),
    "split: two free sizes": (lambda x: tf.split(x, [-1, -1]), _Four, _Bad),
    "split: another num": (lambda x: tf.split(x, [2, 2], num=4), _Four, _Bad),
    "split: another num of equal parts": (lambda x: tf.split(x, 2, num=4), _Four, _Bad),
    "split: parts of nothing": (lambda x: tf.split(x[:0], 10**12), _Four, _Bad),
    "reshape: lengths below -1": (lambda x: tf.reshape(x, [-2, -2]), _Four, _Bad),
    "reshape: one below -1": (lambda x: tf.reshape(x, [-2, 2]), _Four, _Bad),
    "tile: 10^24": (lambda x: tf.tile(x, [10**24]), _Four, _Bad),
    "tile: a negative multiple": (lambda x: tf.tile(x, [-1]), _Four, _Bad),
    "range: to infinity": (lambda x: tf.range(0.0, np.inf), _Four, _Bad),
    "range: to nan": (lambda x: tf.range(0.0, np.nan), _Four, _Bad),
    "range: from infinity": (lambda x: tf.range(-np.inf, 1.0), _Four, _Bad),
    "range: by nothing": (lambda x: tf.range(0, 3, 0), _Four, _Bad),
    "range: of a vector": (lambda x: tf.range([1, 2]), _Four, _Bad),
    "range: of a string": (lambda x: tf.range("a"), _Four, _Bad),
    "eye: negative": (lambda x: tf.eye(-1), _Four, _Bad),
    "one_hot: no such axis": (lambda x: tf.one_hot([1], 3, axis=5), _Four, _Bad),
    "linspace: no such axis": (lambda x: tf.linspace(0.0, 1.0, 3, axis=7), _Four, _Bad),
    "resize: beyond memory": (
        lambda x: tf.image.resize(x, [1800000000, 1800000000], antialias=True), _Batch, _Full),
    "resize: beyond int32": (lambda x: tf.image.resize(x, [2**31, 1]), _Batch, _Bad),
    "adjust_gamma: negative": (lambda x: tf.image.adjust_gamma(x, -1.0), _Image, _Bad),
    "adjust_gamma: a negative array": (
        lambda x: tf.image.adjust_gamma(x, np.float32(-1)), _Image, _Bad),
    "adjust_gamma: a negative tensor": (
        lambda x: tf.image.adjust_gamma(x, tf.constant(-1.0)), _Image, _Bad),
    "pad_to_bounding_box: no pixels": (
        lambda x: tf.image.pad_to_bounding_box(x[:0], 0, 0, 4, 4), _Image, _Bad),
    "crop_to_bounding_box: no channels": (
        lambda x: tf.image.crop_to_bounding_box(x[:, :, :0], 0, 0, 1, 1), _Image, _Bad),
    "flip_left_right: no pixels": (lambda x: tf.image.flip_left_right(x[:, :0]), _Image, _Bad),
    "atrous_conv2d: a window beyond int32": (
        lambda x: tf.nn.atrous_conv2d(x, _Filter, 2**31 - 1, "SAME"), _Batch, _Bad),
    "atrous_conv2d: padding beyond memory": (
        lambda x: tf.nn.atrous_conv2d(x, _Filter, 2**30, "SAME"), _Batch, _Bad),
    "atrous_conv2d: a dilation beyond int32": (
        lambda x: tf.nn.atrous_conv2d(x, _Filter, 2**40, "SAME"), _Batch, _Bad),
    "a numpy_function that returns None": (
        lambda x: tf.numpy_function(lambda y: None, [x], tf.TensorSpec([4], tf.float32)), _Four,
        _Bad),
    "a py_function that returns None": (
        lambda x: tf.py_function(lambda y: None, [x], tf.TensorSpec([4], tf.float32)), _Four, _Bad),
    "TensorArray: negative": (lambda x: tf.TensorArray(tf.float32, size=-3), _Four, _Bad),
    "TensorArray: beyond memory": (lambda x: tf.TensorArray(tf.float32, size=2**70), _Four, _Full),
    "binomial: more trials than the result counts": (
        lambda x: tf.random.stateless_binomial([2], [1, 2], 1e30, 0.5), _Four, _Bad),
    "binomial: in a Generator": (
        lambda x: tf.random.Generator.from_seed(1).binomial([2], 1e30, 0.5), _Four, _Bad),
    "an axis that is a string": (lambda x: tf.reduce_sum(x, axis="a"), _Four, TypeError),
    "a ragged shape": (lambda x: tf.reshape(x, np.array([None, 2])), _Four, _Bad),
}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", _REFUSED)
def test_refused(name: str, traced: bool) -> None:
    function, argument, error = _REFUSED[name]
    with pytest.raises(error) as caught:
        if traced:
            tf.function(function)(tf.constant(argument))
        else:
            function(tf.constant(argument))
    assert len(str(caught.value)) > 20


@pytest.mark.parametrize("mapped", [tf.vectorized_map, tf.map_fn])
@pytest.mark.parametrize("traced", [False, True])
def test_slices_that_are_no_rows(mapped: Any, traced: bool) -> None:
    """A function of one element that gives IndexedSlices: its index must be a vector too."""
    table = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    def function(indices: Any) -> Any:
        return mapped(lambda i: tf.IndexedSlices(tf.gather(table, i), i, [3, 2]), indices)

    def rows(indices: Any) -> Any:
        return mapped(lambda i: tf.IndexedSlices(tf.gather(table, [i]), i[None], [3, 2]), indices)

    wrap = tf.function if traced else lambda f: f
    with pytest.raises(_Bad, match="vector of indices"):
        wrap(function)(tf.constant([0, 2]))
    assert wrap(rows)(tf.constant([0, 2])).numpy()[1].tolist() == [[0, 0], [0, 0], [5, 6]]


def test_empty_batches_of_images_are_images() -> None:
    empty = tf.zeros([0, 2, 2, 3])
    assert tf.image.pad_to_bounding_box(empty, 0, 0, 4, 4).shape == (0, 4, 4, 3)
    assert tf.image.flip_left_right(empty).shape == (0, 2, 2, 3)


def test_a_traced_loop_keeps_its_dtypes_also_where_it_is_unrolled() -> None:
    with pytest.raises(TypeError, match="float32, and body makes it float64"):
        tf.function(_turns)(tf.constant(1.0))
    assert _turns(None)[1].dtype == tf.float64

    def grown(x: Any) -> Any:
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.concat([y, y], 0)), (0, x))

    assert tf.function(grown)(tf.ones([1]))[1].shape == (8,)


@pytest.mark.parametrize(("shape", "dtype", "error"), [
    ("a", "float32", TypeError), ("a", "b", TypeError), ([2], "b", TypeError),
    (2.5, "int32", TypeError),
    ([2.0], "int32", TypeError), ([object()], "int32", TypeError), (b"ab", "int32", TypeError),
    ([-1], "int32", ValueError), ([[1]], "int32", TypeError)])
def test_specs(shape: Any, dtype: str, error: Any) -> None:
    with pytest.raises(error) as caught:
        tf.TensorSpec(shape, dtype)
    assert len(str(caught.value)) > 20


def test_shapes_compare_with_anything() -> None:
    shape = tf.TensorShape([2, None])
    assert shape != "a" and shape != [-1] and shape != 2.5 and shape == [2, None]
    assert tf.TensorShape([np.int64(3), True]).as_list() == [3, 1]


def test_functions_without_results_may_return_none() -> None:
    assert tf.numpy_function(lambda x: None, [1.0], []) is None
    assert tf.py_function(lambda x: None, [1.0], []) == []


def test_counts_of_a_wide_result_may_be_large() -> None:
    found = tf.random.stateless_binomial([4], [1, 2], 1e12, 0.5, tf.float64).numpy()
    assert np.all(np.abs(found - 5e11) < 1e8)

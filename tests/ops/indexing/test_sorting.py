"""sort, argsort, top_k, argmax, searchsorted and in_top_k."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gtape as tf


def _grad(function: Any, x: Any) -> list[Any]:
    t = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(t)
        y = function(t)
    return tape.gradient(y, t).numpy().tolist()


def test_sort_and_argsort() -> None:
    m = [[3, 1, 2], [1, 2, 0]]
    assert tf.sort(m).numpy().tolist() == [[1, 2, 3], [0, 1, 2]]
    assert tf.sort(m, axis=0, direction="DESCENDING").numpy().tolist() == [[3, 2, 2], [1, 1, 0]]
    assert tf.argsort(m, axis=0).numpy().tolist() == [[1, 0, 1], [0, 1, 0]]
    assert tf.argsort(m).dtype == tf.int32


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=20))
def test_equal_values_keep_their_order(values: list[int]) -> None:
    up, down = tf.argsort(values).numpy(), tf.argsort(values, direction="DESCENDING").numpy()
    assert up.tolist() == sorted(range(len(values)), key=lambda i: values[i])
    assert down.tolist() == sorted(range(len(values)), key=lambda i: -values[i])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float16", "int64"])
def test_extreme_values_sort_downwards(dtype: str) -> None:
    info = np.finfo(dtype) if dtype == "float16" else np.iinfo(dtype)
    made = tf.sort(np.array([1, info.min, info.max], dtype), direction="DESCENDING").numpy()
    assert made.tolist() == [info.max, 1, info.min] or made[0] == info.max


def test_nan_counts_as_the_largest() -> None:
    assert np.isnan(tf.sort([1.0, np.nan, 0.0]).numpy()[2])
    assert tf.argsort([1.0, np.nan, 0.0]).numpy().tolist() == [2, 0, 1]


def test_the_gradient_of_sort_goes_back_to_its_element() -> None:
    assert _grad(lambda x: tf.sort(x) * [1.0, 10.0, 100.0], [3.0, 1.0, 2.0]) == [100, 1, 10]
    assert _grad(lambda x: tf.sort(x, direction="DESCENDING")[0], [3.0, 1.0, 3.0]) == [1, 0, 0]
    assert _grad(lambda x: tf.sort(x, axis=0)[0], [[3.0, 1.0], [2.0, 5.0]]) == [[0, 1], [1, 0]]


def test_argsort_and_argmax_have_no_gradient() -> None:
    x = tf.constant([2.0, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        places = tf.cast(tf.argsort(x), tf.float32)
        best = tf.cast(tf.argmax(x), tf.float32)
    assert tape.gradient(places, x) is None and tape.gradient(best, x) is None


def test_sort_errors() -> None:
    with pytest.raises(ValueError, match="direction"):
        tf.sort([1.0], direction="DOWN")
    for bad in (1.0, [True], ["a"]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.sort(bad)
    with pytest.raises(tf.errors.InvalidArgumentError, match="axis"):
        tf.sort([1.0], axis=1)


def test_top_k() -> None:
    found = tf.math.top_k([[1.0, 3.0, 3.0, 2.0]], 2)
    assert type(found).__name__ == "TopKV2"
    assert found.values.numpy().tolist() == [[3, 3]] and found.indices.numpy().tolist() == [[1, 2]]
    assert tf.math.top_k([1, 2], index_type=tf.int64).indices.dtype == tf.int64
    assert tf.math.top_k([1.0, 2.0], 0).values.shape == [0]
    assert _grad(lambda x: tf.math.top_k(x, 2)[0][1], [3.0, 1.0, 3.0, 2.0]) == [0, 0, 1, 0]


@given(st.lists(st.integers(0, 5), min_size=30, max_size=60), st.integers(1, 3))
def test_few_of_many_are_the_first_of_the_sorted(values: list[int], k: int) -> None:
    found = tf.math.top_k(np.array([values, values[::-1]], np.float32), k)
    for row, places in zip((values, values[::-1]), found.indices.numpy().tolist()):
        assert places == sorted(range(len(row)), key=lambda i: -row[i])[:k]


@pytest.mark.parametrize("x, k", [([1.0], 2), (1.0, 1), ([1.0], -1), ([True], 1)])
def test_top_k_errors(x: Any, k: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.math.top_k(x, k)


def test_approximate_top_k_is_exact() -> None:
    m = [[1.0, 2.0], [4.0, 3.0]]
    assert tf.math.approx_max_k(m, 1).indices.numpy().tolist() == [[1], [0]]
    least = tf.math.approx_min_k(m, 1, reduction_dimension=0)
    assert least.values.numpy().tolist() == [[1, 2]] and least.indices.shape == [1, 2]
    assert tf.approx_top_k(m, k=1, is_max_k=False).values.numpy().tolist() == [[1], [3]]
    assert _grad(lambda x: tf.math.approx_min_k(x, 1).values, [3.0, 1.0]) == [0, 1]


def test_argmax_and_argmin() -> None:
    m = [[1.0, 5.0], [5.0, 2.0]]
    assert tf.argmax(m).numpy().tolist() == [1, 0] and tf.argmax(m).dtype == tf.int64
    assert tf.argmin(m, axis=-1, output_type=tf.int32).numpy().tolist() == [0, 1]
    assert tf.argmax([2, 2, 1]).numpy() == 0 and tf.argmax([False, True]).numpy() == 1


@pytest.mark.parametrize("x, options", [
    (1.0, {}), ([], {}), ([1.0], {"axis": 1}), ([1.0], {"output_type": tf.float32}),
    ([1j], {}), (["a"], {})])
def test_argmax_errors(x: Any, options: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.argmax(x, **options)


def test_searchsorted() -> None:
    rows = [1.0, 3.0, 3.0, 5.0]
    assert tf.searchsorted(rows, [3.0, 6.0]).numpy().tolist() == [1, 4]
    assert tf.searchsorted(rows, [3.0], side="right").numpy().tolist() == [3]
    batch = tf.searchsorted([[1, 2, 3], [4, 5, 6]], [[2], [5]], out_type=tf.int64)
    assert batch.numpy().tolist() == [[1], [1]] and batch.dtype == tf.int64
    assert tf.searchsorted(tf.zeros([0, 2]), tf.zeros([0, 3])).shape == [0, 3]


def test_searchsorted_errors() -> None:
    with pytest.raises(ValueError, match="side"):
        tf.searchsorted([1.0], [1.0], side="middle")
    for rows, values in (([1.0], 2.0), ([[1], [2]], [2]), ([1.0], tf.constant([1]))):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.searchsorted(rows, values)


def test_in_top_k() -> None:
    scores = [[0.1, 0.9], [0.9, 0.9], [np.nan, 0.9], [0.5, np.inf]]
    assert tf.math.in_top_k([0, 1, 1, 0], scores, 1).numpy().tolist() == [False, True, False, False]
    assert tf.math.in_top_k([2, -1], scores[:2], 2).numpy().tolist() == [False, False]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.math.in_top_k([0], [0.1], 1)


def test_searchsorted_in_and_for_nothing():
    assert tf.searchsorted(tf.zeros([0]), tf.zeros([0])).shape == (0,)
    assert tf.searchsorted(tf.zeros([2, 0]), tf.zeros([2, 3])).numpy().tolist() == [[0] * 3] * 2

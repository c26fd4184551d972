"""Functions of RaggedTensors: the numbers that TensorFlow 2.21 gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf

A = tf.ragged.constant([[3.0, 1.0, 4.0], [], [1.0, 5.0]])
B = tf.ragged.constant([[1, 2, 3], [], [4, 5]])
C = tf.ragged.constant([[[1, 2], [3]], [], [[4], [5, 6, 7]]])
S = tf.ragged.constant([["a", "b"], ["c"]])
PAIRS = tf.RaggedTensor.from_row_splits(tf.ones([3, 2]), [0, 1, 3])
R = tf.RaggedTensor


def listed(x: Any) -> Any:
    if isinstance(x, tf.RaggedTensor):
        return x.to_list()
    if isinstance(x, (list, tuple)):
        return [listed(v) for v in x]
    return np.asarray(x.numpy()).tolist()


def close(found: Any, wanted: Any) -> None:
    if isinstance(wanted, list):
        assert len(found) == len(wanted), (found, wanted)
        for a, b in zip(found, wanted):
            close(a, b)
    else:
        np.testing.assert_allclose(found, wanted, rtol=2e-6)


# ---------------------------------------------------------------------- tf.ragged


@pytest.mark.parametrize(("value", "options", "shape"), [
    ([[1, 2], [3]], {}, [2, None]), ([[], []], {}, [2, None]), ([], {}, [0]), ([1, 2], {}, [2]),
    (3, {}, []), ([[[1, 2], [3, 4]], [[5, 6]]], {}, [2, None, None]),
    ([[[1, 2], [3, 4]], [[5, 6]]], {"ragged_rank": 1}, [2, None, 2]),
    ([[[1, 2], [3, 4]], [[5, 6]]], {"inner_shape": (2,)}, [2, None, 2]),
    ([np.ones((2, 2)), np.ones((1, 2))], {"inner_shape": (2,)}, [2, None, 2]),
    ([np.ones((2, 2)), np.ones((1, 2))], {}, [2, None, None])])
def test_constants(value: Any, options: dict, shape: list) -> None:
    made = tf.ragged.constant(value, **options)
    assert made.shape.as_list() == shape
    assert listed(made) == (value if not isinstance(value, list) else
                            [v.tolist() if isinstance(v, np.ndarray) else v for v in value])


def test_dtypes_of_constants() -> None:
    assert tf.ragged.constant([[1.0, 2], [3]]).dtype is tf.float32
    assert tf.ragged.constant([[1], []], dtype=tf.float64).dtype is tf.float64
    assert tf.ragged.constant([[], []]).dtype is tf.float32
    small = tf.ragged.constant([[1], []], row_splits_dtype=tf.int32)
    assert small.row_splits.dtype is tf.int32


@pytest.mark.parametrize(("value", "options"), [
    ([[1], [[2]]], {}), (["a", ["b"]], {}), ([["a", None]], {}),
    ([[1, 2], [3]], {"ragged_rank": 2}), ([[1, 2]], {"inner_shape": (3,)})])
def test_lists_that_do_not_fit_are_refused(value: list, options: dict) -> None:
    with pytest.raises(ValueError):
        tf.ragged.constant(value, **options)


def test_a_list_that_contains_itself_is_refused() -> None:
    value: list = [1]
    value[0] = value
    with pytest.raises(ValueError, match="nest"):
        tf.ragged.constant(value)


def test_ranges() -> None:
    assert tf.ragged.range([2, 0, 3]).to_list() == [[0, 1], [], [0, 1, 2]]
    assert tf.ragged.range([0, 5], [3, 8]).to_list() == [[0, 1, 2], [5, 6, 7]]
    assert tf.ragged.range(0, [3, 0, 2]).to_list() == [[0, 1, 2], [], [0, 1]]
    assert tf.ragged.range([0, 5], [3, 8], 2).to_list() == [[0, 2], [5, 7]]
    assert tf.ragged.range([3.0], [0.0], -1.0).to_list() == [[3, 2, 1]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="must not be 0"):
        tf.ragged.range([1], [2], [0])


def test_flat_values_mapped() -> None:
    assert tf.ragged.map_flat_values(tf.add, A, 1.0).to_list() == [[4, 2, 5], [], [2, 6]]
    for function, args in ((tf.reduce_sum, (A,)), (tf.add, (A, A[:2]))):
        with pytest.raises(ValueError, match="map_flat_values"):
            tf.ragged.map_flat_values(function, *args)


def test_rows_and_their_numbers() -> None:
    assert listed(tf.ragged.row_splits_to_segment_ids([0, 2, 2, 5])) == [0, 0, 2, 2, 2]
    assert listed(tf.ragged.segment_ids_to_row_splits([0, 0, 2])) == [0, 2, 2, 3]
    assert listed(tf.ragged.segment_ids_to_row_splits([0, 0, 2], 5)) == [0, 2, 2, 3, 3, 3]
    made = tf.ragged.stack_dynamic_partitions([1, 2, 3, 4, 5], [0, 1, 0, 2, 1], 3)
    assert made.to_list() == [[1, 3], [2, 5], [4]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="in \\[0, 1\\)"):
        tf.ragged.stack_dynamic_partitions([1, 2], [0, 1], 1)


def test_crosses() -> None:
    words = [tf.ragged.constant([["a"], ["b", "c"]]), tf.ragged.constant([["d"], ["e", "f"]])]
    assert tf.ragged.cross(words).to_list() == [
        [b"a_X_d"], [b"b_X_e", b"b_X_f", b"c_X_e", b"c_X_f"]]
    numbers = [tf.ragged.constant([[1], [2, 3]]), tf.ragged.constant([[4], [5, 6]])]
    assert tf.ragged.cross_hashed(numbers, num_buckets=10).to_list() == [[5], [8, 6, 2, 3]]
    assert tf.ragged.cross_hashed(numbers).to_list()[0] == [3174199038560320725]


def test_masks() -> None:
    assert tf.ragged.boolean_mask(A, A > 3).to_list() == [[4], [], [5]]
    assert tf.ragged.boolean_mask(A, [True, False, True]).to_list() == [[3, 1, 4], [1, 5]]
    dense = tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]])
    assert dense.to_list() == [[1], [3, 4]]
    with pytest.raises(ValueError, match="boolean_mask"):
        tf.ragged.boolean_mask(A, [True])


# ---------------------------------------------------------------------- dense, sparse and back


def test_dense_and_back() -> None:
    assert listed(A.to_tensor()) == [[3, 1, 4], [0, 0, 0], [1, 5, 0]]
    assert listed(A.to_tensor(-1)) == [[3, 1, 4], [-1, -1, -1], [1, 5, -1]]
    assert listed(A.to_tensor(-1.0, shape=[None, 2])) == [[3, 1], [-1, -1], [1, 5]]
    assert listed(A.to_tensor(shape=[4, 4])) == [[3, 1, 4, 0], [0] * 4, [1, 5, 0, 0], [0] * 4]
    assert listed(A.to_tensor(shape=[2, None])) == [[3, 1, 4], [0, 0, 0]]
    assert listed(C.to_tensor(shape=[None, None, 2])) == [
        [[1, 2], [3, 0]], [[0, 0], [0, 0]], [[4, 0], [5, 6]]]
    assert listed(S.to_tensor("-")) == [[b"a", b"b"], [b"c", b"-"]]
    assert listed(S.to_tensor()) == [[b"a", b"b"], [b"c", b""]]
    assert listed(PAIRS.to_tensor([5.0, 6.0]))[0] == [[1, 1], [5, 6]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="rank"):
        A.to_tensor(shape=[None])
    with pytest.raises(TypeError):
        A.to_tensor("x")


@pytest.mark.parametrize(("value", "options", "wanted"), [
    ([[1, 2, 0], [3, 0, 0]], {"padding": 0}, [[1, 2], [3]]),
    ([[1, 2, 0], [3, 0, 0]], {}, [[1, 2, 0], [3, 0, 0]]),
    ([[1, 2, 0], [3, 0, 0]], {"lengths": [1, 0]}, [[1], []]),
    ([[1, 2], [3, 4]], {"lengths": [5, 1]}, [[1, 2], [3]]),
    ([[[1, 2], [0, 0]], [[3, 4], [5, 6]]], {"ragged_rank": 2, "padding": 0},
     [[[1, 2], []], [[3, 4], [5, 6]]]),
    ([[[1, 2], [0, 0]], [[3, 4], [5, 6]]], {"lengths": ([1, 2], [1, 2, 1])},
     [[[1]], [[3, 4], [5]]]),
    ([[[1, 2], [0, 0]], [[3, 4], [5, 6]]], {"padding": [0, 0]}, [[[1, 2]], [[3, 4], [5, 6]]])])
def test_of_dense_tensors(value: list, options: dict, wanted: list) -> None:
    assert R.from_tensor(value, **options).to_list() == wanted


def test_of_dense_tensors_that_do_not_fit() -> None:
    for value, options in (([1, 2], {}), ([[1]], {"ragged_rank": 2}),
                           ([[1]], {"lengths": [1], "padding": 0})):
        with pytest.raises(ValueError, match="from_tensor"):
            R.from_tensor(value, **options)


def test_sparse_and_back() -> None:
    x = A.to_sparse()
    assert listed(x.indices) == [[0, 0], [0, 1], [0, 2], [2, 0], [2, 1]]
    assert listed(x.values) == [3, 1, 4, 1, 5] and x.shape == [3, 3]
    assert R.from_sparse(x).to_list() == A.to_list()
    assert listed(tf.sparse.to_dense(PAIRS.to_sparse())) == listed(PAIRS.to_tensor())
    with pytest.raises(tf.errors.InvalidArgumentError, match="without gaps"):
        R.from_sparse(tf.SparseTensor([[0, 0], [0, 2]], [1, 2], [3, 4]))
    with pytest.raises(ValueError, match="matrix"):
        R.from_sparse(tf.SparseTensor([[0, 0, 0]], [1], [3, 4, 1]))


# ---------------------------------------------------------------------- elementwise


@pytest.mark.parametrize(("function", "wanted"), [
    (lambda: A + 1, [[4, 2, 5], [], [2, 6]]), (lambda: 1 - A, [[-2, 0, -3], [], [0, -4]]),
    (lambda: A + A, [[6, 2, 8], [], [2, 10]]), (lambda: A / 2, [[1.5, 0.5, 2], [], [0.5, 2.5]]),
    (lambda: B / B, [[1, 1, 1], [], [1, 1]]), (lambda: B // 2, [[0, 1, 1], [], [2, 2]]),
    (lambda: B % 2, [[1, 0, 1], [], [0, 1]]), (lambda: A ** 2, [[9, 1, 16], [], [1, 25]]),
    (lambda: abs(-A), [[3, 1, 4], [], [1, 5]]), (lambda: A > 3, [[0, 0, 1], [], [0, 1]]),
    (lambda: A == A, [[1, 1, 1], [], [1, 1]]), (lambda: A != 1, [[1, 0, 1], [], [0, 1]]),
    (lambda: A == [1], [[0, 1, 0], [], [1, 0]]), (lambda: S == "a", [[1, 0], [0]]),
    (lambda: (A > 1) & (A > 3), [[0, 0, 1], [], [0, 1]]),
    (lambda: ~(A > 1), [[0, 1, 0], [], [1, 0]]),
    (lambda: A * [[1.0], [2.0], [3.0]], [[3, 1, 4], [], [3, 15]]),
    (lambda: tf.constant([[1.0], [2.0], [3.0]]) * A, [[3, 1, 4], [], [3, 15]]),
    (lambda: np.float32(2) * A, [[6, 2, 8], [], [2, 10]]),
    (lambda: C + tf.constant([[[1]], [[2]], [[3]]]), [[[2, 3], [4]], [], [[7], [8, 9, 10]]]),
    (lambda: PAIRS * [2.0, 3.0], [[[2, 3]], [[2, 3], [2, 3]]]),
    (lambda: tf.maximum(A, 2.0), [[3, 2, 4], [], [2, 5]]),
    (lambda: tf.nn.relu(-A), [[0, 0, 0], [], [0, 0]]),
    (lambda: tf.math.log(A), [[1.0986123, 0, 1.3862944], [], [0, 1.6094379]]),
    (lambda: tf.where(A > 3, A, 0.0), [[0, 0, 4], [], [0, 5]]),
    (lambda: tf.where(A > 3, A, -A), [[-3, -1, 4], [], [-1, 5]]),
    (lambda: tf.where(A > 3), [[0, 2], [2, 1]]),
    (lambda: tf.clip_by_value(A, 2.0, 4.0), [[3, 2, 4], [], [2, 4]]),
    (lambda: tf.cast(A, tf.int32), [[3, 1, 4], [], [1, 5]]),
    (lambda: tf.zeros_like(A), [[0, 0, 0], [], [0, 0]]),
    (lambda: tf.ones_like(B), [[1, 1, 1], [], [1, 1]]),
    (lambda: tf.identity(A), [[3, 1, 4], [], [1, 5]]),
    (lambda: tf.add_n([A, A]), [[6, 2, 8], [], [2, 10]]),
    (lambda: tf.math.divide_no_nan(A, A), [[1, 1, 1], [], [1, 1]]),
    (lambda: tf.one_hot(B, 3), [[[0, 1, 0], [0, 0, 1], [0, 0, 0]], [], [[0] * 3, [0] * 3]]),
    (lambda: tf.nn.softmax(A),
     [[0.25949645, 0.03511902, 0.7053845], [], [0.01798621, 0.98201376]])])
def test_elementwise(function: Callable[[], Any], wanted: list) -> None:
    close(listed(function()), wanted)


def test_none_is_not_equal() -> None:
    assert (A == None) is False and (A != None) is True  # noqa: E711


@pytest.mark.parametrize("other", [
    [1.0, 2.0], [[1.0, 2.0], [2.0], [3.0]], [[1.0], [2.0], [3.0]], [[[1.0]], [[2.0]], [[3.0]]]])
def test_rows_that_differ_are_refused(other: list) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="equal lengths"):
        if isinstance(other[0], float):
            A + other
        elif isinstance(other[0][0], float):
            A + tf.ragged.constant(other)
        else:
            A + tf.ragged.constant(other)


def test_dtypes_that_differ_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="dtype"):
        A + B
    with pytest.raises(ValueError, match="with_row_splits_dtype"):
        A + A.with_row_splits_dtype(tf.int32)


def test_shapes() -> None:
    assert tf.size(A).numpy() == 5 and tf.rank(C).numpy() == 3
    shape = tf.shape(A)
    assert repr(shape) == "<DynamicRaggedShape lengths=[3, (3, 0, 2)] num_row_partitions=1>"
    assert shape[0].numpy() == 3 and shape[0].dtype is tf.int32
    with pytest.raises(ValueError, match="ragged"):
        shape[1]


# ---------------------------------------------------------------------- reductions


_LOW, _HIGH, _NAN = float(np.finfo(np.float32).min), float(np.finfo(np.float32).max), float("nan")


@pytest.mark.parametrize(("name", "axis", "wanted"), [
    ("reduce_sum", None, 14), ("reduce_sum", 0, [4, 6, 4]), ("reduce_sum", 1, [8, 0, 6]),
    ("reduce_sum", -1, [8, 0, 6]), ("reduce_sum", [0, 1], 14), ("reduce_mean", None, 2.8),
    ("reduce_mean", 0, [2, 3, 4]), ("reduce_mean", 1, [2.6666667, _NAN, 3]),
    ("reduce_max", 1, [4, _LOW, 5]), ("reduce_min", 1, [1, _HIGH, 1]),
    ("reduce_prod", 1, [12, 1, 5]), ("reduce_max", 0, [3, 5, 4])])
def test_reductions(name: str, axis: Any, wanted: Any) -> None:
    close(listed(getattr(tf, name, None)(A, axis) if hasattr(tf, name) else
                 getattr(tf.math, name)(A, axis)), wanted)


@pytest.mark.parametrize(("axis", "wanted"), [
    (0, [[5, 2], [8, 6, 7]]), (1, [[4, 2], [], [9, 6, 7]]), (2, [[3, 3], [], [4, 18]]),
    ([1, 2], [6, 0, 22]), ([0, 2], [7, 21]), ([0, 1], [13, 8, 7]), (None, 28)])
def test_sums_of_rows_of_rows(axis: Any, wanted: Any) -> None:
    assert listed(tf.reduce_sum(C, axis)) == wanted


def test_more_reductions() -> None:
    assert listed(tf.reduce_sum(A, 1, keepdims=True)) == [[8], [0], [6]]
    assert listed(tf.reduce_max(A, 0, keepdims=True)) == [[3, 5, 4]]
    assert listed(tf.reduce_sum(PAIRS, 2)) == [[2], [2, 2]]
    assert listed(tf.reduce_mean(tf.ragged.constant([[1, 2], [4]]), 1)) == [1.5, 4]
    close(listed(tf.math.reduce_variance(A, 1)), [1.5555556, _NAN, 4])
    close(listed(tf.math.reduce_std(A, 0)), [1, 2, 0])
    assert listed(tf.reduce_any(A > 3, 1)) == [True, False, True]
    assert listed(tf.reduce_all(A > 3, 1)) == [False, True, False]
    assert listed(tf.reduce_all(A > 3, 0)) == [False, False, True]
    assert listed(tf.math.unsorted_segment_sum(A, [0, 0, 1], 2)) == [[3, 1, 4], [1, 5]]
    with pytest.raises(ValueError, match="axis"):
        tf.reduce_sum(A, axis=3)


def test_counts() -> None:
    x = tf.ragged.constant([[1, 1], [2]])
    assert listed(tf.math.bincount(x, axis=-1)) == [[0, 2, 0], [0, 0, 1]]
    assert listed(tf.sparse.bincount(x, axis=-1).values) == [2, 1]


# ---------------------------------------------------------------------- layout


@pytest.mark.parametrize(("function", "wanted"), [
    (lambda: tf.expand_dims(A, 0), [[[3, 1, 4], [], [1, 5]]]),
    (lambda: tf.expand_dims(A, 1), [[[3, 1, 4]], [[]], [[1, 5]]]),
    (lambda: tf.expand_dims(A, -1), [[[3], [1], [4]], [], [[1], [5]]]),
    (lambda: tf.expand_dims(C, 2), [[[[1, 2]], [[3]]], [], [[[4]], [[5, 6, 7]]]]),
    (lambda: tf.squeeze(tf.expand_dims(A, 1), 1), [[3, 1, 4], [], [1, 5]]),
    (lambda: tf.concat([A, A[:1]], 0), [[3, 1, 4], [], [1, 5], [3, 1, 4]]),
    (lambda: tf.concat([A, A], 1), [[3, 1, 4, 3, 1, 4], [], [1, 5, 1, 5]]),
    (lambda: tf.concat([A, tf.ones([1, 2])], 0), [[3, 1, 4], [], [1, 5], [1, 1]]),
    (lambda: tf.concat([A, tf.ones([3, 2])], 1), [[3, 1, 4, 1, 1], [1, 1], [1, 5, 1, 1]]),
    (lambda: tf.concat([C, C], 2), [[[1, 2, 1, 2], [3, 3]], [], [[4, 4], [5, 6, 7, 5, 6, 7]]]),
    (lambda: tf.stack([A, A]), [[[3, 1, 4], [], [1, 5]]] * 2),
    (lambda: tf.stack([A, A], 1), [[[3, 1, 4]] * 2, [[], []], [[1, 5]] * 2]),
    (lambda: tf.stack([A, A], 2), [[[3, 3], [1, 1], [4, 4]], [], [[1, 1], [5, 5]]]),
    (lambda: tf.ragged.stack([tf.constant([1, 2]), tf.constant([3])]), [[1, 2], [3]]),
    (lambda: tf.ragged.stack([[1, 2], [3]]), [[1, 2], [3]]),
    (lambda: tf.tile(A, [2, 1]), [[3, 1, 4], [], [1, 5]] * 2),
    (lambda: tf.tile(A, [1, 2]), [[3, 1, 4, 3, 1, 4], [], [1, 5, 1, 5]]),
    (lambda: tf.reverse(A, [1]), [[4, 1, 3], [], [5, 1]]),
    (lambda: tf.reverse(A, [0]), [[1, 5], [], [3, 1, 4]]),
    (lambda: tf.split(A, 3), [[[3, 1, 4]], [[]], [[1, 5]]]),
    (lambda: tf.split(A, [1, 2]), [[[3, 1, 4]], [[], [1, 5]]]),
    (lambda: tf.reshape(A, [-1]), [3, 1, 4, 1, 5])])
def test_layout(function: Callable[[], Any], wanted: list) -> None:
    assert listed(function()) == wanted


def test_layouts_that_do_not_fit() -> None:
    for function in (lambda: tf.squeeze(A, 1), lambda: tf.expand_dims(A, 5),
                     lambda: tf.concat([A, C], 0), lambda: tf.tile(A, [1]),
                     lambda: tf.reshape(A, [1, -1])):
        with pytest.raises(ValueError):
            function()
    with pytest.raises(tf.errors.InvalidArgumentError, match="number of rows"):
        tf.concat([A, A[:1]], 1)


@pytest.mark.parametrize(("function", "wanted"), [
    (lambda: tf.gather(A, [2, 0]), [[1, 5], [3, 1, 4]]), (lambda: tf.gather(A, 0), [3, 1, 4]),
    (lambda: tf.gather(A, [[2, 0], [1, 1]]), [[[1, 5], [3, 1, 4]], [[], []]]),
    (lambda: tf.gather(tf.range(10.0), B), [[1, 2, 3], [], [4, 5]]),
    (lambda: tf.gather(A, tf.ragged.constant([[0], [1, 2]])), [[[3, 1, 4]], [[], [1, 5]]]),
    (lambda: tf.gather(A, tf.ragged.constant([[0, 1], [], [1]]), batch_dims=1), [[3, 1], [], [5]]),
    (lambda: tf.gather(tf.reshape(tf.range(12.0), [3, 4]), tf.ragged.constant([[0, 1], [2]]),
                       axis=1), [[[0, 1], [2]], [[4, 5], [6]], [[8, 9], [10]]]),
    (lambda: tf.nn.embedding_lookup(tf.reshape(tf.range(12.0), [6, 2]), B),
     [[[2, 3], [4, 5], [6, 7]], [], [[8, 9], [10, 11]]]),
    (lambda: tf.nn.embedding_lookup_sparse(tf.reshape(tf.range(12.0), [6, 2]),
                                           tf.ragged.constant([[0, 1], [2]]), None, "sum"),
     [[2, 4], [4, 5]])])
def test_gathered(function: Callable[[], Any], wanted: list) -> None:
    assert listed(function()) == wanted


def test_indices_out_of_range() -> None:
    for function in (lambda: tf.gather(A, [3]), lambda: tf.gather(A, [-1]),
                     lambda: tf.gather(A, [[0], [0], [1]], batch_dims=1)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="gather"):
            function()


def test_gathered_embeddings_have_gradients() -> None:
    table = tf.Variable(tf.ones([6, 2]))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, B) * 2.0)
    gradient = tf.convert_to_tensor(tape.gradient(loss, table)).numpy()
    assert gradient[:, 0].tolist() == [0, 2, 2, 2, 2, 2]


def test_map_fn() -> None:
    spec = tf.RaggedTensorSpec
    assert listed(tf.map_fn(lambda r: r * 2, A)) == [[6, 2, 8], [], [2, 10]]
    made = tf.map_fn(tf.range, tf.constant([1, 0, 3]), fn_output_signature=spec([None], tf.int32))
    assert listed(made) == [[0], [], [0, 1, 2]]
    assert listed(tf.map_fn(tf.size, A, fn_output_signature=tf.int32)) == [3, 0, 2]
    made = tf.map_fn(lambda r: r * 2, C, fn_output_signature=spec([None, None], tf.int32))
    assert listed(made) == [[[2, 4], [6]], [], [[8], [10, 12, 14]]]


def test_batches_and_rows_of_datasets() -> None:
    data = tf.data.Dataset.from_tensor_slices(tf.constant([1, 0, 3])).map(
        lambda n: tf.ragged.range([n, 2]))
    (batch,) = data.batch(3)
    assert listed(batch) == [[[0], [0, 1]], [[], [0, 1]], [[0, 1, 2], [0, 1]]]
    again = tf.data.Dataset.from_tensors(A).unbatch()
    assert [listed(x) for x in again] == A.to_list()


def test_rows_that_were_moved_are_not_said_to_have_one_length() -> None:
    x = R.from_tensor([[1, 2], [3, 4]])
    assert x.shape == [2, 2] and x[1:].shape == [1, 2] and (x + x).shape == [2, 2]
    for moved in (tf.gather(x, [0]), tf.concat([x, x], 0), tf.tile(x, [2, 1]), tf.stack([x, x])):
        assert moved.shape.as_list()[-1] is None


def test_the_name_of_the_class_is_what_keras_looks_for() -> None:
    assert "ragged_tensor.RaggedTensor" in str(type(A))


def test_sizes_that_nothing_holds_are_refused() -> None:
    big = (tf.errors.ResourceExhaustedError, tf.errors.InvalidArgumentError)
    for function in (lambda: tf.ragged.range([2 ** 60]), lambda: tf.ragged.range(1e30),
                     lambda: tf.ragged.range(float("inf")),
                     lambda: tf.ragged.segment_ids_to_row_splits([0], 2 ** 50)):
        with pytest.raises(big):
            function()


def test_what_is_no_function_or_no_number_is_refused() -> None:
    with pytest.raises(TypeError, match="must be a function"):
        tf.ragged.map_flat_values(3, A)
    with pytest.raises(ValueError, match="as many axes"):
        tf.ragged.boolean_mask(1, [True])
    with pytest.raises(tf.errors.InvalidArgumentError, match="real numbers"):
        tf.ragged.range("x")


def test_segments_of_rows_and_of_values() -> None:
    x = tf.ragged.constant([[1.0, 2.0], [3.0], [4.0, 5.0]])
    rows = tf.math.unsorted_segment_sum(x, [0, 1, 0], 2)
    assert rows.to_list() == [[5.0, 7.0], [3.0]]
    ids = tf.ragged.constant([[0, 1], [0], [1, 1]])
    assert tf.math.unsorted_segment_sum(x, ids, 2).numpy().tolist() == [4.0, 11.0]
    for wrong in ([0, 5, 0], [0, -1, 0], [0], 1, tf.ragged.constant([[0], [1], [0]])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="segment_ids must"):
            tf.math.unsorted_segment_sum(x, wrong, 2)


@pytest.mark.parametrize("sizes", [2, 0, [1, 1], [4, -1], "x", float("nan"), []])
def test_splits_of_three_rows(sizes: object) -> None:
    with pytest.raises((TypeError, ValueError), match="split"):
        tf.split(tf.ragged.constant([[1], [2, 3], []]), sizes)


def test_functions_of_flat_values_take_their_first_argument_by_name() -> None:
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    assert tf.ones_like(input=x, dtype=tf.int32).to_list() == [[1, 1], [1]]
    assert tf.nn.dropout(x=x, rate=0.0).to_list() == [[1.0, 2.0], [3.0]]


def test_a_stack_of_one_value() -> None:
    assert tf.ragged.stack(tf.constant([[1, 2], [3, 4]])).shape == [1, 2, 2]
    rows = tf.ragged.stack(tf.ragged.constant([[1, 2], [3]]), 1)
    assert rows.to_list() == [[[1, 2]], [[3]]]

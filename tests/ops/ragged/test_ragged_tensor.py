"""RaggedTensor as a value: making it, its parts, indexing it, where it goes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gtape as tf

A = tf.ragged.constant([[3.0, 1.0, 4.0], [], [1.0, 5.0]])
C = tf.ragged.constant([[[1, 2], [3]], [], [[4], [5, 6, 7]]])
V = [1, 2, 3, 4, 5]


def test_parts() -> None:
    assert (C.shape.as_list(), C.dtype, C.ragged_rank) == ([3, None, None], tf.int32, 2)
    assert C.flat_values.numpy().tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert C.values.to_list() == [[1, 2], [3], [4], [5, 6, 7]]
    assert C.row_splits.numpy().tolist() == [0, 2, 2, 4] and C.row_splits.dtype is tf.int64
    assert [s.numpy().tolist() for s in C.nested_row_splits] == [[0, 2, 2, 4], [0, 2, 3, 4, 7]]
    assert C.nrows().numpy() == 3 and C.row_lengths().numpy().tolist() == [2, 0, 2]
    assert C.row_lengths(axis=2).to_list() == [[2, 1], [], [1, 3]]
    assert C.row_starts().numpy().tolist() == [0, 2, 2]
    assert C.row_limits().numpy().tolist() == [2, 2, 4]
    assert C.value_rowids().numpy().tolist() == [0, 0, 2, 2]
    assert [i.numpy().tolist() for i in C.nested_value_rowids()] == [
        [0, 0, 2, 2], [0, 0, 1, 2, 3, 3, 3]]
    assert C.bounding_shape().numpy().tolist() == [3, 2, 3]
    assert A.bounding_shape(axis=1, out_type=tf.int32).numpy() == 3
    assert C.uniform_row_length is None
    assert tf.is_tensor(A) and not isinstance(A, tf.Tensor)


def test_shown_and_listed() -> None:
    assert repr(A) == "<tf.RaggedTensor [[3.0, 1.0, 4.0], [], [1.0, 5.0]]>"
    assert repr(tf.ragged.constant([["a"], []])) == "<tf.RaggedTensor [[b'a'], []]>"
    assert C.to_list() == [[[1, 2], [3]], [], [[4], [5, 6, 7]]]
    assert [row.tolist() for row in A.numpy()] == [[3, 1, 4], [], [1, 5]]
    assert tf.ragged.constant([[1, 2], [3, 4]]).numpy().tolist() == [[1, 2], [3, 4]]
    assert [row.numpy().tolist() for row in A] == [[3, 1, 4], [], [1, 5]]
    assert [row.to_list() for row in C] == [[[1, 2], [3]], [], [[4], [5, 6, 7]]]


def test_no_truth_no_hash_no_tensor() -> None:
    for function in (bool, hash, len):
        with pytest.raises(TypeError):
            function(A)
    for function in (tf.convert_to_tensor, tf.transpose, tf.unstack):
        with pytest.raises(ValueError, match="to_tensor"):
            function(A)
    with pytest.raises(ValueError, match="from_row_lengths"):
        tf.RaggedTensor([1], [0, 1])


ROWS = [[1, 2, 3], [], [4, 5]]


@pytest.mark.parametrize(("how", "rows"), [
    ("from_row_splits", [0, 3, 3, 5]), ("from_row_lengths", [3, 0, 2]),
    ("from_value_rowids", [0, 0, 0, 2, 2]), ("from_row_starts", [0, 3, 3]),
    ("from_row_limits", [3, 3, 5])])
def test_five_ways_to_write_rows(how: str, rows: list) -> None:
    made = getattr(tf.RaggedTensor, how)(V, rows)
    assert made.to_list() == ROWS and made.row_splits.dtype is tf.int64
    small = getattr(tf.RaggedTensor, how)(V, tf.constant(rows))
    assert small.to_list() == ROWS and small.row_splits.dtype is tf.int32


@pytest.mark.parametrize(("how", "rows", "error"), [
    ("from_row_splits", [1, 3], tf.errors.InvalidArgumentError),
    ("from_row_splits", [0, 3], tf.errors.InvalidArgumentError),
    ("from_row_splits", [0, 3, 2, 5], tf.errors.InvalidArgumentError),
    ("from_row_splits", [], ValueError), ("from_row_splits", [0.0, 5.0], ValueError),
    ("from_row_lengths", [3, 0], tf.errors.InvalidArgumentError),
    ("from_row_lengths", [3, -1, 3], tf.errors.InvalidArgumentError),
    ("from_value_rowids", [0, 0, 2, 1, 2], tf.errors.InvalidArgumentError),
    ("from_value_rowids", [0, 0], ValueError), ("from_uniform_row_length", 2, ValueError)])
def test_rows_that_do_not_fit_are_refused(how: str, rows: object, error: type) -> None:
    with pytest.raises(error):
        getattr(tf.RaggedTensor, how)(V, rows)


def test_rows_of_one_length_and_empty_rows_at_the_end() -> None:
    uniform = tf.RaggedTensor.from_uniform_row_length(tf.range(6), 2)
    assert uniform.to_list() == [[0, 1], [2, 3], [4, 5]] and uniform.shape == [3, 2]
    assert uniform.uniform_row_length.numpy() == 2
    empty = tf.RaggedTensor.from_uniform_row_length(tf.zeros([0]), 0, nrows=4)
    assert empty.to_list() == [[]] * 4
    more = tf.RaggedTensor.from_value_rowids(V, [0, 0, 2, 2, 2], nrows=5)
    assert more.to_list() == [[1, 2], [], [3, 4, 5], [], []]
    with pytest.raises(ValueError, match="nrows"):
        tf.RaggedTensor.from_value_rowids(V, [0, 0, 2, 2, 2], nrows=2)


def test_rows_of_rows() -> None:
    wanted = [[[1, 2, 3], [4, 5]], []]
    made = tf.RaggedTensor.from_nested_row_splits(V, [[0, 2, 2], [0, 3, 5]])
    assert made.to_list() == wanted
    made = tf.RaggedTensor.from_nested_row_lengths(V, [[2, 0], [3, 2]])
    assert made.to_list() == wanted
    made = tf.RaggedTensor.from_nested_value_rowids(V, [[0, 0], [0, 0, 0, 1, 1]], [2, 2])
    assert made.to_list() == wanted
    with pytest.raises(ValueError, match="with_row_splits_dtype"):
        tf.RaggedTensor.from_row_splits(A, tf.constant([0, 1, 3]))


def test_other_values_in_the_same_rows() -> None:
    assert A.with_values(V).to_list() == ROWS
    assert C.with_values(tf.range(4)).to_list() == [[0, 1], [], [2, 3]]
    assert C.with_flat_values(tf.range(7)).to_list() == [[[0, 1], [2]], [], [[3], [4, 5, 6]]]
    assert A.with_row_splits_dtype(tf.int32).row_splits.dtype is tf.int32
    with pytest.raises(ValueError, match="with_values"):
        A.with_values([1, 2])


def test_axes_merged() -> None:
    assert C.merge_dims(0, 1).to_list() == [[1, 2], [3], [4], [5, 6, 7]]
    assert C.merge_dims(1, 2).to_list() == [[1, 2, 3], [], [4, 5, 6, 7]]
    assert C.merge_dims(0, -1).numpy().tolist() == [1, 2, 3, 4, 5, 6, 7]
    pairs = tf.RaggedTensor.from_row_splits(tf.ones([3, 2]), [0, 1, 3])
    assert pairs.merge_dims(1, 2).to_list() == [[1, 1], [1, 1, 1, 1]]
    assert pairs.merge_dims(0, 2).shape == [6]
    with pytest.raises(ValueError, match="merge_dims"):
        C.merge_dims(2, 1)


@pytest.mark.parametrize(("key", "wanted"), [
    (0, [3, 1, 4]), (-1, [1, 5]), ((0, 1), 1), (slice(1, None), [[], [1, 5]]),
    (slice(None, None, 2), [[3, 1, 4], [1, 5]]), (slice(None, None, -1), [[1, 5], [], [3, 1, 4]]),
    ((slice(None), slice(1, None)), [[1, 4], [], [5]]),
    ((slice(None), slice(None, 2)), [[3, 1], [], [1, 5]]),
    ((slice(None), slice(-1, None)), [[4], [], [5]]),
    ((slice(None), slice(None, None, -1)), [[4, 1, 3], [], [5, 1]]),
    ((slice(None), slice(None, None, -2)), [[4, 3], [], [5]]),
    ((slice(None), slice(5, None)), [[], [], []]),
    (..., [[3, 1, 4], [], [1, 5]]), ((slice(None), None), [[[3, 1, 4]], [[]], [[1, 5]]]),
    (None, [[[3, 1, 4], [], [1, 5]]]),
    ((slice(None), slice(None), None), [[[3], [1], [4]], [], [[1], [5]]]),
    (tf.constant(2), [1, 5])])
def test_indexing(key: object, wanted: object) -> None:
    found = A[key]
    assert (found.to_list() if isinstance(found, tf.RaggedTensor)
            else found.numpy().tolist()) == wanted


@pytest.mark.parametrize(("key", "wanted"), [
    ((slice(None), slice(None, 1), slice(None, 1)), [[[1]], [], [[4]]]),
    ((slice(1, None), slice(1, None)), [[], [[5, 6, 7]]]),
    ((..., slice(1, None)), [[[2], []], [], [[], [6, 7]]]),
    ((2, 1), [5, 6, 7]), ((2, 1, 0), 5)])
def test_indexing_of_rows_of_rows(key: object, wanted: object) -> None:
    found = C[key]
    assert (found.to_list() if isinstance(found, tf.RaggedTensor)
            else found.numpy().tolist()) == wanted


def test_slices_are_python_s() -> None:
    rows = [[3.0, 1.0, 4.0], [], [1.0, 5.0]]
    for start in (None, -4, -2, 0, 1, 9):
        for stop in (None, -3, -1, 0, 2, 9):
            for step in (None, -2, -1, 1, 2, 3):
                part = slice(start, stop, step)
                assert A[:, part].to_list() == [row[part] for row in rows], part
                assert A[part].to_list() == rows[part], part


def test_indices_that_are_refused() -> None:
    with pytest.raises(ValueError, match="ragged axis cannot be indexed"):
        A[:, 0]
    with pytest.raises(IndexError, match="3 rows"):
        A[5]
    with pytest.raises(ValueError, match="too many"):
        A[0, 0, 0]
    with pytest.raises(TypeError, match="write tf"):
        A[[0, 1]]
    uniform = tf.RaggedTensor.from_uniform_row_length(tf.range(6), 3)
    assert uniform[:, 1].numpy().tolist() == [1, 4]


def test_nests_take_it_apart_and_put_it_together() -> None:
    flat = tf.nest.flatten({"a": A, "b": C}, expand_composites=True)
    assert [v.numpy().tolist() for v in flat] == [
        [3, 1, 4, 1, 5], [0, 3, 3, 5], [1, 2, 3, 4, 5, 6, 7], [0, 2, 2, 4], [0, 2, 3, 4, 7]]
    back = tf.nest.pack_sequence_as({"a": A, "b": C}, flat, expand_composites=True)
    assert back["b"].to_list() == C.to_list()
    assert pickle.loads(pickle.dumps(C)).to_list() == C.to_list()


def test_specs() -> None:
    assert tf.type_spec_from_value(C) == tf.RaggedTensorSpec([3, None, None], tf.int32)
    assert repr(A._type_spec) == "RaggedTensorSpec(TensorShape([3, None]), tf.float32, 1, tf.int64)"
    wide = tf.RaggedTensorSpec([None, None], tf.float32)
    assert wide.is_compatible_with(A) and not wide.is_compatible_with(tf.ones([2, 2]))
    assert not tf.RaggedTensorSpec([2, None], tf.float32).is_compatible_with(A)
    assert not tf.RaggedTensorSpec([None, None], tf.int32).is_compatible_with(A)
    assert wide.most_specific_common_supertype([A._type_spec]) == wide
    assert tf.RaggedTensorSpec([None, None]).value_type is tf.RaggedTensor
    assert tf.RaggedTensorSpec([None], ragged_rank=0).value_type is tf.Tensor
    with pytest.raises(ValueError, match="less than the rank"):
        tf.RaggedTensorSpec([None], ragged_rank=1)
    with pytest.raises(ValueError, match="known rank"):
        tf.RaggedTensorSpec()


# ---------------------------------------------------------------------- gradients


def test_gradients_flow_through_the_values() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        x = tf.RaggedTensor.from_row_splits(v, [0, 2, 3])
        most = tf.reduce_sum(tf.reduce_max(x, 1) ** 2)
        dense = tf.reduce_sum(x.to_tensor() ** 2)
        turned = tf.reduce_sum(tf.concat([x[::-1], x], 0).flat_values * [1.0, 2, 3, 4, 5, 6])
    assert tape.gradient(most, v).numpy().tolist() == [0, 4, 6]
    assert tape.gradient(dense, v).numpy().tolist() == [2, 4, 6]
    assert tape.gradient(turned, v).numpy().tolist() == [6, 8, 7]
    assert tape.gradient(most, x).to_list() == [[0, 4], [6]]
    assert tape.gradient(x, v).numpy().tolist() == [1, 1, 1]


def test_a_watched_one_has_a_ragged_gradient() -> None:
    with tf.GradientTape() as tape:
        tape.watch(A)
        y = A * A
    assert tape.gradient(y, [A])[0].to_list() == [[6, 2, 8], [], [2, 10]]


def test_gradients_of_broadcast_operands() -> None:
    w = tf.Variable([[1.0], [2.0], [3.0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(A * w)
    assert tape.gradient(loss, w).numpy().tolist() == [[8], [0], [6]]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.cast(C, tf.float32) * tf.reshape(w, [3, 1, 1]))
    assert tape.gradient(loss, w).numpy().tolist() == [[6], [0], [22]]


# ---------------------------------------------------------------------- in traced functions


def test_an_argument_a_result_and_a_capture_of_a_traced_function() -> None:
    traces = []

    @tf.function
    def f(x: tf.RaggedTensor, w: tf.Tensor) -> tuple:
        traces.append(1)
        return x * 2 + x, tf.reduce_sum(x, 1), tf.reduce_sum(x * w) + tf.reduce_max(A), x

    w = tf.constant([[1.0], [2.0], [3.0]])
    for factor in (1.0, 10.0):
        x = A * factor
        tripled, sums, total, same = f(x, w)
        assert tripled.to_list() == (x * 3).to_list()
        assert sums.numpy().tolist() == [8 * factor, 0, 6 * factor]
        assert total.numpy() == 26 * factor + 5 and same.to_list() == x.to_list()
    f(tf.ragged.constant([[1.0], [2.0, 3.0, 4.0, 5.0], []]), w)
    assert len(traces) == 1  # as many rows and values, in other rows


def test_gradients_through_a_traced_function() -> None:
    @tf.function
    def f(values: tf.Tensor) -> tf.Tensor:
        x = tf.RaggedTensor.from_row_splits(values, [0, 2, 3])
        return tf.reduce_sum(tf.reduce_mean(x * x, 1))

    v = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(v)
        y = f(v)
    assert tape.gradient(y, v).numpy().tolist() == [1, 2, 6]


def test_an_input_signature_of_ragged_tensors() -> None:
    traces = []

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
    def f(x: tf.RaggedTensor) -> tf.Tensor:
        traces.append(1)
        return tf.reduce_sum(x, 1)

    assert f(A).numpy().tolist() == [8, 0, 6]
    assert f(A[:2]).numpy().tolist() == [8, 0]
    with pytest.raises(TypeError, match="RaggedTensorSpec"):
        f(tf.ragged.constant([[1], [2, 3]]))
    made = f.get_concrete_function()
    assert made(A.flat_values, A.row_splits).numpy().tolist() == [8, 0, 6]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_depends_on_the_rows_runs_in_a_function_too() -> None:
    f = tf.function(lambda x: (x.to_tensor(), x[:, ::-1]))
    dense, turned = f(A)
    assert dense.numpy().tolist() == [[3, 1, 4], [0, 0, 0], [1, 5, 0]]
    assert turned.to_list() == [[4, 1, 3], [], [5, 1]]


def test_row_partitions() -> None:
    part = tf.experimental.RowPartition.from_value_rowids([0, 0, 2], nrows=4)
    assert part.row_splits().numpy().tolist() == [0, 2, 2, 3, 3]
    assert part.row_lengths().numpy().tolist() == [2, 0, 1, 0]
    assert part.nrows().numpy() == 4 and part.nvals().numpy() == 3
    assert part.value_rowids().numpy().tolist() == [0, 0, 2]
    assert repr(part) == "tf.RowPartition(row_splits=[0 2 2 3 3])"
    uniform = tf.experimental.RowPartition.from_uniform_row_length(2, nvals=6)
    assert uniform.row_limits().numpy().tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match="nvals or nrows"):
        tf.experimental.RowPartition.from_uniform_row_length(2)


def test_large_ragged_tensors_are_shown_by_their_shape() -> None:
    x = tf.RaggedTensor.from_uniform_row_length(np.zeros(4000), 2)
    assert repr(x) == "<tf.RaggedTensor: shape=(2000, 2), dtype=float64>"


def test_one_trace_serves_any_number_of_values() -> None:
    traces = []

    @tf.function
    def f(x: tf.RaggedTensor, y: tf.SparseTensor) -> tf.Tensor:
        traces.append(1)
        return tf.reduce_sum(tf.reduce_mean(x * 2.0, 1)) + tf.sparse.reduce_sum(y * 3.0)

    for n in range(4, 9):
        x = tf.RaggedTensor.from_row_splits(tf.range(float(n)), [0, 3, n])
        y = tf.SparseTensor([[i, 0] for i in range(n)], tf.range(float(n)), [9, 2])
        np.testing.assert_allclose(f(x, y).numpy(), 2 + (n + 2) + 3 * n * (n - 1) / 2)
    assert len(traces) == 1


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_cannot_be_traced_is_tried_once() -> None:
    calls = []

    @tf.function
    def f(x: tf.RaggedTensor) -> tf.Tensor:
        calls.append(tf.executing_eagerly())
        return x.to_tensor()

    for n in range(4, 7):
        assert f(tf.RaggedTensor.from_row_splits(tf.range(n), [0, 3, n])).shape == [2, 3]
    assert calls.count(False) == 2 and calls.count(True) == 3  # open lengths, then its own


def test_variables_are_updated_by_a_trace_for_any_number_of_values() -> None:
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def step(x: tf.RaggedTensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.reduce_mean(tf.gather(v, x), 1))
        v.assign_sub(tape.gradient(loss, v) * 1.0)
        return loss

    wanted = np.array([1.0, 2.0])
    for n in (3, 4, 5):
        x = tf.RaggedTensor.from_row_splits(tf.range(n) % 2, [0, 2, n])
        rest = np.arange(2, n) % 2
        step(x)
        wanted -= [0.5 + (rest == 0).mean(), 0.5 + (rest == 1).mean()]
        np.testing.assert_allclose(v.numpy(), wanted, rtol=1e-5)

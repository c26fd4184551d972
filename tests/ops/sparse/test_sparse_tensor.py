"""SparseTensor as a value: what it checks, what it shows, where it goes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gtape as tf


def matrix(values: object = (1.0, 2.0)) -> tf.SparseTensor:
    return tf.SparseTensor([[0, 1], [2, 0]], values, [3, 4])


def same(x: tf.SparseTensor, indices: list, values: list, shape: list) -> None:
    assert x.indices.numpy().tolist() == indices
    np.testing.assert_allclose(np.array(x.values.numpy(), float), values, rtol=1e-6)
    assert x.shape.as_list() == shape


def test_parts_dtype_and_shape() -> None:
    x = matrix()
    assert (x.dtype, x.shape, x.get_shape()) == (tf.float32, [3, 4], [3, 4])
    assert x.indices.dtype is tf.int64
    assert x.dense_shape.numpy().tolist() == [3, 4] and x.dense_shape.dtype is tf.int64
    assert tf.is_tensor(x) and not isinstance(x, tf.Tensor)
    assert tf.sparse.SparseTensor is tf.SparseTensor


@pytest.mark.parametrize(("indices", "values", "shape"), [
    ([0, 1], [1.0], [3, 4]), ([[0, 1]], [1.0, 2.0], [3, 4]), ([[0, 1]], [1.0], [3]),
    ([[0, 1]], [[1.0]], [3, 4]), ([[0, 1]], [1.0], 3)])
def test_parts_that_do_not_fit_are_refused(indices: list, values: list, shape: object) -> None:
    with pytest.raises(ValueError, match="SparseTensor"):
        tf.SparseTensor(indices, values, shape)


def test_indices_that_are_a_tensor_must_be_int64() -> None:
    with pytest.raises(ValueError, match="int64"):
        tf.SparseTensor(tf.constant([[0, 1]]), [1.0], [3, 4])
    assert tf.SparseTensor(np.array([[0, 1]], np.int32), [1.0], [3, 4]).indices.dtype is tf.int64


def test_no_values_at_all() -> None:
    x = tf.SparseTensor(np.zeros((0, 2), np.int64), [], [3, 4])
    assert tf.sparse.to_dense(x).numpy().tolist() == np.zeros((3, 4)).tolist()


def test_with_values_keeps_the_indices() -> None:
    same(matrix().with_values([3.0, 4.0]), [[0, 1], [2, 0]], [3, 4], [3, 4])
    with pytest.raises(ValueError, match="one value for each index"):
        matrix().with_values([3.0])


def test_it_is_no_tensor_and_does_not_become_one_in_silence() -> None:
    x = matrix()
    for function in (tf.convert_to_tensor, tf.exp, tf.reduce_sum, tf.transpose, tf.zeros_like,
                     lambda x: tf.add(x, x), lambda x: x + tf.ones([3, 4]),
                     lambda x: tf.ones([3, 4]) - x, lambda x: x * x,
                     lambda x: tf.concat([x, x], 0), lambda x: tf.matmul(x, tf.ones([4, 2]))):
        with pytest.raises(ValueError, match="Write tf"):
            function(x)


def test_functions_that_keep_zeros_change_the_values() -> None:
    x = matrix([-1.0, 4.0])
    same(tf.abs(x), [[0, 1], [2, 0]], [1, 4], [3, 4])
    same(tf.negative(x), [[0, 1], [2, 0]], [1, -4], [3, 4])
    same(tf.sign(x), [[0, 1], [2, 0]], [-1, 1], [3, 4])
    same(tf.square(x), [[0, 1], [2, 0]], [1, 16], [3, 4])
    assert tf.cast(x, tf.int32).dtype is tf.int32
    assert tf.identity(x).shape == [3, 4]


def test_shape_size_and_rank() -> None:
    x = matrix()
    assert tf.shape(x).numpy().tolist() == [3, 4]
    assert tf.size(x).numpy() == 12 and tf.rank(x).numpy() == 2


def test_times_and_by_dense_broadcasts_the_dense_one() -> None:
    x, d = matrix(), tf.reshape(tf.range(12.0), [3, 4])
    same(x * d, [[0, 1], [2, 0]], [1, 16], [3, 4])
    same(d * x, [[0, 1], [2, 0]], [1, 16], [3, 4])
    same(x / d, [[0, 1], [2, 0]], [1, 0.25], [3, 4])
    same(x * 2.0, [[0, 1], [2, 0]], [2, 4], [3, 4])
    same(x * tf.constant([1.0, 2.0, 3.0, 4.0]), [[0, 1], [2, 0]], [2, 2], [3, 4])


def test_gradients_flow_through_values_and_dense_factors() -> None:
    v, d = tf.Variable([1.0, 2.0]), tf.Variable(tf.reshape(tf.range(12.0), [3, 4]))
    with tf.GradientTape() as tape:
        loss = tf.sparse.reduce_sum(matrix(v) * d)
    gv, gd = tape.gradient(loss, [v, d])
    assert gv.numpy().tolist() == [1, 8]
    expected = np.zeros((3, 4))
    expected[0, 1], expected[2, 0] = 1, 2
    assert tf.convert_to_tensor(gd).numpy().tolist() == expected.tolist()


def test_a_watched_one_has_gradients_for_its_values() -> None:
    x = matrix()
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(tf.sparse.to_dense(x) ** 2)
    assert tape.gradient(loss, x.values).numpy().tolist() == [2, 4]


def test_nests_take_it_apart_and_put_it_together() -> None:
    x = matrix()
    assert tf.nest.flatten({"a": x}) == [x]
    flat = tf.nest.flatten({"a": x, "b": 1}, expand_composites=True)
    assert [np.shape(v) for v in flat] == [(2, 2), (2,), (2,), ()]
    back = tf.nest.pack_sequence_as({"a": x, "b": 1}, flat, expand_composites=True)
    same(back["a"], [[0, 1], [2, 0]], [1, 2], [3, 4])
    doubled = tf.nest.map_structure(lambda v: v * 2, x, expand_composites=True)
    same(doubled, [[0, 2], [4, 0]], [2, 4], [6, 8])
    with pytest.raises(ValueError, match="differ"):
        tf.nest.assert_same_structure([x], [tf.constant(1)], expand_composites=True)


def test_pickles() -> None:
    same(pickle.loads(pickle.dumps(matrix())), [[0, 1], [2, 0]], [1, 2], [3, 4])


# ---------------------------------------------------------------------- in traced functions


def test_an_argument_a_result_and_a_capture_of_a_traced_function() -> None:
    captured = matrix([10.0, 20.0])
    traces = []

    @tf.function
    def f(x: tf.SparseTensor, w: tf.Tensor) -> tuple:
        traces.append(x.shape)
        return x * w, tf.sparse.to_dense(x) + tf.sparse.to_dense(captured), x.dense_shape

    for factor in (1.0, 3.0):
        scaled, dense, shape = f(matrix([factor, 2.0]), tf.constant(2.0))
        same(scaled, [[0, 1], [2, 0]], [2 * factor, 4], [3, 4])
        assert dense.numpy()[0, 1] == 10 + factor and dense.numpy()[2, 0] == 22
        assert shape.numpy().tolist() == [3, 4]
    assert traces == [tf.TensorShape([3, 4])]
    f(tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [3, 4]) * 1.0, tf.constant(2.0))
    assert len(traces) == 1


def test_gradients_in_and_through_traced_functions() -> None:
    @tf.function
    def product(values: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return tf.sparse.sparse_dense_matmul(matrix(values), b)

    @tf.function
    def inside(values: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(values)
            loss = tf.sparse.reduce_sum(matrix(values * values))
        return tape.gradient(loss, values)

    v, b = tf.constant([1.0, 2.0]), tf.ones([4, 2])
    with tf.GradientTape() as tape:
        tape.watch([v, b])
        loss = tf.reduce_sum(product(v, b))
    gv, gb = tape.gradient(loss, [v, b])
    assert gv.numpy().tolist() == [2, 2]
    assert tf.convert_to_tensor(gb).numpy().tolist() == [[2, 2], [1, 1], [0, 0], [0, 0]]
    assert inside(v).numpy().tolist() == [2, 4]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_depends_on_the_indices_runs_in_a_function_too() -> None:
    @tf.function
    def f(x: tf.SparseTensor) -> tf.SparseTensor:
        return tf.sparse.add(x, tf.sparse.transpose(tf.sparse.reshape(x, [4, 3])))

    same(f(matrix()), [[0, 1], [1, 0], [2, 0], [2, 2]], [1.0, 1.0, 2.0, 2.0], [3, 4])


def test_an_input_signature_of_sparse_tensors() -> None:
    @tf.function(input_signature=[tf.SparseTensorSpec([None, 4], tf.float32)])
    def f(x: tf.SparseTensor) -> tf.Tensor:
        return tf.sparse.reduce_sum(x, 1)

    assert f(matrix()).numpy().tolist() == [1, 0, 2]
    with pytest.raises(TypeError, match="SparseTensorSpec"):
        f(tf.ones([3, 4]))


def test_map_fn_takes_rows() -> None:
    made = tf.map_fn(lambda pair: tf.sparse.sparse_dense_matmul(pair[0], pair[1]),
                     (tf.SparseTensor([[0, 0, 1], [1, 1, 0]], [2.0, 3.0], [2, 2, 2]),
                      tf.ones([2, 2, 3])), fn_output_signature=tf.float32)
    assert made.numpy().tolist() == [[[2] * 3, [0] * 3], [[0] * 3, [3] * 3]]


def test_a_concrete_function_of_specs() -> None:
    @tf.function
    def f(x: tf.SparseTensor) -> tf.Tensor:
        return tf.sparse.reduce_sum(x, 1)

    made = f.get_concrete_function(tf.SparseTensorSpec([3, 4]))
    x = matrix()
    assert made(x.indices, x.values).numpy().tolist() == [1, 0, 2]
    with pytest.raises(ValueError, match="whole shape"):
        f.get_concrete_function(tf.SparseTensorSpec([None, 4]))

"""tf.sparse: the numbers that TensorFlow 2.21 gives."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gtape as tf

X = tf.SparseTensor([[0, 1], [0, 3], [2, 0]], [5.0, -5.0, -2.0], [3, 4])
IDS = tf.SparseTensor([[0, 1], [0, 3], [2, 0]], [5, 5, 2], [3, 4])


def same(x: tf.SparseTensor, indices: list, values: list, shape: list) -> None:
    assert isinstance(x, tf.SparseTensor)
    assert x.indices.numpy().tolist() == indices
    if x.dtype is tf.string:
        assert x.values.numpy().tolist() == values
    else:
        np.testing.assert_allclose(x.values.numpy().astype(float), values, rtol=1e-6)
    assert x.shape.as_list() == shape


# ---------------------------------------------------------------------- dense and back


def test_to_dense_of_every_dtype() -> None:
    assert tf.sparse.to_dense(X).numpy().tolist() == [[0, 5, 0, -5], [0] * 4, [-2, 0, 0, 0]]
    assert tf.sparse.to_dense(X, default_value=7).numpy()[1].tolist() == [7] * 4
    words = tf.SparseTensor([[1]], ["a"], [3])
    assert tf.sparse.to_dense(words).numpy().tolist() == [b"", b"a", b""]
    assert tf.sparse.to_dense(words, "-").numpy().tolist() == [b"-", b"a", b"-"]
    truth = tf.sparse.to_dense(tf.SparseTensor([[1]], [True], [3]))
    assert truth.numpy().tolist() == [False, True, False]


@pytest.mark.parametrize(("indices", "message"), [
    ([[7, 1], [8, 1]], "out of bounds: need 0 <= index < \\[3, 4\\]"),
    ([[0, 0], [0, -1]], "out of bounds"),
    ([[1, 1], [0, 0]], "indices\\[1\\] = \\[0, 0\\] is out of order"),
    ([[1, 1], [1, 1]], "indices\\[1\\] = \\[1, 1\\] is repeated")])
def test_to_dense_checks_the_indices(indices: list, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf.sparse.to_dense(tf.SparseTensor(indices, [1.0, 2.0], [3, 4]))


def test_without_checks_the_last_of_equal_indices_counts() -> None:
    x = tf.SparseTensor([[1, 1], [1, 1]], [1.0, 2.0], [3, 4])
    assert tf.sparse.to_dense(x, validate_indices=False).numpy()[1, 1] == 2


def test_the_default_value_has_a_gradient() -> None:
    v, d = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(7.0)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sparse.to_dense(X.with_values(v), d) * tf.range(4.0))
    gv, gd = tape.gradient(loss, [v, d])
    assert gv.numpy().tolist() == [1, 3, 0] and gd.numpy() == 14


def test_from_dense() -> None:
    same(tf.sparse.from_dense([[0, 5], [6, 0]]), [[0, 1], [1, 0]], [5, 6], [2, 2])
    same(tf.sparse.from_dense(["", "a"]), [[1]], [b"a"], [2])
    same(tf.sparse.from_dense([False, True]), [[1]], [1], [2])


def test_reorder_sorts_and_keeps_gradients() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        x = tf.sparse.reorder(tf.SparseTensor([[2, 0], [0, 3], [0, 1]], v, [3, 4]))
        loss = tf.reduce_sum(x.values * [1.0, 10.0, 100.0])
    same(x, [[0, 1], [0, 3], [2, 0]], [3, 2, 1], [3, 4])
    assert tape.gradient(loss, v).numpy().tolist() == [100, 10, 1]


def test_an_order_is_found_where_cells_have_no_numbers() -> None:
    wide = tf.SparseTensor([[1 << 40, 1], [5, 1 << 40]], [1.0, 2.0], [1 << 41, 1 << 41])
    same(tf.sparse.reorder(wide), [[5, 1 << 40], [1 << 40, 1]], [2, 1], [1 << 41, 1 << 41])
    with pytest.raises(tf.errors.InvalidArgumentError, match="2\\*\\*63"):
        tf.sparse.reshape(wide, [1 << 20, -1])


# ---------------------------------------------------------------------- two of them


def test_add() -> None:
    y = tf.SparseTensor([[0, 1], [1, 1]], [-5.0, -1.0], [3, 4])
    same(tf.sparse.add(X, y), [[0, 1], [0, 3], [1, 1], [2, 0]], [0, -5, -1, -2], [3, 4])
    same(tf.sparse.add(X, y, threshold=1.5), [[0, 3], [2, 0]], [-5, -2], [3, 4])
    dense = tf.sparse.add(X, tf.ones([3, 4]))
    assert dense.numpy().tolist() == [[1, 6, 1, -4], [1] * 4, [-1, 1, 1, 1]]
    assert tf.sparse.add(tf.ones([3, 4]), X).numpy().tolist() == dense.numpy().tolist()


@pytest.mark.parametrize(("other", "error"), [
    (tf.SparseTensor([[0, 1]], [1.0], [3, 5]), tf.errors.InvalidArgumentError),
    (tf.SparseTensor([[0, 1]], [1], [3, 4]), tf.errors.InvalidArgumentError),
    (tf.ones([4]), tf.errors.InvalidArgumentError)])
def test_nothing_is_broadcast(other: object, error: type) -> None:
    with pytest.raises(error):
        tf.sparse.add(X, other)


def test_one_of_them_must_be_sparse() -> None:
    with pytest.raises(TypeError, match="at least one SparseTensor"):
        tf.sparse.add(tf.ones([2]), tf.ones([2]))
    with pytest.raises(TypeError, match="takes a SparseTensor"):
        tf.sparse.maximum(X, tf.ones([3, 4]))


def test_maximum_and_minimum_take_what_is_missing_for_zero() -> None:
    y = tf.SparseTensor([[0, 1], [1, 1]], [7.0, -1.0], [3, 4])
    at = [[0, 1], [0, 3], [1, 1], [2, 0]]
    same(tf.sparse.maximum(X, y), at, [7, 0, 0, 0], [3, 4])
    same(tf.sparse.minimum(X, y), at, [5, -5, -1, -2], [3, 4])


def test_sums_have_gradients_for_both() -> None:
    a, b = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
    with tf.GradientTape() as tape:
        total = tf.sparse.add(tf.SparseTensor([[0], [2]], a, [4]),
                              tf.SparseTensor([[2], [3]], b, [4]))
        loss = tf.reduce_sum(total.values ** 2)
    ga, gb = tape.gradient(loss, [a, b])
    assert ga.numpy().tolist() == [2, 10] and gb.numpy().tolist() == [10, 8]


def test_map_values() -> None:
    same(tf.sparse.map_values(tf.add, X, 5.0), [[0, 1], [0, 3], [2, 0]], [10, 0, 3], [3, 4])
    same(tf.sparse.map_values(tf.multiply, X, X), [[0, 1], [0, 3], [2, 0]], [25, 25, 4], [3, 4])
    with pytest.raises(ValueError, match="at least one SparseTensor"):
        tf.sparse.map_values(tf.add, 1, 2)
    with pytest.raises(ValueError, match="same indices"):
        tf.sparse.map_values(tf.add, X, tf.SparseTensor([[0, 1]], [1.0], [3, 4]))


# ---------------------------------------------------------------------- products


def test_products_with_a_dense_matrix_on_either_side() -> None:
    a, b = tf.sparse.to_dense(X).numpy(), np.arange(8.0, dtype=np.float32).reshape(4, 2)
    c = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    product = tf.sparse.sparse_dense_matmul
    np.testing.assert_allclose(product(X, b).numpy(), a @ b)
    np.testing.assert_allclose(product(c, X).numpy(), c @ a)
    np.testing.assert_allclose(product(X, c, adjoint_a=True, adjoint_b=True).numpy(), a.T @ c.T)
    np.testing.assert_allclose(product(b.T, X, adjoint_b=True).numpy(), b.T @ a.T)
    with pytest.raises(tf.errors.InvalidArgumentError, match="inner lengths"):
        product(X, tf.ones([3, 2]))


def test_products_have_gradients_for_values_and_matrix() -> None:
    v, b = tf.Variable([5.0, -5.0, -2.0]), tf.Variable(np.arange(8.0, dtype=np.float32)
                                                       .reshape(4, 2))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sparse.sparse_dense_matmul(X.with_values(v), b) ** 2)
    gv, gb = tape.gradient(loss, [v, b])
    dense = tf.sparse.to_dense(X)
    with tf.GradientTape() as tape:
        tape.watch(dense)
        loss = tf.reduce_sum((dense @ b) ** 2)
    expected, full = tape.gradient(loss, [dense, b])
    np.testing.assert_allclose(gv.numpy(), tf.gather_nd(expected, X.indices).numpy(), rtol=1e-6)
    np.testing.assert_allclose(tf.convert_to_tensor(gb).numpy(), full.numpy(), rtol=1e-6)


def test_products_of_complex_matrices_conjugate() -> None:
    x = tf.SparseTensor([[0, 1]], tf.constant([1 + 2j], tf.complex64), [2, 2])
    made = tf.sparse.sparse_dense_matmul(x, tf.ones([2, 1], tf.complex64), adjoint_a=True)
    assert made.numpy().ravel().tolist() == [0, 1 - 2j]


def test_products_at_chosen_places() -> None:
    a, b = tf.reshape(tf.range(6.0), [2, 3]), tf.ones([3, 2])
    at, values, shape = tf.sparse.sampled_addmm([[0, 1], [1, 0]], [1.0, 2.0], [2, 2], a, b, 2.0)
    assert values.numpy().tolist() == [5, 16] and shape.numpy().tolist() == [2, 2]
    assert at.numpy().tolist() == [[0, 1], [1, 0]]


# ---------------------------------------------------------------------- reductions


def test_sums_dense_and_sparse() -> None:
    assert tf.sparse.reduce_sum(X).numpy() == -2
    assert tf.sparse.reduce_sum(X, 1).numpy().tolist() == [0, 0, -2]
    assert tf.sparse.reduce_sum(X, [0, 1], keepdims=True).numpy().tolist() == [[-2]]
    same(tf.sparse.reduce_sum(X, 1, output_is_sparse=True), [[0], [2]], [0, -2], [3])
    same(tf.sparse.reduce_sum(X, 1, keepdims=True, output_is_sparse=True), [[0, 0], [2, 0]],
         [0, -2], [3, 1])
    same(tf.sparse.reduce_sum(X, output_is_sparse=True), [[]], [-2], [])


def test_maxima_leave_out_what_is_not_there() -> None:
    assert tf.sparse.reduce_max(X, 1).numpy().tolist() == [5, 0, -2]
    assert tf.sparse.reduce_max(X).numpy() == 5
    same(tf.sparse.reduce_max(X, 0, output_is_sparse=True), [[0], [1], [3]], [-2, 5, -5], [4])


def test_softmax_is_over_what_is_there() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        made = tf.sparse.softmax(X.with_values(v))
        loss = made.values[0]
    p = 1 / (1 + np.e)
    np.testing.assert_allclose(made.values.numpy(), [p, 1 - p, 1], rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(loss, v).numpy(), [p * (1 - p), -p * (1 - p), 0],
                               rtol=1e-5, atol=1e-7)


def test_segments_of_picked_rows() -> None:
    x, ids = tf.Variable(tf.ones([3, 2])), [0, 0, 2, 2]
    made = tf.sparse.segment_sum(x, [0, 1, 2, 0], ids)
    assert made.numpy().tolist() == [[2, 2], [0, 0], [2, 2]]
    assert tf.sparse.segment_mean(x, [0, 1, 2, 0], ids).numpy()[:, 0].tolist() == [1, 0, 1]
    rooted = tf.sparse.segment_sqrt_n(x, [0, 1, 2, 0], ids, num_segments=5)
    np.testing.assert_allclose(rooted.numpy()[:, 0], [2 ** 0.5, 0, 2 ** 0.5, 0, 0], rtol=1e-6)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sparse.segment_sum(x, [0, 1, 2, 0], ids) * [[1.0], [0.0], [3.0]])
    assert tf.convert_to_tensor(tape.gradient(loss, x)).numpy()[:, 0].tolist() == [4, 1, 3]


# ---------------------------------------------------------------------- layout


def test_cut_and_joined() -> None:
    same(tf.sparse.slice(X, [0, 1], [9, 9]), [[0, 0], [0, 2]], [5, -5], [3, 3])
    first, second, third = tf.sparse.split(X, 3, 1)
    same(first, [[0, 1], [2, 0]], [5, -2], [3, 2])
    same(second, [], [], [3, 1])
    same(third, [[0, 0]], [-5], [3, 1])
    same(tf.sparse.concat(1, [X, X]), [[0, 1], [0, 3], [0, 5], [0, 7], [2, 0], [2, 4]],
         [5, -5, 5, -5, -2, -2], [3, 8])
    longer = tf.SparseTensor([[4, 0]], [1.0], [5, 1])
    same(tf.sparse.concat(1, [X, longer], expand_nonconcat_dims=True),
         [[0, 1], [0, 3], [2, 0], [4, 4]], [5, -5, -2, 1], [5, 5])
    with pytest.raises(tf.errors.InvalidArgumentError, match="expand_nonconcat_dims"):
        tf.sparse.concat(1, [X, longer])
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_split"):
        tf.sparse.split(X, 5, 1)


def test_other_shapes() -> None:
    same(tf.sparse.reshape(X, [2, -1]), [[0, 1], [0, 3], [1, 2]], [5, -5, -2], [2, 6])
    same(tf.sparse.transpose(X), [[0, 2], [1, 0], [3, 0]], [-2, 5, -5], [4, 3])
    same(tf.sparse.expand_dims(X, 0), [[0, 0, 1], [0, 0, 3], [0, 2, 0]], [5, -5, -2], [1, 3, 4])
    same(tf.sparse.expand_dims(X), [[0, 1, 0], [0, 3, 0], [2, 0, 0]], [5, -5, -2], [3, 4, 1])
    same(tf.sparse.reset_shape(X, [4, 5]), X.indices.numpy().tolist(), [5, -5, -2], [4, 5])
    smallest = tf.SparseTensor([[0, 1]], [1.0], [9, 9])
    same(tf.sparse.reset_shape(smallest), [[0, 1]], [1], [1, 2])
    for wrong in ([2, 5], [2, 5, 1]):
        with pytest.raises(ValueError, match="reset_shape"):
            tf.sparse.reset_shape(X, wrong)
    with pytest.raises(tf.errors.InvalidArgumentError, match="12 cells"):
        tf.sparse.reshape(X, [5, -1])


def test_retained_filled_and_marked() -> None:
    same(tf.sparse.retain(X, [True, False, True]), [[0, 1], [2, 0]], [5, -2], [3, 4])
    filled, empty = tf.sparse.fill_empty_rows(X, 9.0)
    same(filled, [[0, 1], [0, 3], [1, 0], [2, 0]], [5, -5, 9, -2], [3, 4])
    assert empty.numpy().tolist() == [False, True, False]
    found = tf.sparse.to_indicator(IDS, 7).numpy()
    assert np.argwhere(found).tolist() == [[0, 5], [2, 2]] and found.shape == (3, 7)
    with pytest.raises(tf.errors.InvalidArgumentError, match="values must be"):
        tf.sparse.to_indicator(IDS, 5)
    same(tf.sparse.eye(2, 3), [[0, 0], [1, 1]], [1, 1], [2, 3])
    kept = tf.sparse.mask(tf.IndexedSlices(tf.ones([3, 2]), [1, 4, 6]), [4])
    assert kept.indices.numpy().tolist() == [1, 6]


# ---------------------------------------------------------------------- counts, crosses, sets


def test_counts_together_and_by_row() -> None:
    v = [[2, 1, 2], [0, 5, 5]]
    same(tf.sparse.bincount(v), [[0], [1], [2], [5]], [1, 1, 2, 2], [6])
    by_row = [[0, 1], [0, 2], [1, 0], [1, 5]]
    same(tf.sparse.bincount(v, axis=-1), by_row, [1, 2, 1, 2], [2, 6])
    same(tf.sparse.bincount(v, axis=-1, binary_output=True), by_row, [1] * 4, [2, 6])
    same(tf.sparse.bincount(v, axis=-1, minlength=9), by_row, [1, 2, 1, 2], [2, 9])
    same(tf.sparse.bincount(v, axis=-1, maxlength=3), by_row[:3], [1, 2, 1], [2, 3])
    weighted = tf.sparse.bincount(v, [[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]], axis=-1)
    same(weighted, by_row, [0.2, 0.4, 1, 5], [2, 6])
    same(tf.sparse.bincount(IDS, axis=-1), [[0, 5], [2, 2]], [2, 1], [3, 6])
    for wrong in ([[-1, 2]], [1.0, 2.0]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.sparse.bincount(wrong)


def test_crosses() -> None:
    a = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], ["a", "b", "c"], [2, 2])
    b = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], ["d", "e", "f"], [2, 2])
    at = [[0, 0], [1, 0], [1, 1], [1, 2], [1, 3]]
    same(tf.sparse.cross([a, b]), at,
         [b"a_X_d", b"b_X_e", b"b_X_f", b"c_X_e", b"c_X_f"], [2, 4])
    same(tf.sparse.cross([a, tf.constant([[1], [3]])], separator="*"),
         [[0, 0], [1, 0], [1, 1]], [b"a*1", b"b*3", b"c*3"], [2, 2])
    numbers = [tf.constant([[1], [2]]), tf.constant([[3], [4]])]
    made = tf.sparse.cross_hashed(numbers)
    assert made.values.numpy().tolist() == [4809349409533727844, 6432873524654521740]
    assert tf.sparse.cross_hashed(numbers, 10, 7).values.numpy().tolist() == [9, 6]
    with pytest.raises(tf.errors.InvalidArgumentError, match="number of rows"):
        tf.sparse.cross([a, tf.constant([["x"]])])


def test_crosses_of_matrices_in_a_traced_function() -> None:
    def cross(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return tf.sparse.to_dense(tf.sparse.cross_hashed([x, y], 100))

    traced = tf.function(cross, reduce_retracing=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (2, 3, 1):
            x = tf.constant([["a", "b"], ["c", "d"], ["e", "f"]][:rows])
            y = tf.constant([[1, 2, 3], [4, 5, 6], [7, 8, 9]][:rows])
            found = traced(x, y)
            assert found.shape == [rows, 6]
            assert found.numpy().tolist() == cross(x, y).numpy().tolist()
    one_by_one = [[tf.sparse.cross_hashed([tf.sparse.from_dense([[a]]), [[b]]], 100).values[0]
                   for a in ("a", "b") for b in (1, 2, 3)]]
    assert found.numpy().tolist() == [[int(v) for v in row] for row in one_by_one]
    with pytest.raises(tf.errors.InvalidArgumentError, match="number of rows"):
        tf.sparse.cross_hashed([[["a"]], [["b"], ["c"]]])


def test_sets() -> None:
    a, b = tf.constant([[1, 2, 3], [4, 5, 6]]), tf.constant([[3, 1], [7, 6]])
    same(tf.sets.intersection(a, b), [[0, 0], [0, 1], [1, 0]], [1, 3, 6], [2, 2])
    same(tf.sets.union(a, b), [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [1, 3]],
         [1, 2, 3, 4, 5, 6, 7], [2, 4])
    same(tf.sets.difference(a, b), [[0, 0], [1, 0], [1, 1]], [2, 4, 5], [2, 2])
    same(tf.sets.difference(a, b, aminusb=False), [[1, 0]], [7], [2, 1])
    assert tf.sets.size(IDS).numpy().tolist() == [1, 0, 1]


def test_sums_of_rows_of_a_table() -> None:
    table = tf.Variable(tf.reshape(tf.range(12.0), [6, 2]))
    look = tf.nn.embedding_lookup_sparse
    assert look(table, IDS, None).numpy().tolist() == [[10, 11], [0, 0], [4, 5]]
    assert look(table, IDS, None, "sum").numpy().tolist() == [[20, 22], [0, 0], [4, 5]]
    weights = IDS.with_values([1.0, 2.0, 3.0])
    np.testing.assert_allclose(look(table, IDS, weights, "sqrtn").numpy(),
                               [[13.416408, 14.758048], [0, 0], [4, 5]], rtol=1e-6)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(look(table, IDS, weights, "sum"))
    gradient = tf.convert_to_tensor(tape.gradient(loss, table)).numpy()
    assert gradient[:, 0].tolist() == [0, 0, 3, 0, 0, 3]
    with pytest.raises(ValueError, match="combiner"):
        look(table, IDS, None, "max")


def test_safe_sums_fill_rows_without_ids() -> None:
    table = tf.reshape(tf.range(12.0), [6, 2])
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [5, -1, -1], [3, 2])
    safe = tf.nn.safe_embedding_lookup_sparse
    assert safe(table, ids).numpy().tolist() == [[10, 11], [0, 0], [0, 0]]
    assert safe(table, ids, default_id=1).numpy().tolist() == [[10, 11], [2, 3], [2, 3]]
    deep = tf.sparse.reshape(ids, [1, 3, 2])
    assert safe(table, deep).shape == [1, 3, 2]


def test_crosses_of_words_have_tensorflows_hashes() -> None:
    a = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], ["a", "b", "c"], [2, 2])
    b = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], ["d", "e", "f"], [2, 2])
    assert tf.sparse.cross_hashed([a, b]).values.numpy().tolist() == [
        1584069791037555375, 4171697120956746554, 300175262452528982, 1746051686049959641,
        4546572711251652368]
    assert tf.sparse.cross_hashed([a, b], 100).values.numpy().tolist() == [82, 61, 89, 41, 68]


def test_products_of_two_sparse_matrices() -> None:
    from gtape.ops.sparse.arithmetic import sparse_sparse_matmul

    a, b = tf.Variable([1.0, 2.0, 3.0]), tf.Variable([4.0, 5.0])
    with tf.GradientTape() as tape:
        x = tf.SparseTensor([[0, 0], [0, 2], [1, 2]], a, [2, 3])
        y = tf.SparseTensor([[0, 1], [2, 0]], b, [3, 2])
        made = sparse_sparse_matmul(x, y)
        loss = tf.reduce_sum(made.values)
    same(made, [[0, 0], [0, 1], [1, 0]], [10, 4, 15], [2, 2])
    ga, gb = tape.gradient(loss, [a, b])
    assert tf.convert_to_tensor(ga).numpy().tolist() == [4, 5, 5]
    assert tf.convert_to_tensor(gb).numpy().tolist() == [1, 5]
    assert sparse_sparse_matmul(x, tf.cast(y, tf.int32), tf.float64).dtype == tf.float64


def test_hashes_and_separators_that_are_none() -> None:
    ids = [tf.constant([[1, 2]], tf.int64)] * 2
    rows = [tf.ragged.constant([[1, 2]], tf.int64)] * 2
    assert tf.ragged.cross_hashed(rows, 100, -1).to_list() == [[33, 65, 59, 29]]
    for call in (tf.sparse.cross_hashed, tf.ragged.cross_hashed):
        for buckets in (-1, 2**63):
            with pytest.raises(tf.errors.InvalidArgumentError, match="num_buckets must be 0"):
                call(ids, buckets)
    with pytest.raises(TypeError, match="separator must be a string; got 1"):
        tf.sparse.cross(ids, separator=1)


def test_limits_of_bincount() -> None:
    counts = tf.sparse.bincount([1, 1, 2], minlength=-1, maxlength=-1)
    assert counts.shape == [3] and counts.values.numpy().tolist() == [2, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="maxlength must be 0 or more"):
        tf.sparse.bincount([1], maxlength=-2)

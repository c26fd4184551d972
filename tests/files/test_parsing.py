"""parse_example and its like: TensorFlow's tensors of Examples, and its errors."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

io, train = tf.io, tf.train
Fixed, VarLen, Rows, Ragged = (io.FixedLenFeature, io.VarLenFeature, io.FixedLenSequenceFeature,
                               io.RaggedFeature)


def integers(*values):
    return train.Feature(int64_list=train.Int64List(value=values))


def floats(*values):
    return train.Feature(float_list=train.FloatList(value=values))


def texts(*values):
    return train.Feature(bytes_list=train.BytesList(value=values))


def example(**features):
    return train.Example(features=train.Features(feature=features)).SerializeToString()


A = example(x=integers(1, 2), s=texts(b"q"), e=train.Feature(), f=floats(1, 2, 3))
B = example(x=integers(3, 4), s=texts(b"w", b"e"))


def listed(found):
    return {name: (t.numpy().tolist(), t.dtype.name) for name, t in found.items()}


def sparse(found):
    return (found.indices.numpy().tolist(), found.values.numpy().tolist(),
            found.dense_shape.numpy().tolist())


def test_fixed_features_of_a_batch_and_of_one():
    spec = {"x": Fixed([2], tf.int64), "s": Fixed([], tf.string, default_value="none")}
    assert listed(io.parse_example([A, A], spec)) == {
        "s": ([b"q", b"q"], "string"), "x": ([[1, 2], [1, 2]], "int64")}
    assert listed(io.parse_single_example(A, {"x": Fixed([2], tf.int64)})) == {
        "x": ([1, 2], "int64")}
    assert listed(io.parse_example(A, {"x": Fixed([1, 2], tf.int64)})) == {
        "x": ([[1, 2]], "int64")}
    none = io.parse_example(tf.zeros([0], tf.string), {"x": Fixed([2], tf.int64)})["x"]
    assert none.shape == (0, 2) and none.dtype == tf.int64


def test_defaults_stand_for_what_is_missing():
    found = io.parse_example([A, B], {
        "f": Fixed([3], tf.float32, default_value=[7, 8, 9]),
        "e": Fixed([], tf.int64, default_value=4), "z": Fixed([], tf.string, "none")})
    assert listed(found) == {"f": ([[1, 2, 3], [7, 8, 9]], "float32"), "e": ([4, 4], "int64"),
                             "z": ([b"none", b"none"], "string")}


def test_rows_are_filled_up_to_the_longest():
    found = io.parse_example([A, B], {
        "f": Rows([], tf.float32, allow_missing=True, default_value=-1),
        "x": Rows([2], tf.int64, allow_missing=True), "s": Rows([], tf.string, True)})
    assert listed(found) == {
        "f": ([[1, 2, 3], [-1, -1, -1]], "float32"), "x": ([[[1, 2]], [[3, 4]]], "int64"),
        "s": ([[b"q", b""], [b"w", b"e"]], "string")}
    one = io.parse_single_example(B, {"f": Rows([], tf.float32, allow_missing=True)})
    assert one["f"].shape == (0,)


def test_features_of_any_length_are_sparse():
    found = io.parse_example([A, B], {"s": VarLen(tf.string), "f": VarLen(tf.float32)})
    assert sparse(found["s"]) == ([[0, 0], [1, 0], [1, 1]], [b"q", b"w", b"e"], [2, 2])
    assert sparse(found["f"]) == ([[0, 0], [0, 1], [0, 2]], [1, 2, 3], [2, 3])
    one = io.parse_single_example(A, {"s": VarLen(tf.string), "z": VarLen(tf.int64)})
    assert sparse(one["s"]) == ([[0]], [b"q"], [1]) and sparse(one["z"]) == ([], [], [0])


def test_a_sparse_feature_has_places_of_its_own():
    made = example(i=integers(5, 2), v=floats(1, 2))
    found = io.parse_example([made, made], {"q": io.SparseFeature("i", "v", tf.float32, 10)})
    assert sparse(found["q"]) == ([[0, 2], [0, 5], [1, 2], [1, 5]], [2, 1, 2, 1], [2, 10])
    with pytest.raises(tf.errors.InvalidArgumentError, match="size"):
        io.parse_example([made], {"q": io.SparseFeature("i", "v", tf.float32, 5)})


def test_ragged_features():
    found = io.parse_example([A, B], {"f": Ragged(tf.float32), "t": Ragged(tf.string, "s")})
    assert found["f"].to_list() == [[1, 2, 3], []]
    assert found["t"].to_list() == [[b"q"], [b"w", b"e"]]
    assert found["f"].row_splits.dtype == tf.int32
    assert io.parse_single_example(A, {"f": Ragged(tf.float32)})["f"].numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize("features, message", [
    ({"f": Fixed([3], tf.float32)}, "example 1, Feature: f .* is required but could not be found"),
    ({"x": Fixed([], tf.int64)}, r"Key: x, Index: 0.*Values size: 2 but output shape: \[\]"),
    ({"x": Fixed([2], tf.float32)}, "Key: x, Index: 0.*Data types don't match.*int64.*float32"),
    ({"x": Fixed([2], tf.int32)}, "float32, int64 and string"),
    ({"f": Rows([2], tf.float32, True)}, "not a multiple of stride length. Saw 3 values"),
    ({"f": Fixed([3], tf.float32, default_value=1.0)}, "default_value must be of the shape")])
def test_what_an_example_lacks_is_named(features, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        io.parse_example([A, B], features)


@pytest.mark.parametrize("features", [
    {}, None, {"x": 3}, {"f": Rows([], tf.float32)}, {"f": Fixed([None], tf.float32)},
    {"f": Ragged(tf.float32, partitions=["rows"])}])
def test_features_that_are_none_are_refused(features):
    with pytest.raises(ValueError):
        io.parse_example([A, B], features)


def test_the_shape_of_the_strings_is_checked():
    spec = {"x": Fixed([2], tf.int64)}
    for call in (lambda: io.parse_example([[A]], spec), lambda: io.parse_single_example([A], spec),
                 lambda: io.parse_example([3], spec)):
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize("damaged", [b"\xff", A[:-1], b"\n\x7f", A[:7] + b"\xff" + A[8:], b"text"])
def test_damaged_examples_are_errors(damaged):
    with pytest.raises(tf.errors.InvalidArgumentError):
        io.parse_example([B, damaged], {"x": Fixed([2], tf.int64)})


def test_long_lists_and_lists_in_pieces():
    many = example(x=integers(*range(-500, 500)), f=floats(*range(300)))
    found = io.parse_example([many, many], {"x": Fixed([1000], tf.int64),
                                            "f": Fixed([300], tf.float32)})
    assert (found["x"].numpy() == np.arange(-500, 500)).all()
    assert (found["f"].numpy() == np.arange(300)).all()
    pieces = b"\n\x11\n\x0f\n\x01x\x12\x0a\x1a\x04\n\x02\x01\x02\x1a\x02\x08\x07"
    found = io.parse_single_example(pieces, {"x": VarLen(tf.int64)})
    assert found["x"].values.numpy().tolist() == [1, 2, 7]


def test_a_traced_function_parses():
    @tf.function
    def parsed(strings):
        return io.parse_example(strings, {"x": Fixed([2], tf.int64), "s": Fixed([], tf.string, "")})

    assert listed(parsed(tf.constant([A, A])))["x"] == ([[1, 2], [1, 2]], "int64")
    assert parsed.experimental_get_tracing_count() == 1


def sequence(n, **lists):
    return train.SequenceExample(
        context=train.Features(feature={"n": integers(n)}),
        feature_lists=train.FeatureLists(feature_list={
            name: train.FeatureList(feature=steps) for name, steps in lists.items()},
        )).SerializeToString()


S = sequence(2, t=[integers(2, 3), integers(4, 5)], v=[floats(2), floats(), floats(4, 5)])
T = sequence(9, t=[integers(2, 3)])
CONTEXT = {"n": Fixed([], tf.int64)}


def test_one_sequence():
    context, steps = io.parse_single_sequence_example(
        S, CONTEXT, {"t": Rows([2], tf.int64), "v": VarLen(tf.float32)})
    assert context["n"].numpy() == 2
    assert steps["t"].numpy().tolist() == [[2, 3], [4, 5]]
    assert sparse(steps["v"]) == ([[0, 0], [2, 0], [2, 1]], [2, 4, 5], [3, 2])


def test_a_batch_of_sequences():
    context, steps, lengths = io.parse_sequence_example(
        [S, T], CONTEXT, {"t": Rows([2], tf.int64), "v": VarLen(tf.float32)})
    assert context["n"].numpy().tolist() == [2, 9]
    assert steps["t"].numpy().tolist() == [[[2, 3], [4, 5]], [[2, 3], [0, 0]]]
    assert sparse(steps["v"]) == ([[0, 0, 0], [0, 2, 0], [0, 2, 1]], [2, 4, 5], [2, 3, 2])
    assert {n: t.numpy().tolist() for n, t in lengths.items()} == {"t": [2, 1]}


def test_a_batch_of_ragged_sequences():
    _, steps, lengths = io.parse_sequence_example([S, T], CONTEXT, {"t": Ragged(tf.int64)})
    assert steps["t"].to_list() == [[[2, 3], [4, 5]], [[2, 3]]] and lengths == {}


def test_what_a_sequence_lacks():
    _, steps = io.parse_single_sequence_example(T, CONTEXT, {"v": Rows([], tf.float32, True)})
    assert steps["v"].shape == (0,)
    for features in ({"v": Rows([], tf.float32)}, {"t": Rows([], tf.int64)},
                     {"t": Rows([2], tf.float32)}):
        with pytest.raises(tf.errors.InvalidArgumentError):
            io.parse_single_sequence_example(T, CONTEXT, features)
    for call in (lambda: io.parse_single_sequence_example([T], CONTEXT),
                 lambda: io.parse_sequence_example(T, CONTEXT),
                 lambda: io.parse_single_sequence_example(T)):
        with pytest.raises(ValueError):
            call()

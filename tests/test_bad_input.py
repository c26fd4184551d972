"""Input that cannot be right: a clear error, nothing changed, the tape as usable as before."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf

_Bad = tf.errors.InvalidArgumentError


@pytest.fixture
def x() -> Any:
    return tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], name="x")


def _refused(wrong: Callable[[], Any], error: Any, x: Any) -> None:
    """`wrong` raises inside a tape; the tape then answers as if nothing had happened."""
    before = x.numpy()
    with tf.GradientTape() as tape:
        y = x * x
        count = len(tape._records)
        with pytest.raises(error) as caught:
            wrong()
        assert len(tape._records) - count <= 2, "an op that failed left records behind"
        z = tf.reduce_sum(y)
    assert len(str(caught.value)) > 15, "the text says too little"
    np.testing.assert_array_equal(x, before)
    np.testing.assert_allclose(tape.gradient(z, x), 2 * before)


# -------------------------------------------------------------------------- shapes and dtypes

_SHAPES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "add": (lambda x: x + tf.ones([2, 4]), _Bad),
    "maximum": (lambda x: tf.maximum(x, tf.ones([5])), _Bad),
    "matmul": (lambda x: x @ x, _Bad),
    "matmul of a vector": (lambda x: x @ tf.ones([3]), _Bad),
    "reshape": (lambda x: tf.reshape(x, [4]), _Bad),
    "reshape with two free lengths": (lambda x: tf.reshape(x, [-1, -1]), _Bad),
    "broadcast_to": (lambda x: tf.broadcast_to(x, [2, 4]), _Bad),
    "concat": (lambda x: tf.concat([x, tf.ones([3, 3])], 1), _Bad),
    "stack": (lambda x: tf.stack([x, tf.ones([3])]), _Bad),
    "split": (lambda x: tf.split(x, 2, axis=1), (_Bad, ValueError)),
    "squeeze": (lambda x: tf.squeeze(x, axis=0), _Bad),
    "transpose": (lambda x: tf.transpose(x, [0, 0]), (_Bad, ValueError)),
    "axis": (lambda x: tf.reduce_sum(x, axis=2), _Bad),
    "axis twice": (lambda x: tf.reduce_sum(x, axis=[0, -2]), _Bad),
    "argmax axis": (lambda x: tf.argmax(x, axis=5), _Bad),
    "where": (lambda x: tf.where(x > 1.0, x, tf.ones([7])), _Bad),
    "einsum": (lambda x: tf.einsum("ij,jk->ik", x, x), (_Bad, ValueError)),
    "einsum text": (lambda x: tf.einsum("ij->kk", x), ValueError),
}


@pytest.mark.parametrize("name", _SHAPES)
def test_wrong_shapes(name: str, x: Any) -> None:
    wrong, error = _SHAPES[name]
    _refused(lambda: wrong(x), error, x)


_DTYPES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "two floats": (lambda x: x + tf.ones([2, 3], tf.float64), _Bad),
    "float and int": (lambda x: x * tf.ones([2, 3], tf.int32), _Bad),
    "divide": (lambda x: x / tf.ones([2, 3], tf.float64), TypeError),
    "compare": (lambda x: x < tf.ones([2, 3], tf.float64), _Bad),
    "matmul": (lambda x: x @ tf.ones([3, 1], tf.float64), _Bad),
    "exp of int": (lambda x: tf.exp(tf.constant([1, 2])), _Bad),
    "logical_and of floats": (lambda x: tf.logical_and(x, x), _Bad),
    "where of a float": (lambda x: tf.where(x, x, x), _Bad),
    "float with int tensor": (lambda x: tf.constant([1, 2]) + 1.5, TypeError),
    "string with a number": (lambda x: x + "1", (TypeError, ValueError)),
    "cast to nonsense": (lambda x: tf.cast(x, "float99"), TypeError),
    "a comparison with a string": (lambda x: x == "a", TypeError),
    "constant of a float as int": (lambda x: tf.constant(1.5, tf.int32), TypeError),
    "an integer out of range": (lambda x: tf.constant(300, tf.uint8), (TypeError, ValueError)),
}


@pytest.mark.parametrize("name", _DTYPES)
def test_wrong_dtypes(name: str, x: Any) -> None:
    wrong, error = _DTYPES[name]
    _refused(lambda: wrong(x), error, x)


# -------------------------------------------------------------------------- indices

_INDICES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "past the end": (lambda x: x[2], _Bad),
    "before the start": (lambda x: x[:, -4], _Bad),
    "too many": (lambda x: x[0, 0, 0], (_Bad, IndexError)),
    "a float": (lambda x: x[1.5], TypeError),
    "a float tensor": (lambda x: x[tf.constant(1.0)], (TypeError, _Bad)),
    "nan": (lambda x: x[float("nan")], TypeError),
    "a string": (lambda x: x["a"], TypeError),
    "step zero": (lambda x: x[::0], (_Bad, ValueError)),
    "gather past the end": (lambda x: tf.gather(x, [0, 2]), _Bad),
    "gather before the start": (lambda x: tf.gather(x, [-1]), _Bad),
    "gather of nan": (lambda x: tf.gather(x, [float("nan")]), (_Bad, TypeError)),
    "gather axis": (lambda x: tf.gather(x, [0], axis=4), _Bad),
    "gather_nd past the end": (lambda x: tf.gather_nd(x, [[0, 3]]), _Bad),
    "scatter_nd past the end": (lambda x: tf.scatter_nd([[9]], [1.0], [3]), _Bad),
    "one_hot of floats": (lambda x: tf.one_hot([0.5], 3), (_Bad, TypeError)),
    "mask of another shape": (lambda x: tf.boolean_mask(x, [True, False, True]), ValueError),
    "variable gather": (lambda x: x.sparse_read(tf.constant([7])), _Bad),
}


@pytest.mark.parametrize("name", _INDICES)
def test_wrong_indices(name: str, x: Any) -> None:
    wrong, error = _INDICES[name]
    _refused(lambda: wrong(x), error, x)


# -------------------------------------------------------------------------- values

_VALUES: dict[str, tuple[Callable[[], Any], Any]] = {
    "ragged": (lambda: tf.constant([[1.0, 2.0], [3.0]]), ValueError),
    "objects": (lambda: tf.constant(np.array([object(), object()])), (ValueError, TypeError)),
    "object array of mixed things": (lambda: tf.constant(np.array([1, "a", None], object)),
                                     (ValueError, TypeError)),
    "None": (lambda: tf.constant(None), (ValueError, TypeError)),
    "a function": (lambda: tf.constant(len), (ValueError, TypeError)),
    "mixed": (lambda: tf.constant([1.0, "a"]), (ValueError, TypeError)),
    "dates": (lambda: tf.constant(np.array(["2020-01-01"], "datetime64[D]")), TypeError),
    "records": (lambda: tf.constant(np.zeros(2, [("a", "f4")])), TypeError),
    "a wrong shape": (lambda: tf.constant([1.0, 2.0], shape=[3]), (ValueError, TypeError)),
    "a negative length": (lambda: tf.zeros([-1]), (_Bad, ValueError)),
    "a float length": (lambda: tf.zeros([1.5]), TypeError),
    "an unknown device": (lambda: tf.device("TPU:0").__enter__(), _Bad),
    "a GPU that is not there": (lambda: tf.device("GPU:97").__enter__(), _Bad),
    "variable from nothing": (lambda: tf.Variable(None), ValueError),
    "variable shape": (lambda: tf.Variable([1.0], shape=[2]), ValueError),
    "bool of many": (lambda: bool(tf.constant([1.0, 2.0])), ValueError),
    "float of many": (lambda: float(tf.constant([1.0, 2.0])), TypeError),
    "len of a scalar": (lambda: len(tf.constant(1.0)), TypeError),
    "iteration over a scalar": (lambda: list(tf.constant(1.0)), TypeError),
    "hash": (lambda: {tf.constant(1.0)}, TypeError),
    "assign to an item": (lambda: tf.constant([1.0]).__setitem__(0, 2.0), TypeError),
}


@pytest.mark.parametrize("name", _VALUES)
def test_wrong_values(name: str, x: Any) -> None:
    wrong, error = _VALUES[name]
    _refused(wrong, error, x)


def test_a_variable_assigned_a_wrong_shape_keeps_its_value(x: Any) -> None:
    for value in ([1.0], np.ones((3, 2)), tf.ones([2, 3], tf.float64), "text"):
        _refused(lambda value=value: x.assign(value), (ValueError, TypeError), x)


# -------------------------------------------------------------------------- arrays of any layout


@pytest.mark.parametrize("make", [
    lambda a: a[:, ::-1], lambda a: a.T.copy().T, lambda a: np.asfortranarray(a),
    lambda a: np.broadcast_to(a[:1], a.shape), lambda a: a.astype(">f4"),
    lambda a: a.astype("<f4"), lambda a: a[::2].repeat(2, axis=0)])
def test_layout_byte_order_and_flags_of_numpy_input_do_not_matter(make: Any) -> None:
    array = make(np.arange(6, dtype=np.float32).reshape(2, 3))
    array.flags.writeable = False
    for build in (tf.constant, tf.Variable, tf.convert_to_tensor):
        v = build(array)
        assert v.dtype == tf.float32
        with tf.GradientTape() as tape:
            if build is not tf.Variable:
                tape.watch(v)
            y = tf.reduce_sum(v * v + array * v)
        np.testing.assert_allclose(tape.gradient(y, v), 3 * np.asarray(array, np.float32))


def test_strings_are_tensors_down_to_the_last_one() -> None:
    table = tf.constant([["a", "b"], ["c", "d"]])
    for found in (table[1, 0], tf.unstack(table[1])[0], next(iter(table[1])),
                  tf.gather(table[1], 0), tf.gather_nd(table, [1, 0])):
        assert found.shape == () and found.dtype == tf.string
        assert found.numpy() == b"c"


def test_read_only_results_are_never_handed_out() -> None:
    x = tf.constant(np.ones(3, np.float32))
    array = x.numpy()
    array += 1.0
    np.testing.assert_array_equal(x, np.ones(3))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_empty_arrays_and_zero_size_batches(shape: tuple[int, ...]) -> None:
    v = tf.Variable(np.zeros(shape, np.float32))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.exp(v) * v)
    g = tape.gradient(y, v)
    assert float(y) == 0.0
    assert g.shape == shape


def test_a_zero_size_batch_through_a_layer() -> None:
    w, b = tf.Variable(np.ones((3, 2), np.float32)), tf.Variable(np.zeros(2, np.float32))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.nn.relu(tf.zeros([0, 3]) @ w + b))
    dw, db = tape.gradient(y, [w, b])
    np.testing.assert_array_equal(dw, np.zeros((3, 2)))
    np.testing.assert_array_equal(db, np.zeros(2))


def test_reductions_of_nothing() -> None:
    empty = tf.zeros([0])
    assert float(tf.reduce_sum(empty)) == 0.0
    assert np.isnan(float(tf.reduce_mean(empty)))
    assert float(tf.reduce_max(empty)) == -np.inf


# -------------------------------------------------------------------------- the tape's questions


def _tape() -> tuple[tf.GradientTape, tf.Tensor, tf.Variable]:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
    return tape, y, x


_QUESTIONS: dict[str, tuple[Callable[[Any, Any, Any], Any], Any]] = {
    "no target": (lambda t, y, x: t.gradient(None, x), TypeError),
    "a number as target": (lambda t, y, x: t.gradient(3.0, x), TypeError),
    "an array as target": (lambda t, y, x: t.gradient(np.ones(2), x), TypeError),
    "None among targets": (lambda t, y, x: t.gradient([y, None], x), TypeError),
    "no source": (lambda t, y, x: t.gradient(y, None), TypeError),
    "a number as source": (lambda t, y, x: t.gradient(y, [x, 1.0]), TypeError),
    "a string as source": (lambda t, y, x: t.gradient(y, "x"), TypeError),
    "unsortable keys": (lambda t, y, x: t.gradient(y, {1: x, "a": x}), TypeError),
    "too few cotangents": (lambda t, y, x: t.gradient([y, y], x, output_gradients=[y]), ValueError),
    "too many cotangents": (lambda t, y, x: t.gradient(y, x, output_gradients=[y, y]), ValueError),
    "a cotangent of another shape": (
        lambda t, y, x: t.gradient(y, x, output_gradients=tf.ones([3])), ValueError),
    "a cotangent of another dtype": (
        lambda t, y, x: t.gradient(y, x, output_gradients=tf.ones([2], tf.float64)), ValueError),
    "numbers as cotangents": (
        lambda t, y, x: t.gradient(y, x, output_gradients=[10.0, 20.0]), ValueError),
    "unknown mode": (lambda t, y, x: t.gradient(y, x, unconnected_gradients="no"), ValueError),
    "mode of another type": (lambda t, y, x: t.gradient(y, x, unconnected_gradients=3), ValueError),
    "jacobian of a list": (lambda t, y, x: t.jacobian([y], x), TypeError),
    "batch_jacobian of vectors": (lambda t, y, x: t.batch_jacobian(y, x), ValueError),
    "watch of a number": (lambda t, y, x: t.watch(1.0), ValueError),
}


@pytest.mark.parametrize("name", _QUESTIONS)
def test_wrong_questions_leave_the_tape_unspent(name: str) -> None:
    ask, error = _QUESTIONS[name]
    tape, y, x = _tape()
    with pytest.raises(error) as caught:
        ask(tape, y, x)
    assert len(str(caught.value)) > 15
    np.testing.assert_allclose(tape.gradient(y, x), [2.0, 4.0])


def test_a_spent_tape() -> None:
    tape, y, x = _tape()
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match="persistent"):
        tape.gradient(y, x)


def test_a_tensor_of_another_threads_tape_is_none_and_says_why() -> None:
    x, made = tf.Variable(2.0), []

    def elsewhere() -> None:
        with tf.GradientTape() as other:
            made.append((other, x * x))

    thread = threading.Thread(target=elsewhere)
    with tf.GradientTape() as tape:
        thread.start()
        thread.join(10)
        x * 2.0
    assert tape.explain(made[0][1], x, show=False).cause == "USED_OUTSIDE_TAPE"
    assert tape.gradient(made[0][1], x) is None
    assert float(made[0][0].gradient(made[0][1], x)) == 4.0


def test_nothing_warns_about_arithmetic(recwarn: pytest.WarningsRecorder) -> None:
    x = tf.Variable([0.0, -1.0])
    with tf.GradientTape() as tape:
        y = tf.math.log(x) + 1.0 / x + tf.sqrt(x)
    tape.gradient(y, x)
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]
    with np.errstate(all="raise"):
        1.0 / x
        assert np.isinf(tf.constant(1e300).numpy())
        assert np.isinf((x + np.array([1e300, 1.0])).numpy()[0])
        assert np.isinf(tf.cast(tf.constant(1e300, tf.float64), tf.float32).numpy())

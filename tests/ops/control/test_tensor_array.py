"""TensorArray."""

from __future__ import annotations

from typing import Any

import pytest

import gtape as tf


def _array(size: Any = 2, **options: Any) -> Any:
    return tf.TensorArray(tf.float32, size, **options)


def test_write_read_and_stack() -> None:
    array = _array(clear_after_read=False).write(0, 1.0).write(1, 2.0)
    assert array.read(0).numpy() == 1 and array.read(0).numpy() == 1
    assert array.stack().numpy().tolist() == [1, 2]
    assert array.gather([1, 0]).numpy().tolist() == [2, 1]
    assert array.size().numpy() == 2 and array.dtype == tf.float32 and not array.dynamic_size


def test_gradients_flow_through() -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        array = _array(3).unstack(x)
        array.write(1, array.read(1) * 10.0)
        y = array.stack() * array.gather([2, 2, 2])
    assert tape.gradient(y, x).numpy().tolist() == [3, 30, 1 + 20 + 2 * 3]


def test_growing() -> None:
    array = _array(0, dynamic_size=True).write(2, 1.0)
    assert array.size().numpy() == 3 and array.stack().numpy().tolist() == [0, 0, 1]
    assert _array(1, dynamic_size=True).unstack([1.0, 2.0]).stack().shape == [2]


def test_elements_not_written_are_zero() -> None:
    assert _array(3).write(1, 1.0).stack().numpy().tolist() == [0, 1, 0]
    assert _array(element_shape=[2]).read(0).numpy().tolist() == [0, 0]
    assert _array(0).stack().shape == [0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not written"):
        _array().read(0)


def test_concat_split_and_scatter() -> None:
    pieces = _array(infer_shape=False).write(0, [1.0, 2.0]).write(1, [3.0])
    assert pieces.concat().numpy().tolist() == [1, 2, 3]
    split = _array().split([1.0, 2.0, 3.0], [1, 2])
    assert split.read(1).numpy().tolist() == [2, 3]
    rows = _array(3).scatter([0, 2], [[1.0], [2.0]])
    assert rows.gather([2, 1]).numpy().tolist() == [[2], [0]]


def test_reading_clears() -> None:
    array = _array().write(0, 1.0)
    array.read(0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="clear_after_read"):
        array.read(0)
    assert array.write(0, 5.0).read(0).numpy() == 5


@pytest.mark.parametrize("use", [
    lambda a: a.write(2, 1.0), lambda a: a.write(-1, 1.0), lambda a: a.read(2)])
def test_out_of_range(use: Any) -> None:
    with pytest.raises(tf.errors.OutOfRangeError):
        use(_array())


def test_values_that_do_not_fit() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="cast"):
        _array().write(0, tf.constant(1))
    with pytest.raises(ValueError, match="infer_shape"):
        _array().write(0, [1.0, 2.0]).write(1, [1.0])
    with pytest.raises(ValueError, match="dynamic_size"):
        _array(1).unstack([1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError):
        _array().split([1.0, 2.0, 3.0], [2, 2])


def test_what_eager_code_does_not_need() -> None:
    array = _array()
    assert array.identity() is array and array.handle is None and array.flow.numpy() == 0
    array.close()
    assert array.size().numpy() == 0
    with pytest.raises(NotImplementedError):
        array.grad("x")
    with pytest.raises(ValueError, match="size"):
        tf.TensorArray(tf.float32)

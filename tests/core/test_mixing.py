"""Moving between devices is asked for, differentiable, and the only way to combine tensors."""

from __future__ import annotations

import copy
import inspect

import numpy as np
import pytest

import gtape as tf
from tests.fakes import fake_cupy


def line_above() -> str:
    """This file and the line above the caller's, as messages give it."""
    frame = inspect.currentframe().f_back
    return f"{__file__}:{frame.f_lineno - 1}"


def test_cpu_and_gpu(gpus):
    x = tf.constant([1.0, 2.0])
    assert x.device == "GPU:0" and x.gpu() is x
    y = x.cpu()
    assert y.device == "CPU:0" and type(y._a) is np.ndarray and y.cpu() is y
    z = y.gpu(1)
    assert z.device == "GPU:1" and z._a.device.id == 1 and z.numpy().tolist() == [1.0, 2.0]
    assert z.gpu(0).device == "GPU:0"


def test_identity_moves_to_the_device_of_the_block(gpus):
    x = tf.constant([1.0, 2.0])
    with tf.device("GPU:1"):
        assert tf.identity(x).device == "GPU:1" and tf.identity(x)._a.device.id == 1
    with tf.device("CPU:0"):
        assert tf.identity(x).device == "CPU:0"
    assert tf.identity(x).device == "GPU:0" and tf.identity(x) is not x


def test_no_gpu_to_move_to(gpus):
    with pytest.raises(tf.errors.InvalidArgumentError, match="no usable device GPU:5"):
        tf.constant(1.0).gpu(5)


@pytest.mark.parametrize("path", [
    lambda x: x.cpu(), lambda x: x.gpu(1), lambda x: x.gpu(1).cpu().gpu(), lambda x: x.cpu().gpu()])
def test_the_gradient_moves_back(gpus, path):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as outer, tf.GradientTape() as tape:
        y = path(x * x)
        z = tf.reduce_sum(y * y * y)
        g = tape.gradient(z, x)
        s = tf.reduce_sum(path(g))
    assert g.device == "GPU:0" and np.allclose(g, [6.0, 192.0])
    h = outer.gradient(s, x)
    assert h.device == "GPU:0" and np.allclose(h, [30.0, 480.0])


def test_forward_mode_and_jacobians_move_too(gpus):
    x = tf.constant([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 10.0])) as acc:
        y = tf.square(x).cpu()
    assert acc.jvp(y).device == "CPU:0" and np.allclose(acc.jvp(y), [2.0, 40.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.square(x).gpu(1)
    jacobian = tape.jacobian(y, x)
    assert jacobian.device == "GPU:0" and np.allclose(jacobian, np.diag([2.0, 4.0]))


def test_a_source_used_on_two_devices_gets_both_parts(gpus):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        here, there = tf.reduce_sum(x * x), tf.reduce_sum(x.gpu(1) * 3.0).gpu(0)
        y = here + there
    g = tape.gradient(y, x)
    assert g.device == "GPU:0" and np.allclose(g, [5.0, 7.0])


@pytest.mark.parametrize("combine", [
    lambda a, b: a + b, lambda a, b: a * b, lambda a, b: tf.maximum(a, b),
    lambda a, b: tf.concat([a, b], 0), lambda a, b: tf.add_n([a, b]), lambda a, b: a == b,
    lambda a, b: tf.stack([a, b]), lambda a, b: tf.tensordot(a, b, 1)])
def test_mixing_names_tensors_devices_and_lines(gpus, combine):
    a = tf.constant([1.0, 2.0])
    line_a = line_above()
    with tf.device("CPU:0"):
        b = tf.constant([[3.0, 4.0]])[0]
        line_b = line_above()
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        combine(a, b)
    said = str(caught.value)
    for part in ("on GPU:0", "on CPU:0", line_a, line_b, "x.gpu() or x.cpu()"):
        assert part in said


@pytest.mark.parametrize("make", [
    lambda: tf.zeros((2,)), lambda: tf.random.normal((2,)), lambda: tf.constant([1.0, 2.0]) * 2,
    lambda: tf.tanh(tf.Variable([1.0, 2.0])), lambda: tf.Variable([1.0, 2.0]),
    lambda: tf.constant([1.0, 2.0]).cpu().gpu(1), lambda: tf.reshape(tf.ones((1, 2)), [2])])
def test_every_way_of_making_a_tensor_is_named(gpus, make):
    a = make()
    line_a = line_above()
    with tf.device("CPU:0"):
        b = tf.constant([1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        a * b
    assert line_a.rpartition(":")[0] in str(caught.value) and " on CPU:0 made at" in str(
        caught.value)


def test_results_on_the_host_are_found_on_the_tape(gpus):
    a = tf.constant([1.0, 2.0])
    with tf.device("CPU:0"), tf.GradientTape() as tape:
        b = tf.Variable([3.0, 4.0])
        c = tf.sin(b)
        line_c = line_above()
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            c * a
    assert line_c in str(caught.value)
    assert np.allclose(tape.gradient(c, b), np.cos([3.0, 4.0]))


def test_the_tape_is_usable_after_mixing(gpus):
    x, other = tf.Variable([1.0, 2.0]), tf.constant([1.0, 1.0]).cpu()
    with tf.GradientTape() as tape:
        y = x * x
        with pytest.raises(tf.errors.InvalidArgumentError):
            y * other
        z = y * 2.0
    assert np.allclose(tape.gradient(z, x), [4.0, 8.0])


def test_cotangents_of_another_device_are_refused(gpus):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    with pytest.raises(tf.errors.InvalidArgumentError, match="the device of its target, GPU:0"):
        tape.gradient(y, x, output_gradients=tf.constant([1.0, 1.0]).cpu())
    assert np.allclose(tape.gradient(y, x), [2.0, 4.0])


def test_variables_on_devices(gpus):
    with tf.device("GPU:1"):
        v = tf.Variable([1.0, 2.0])
    assert v.device == "GPU:1"
    v.assign([3.0, 4.0])
    v.assign_add([1.0, 1.0])
    v.assign_sub(tf.constant([1.0, 1.0]).gpu(1))
    assert v.device == "GPU:1" and v.numpy().tolist() == [3.0, 4.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="lives on GPU:1"):
        v.assign(tf.constant([0.0, 0.0]))
    assert v.numpy().tolist() == [3.0, 4.0]
    other = copy.deepcopy(v)
    assert other.device == "GPU:1" and other.numpy().tolist() == [3.0, 4.0]


def test_nothing_is_copied_in_silence(gpus):
    x = tf.Variable(np.ones((4, 3), np.float32))
    w = tf.Variable(np.ones((3, 2), np.float32))
    fake_cupy.copies.clear()
    with tf.GradientTape() as tape:
        y = tf.nn.softmax(tf.nn.relu(x @ w))
        loss = tf.reduce_mean(tf.square(y))
    grads = tape.gradient(loss, [x, w])
    assert [c for c in fake_cupy.copies if c[0] == "down" or c[1] > 8] == []
    assert [g.device for g in grads] == ["GPU:0", "GPU:0"]
    grads[0].numpy()
    assert fake_cupy.copies[-1] == ("down", 48)

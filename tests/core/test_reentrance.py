"""Code that interrupts a computation and computes itself: signal handlers, finalizers, threads."""

from __future__ import annotations

import threading

import numpy as np

import gtape as tf
from gtape.core.device import ignored_context
from gtape.opdef.primitive import Primitive


def _program() -> float:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.exp(x) * x / 2.0)
        slope = tape.gradient(y, x)
    return float(tf.reduce_sum(outer.gradient(slope, x)))


def test_a_program_runs_inside_a_computation_of_its_thread() -> None:
    assert ignored_context.run(_program) == _program()


def test_values_become_tensors_inside_a_computation() -> None:
    made = ignored_context.run(lambda: tf.constant(np.arange(3)) + tf.constant([1, 2, 3], tf.int64))
    assert made.numpy().tolist() == [1, 3, 5]


def test_an_op_may_be_called_from_the_array_function_of_another() -> None:
    def doubled(xp: object, x: np.ndarray) -> np.ndarray:
        return tf.reduce_sum(tf.constant(x) * 2.0, keepdims=True).numpy()

    op = Primitive(doubled)
    op.infer(lambda x: x)
    assert op(tf.constant([3.0])).numpy().tolist() == [6.0]


def test_errors_of_an_array_function_come_through_once() -> None:
    calls = []

    def fails(xp: object, x: np.ndarray) -> np.ndarray:
        calls.append(x)
        raise ValueError("no")

    op = Primitive(fails)
    op.infer(lambda x: x)
    try:
        op(tf.constant([3.0]))
    except ValueError as error:
        assert str(error) == "no"
    assert len(calls) == 1


def test_stop_recording_in_another_thread_leaves_the_tape_alone() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x

        def work() -> None:
            with tape.stop_recording():
                x * 2.0
            x * 3.0

        before = len(tape._records)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert len(tape._records) == before
        z = x * y
    assert tape.gradient(z, x).numpy() == 12.0

"""Threads and asyncio tasks do not see each other's tapes."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import gtape as tf


def _in_a_thread(function: object) -> object:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()  # type: ignore[arg-type]


def test_what_another_thread_computes_is_not_recorded() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        here = x * x
        there = _in_a_thread(lambda: x * x)
    assert float(tape.gradient(here, x)) == 6.0
    assert tape.gradient(there, x) is None


def test_the_gradient_may_be_asked_in_any_thread() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    assert float(_in_a_thread(lambda: tape.gradient(y, x))) == 6.0


def test_a_tape_opened_in_a_thread_is_of_that_thread() -> None:
    x = tf.Variable(3.0)
    opened, close = threading.Event(), threading.Event()
    found = []

    def worker() -> None:
        with tf.GradientTape() as tape:
            opened.set()
            close.wait(10)
            y = x * 2.0
        found.append(float(tape.gradient(y, x)))
        found.append(len(tape._records))

    thread = threading.Thread(target=worker)
    thread.start()
    assert opened.wait(10)
    x * x
    close.set()
    thread.join(10)
    assert found == [2.0, 0]


def test_many_threads_train_the_same_program_at_once() -> None:
    data = np.linspace(-1, 1, 32, dtype=np.float64)

    def train(slope: float) -> float:
        w = tf.Variable(0.0, dtype=tf.float64)
        x, y = tf.constant(data), tf.constant(slope * data)
        for _ in range(50):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.tanh(w * x) - tf.tanh(y)))
            w.assign_sub(1.0 * tape.gradient(loss, w))
        return float(w)

    slopes = [0.1 * i for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(train, slopes))
    assert together == [train(s) for s in slopes]


def test_asyncio_tasks_have_tapes_of_their_own() -> None:
    x = tf.Variable(3.0)

    async def task(factor: float) -> float:
        with tf.GradientTape() as tape:
            y = x * factor
            await asyncio.sleep(0)
            y = y * x
            await asyncio.sleep(0)
        return float(tape.gradient(y, x))

    async def main() -> list[float]:
        return await asyncio.gather(*(task(float(i)) for i in range(1, 6)))

    assert asyncio.run(main()) == [6.0 * i for i in range(1, 6)]

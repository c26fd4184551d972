"""Threads that compute elements ahead: they run, they end, and nobody waits for them."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import pytest

import gtape as tf

Dataset = tf.data.Dataset


def _slow(x: Any) -> Any:
    time.sleep(0.002)
    return tf.constant(x.numpy())


def _threads() -> int:
    return sum(t.name == "gtape.data" for t in threading.enumerate())


def _gone() -> bool:
    gc.collect()
    for _ in range(200):
        if not _threads():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("deterministic", [True, False])
def test_map_by_threads(deterministic: bool) -> None:
    dataset = Dataset.range(60).map(_slow, num_parallel_calls=4, deterministic=deterministic)
    found = [int(x) for x in dataset]
    assert (found if deterministic else sorted(found)) == list(range(60))
    assert _gone()


def test_threads_are_used_only_where_elements_take_their_time() -> None:
    iterator = iter(Dataset.range(100).map(lambda x: x + 1, tf.data.AUTOTUNE).prefetch(2))
    for _ in range(50):
        next(iterator)
    assert _threads() == 0


def test_prefetch_computes_ahead_while_an_element_is_used() -> None:
    seen: list[int] = []

    def noted(x: Any) -> Any:
        seen.append(int(x.numpy()))
        return _slow(x)

    iterator = iter(Dataset.range(40).map(noted).prefetch(4))
    found = [int(next(iterator)) for _ in range(10)]
    while len(seen) < 14:  # a test that hangs is ended by pytest
        time.sleep(0.01)
    assert found == list(range(10))
    assert len(seen) <= 16
    assert [int(x) for x in iterator] == list(range(10, 40))


def test_prefetch_stops_using_a_thread_when_elements_take_no_time() -> None:
    def items() -> Any:
        for i in range(200):
            if i < 20:
                time.sleep(0.002)
            yield i

    dataset = Dataset.from_generator(items, output_signature=tf.TensorSpec([], tf.int64))
    iterator = iter(dataset.prefetch(2))
    assert [int(next(iterator)) for _ in range(150)] == list(range(150))
    assert _gone()
    assert [int(x) for x in iterator] == list(range(150, 200))


def test_an_iterator_given_up_half_way_leaves_no_thread() -> None:
    endless = Dataset.range(5).repeat().map(_slow, num_parallel_calls=2).prefetch(3)
    iterator = iter(endless)
    for _ in range(30):
        next(iterator)
    assert _threads() > 0
    del iterator
    assert _gone()


def test_an_error_comes_through_prefetch() -> None:
    def failing(x: Any) -> Any:
        if x.numpy() == 15:
            raise ValueError("fifteen")
        return _slow(x)

    found = []
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"map, element 15, .*fifteen"):
        for x in Dataset.range(30).map(failing).prefetch(4):
            found.append(int(x))
    assert found == list(range(15))


@pytest.mark.parametrize("pipeline", [
    "Dataset.range(5).repeat().map(slow, num_parallel_calls=2)",
    "Dataset.range(5).repeat().map(slow).prefetch(3)",
    "Dataset.from_generator(stuck, output_signature=tf.TensorSpec([], tf.int64)).prefetch(2)"])
def test_python_ends_while_a_pass_is_not_over(pipeline: str) -> None:
    program = textwrap.dedent(f"""
        import time
        import gtape as tf
        Dataset = tf.data.Dataset

        def slow(x):
            time.sleep(0.002)
            return tf.constant(x.numpy())

        def stuck():
            for i in range(12):
                time.sleep(0.002)
                yield i
            time.sleep(1000)

        iterator = iter({pipeline})
        for _ in range(12):
            next(iterator)
        print("done")
        """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=60, check=True)
    assert done.stdout == "done\n"
    assert done.stderr == ""


def test_passes_in_several_threads_are_independent() -> None:
    dataset = Dataset.range(200).shuffle(50).map(lambda x: x * 2).batch(7)
    found: list[list[int]] = []

    def run() -> None:
        found.append(sorted(int(x) for batch in dataset for x in batch.numpy()))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[2 * i for i in range(200)]] * 4

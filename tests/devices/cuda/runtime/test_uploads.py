"""Copies to a GPU beside what it computes: nothing is read before it is there, nor overwritten
while it is read. The streams of the fake CuPy do everything as late as they may."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.core.device import CPU
from gtape.devices.cuda.runtime import uploads as module
from gtape.devices.cuda.runtime.uploads import BUFFERS, Uploads
from tests.fakes import fake_cuda, fake_cupy, fake_streams
from tests.threads import together


@pytest.fixture
def uploads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Uploads]:
    """Copies through buffers of 1 KiB."""
    monkeypatch.setattr(module, "SIZE", 1024)
    fake_streams.races.clear()
    yield Uploads(fake_cupy, nullcontext)
    assert not fake_streams.races


def _waiting(uploads: Uploads) -> int:
    """How many copies have not been made."""
    assert uploads._staging is not None
    return len(uploads._staging.stream._late)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "int64", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (3, 50), (40, 33, 2)])
def test_copies_are_equal(uploads: Uploads, dtype: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 9, shape).astype(dtype)
    y, z = uploads.send([x, np.array(5.0)])()
    assert (y.dtype, y.shape) == (x.dtype, x.shape)
    np.testing.assert_array_equal(y.get(), x)
    assert z.get() == 5.0


def test_arrays_with_gaps(uploads: Uploads) -> None:
    x = np.arange(6000.0).reshape(60, 100)
    for part in (x.T, x[::2, ::-3], x[:, 3], np.broadcast_to(x[0], (3, 100))):
        np.testing.assert_array_equal(uploads.send([part])()[0].get(), part)


def test_a_copy_is_made_when_it_is_waited_for_and_not_before(uploads: Uploads) -> None:
    arrays = uploads.send([np.arange(3.0), np.arange(4)])
    assert _waiting(uploads) == 2
    assert [a.get().tolist() for a in arrays()] == [[0.0, 1.0, 2.0], [0, 1, 2, 3]]
    assert _waiting(uploads) == 0


def test_the_source_may_change_at_once(uploads: Uploads) -> None:
    x = np.arange(500.0)
    copies = uploads.send([x])
    x[:] = 0
    np.testing.assert_array_equal(copies()[0].get(), np.arange(500.0))


def test_more_copies_than_buffers_wait_for_each_other(uploads: Uploads) -> None:
    numbers = [np.full(20 + 100 * i, i) for i in range(3 * BUFFERS)]
    sent = [uploads.send([x, -x]) for x in numbers]
    for x, copies in zip(numbers, sent):
        for found, wanted in zip(copies(), (x, -x)):
            np.testing.assert_array_equal(found.get(), wanted)


def test_copies_nobody_asks_for_are_let_go(uploads: Uploads) -> None:
    before = fake_cuda.used[0]
    for _ in range(2 * BUFFERS):
        uploads.send([np.ones(300)])
    assert uploads.send([np.arange(3)])()[0].get().tolist() == [0, 1, 2]
    assert fake_cuda.used[0] == before


def test_threads_with_streams_of_their_own(uploads: Uploads) -> None:
    wrong: list[int] = []

    def run(seed: int) -> None:
        with fake_cupy.cuda.Stream(non_blocking=True):
            for i in range(20):
                x = np.full(50 + 40 * seed, 100 * seed + i)
                y = uploads.send([x])()[0]
                if not np.array_equal(y.get(), x):
                    wrong.append(seed)

    together(*[partial(run, seed) for seed in range(4)])
    assert wrong == []


def test_the_memory_of_a_gpu_may_run_out(gpus: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros(1000)
    monkeypatch.setattr(fake_cuda, "TOTAL", fake_cuda.used[0] + 9000)
    copies = gpus[0].send([x])
    with pytest.raises(tf.errors.ResourceExhaustedError, match="GPU:0"):
        copies()
    with pytest.raises(tf.errors.ResourceExhaustedError, match="GPU:0"):
        gpus[0].send([x, x])
    monkeypatch.undo()
    assert float(gpus[0].send([x + 1.0])()[0].sum()) == 1000.0


def test_each_gpu_has_its_own(gpus: Any) -> None:
    for gpu in gpus:
        assert gpu.owns(gpu.send([np.ones(3)])()[0])


def test_the_host_copies_at_once() -> None:
    x = np.ones(3)
    copies = CPU.send([x])
    x[:] = 0
    assert copies()[0].tolist() == [1, 1, 1]


@pytest.mark.parametrize("seconds", [0.0, 0.001])
def test_a_pipeline_to_a_gpu(gpus: Any, seconds: float) -> None:
    """Both with and without a thread that computes ahead."""
    def slow(x: Any) -> Any:
        time.sleep(seconds)
        return np.full((30, 40), float(x))

    fake_streams.races.clear()
    dataset = tf.data.Dataset.range(40).map(
        lambda x: tf.numpy_function(slow, [x], tf.float64)).prefetch(2)
    sums = [float(tf.reduce_sum(x)) for x in dataset]
    assert sums == [1200.0 * i for i in range(40)]
    assert fake_streams.races == []

"""NumPy's matrix products leave a core to the compiler, and have all of them again afterwards."""

from __future__ import annotations

import threading

import pytest

import gtape as tf
from gtape.compile import gradual
from gtape.devices.cpu import cores
from gtape.devices.cpu.cores import leaving_a_core


@pytest.fixture
def blas():
    functions = cores._openblas()
    if functions is None:
        pytest.skip("NumPy is linked with another BLAS than OpenBLAS")
    before = functions.get_threads()
    functions.set_threads(3)
    yield functions
    functions.set_threads(before)


def test_a_call_has_a_thread_fewer(blas):
    assert leaving_a_core(lambda x: (x, blas.get_threads()))(5) == (5, 2)
    assert blas.get_threads() == 3


def test_the_threads_are_back_after_an_error(blas):
    def fail():
        raise KeyError("x")

    with pytest.raises(KeyError):
        leaving_a_core(fail)()
    assert blas.get_threads() == 3


def test_calls_side_by_side_leave_one_core_together(blas):
    inside, leave = threading.Event(), threading.Event()

    def first():
        inside.set()
        assert leave.wait(30)

    other = threading.Thread(target=leaving_a_core(first))
    other.start()
    assert inside.wait(30)
    assert leaving_a_core(blas.get_threads)() == 2
    assert blas.get_threads() == 2  # the other call still runs
    leave.set()
    other.join()
    assert blas.get_threads() == 3


def test_a_function_is_left_as_it_is_where_there_is_one_thread(blas):
    blas.set_threads(1)
    assert leaving_a_core(len) is len


@pytest.mark.native
def test_the_first_steps_of_a_model_leave_a_core(blas, monkeypatch):
    seen = []

    def watched(run):
        def watching(*args):
            seen.append(blas.get_threads())
            return run(*args)

        return leaving_a_core(watching)

    monkeypatch.setattr(gradual, "leaving_a_core", watched)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(tf.ones((8, 2)), tf.ones((8, 1)), batch_size=2, epochs=1, verbose=0)
    assert seen == [2] * 4
    assert blas.get_threads() == 3

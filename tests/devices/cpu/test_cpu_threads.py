"""The pool of threads of generated programs."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

import gtape as tf
from gtape.devices.cpu import toolchain
from gtape.devices.cpu.cores import wanted
from gtape.devices.cpu.toolchain import library
from tests.forking import beside, child

pytestmark = pytest.mark.native

PROGRAM = r"""
#include <pthread.h>
#include <time.h>
#include "cpu_threads.h"

struct Record {
  long calls;
  long wrong;
  pthread_t thread;
};
static __thread int parts_here = 0;

static void nap() {
  timespec time = {0, 2000000};
  nanosleep(&time, nullptr);
}
static void record(void* context, int part, int parts) {
  Record& own = static_cast<Record*>(context)[part];
  own.calls++;
  own.thread = pthread_self();
}
static void record_slowly(void* context, int part, int parts) {
  nap();
  record(context, part, parts);
}
static void inner(void* context, int part, int parts) {
  Record& own = *static_cast<Record*>(context);
  own.wrong += part != own.calls++ || !pthread_equal(own.thread, pthread_self());
}
static void outer(void* context, int part, int parts) {
  Record own = {0, 0, pthread_self()};
  gtape_parallel(inner, &own, 5);
  Record& kept = static_cast<Record*>(context)[part];
  kept.calls += own.calls;
  kept.wrong += own.wrong;
}
static void masked(void* context, int part, int parts) {
  nap();
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  static_cast<Record*>(context)[part] = {sigismember(&blocked, SIGINT), 0, pthread_self()};
}
static long different(const Record* records, int parts) {
  long count = 0;
  for (int i = 0; i < parts; i++) {
    int j = 0;
    while (!pthread_equal(records[i].thread, records[j].thread)) j++;
    count += i == j;
  }
  return count;
}

GTAPE_EXPORT long run(int parts, Record* records) {
  gtape_parallel(record, records, parts);
  return different(records, parts);
}
GTAPE_EXPORT long run_slowly(int parts, Record* records) {
  gtape_parallel(record_slowly, records, parts);
  return different(records, parts);
}
GTAPE_EXPORT void run_nested(int parts, Record* records) { gtape_parallel(outer, records, parts); }
GTAPE_EXPORT void run_masked(int parts, Record* records) { gtape_parallel(masked, records, parts); }
GTAPE_EXPORT int same_thread(const Record* record) {
  return pthread_equal(record->thread, pthread_self()) != 0;
}
"""


class Record(ctypes.Structure):
    _fields_ = (("calls", ctypes.c_long), ("wrong", ctypes.c_long), ("thread", ctypes.c_void_p))


@cache
def program() -> ctypes.CDLL:
    made = library("#include <signal.h>\n" + PROGRAM, name="threads")
    made.run.restype = made.run_slowly.restype = ctypes.c_long
    return made


def calls(run: str, parts: int) -> tuple[list[int], int]:
    """How often each part was called, and the result."""
    records = (Record * (parts + 1))()
    result = getattr(program(), run)(parts, records)
    assert records[parts].calls == 0
    return [record.calls for record in records[:parts]], result


def threads_seen(expected: int) -> int:
    """How many threads take part; a busy machine may keep some from it, or to it, at first."""
    seen = 0
    for _ in range(50):
        made, now = calls("run_slowly", 24)
        assert made == [1] * 24
        if now == expected:
            return now
        seen = max(seen, now)
    return seen


@pytest.fixture(autouse=True)
def default_threads() -> Iterator[None]:
    yield
    toolchain.set_threads(0)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("parts", [0, 1, 2, 3, 4, 17, 1000])
def test_every_part_is_called_once(count: int, parts: int) -> None:
    toolchain.set_threads(count)
    for _ in range(20):
        assert calls("run", parts)[0] == [1] * parts


@pytest.mark.parametrize("count", [1, 2, 4])
def test_as_many_threads_as_were_set(count: int) -> None:
    toolchain.set_threads(4)
    assert threads_seen(4) == 4
    toolchain.set_threads(count)
    seen = [calls("run_slowly", 24)[1] for _ in range(20)]
    # A worker that the system held up may take one part more, long after the count was lowered.
    assert sum(number > count for number in seen) <= 4 - count
    assert count in seen or threads_seen(count) == count


def test_a_loop_in_a_part_stays_on_its_thread() -> None:
    toolchain.set_threads(4)
    records = (Record * 40)()
    program().run_nested(40, records)
    assert [(r.calls, r.wrong) for r in records] == [(5, 0)] * 40


def test_several_python_threads() -> None:
    toolchain.set_threads(2)
    wrong = []

    def use() -> None:
        for parts in range(1, 200):
            if calls("run", parts)[0] != [1] * parts:
                wrong.append(parts)

    users = [threading.Thread(target=use) for _ in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert not wrong


def test_signals_are_left_to_pythons_threads() -> None:
    toolchain.set_threads(2)
    records = (Record * 12)()
    program().run_masked(12, records)
    blocked = {bool(program().same_thread(ctypes.byref(r))): bool(r.calls) for r in records}
    assert blocked == {True: False, False: True}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    toolchain.set_threads(3)
    assert threads_seen(3) == 3
    assert child(lambda: threads_seen(3) == 3)
    assert threads_seen(3) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_while_another_thread_uses_the_pool() -> None:
    toolchain.set_threads(2)
    with beside(lambda: calls("run_slowly", 4)):
        for _ in range(10):
            assert child(lambda: calls("run", 6)[0] == [1] * 6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_while_another_thread_multiplies() -> None:
    toolchain.set_threads(2)
    with beside(lambda: multiplied(600)):
        for _ in range(10):
            assert child(lambda: all((multiplied(n) == n).all() for n in (600, 900)))


def multiplied(size: int) -> np.ndarray:
    """The square of a matrix of ones."""
    x, y = np.ones((size, size), "f"), np.zeros((size, size), "f")
    n, one, at = ctypes.c_long(size), ctypes.c_long(1), ctypes.c_void_p(x.ctypes.data)
    toolchain.runtime().gtape_gemm_f32(n, n, n, at, n, one, at, n, one,
                                     ctypes.c_void_p(y.ctypes.data), n, 0)
    return y


def test_a_process_ends_while_workers_wait() -> None:
    script = ("from gtape.devices.cpu import toolchain; import numpy, ctypes\n"
              "toolchain.set_threads(4); x = numpy.ones((256, 256), 'f'); y = numpy.empty_like(x)\n"
              "p, n = ctypes.c_void_p, ctypes.c_long\n"
              "strides = (n(256), n(1))\n"
              "gemm = toolchain.runtime().gtape_gemm_f32\n"
              "gemm(n(256), n(256), n(256), p(x.ctypes.data), *strides,"
              " p(x.ctypes.data), *strides, p(y.ctypes.data), n(256), 0)\n"
              "print(y.min(), y.max())")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          timeout=60, check=True)
    assert done.stdout == "256.0 256.0\n"


def test_the_count_that_is_set() -> None:
    toolchain.set_threads(np.int64(3))
    assert toolchain.threads() == toolchain.runtime().gtape_threads() == 3
    toolchain.set_threads(0)
    assert toolchain.threads() == toolchain.runtime().gtape_threads() == wanted()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"must be 0 .* or more; it was -1"):
        toolchain.set_threads(-1)
    with pytest.raises(TypeError):
        toolchain.set_threads(1.5)


@pytest.mark.parametrize(("given", "count"), [
    ("1024", 1024), ("1025", 1024), (str(2**31), 1024), (str(2**64), 1024), ("1" * 5000, None),
    ("-3", None), ("0", None), ("many", None)])
def test_any_number_of_threads_in_the_environment(monkeypatch, given, count) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("GTAPE_NUM_THREADS", raising=False)
    default = wanted()
    monkeypatch.setenv("GTAPE_NUM_THREADS", given)
    try:
        toolchain.set_threads(0)
        assert toolchain.threads() == toolchain.runtime().gtape_threads() == (count or default)
        toolchain.set_threads(2**70)
        assert toolchain.threads() == toolchain.runtime().gtape_threads() == 1024
    finally:
        monkeypatch.undo()
        toolchain.set_threads(0)

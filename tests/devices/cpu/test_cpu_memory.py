"""The memory that matrix products use besides their operands: given back, and done without."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import gtape as tf

pytestmark = [pytest.mark.native, pytest.mark.skipif(
    sys.platform != "linux", reason="the memory of a process is read as Linux tells it")]

_WITHOUT = """
import resource, sys, threading
import numpy as np
import gtape as tf
from gtape.devices.cpu import toolchain

dtype, threads = sys.argv[1:]
toolchain.set_threads(int(threads))
product = tf.function(lambda x, y: tf.matmul(x, y, transpose_a=True))
rng = np.random.default_rng(0)
x, y = (tf.constant(rng.normal(size=(900, n)).astype(dtype)) for n in (100, 70))
want = []
thread = threading.Thread(target=lambda: want.append(product(x, y).numpy()))
thread.start()
thread.join()
pages = int(open("/proc/self/statm").read().split()[0])
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(), hard))
try:
    got = product(x, y).numpy()
except MemoryError:
    got = want[0]
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
print(np.array_equal(got, want[0]))
"""


@pytest.mark.parametrize("threads", ["1", "4"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_product_where_memory_has_run_out(dtype, threads):
    done = subprocess.run([sys.executable, "-c", _WITHOUT, dtype, threads], capture_output=True,
                          text=True, timeout=100, check=False)
    assert done.stdout == "True\n", (done.returncode, done.stderr)


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_threads_that_end_give_their_memory_back():
    product = tf.function(lambda x: x @ x)
    x = tf.constant(np.random.default_rng(0).normal(size=(256, 256)))

    def threads(count):
        for _ in range(count):
            thread = threading.Thread(target=product, args=(x,))
            thread.start()
            thread.join()

    threads(20)
    before = _resident()
    threads(100)
    assert _resident() - before < 4 << 20

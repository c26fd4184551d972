"""Bad values and failing steps in compiled programs: clear errors, and no state written."""

import os
import subprocess
import sys

import numpy as np
import pytest

import gtape as tf

pytestmark = pytest.mark.native
Error = tf.errors.InvalidArgumentError


def stateful(fn):
    """A function that also moves a variable, which it gives."""
    v = tf.Variable(np.zeros(8))

    @tf.function
    def call(*args):
        v.assign_add(tf.ones_like(v))
        return fn(*args)

    return call, v


@pytest.mark.parametrize("kind", ["i4", "i8"])
def test_indices_out_of_range(kind):
    table = tf.constant(np.arange(12.0).reshape(6, 2))
    logits = tf.constant(np.random.default_rng(0).normal(size=(2, 5)))
    fns = {"gather": (lambda i: tf.gather(table, i), [[6, 0], [0, -7], [-1, 0]]),
           "sparse_softmax": (lambda i: tf.nn.sparse_softmax_cross_entropy_with_logits(i, logits),
                              [[5, 0], [0, -1]])}
    for name, (fn, wrong) in fns.items():
        call, v = stateful(fn)
        good = tf.constant(np.array([4, 1], kind))
        want = fn(good)
        for i, bad in enumerate(wrong):
            np.testing.assert_allclose(call(good), want)
            with pytest.raises(Error, match=name):
                call(tf.constant(np.array(bad, kind)))
            np.testing.assert_array_equal(v, np.full(8, i + 1.0))


def test_steps_in_python_that_fail():
    def failing(x):
        raise RuntimeError("no such file")

    steps = {
        "no such file": lambda x: tf.cond(x > 0, lambda: x, lambda: tf.py_function(
            failing, [x], tf.TensorSpec([], x.dtype))),
        "invertible": lambda x: tf.linalg.inv(tf.eye(2, dtype=x.dtype) * tf.maximum(x, 0.0)),
        "negative": lambda x: (tf.debugging.assert_positive(x, "negative"), x)[1]}
    for text, step in steps.items():
        call, v = stateful(lambda x, step=step: tf.sin(step(tf.exp(x) - 1.0)))
        want = call(tf.constant(1.0, tf.float64))
        with pytest.raises(Exception, match=text):
            call(tf.constant(-1.0, tf.float64))
        np.testing.assert_array_equal(v, np.ones(8))
        np.testing.assert_array_equal(call(tf.constant(1.0, tf.float64)), want)
        np.testing.assert_array_equal(v, np.full(8, 2.0))


def test_a_compiler_that_makes_nothing(tmp_path):
    program = ("import gtape as tf\n"
               "f = tf.function(lambda x: tf.reduce_sum(tf.sin(x)))\n"
               "assert abs(float(f(tf.constant([1.0, 2.0]))) - 1.7507684) < 1e-6\n")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
        env={**os.environ, "CXX": "true", "GTAPE_CACHE_DIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr

"""Functions compared with what they give compiled; steps that a program still has in Python."""

import re

import numpy as np

import gtape as tf


def hosted(function, *args):
    """The names of the steps in Python that the program for these arguments has."""
    nodes = str(function.inspect(*args)).split("\nplan")[0]
    return set(re.findall(r"= host ([^(]+)\(", nodes))


def arrays(results):
    return [np.asarray(r) for r in tf.nest.flatten(results)]


def assert_same(got, wanted, tolerance=0.0):
    """Results of equal dtypes, shapes and values, or values as close as `tolerance`."""
    got, wanted = arrays(got), arrays(wanted)
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted):
        assert a.dtype == b.dtype and a.shape == b.shape
        if tolerance:
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64),
                                       rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(a, b)


def assert_native(function, *args, tolerance=0.0):
    """That `function` compiles without steps in Python, and gives what it gives eagerly."""
    inputs = [tf.constant(a) for a in args]
    compiled = tf.function(function)
    assert_same(compiled(*inputs), function(*inputs), tolerance)
    assert not hosted(compiled, *inputs)

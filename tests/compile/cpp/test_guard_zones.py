"""Guard zones around the values of compiled programs: what a kernel writes beside them is found."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import gtape as tf
from gtape.compile.ir.nodes import LibraryCall
from gtape.core import buffers
from gtape.core.errors import GuardZoneError
from gtape.ops.reductions.cumulative import cumsum_
from tests.compile.native_calls import assert_native

pytestmark = pytest.mark.native


def _planted(monkeypatch, text, scratch=0):
    """tf.cumsum made by a kernel of this text, over x, y and n."""
    def rule(b, x, attrs, specs):
        def emit(program, node):
            (v,), (out,) = node.inputs, node.outputs
            return (f"{{ float* x = {program.pointer(v)}; float* y = {program.pointer(out)}; "
                    f"const long n = {out.size}; {text} }}")

        node = LibraryCall("planted", [b.compact(x[0])], text, (), emit, scratch)
        return b.library(node, [(x[0].shape, x[0].dtype)])[0]

    importlib.import_module("gtape.compile.lowering")  # else its rule would come over this one
    monkeypatch.setattr(cumsum_, "lower", rule)


_COPY = "for (long i = 0; i < n; i++) y[i] = x[i]; "
_PLACES = {
    "arena": (lambda x: tf.cumsum(x * 2.0) * 3.0, _COPY + "y[n] = 1;", "4 bytes behind %"),
    "before": (lambda x: tf.cumsum(x * 2.0) * 3.0, _COPY + "y[-2] = 1;", "8 bytes before %"),
    "result": (lambda x: tf.cumsum(x * 2.0), _COPY + "y[n + 6] = 1;",
               "28 bytes behind the result %"),
    "argument": (lambda x: tf.cumsum(x), _COPY + "x[n] = 1;", "4 bytes behind the argument %"),
    "scratch": (lambda x: tf.cumsum(x * 2.0), _COPY + "scratch[16] = 1;",
                "1 bytes behind the scratch memory of the step 'planted'"),
}


@pytest.mark.parametrize("place", _PLACES)
def test_a_kernel_that_writes_too_much_is_named(monkeypatch, place):
    function, text, said = _PLACES[place]
    _planted(monkeypatch, text, scratch=16 if place == "scratch" else 0)
    f = tf.function(function)
    for _ in range(2):
        with pytest.raises(GuardZoneError, match=said) as caught:
            f(tf.range(5.0))
        assert "float32[5]" in str(caught.value) or place == "scratch"


def test_writing_behind_a_variable_is_found(monkeypatch):
    _planted(monkeypatch, _COPY + "y[n] = 1;")
    v = tf.Variable(tf.range(5.0))

    @tf.function
    def f():
        v.assign(tf.cumsum(v * 1.5))

    with pytest.raises(GuardZoneError, match="4 bytes behind the state"):
        f()


def test_what_is_read_beside_a_value_is_not_a_number(monkeypatch):
    _planted(monkeypatch, _COPY + "y[0] = x[n];")
    assert np.isnan(tf.function(lambda x: tf.cumsum(x))(tf.range(5.0)).numpy()[0])


def test_values_that_are_not_written_are_not_numbers(monkeypatch):
    _planted(monkeypatch, "y[0] = x[0];")
    made = tf.function(lambda x: tf.cumsum(x) * 2.0)(tf.range(5.0)).numpy()
    np.testing.assert_array_equal(np.isnan(made), [False, True, True, True, True])


def test_nothing_is_guarded_unless_it_is_asked_for(monkeypatch):
    monkeypatch.setenv("GTAPE_GUARD_ZONES", "0")
    _planted(monkeypatch, _COPY + "y[n - 1] = 7;")
    v = tf.Variable(tf.range(5.0))
    made = tf.function(lambda x: tf.cumsum(x + v))(tf.range(5.0))
    assert made._a.base is None and v._shared.array.base is None
    assert made.numpy()[-1] == 7


def test_both_ends_of_any_length_are_seen():
    for count in (0, 1, 3, 4, 63, 64, 65):
        array = buffers.guarded_empty((count,), np.uint8)
        memory = array.base
        array[...] = 5
        assert buffers.damage_around(array) == (0, 0)
        for at, wanted in ((-1, (1, 0)), (-buffers.ZONE, (buffers.ZONE, 0)),
                           (count, (0, 1)),
                           (count + buffers.ZONE - 1, (0, buffers.ZONE))):
            memory[memory.start + at] = 7
            assert buffers.damage_around(array) == wanted
            assert buffers.damage_around(array) == (0, 0)


@pytest.mark.parametrize("channels", [(1, 10), (3, 5), (5, 3), (10, 1), (17, 33), (2, 40)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_convolutions_of_channels_that_fill_no_vector(channels, dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 9, 8, channels[0])).astype(dtype)
    k = rng.normal(size=(3, 3, *channels)).astype(dtype)

    def gradients(x, k):
        with tf.GradientTape() as tape:
            tape.watch([x, k])
            y = tf.nn.conv2d(x, k, 1, "SAME")
        return tape.gradient(y, [x, k], y * y)

    assert_native(gradients, x, k, tolerance=1e-2 if dtype == "float32" else 1e-11)

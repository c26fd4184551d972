"""What no array can be is refused in words, and a trace allocates nothing that a call would."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.core import spec

_Bad, _Full = tf.errors.InvalidArgumentError, tf.errors.ResourceExhaustedError
_GENERATOR = tf.random.Generator.from_seed(1)
_HUGE, _LONG = [2**40, 2**30], 10**14

#: What makes a tensor of a shape that is given.
_OF_SHAPES: dict[str, Callable[[Any], Any]] = {
    "zeros": tf.zeros,
    "ones": tf.ones,
    "fill": lambda s: tf.fill(s, 1.0),
    "broadcast_to": lambda s: tf.broadcast_to(1.0, s),
    "random.normal": tf.random.normal,
    "random.truncated_normal": tf.random.truncated_normal,
    "random.uniform": tf.random.uniform,
    "random.gamma": lambda s: tf.random.gamma(s, 1.0),
    "random.poisson": lambda s: tf.random.poisson(s, 1.0),
    "random.stateless_normal": lambda s: tf.random.stateless_normal(s, [1, 2]),
    "random.stateless_binomial": lambda s: tf.random.stateless_binomial(s, [1, 2], 3.0, 0.5),
    "Generator.uniform": lambda s: _GENERATOR.uniform(s),
}

#: What makes one axis of a length that is given.
_OF_LENGTHS: dict[str, Callable[[int], Any]] = {
    **{name: lambda n, make=make: make([n]) for name, make in _OF_SHAPES.items()},
    "eye": lambda n: tf.eye(n, 1),
    "range": tf.range,
    "linspace": lambda n: tf.linspace(0.0, 1.0, n),
    "one_hot": lambda n: tf.one_hot([1], n),
    "sequence_mask": lambda n: tf.sequence_mask([1], n),
    "tile": lambda n: tf.tile([1.0], [n]),
    "repeat": lambda n: tf.repeat([1.0], n),
    "pad": lambda n: tf.pad([1.0], [[0, n]]),
    "scatter_nd": lambda n: tf.scatter_nd([[0]], [1.0], [n]),
    "unsorted_segment_sum": lambda n: tf.math.unsorted_segment_sum([1.0], [0], n),
    "hann_window": tf.signal.hann_window,
    "kaiser_window": tf.signal.kaiser_window,
}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", _OF_SHAPES)
def test_more_elements_than_a_number_counts(name: str, traced: bool) -> None:
    def make() -> Any:
        return _OF_SHAPES[name](_HUGE)

    with pytest.raises(_Bad, match=r"2\*\*63"):
        tf.function(make)() if traced else make()


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", _OF_LENGTHS)
def test_more_bytes_than_addresses(name: str, traced: bool) -> None:
    def make() -> Any:
        return _OF_LENGTHS[name](_LONG)

    with pytest.raises(_Full, match="memory"):
        tf.function(make)() if traced else make()


@pytest.mark.parametrize("name", [n for n in _OF_LENGTHS if n not in ("range", "sequence_mask")])
def test_negative_lengths(name: str) -> None:
    with pytest.raises((_Bad, ValueError), match=r"negative|>= 0|must"):
        _OF_LENGTHS[name](-1)


def test_memory_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> Any:
        raise MemoryError("no room")

    x, one = tf.ones([3]), tf.constant(1, tf.int32)
    monkeypatch.setattr(np, "sort", full)
    with pytest.raises(_Full, match=r"sort: .*float32\[3\]"):
        tf.sort(x)
    for make in (lambda: tf.tile(x, [2 ** 61]), lambda: tf.repeat(x, 2 ** 61)):
        with pytest.raises(_Full, match=r"(tile|repeat): .*memory"):
            make()
    monkeypatch.setattr(np, "add", full)
    with pytest.raises(_Full, match=r"add: .*int32\[\]"):
        tf.add(one, one)


#: Elements of results that a trace must leave to the calls: 20 MB of float32.
_MANY = 5_000_000


@pytest.mark.parametrize("name", [n for n in _OF_LENGTHS if n not in (
    "eye", "linspace", "hann_window", "kaiser_window", "one_hot", "sequence_mask")] + ["eye²"])
def test_a_trace_allocates_nothing_that_a_call_would(name: str) -> None:
    make = _OF_LENGTHS.get(name) or (lambda n: tf.eye(3000))

    @tf.function
    def f(x: Any) -> Any:
        return x + tf.reduce_max(tf.cast(make(_MANY), tf.float32))

    f.get_concrete_function(tf.TensorSpec([], tf.float32))  # its modules are imported
    f = tf.function(f.python_function)
    tracemalloc.start()
    try:
        f.get_concrete_function(tf.TensorSpec([], tf.float32))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 2 * _MANY, f"{most / 1e6:.0f} MB while tracing"


@pytest.mark.native
@pytest.mark.parametrize("native", ["0", "1"])
def test_what_is_left_to_the_calls_is_right(native: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTAPE_NATIVE", native)
    monkeypatch.setattr(spec, "_FOLDED", 8)

    def f(x: Any) -> Any:
        return (x * tf.zeros([10]) + tf.ones([10]), tf.eye(4) * x[0], tf.range(2.0, 14.0) + x[0],
                tf.range(9, -9, -2), tf.fill([3, 3], 2.0) * x[1], tf.tile(tf.eye(2), [3, 3]) + x[1],
                tf.one_hot([1, 5, 9], 4) + x[0], tf.repeat([1.0, 2.0], 6) * x[1],
                tf.random.stateless_normal([3, 5], [4, 2]) + x[0])

    x = tf.constant(np.arange(10, dtype=np.float32))
    for mine, wanted in zip(tf.function(f)(x), f(x)):
        np.testing.assert_allclose(mine, wanted, rtol=1e-6)


def test_small_results_are_computed_once_while_tracing() -> None:
    made = []

    @tf.function
    def f(x: Any) -> Any:
        table = tf.range(100)
        made.append(table)
        return x + tf.cast(table[3], tf.float32)

    f(tf.ones([]))
    assert made[0].numpy().tolist() == list(range(100))

"""Which arguments share a trace, and what is said where they do not."""

from __future__ import annotations

import enum
import functools
import warnings
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import gtape as tf
from gtape.core.errors import RetraceWarning


@pytest.fixture(autouse=True)
def _applied(monkeypatch):
    monkeypatch.setenv("GTAPE_NATIVE", "0")


def _count(*calls):
    """How many traces the calls, given as argument tuples, make."""
    f = tf.function(lambda *args, **kwargs: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetraceWarning)
        for args in calls:
            f(*args)
    return f.experimental_get_tracing_count()


Pair = namedtuple("Pair", "a b")
Other = namedtuple("Other", "a b")


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Settings:
    rate: float


_v = tf.Variable(1.0)
_c = tf.constant


@pytest.mark.parametrize("a, b", [
    (_c(1.0), _c(2.0)), (_c([1.0]), np.array([2.0], np.float32)), (np.float32(1), np.float32(2)),
    (3, 3), ("a", "a"), (None, None), ((1, 2), (1, 2)), (float("nan"), float("nan")),
    (_v, _v), (tf.float32, tf.float32), (np.dtype("f4"), np.dtype("f4")), (len, len),
    (Fraction(1, 2), Fraction(2, 4)), (Settings(0.1), Settings(0.1)), (Colour.RED, Colour.RED),
    ({"a": 1, "b": 2}, {"a": 1, "b": 2}), (slice(1, 2), slice(1, 2)), (tf.TensorShape([1]),) * 2,
    (tf.IndexedSlices([1.0], [0]), tf.IndexedSlices([2.0], [1])), (1j, 1j), (..., ...),
], ids=lambda value: type(value).__name__)
def test_these_share_a_trace(a, b):
    assert _count((a,), (b,)) == 1


@pytest.mark.parametrize("a, b", [
    (_c(1.0), _c(1)), (_c(1.0), _c([1.0])), (_c([1.0]), _c([[1.0]])), (_c(1.0), 1.0), (1, True),
    (0.0, -0.0), (3, 3.0), (1, 2), ("1", b"1"), ([1], (1,)), (Pair(1, 2), Other(1, 2)),
    ((1, 2), Pair(1, 2)), ([1], [1, 2]), ([[1], 2], [1, [2]]), ({"a": 1}, {"b": 1}),
    ({"a": 1}, OrderedDict(a=1)), (_v, tf.Variable(1.0)), (_v, _c(1.0)), (len, max),
    (Settings(0.1), Settings(0.2)), (Colour.RED, Colour.BLUE), ({1}, {1}), (object(), object()),
    (tf.Module(), tf.Module()), (slice(1, 2), slice(1, 3)), (1.0, complex(1)), (None, False),
    (tf.IndexedSlices([1.0], [0]), tf.IndexedSlices([1.0], [0], [2])),
], ids=lambda value: type(value).__name__)
def test_these_do_not(a, b):
    assert _count((a,), (b,), (a,)) == 2


def test_an_object_is_known_by_itself_and_not_by_its_place_in_memory():
    class Plain:
        pass

    counted = 0
    f = tf.function(lambda o, x: x)
    for _ in range(4):
        f(Plain(), 1)
        counted += f.experimental_get_tracing_count()
    assert counted == 4  # one each time: that of the object before is forgotten


def test_the_default_device_and_types_of_arrays_matter():
    f = tf.function(lambda: tf.zeros([2]))
    with tf.device("CPU:0"):
        f()
    f()
    assert f.experimental_get_tracing_count() == 1


def test_a_partial_and_a_callable_object_can_be_traced():
    class Scale:
        def __init__(self, k):
            self.k = k

        def __call__(self, x, shift=0.0):
            return x * self.k + shift

    assert float(tf.function(Scale(3.0))(_c(2.0), shift=1.0)) == 7.0
    assert float(tf.function(functools.partial(Scale(3.0), shift=2.0))(_c(2.0))) == 8.0
    assert tf.function(Scale(1.0)).__name__ == "Scale"
    assert not hasattr(tf.function(Scale(1.0)), "k")


# ---------------------------------------------------------------------- the diary


def _train():
    def train(batch, k=1, model=None):
        return batch

    return tf.function(train)


@pytest.mark.filterwarnings("ignore::gtape.core.errors.RetraceWarning")
def test_the_diary_says_what_changed_and_what_to_write():
    train = _train()
    train(tf.zeros((2, 3)))
    train(tf.zeros((4, 3)))
    train(tf.zeros((4, 3)))
    train(tf.zeros((4, 3), tf.float64))
    train(tf.zeros((4, 3)), 7)
    train(tf.zeros((4, 3)), 7, object())
    train([tf.zeros((4, 3))], 7)
    train(tf.zeros((4, 3)), True)
    book = train.explain_cache()
    assert len(book) == train.experimental_get_tracing_count() == 7
    changes = [[c.text for c in entry.changes] for entry in book]
    assert changes == [
        [], ["argument 'batch': shape (2, 3) -> (4, 3)"],
        ["argument 'batch': dtype float32 -> float64"],
        ["argument 'k': Python value 1 -> 7"],
        ["argument 'model': Python value None -> object object"],
        ["argument 'batch' (float32[4,3]) is gone", "argument 'batch[0]' (float32[4,3]) is new"],
        ["argument 'k': Python value 7 -> True"]]
    assert [e.nearest for e in book] == [0, 1, 2, 2, 4, 4, 4]
    assert [e.calls for e in book] == [1, 2, 1, 1, 1, 1, 1]
    advice = [entry.changes[0].advice for entry in list(book)[1:]]
    for part, text in zip(("tf.TensorSpec([None, 3], tf.float32)", "tf.cast(batch, tf.float32)",
                           "tf.constant(7)", "before the loop", "one structure", "same value"),
                          advice):
        assert part in text
    text = str(book)
    assert text.startswith("train: 7 traces\n1. batch: float32[2,3], k: 1, model: None\n")
    assert "test_function_cache.py:" in text
    assert "train(tf.zeros((4, 3)), 7)" in text
    assert "called 2 times" in text
    assert book[1].site.file == __file__


def test_the_diary_names_variables_and_numbers_that_were_tensors():
    train, w, other = _train(), tf.Variable(1.0, name="w"), tf.Variable(1.0, name="w")
    for value in (w, tf.constant(1.0), 2, other):
        train(value)
    changes = [[c.text for c in entry.changes] for entry in train.explain_cache()]
    assert changes[1:] == [
        ["argument 'batch': Variable 'w:0' -> float32[]"],
        ["argument 'batch': float32[] -> Python value 2"],
        ["another object or Variable, or another default device"]]


def test_the_fifth_retrace_in_ten_calls_warns_once_in_one_line():
    f = tf.function(_named("step", lambda x, k: x))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(5):
            f(tf.constant(1.0), k)
    assert not caught
    with pytest.warns(RetraceWarning) as caught:
        f(tf.constant(1.0), 5)
    (said,) = caught
    text = str(said.message)
    assert "\n" not in text
    assert text.startswith("step was traced again in 5 of its last 10 calls")
    assert "argument 'k': Python value 4 -> 5" in text
    assert "tf.constant(5)" in text
    assert said.filename == __file__
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(6, 10):
            f(tf.constant(1.0), k)
    assert not caught


def _named(name, fn):
    fn.__name__ = name
    return fn


def test_a_function_that_is_used_between_retraces_does_not_warn():
    f = tf.function(lambda k: k)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(12):
            for _ in range(3):
                f(k)
    assert not caught


# ---------------------------------------------------------------------- concrete functions


def test_a_concrete_function_takes_tensors_only():
    w = tf.Variable([1.0, 2.0], name="w")
    seen = []

    @tf.function
    def f(x, k=2, *, y=None):
        seen.append(x)
        return {"a": x["p"] * k + w, "b": y}

    made = f.get_concrete_function({"p": tf.TensorSpec([2], name="p")}, 3)
    assert len(seen) == 1
    np.testing.assert_array_equal(made(tf.constant([1.0, 1.0]))["a"], [4.0, 5.0])
    np.testing.assert_array_equal(made(p=[1.0, 1.0])["a"], [4.0, 5.0])
    assert made(tf.constant([1.0, 1.0]))["b"] is None
    args, kwargs = made.structured_input_signature
    assert args == ({"p": tf.TensorSpec([2], name="p")}, 3)
    assert kwargs == {"y": None}
    assert made.structured_outputs == {"a": tf.TensorSpec([2]), "b": None}
    assert [t.shape for t in made.inputs] == [(2,)]
    assert [t.shape for t in made.outputs] == [(2,)]
    assert made.variables == made.trainable_variables == (w,)
    assert any(u is w for u in made.captured_inputs)
    assert "multiply" in str(made.graph)
    assert made.name == "f"
    assert "p" in repr(made)
    assert len(seen) == 1
    f({"p": tf.zeros([2])}, 3)
    assert len(seen) == 1
    for bad, text in (((), "missing"), (([1.0, 1.0], 3), "nothing else"),
                      ((tf.constant([1, 1]),), "tf.cast"), ((tf.zeros([3]),), r"\[3\]")):
        with pytest.raises(TypeError, match=text):
            made(*bad)
    with pytest.raises(TypeError, match=r"got \['z'\] as well"):
        made([1.0, 1.0], z=1)


def test_a_concrete_function_of_open_lengths_serves_all():
    seen = []

    @tf.function
    def total(x):
        seen.append(x.shape)
        return tf.reduce_sum(x, axis=1) * 2.0

    made = total.get_concrete_function(tf.TensorSpec([None, 3]))
    assert seen == [tf.TensorShape([None, 3])]
    for n in (2, 5):
        np.testing.assert_array_equal(made(np.ones((n, 3))), [6.0] * n)
    total(tf.ones((7, 3)))
    assert len(seen) == total.experimental_get_tracing_count() == 1
    assert made.structured_outputs == tf.TensorSpec([None])
    assert made.inputs[0].shape.as_list() == [None, 3]


def test_a_concrete_function_that_needs_its_lengths_has_no_graph():
    f = tf.function(lambda x: tf.reshape(x, [tf.size(x)]))
    made = f.get_concrete_function(tf.TensorSpec(None))
    np.testing.assert_array_equal(made([[1.0], [2.0]]), [1.0, 2.0])
    with pytest.raises(ValueError, match="give full shapes"):
        made.graph


def test_the_signature_makes_a_concrete_function():
    f = tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec([], tf.int32)])
    assert int(f.get_concrete_function()(4)) == 8
    assert "multiply" in str(f.inspect(3).graph)
    assert "multiply" in str(f.inspect(3))

"""numpy_function, py_function, print and control_dependencies."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf


def _printed(*values: Any, **options: Any) -> str:
    stream = io.StringIO()
    tf.print(*values, output_stream=stream, **options)
    return stream.getvalue()


def test_numpy_function() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.numpy_function(lambda q: q * 2, [x], tf.float32)
    assert y.numpy().tolist() == [2, 4] and tape.gradient(y, x) is None
    pair = tf.numpy_function(lambda q: (q, 1.5), [x], [tf.float32, tf.float64])
    assert pair[1].dtype == tf.float64
    assert tf.numpy_function(lambda: None, [], []) is None
    assert tf.numpy_function(Tout=tf.float32)(lambda q: q + 1)(x).numpy().tolist() == [2, 3]
    with pytest.raises(ValueError, match="Tout"):
        tf.numpy_function(lambda: (1, 2), [], [tf.int32])


def test_py_function() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y, one = tf.py_function(lambda q: (q * q, 1.0), [x], [tf.float32, tf.float32])
    assert tape.gradient(y, x).numpy().tolist() == [2, 4] and one.numpy() == 1
    assert tf.py_function(lambda q: None, [x], []) == []
    assert tf.py_function(Tout=tf.float32)(lambda: 1)().numpy() == 1
    with pytest.raises(TypeError, match="Tout"):
        tf.py_function(lambda: 1, [])
    with pytest.raises(ValueError, match="cast"):
        tf.py_function(lambda q: q, [x], tf.int32)


@pytest.mark.parametrize("value, wanted", [
    (1 / 3, "0.333333343"), (1e10, "1e+10"), (100000.0, "100000"), (123456789.0, "123456792"),
    (0.1, "0.1"), ([1.0, 2.0], "[1 2]"), (True, "1"), ("abc", '"abc"'), (["a", "b"], '["a" "b"]'),
    (np.nan, "nan"), (-np.inf, "-inf"), (np.float64(1 / 3), "0.33333333333333331"),
    ([[1, 2], [3, 4]], "[[1 2]\n [3 4]]"), (1 + 2j, "(1+2j)"), (np.zeros((0,)), "[]"),
    (np.zeros((2, 2, 1), int), "[[[0]\n  [0]]\n\n [[0]\n  [0]]]")])
def test_print_shows_tensors(value: Any, wanted: str) -> None:
    assert _printed(tf.constant(value)) == wanted + "\n"


def test_print_shortens_long_axes() -> None:
    x = tf.range(10)
    assert _printed(x) == "[0 1 2 ... 7 8 9]\n"
    assert _printed(x, summarize=-1) == "[0 1 2 3 4 5 6 7 8 9]\n"
    assert _printed(x, summarize=2) == "[0 1 ... 8 9]\n"
    rows = _printed(tf.reshape(tf.range(10), [10, 1]), summarize=1)
    assert rows == "[[0]\n ...\n [9]]\n"


def test_print_takes_anything() -> None:
    x, v = tf.constant([1.0]), tf.Variable(2.0)
    assert _printed("a", x, 1, 1.5, None, v) == "a [1] 1 1.5 None 2\n"
    assert _printed([x, "b"], {"k": (x, 1)}, (x,)) == "[[1], 'b'] {'k': ([1], 1)} ([1],)\n"
    assert _printed(x, x, sep="|", end="!") == "[1]|[1]!"
    assert _printed() == "\n"


def test_print_goes_where_it_is_told(tmp_path: Path, capsys: Any) -> None:
    tf.print("to stderr")
    assert capsys.readouterr().err == "to stderr\n"
    file, lines = tmp_path / "log.txt", []
    tf.print("one", output_stream=f"file://{file}")
    tf.print("two", output_stream=f"file://{file}")
    assert file.read_text() == "one\ntwo\n"
    tf.print("three", output_stream=lines.append)
    assert lines == ["three\n"]
    for bad in ("log.txt", 7):
        with pytest.raises(ValueError, match="output_stream"):
            tf.print("x", output_stream=bad)


def test_control_dependencies() -> None:
    called = []
    with tf.control_dependencies([tf.constant(1)]):
        y = tf.constant(2)
    with tf.control_dependencies(lambda: called.append(1)):
        pass
    assert y.numpy() == 2 and called == [1]

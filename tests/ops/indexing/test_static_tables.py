"""Tables that an initializer fills: from tensors and text files, and vocabularies."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf

_KEYS, _VALUES = ["a", "b"], [1, 2]
_LINE, _NUMBER = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER


def _table(keys: Any = _KEYS, values: Any = _VALUES, default: Any = -1,
           **dtypes: Any) -> tf.lookup.StaticHashTable:
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(keys, values, **dtypes), default)


def _of_file(path: Path, default: Any = -1, **columns: Any) -> tf.lookup.StaticHashTable:
    given = {"key_dtype": tf.string, "key_index": _LINE, "value_dtype": tf.int64,
             "value_index": _NUMBER} | columns
    return tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(str(path), **given), default)


def test_values_by_keys() -> None:
    table = _table()
    assert table.lookup(tf.constant([["a"], ["z"]])).numpy().tolist() == [[1], [-1]]
    assert table[tf.constant("b")].numpy() == 2 and table.lookup(["b"]).dtype is tf.int32
    assert table.size().numpy() == 2 and table.size().dtype is tf.int64
    assert table.default_value.numpy() == -1
    assert table.key_dtype is tf.string and table.value_dtype is tf.int32
    keys, values = table.export()
    assert keys.numpy().tolist() == [b"a", b"b"] and values.numpy().tolist() == [1, 2]


@pytest.mark.parametrize("keys, values, default, asked, wanted", [
    ([1, 2], ["x", "y\0"], "?", [2, 3], [b"y\0", b"?"]), (["a"], [1.5], 0.0, "a", 1.5),
    (["a\0"], [3], 0, ["a", "a\0"], [0, 3]), ([[1, 2]], [[True, False]], False, [1, 2],
                                              [True, False])])
def test_keys_and_values_of_many_dtypes(keys: Any, values: Any, default: Any, asked: Any,
                                        wanted: Any) -> None:
    found = _table(keys, values, default).lookup(tf.constant(asked)).numpy()
    assert (found if isinstance(found, bytes) else found.tolist()) == wanted


def test_dtypes_of_python_values() -> None:
    table = _table([1], [2], key_dtype=tf.int64, value_dtype="int64")
    assert table.lookup(tf.constant([1, 5], tf.int64)).numpy().tolist() == [2, -1]
    assert table.lookup([1]).dtype is tf.int64


@pytest.mark.parametrize("make, error, why", [
    (lambda: _table(["a", "a"], [1, 2]), tf.errors.FailedPreconditionError, "different value"),
    (lambda: _table(["a"], [1, 2]), tf.errors.InvalidArgumentError, "one shape"),
    (lambda: _table([], [], key_dtype=tf.string, value_dtype=tf.int64),
     tf.errors.InvalidArgumentError, "empty"),
    (lambda: _table(default="x"), TypeError, "x"), (lambda: _table(default=1.5), TypeError, "1.5"),
    (lambda: _table(default=[1, 2]), ValueError, "scalar"),
    (lambda: _table([1.5], [1]), tf.errors.InvalidArgumentError, "float32"),
    (lambda: tf.lookup.StaticHashTable(3, 1), TypeError, "initializer"),
    (lambda: _table().lookup(tf.constant([1])), TypeError, "the dtype string")])
def test_what_is_no_table(make: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        make()


def test_a_value_that_is_no_number_is_no_contradiction() -> None:
    table = _table([1, 2], [math.nan, math.inf])
    assert math.isnan(table.lookup([1]).numpy()[0])


def test_one_value_given_twice_is_no_contradiction() -> None:
    assert _table(["a", "a"], [1, 1]).size().numpy() == 1


def test_sparse_keys() -> None:
    found = _table().lookup(tf.sparse.from_dense([["a", ""], ["", "q"]]))
    assert found.values.numpy().tolist() == [1, -1]
    assert found.indices.numpy().tolist() == [[0, 0], [1, 1]]


def test_an_initializer_of_one_s_own_may_leave_the_table_empty() -> None:
    class Nothing(tf.lookup.KeyValueTensorInitializer):
        def __init__(self) -> None:
            self._key_dtype, self._value_dtype = tf.string, tf.int64

        def initialize(self, table: Any) -> None:
            pass

    table = tf.lookup.StaticHashTable(Nothing(), -1)
    assert table.size().numpy() == 0
    with pytest.raises(tf.errors.FailedPreconditionError, match="not initialized"):
        table.lookup(tf.constant(["a"]))


def test_lines_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(b"a\nb\r\nc")
    assert _of_file(path).lookup(tf.constant(["a", "b", "c", "d"])).numpy().tolist() == [
        0, 1, 2, -1]
    assert _of_file(path, value_index_offset=5).lookup(tf.constant(["c"])).numpy() == [7]
    assert _of_file(path, vocab_size=2).size().numpy() == 2
    words = _of_file(path, "?", key_dtype=tf.int64, key_index=_NUMBER, value_dtype=tf.string,
                     value_index=_LINE)
    assert words.lookup(tf.constant([2, 9], tf.int64)).numpy().tolist() == [b"c", b"?"]


def test_columns_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,1,2.5\nb,2,-3\n")
    by_name = _of_file(path, key_index=0, value_index=1, delimiter=",")
    assert by_name.lookup(tf.constant(["b", "a"])).numpy().tolist() == [2, 1]
    numbers = _of_file(path, 0.0, key_dtype=tf.int64, key_index=1, value_dtype=tf.float32,
                       value_index=2, delimiter=",")
    assert numbers.lookup(tf.constant([1, 2], tf.int64)).numpy().tolist() == [2.5, -3.0]


@pytest.mark.parametrize("text, columns, error, why", [
    ("a\nb\na\n", {}, tf.errors.FailedPreconditionError, "has 0, and came with 2"),
    ("a\nb\n", {"vocab_size": 5}, tf.errors.InvalidArgumentError, "5, and the file has 2"),
    ("a,1\nb\n", {"key_index": 0, "value_index": 1, "delimiter": ","},
     tf.errors.InvalidArgumentError, "line 1, must have at least 2 columns"),
    ("a,x\n", {"key_index": 0, "value_index": 1, "delimiter": ","},
     tf.errors.InvalidArgumentError, "line 0: b'x' is no int64"),
    ("a\n", {"key_index": -3}, ValueError, "key_index"),
    ("a\n", {"key_index": _NUMBER}, ValueError, "int64"),
    ("a\n", {"value_index": 1, "delimiter": "ab"}, ValueError, "one character"),
    ("a\n", {"vocab_size": 0}, ValueError, "positive")])
def test_files_that_do_not_fit(tmp_path: Path, text: str, columns: dict[str, Any],
                               error: type[Exception], why: str) -> None:
    path = tmp_path / "words.txt"
    path.write_text(text)
    with pytest.raises(error, match=why):
        _of_file(path, **columns)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match=r"none\.txt"):
        _of_file(tmp_path / "none.txt")
    with pytest.raises(ValueError, match="filename"):
        tf.lookup.TextFileInitializer("", tf.string, _LINE, tf.int64, _NUMBER)


def _vocabulary(keys: Any, buckets: int, **kwargs: Any) -> tf.lookup.StaticVocabularyTable:
    ids = tf.range(len(keys), dtype=tf.int64)
    return tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(keys, ids), buckets, **kwargs)


def test_words_beside_a_vocabulary_go_to_buckets() -> None:
    table = _vocabulary(["a", "b"], 3)
    assert table.lookup(tf.constant(["a", "b", "x", "y", "zz"])).numpy().tolist() == [0, 1, 4, 4, 3]
    assert table.size().numpy() == 5 and table.key_dtype is tf.string
    assert tf.lookup.StaticVocabularyTable(None, 5).lookup(
        tf.constant(["a", "b"])).numpy().tolist() == [4, 2]
    numbers = _vocabulary(np.array([5, 7]), 2)
    assert numbers[tf.constant([5, 8, 9], tf.int64)].numpy().tolist() == [0, 3, 3]


@pytest.mark.parametrize("make, error", [
    (lambda: _vocabulary(["a"], 0), ValueError),
    (lambda: tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(["a"], [0]), 3), TypeError),
    (lambda: _vocabulary(["a"], 3, lookup_key_dtype=tf.int64), TypeError),
    (lambda: _vocabulary(["a"], 3).lookup(tf.constant([1])), TypeError)])
def test_what_is_no_vocabulary(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_tables_in_traced_functions() -> None:
    table, words = _table(), _vocabulary(["a", "b"], 3)

    @tf.function(reduce_retracing=True)
    def ids(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return table.lookup(x) * 10, words.lookup(x), table.size()

    for asked in (["a", "q"], ["b"], ["zz", "b", "a"]):
        x = tf.constant(asked)
        first, second, size = ids(x)
        assert first.numpy().tolist() == (table.lookup(x) * 10).numpy().tolist()
        assert second.numpy().tolist() == words.lookup(x).numpy().tolist() and size.numpy() == 2


@pytest.mark.parametrize("options, why", [
    ({"key_index": "0"}, "key_index must be an integer; got '0'"),
    ({"value_index": None}, "value_index must be an integer; got None"),
    ({"vocab_size": "all"}, "vocab_size must be an integer; got 'all'"),
    ({"vocab_size": -1}, "vocab_size must be positive; got -1"),
    ({"delimiter": 9}, "delimiter must be a string; got 9"),
    ({"delimiter": ", "}, "delimiter must be one character; got ', '"),
    ({"value_index_offset": 2**63}, "must be between")])
def test_columns_that_no_file_has(tmp_path: Path, options: dict[str, Any], why: str) -> None:
    given: dict[str, Any] = {"key_dtype": tf.int64, "key_index": 0, "value_dtype": tf.string,
                             "value_index": 1} | options
    with pytest.raises((TypeError, ValueError), match=why):
        tf.lookup.TextFileInitializer(tmp_path / "words", **given)


def test_a_full_table_is_not_filled_again() -> None:
    table = _table(["a"], [1])
    tf.lookup.KeyValueTensorInitializer(["a", "b"], [2, 3], value_dtype=tf.int32).initialize(table)
    assert table.lookup(tf.constant(["a", "b"])).numpy().tolist() == [1, -1]

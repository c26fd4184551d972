"""Tables that change: insert, remove, defaults, and when traced functions see it."""

from __future__ import annotations

from typing import Any

import pytest

import gtape as tf

_X = tf.lookup.experimental


def _table(key: Any = "string", value: Any = "int64", default: Any = -1) -> Any:
    return _X.MutableHashTable(key_dtype=key, value_dtype=value, default_value=default)


def _long(*numbers: Any) -> tf.Tensor:
    return tf.constant(list(numbers), tf.int64)


def test_insert_lookup_remove_export_size() -> None:
    table = _table()
    assert table.size().numpy() == 0 and table.export()[0].shape == [0]
    table.insert(tf.constant(["a", "b"]), _long(1, 2))
    table.insert(["b", "c", "c"], [5, 6, 7])
    assert table.lookup(tf.constant(["a", "b", "c", "z"])).numpy().tolist() == [1, 5, 7, -1]
    table.remove(tf.constant(["a", "q"]))
    keys, values = table.export()
    assert keys.numpy().tolist() == [b"b", b"c"] and values.numpy().tolist() == [5, 7]
    assert table.size().numpy() == 2 and table["b"].numpy() == 5


def test_counting_words_as_a_vocabulary_is_learnt() -> None:
    counts = _table(default=0)
    for words in (["a", "b", "a"], ["c", "a"]):
        found, _, how_often = tf.unique_with_counts(tf.constant(words), out_idx="int64")
        counts.insert(found, how_often + counts.lookup(found))
    assert counts.lookup(["a", "b", "c", "d"]).numpy().tolist() == [3, 1, 1, 0]


def test_defaults_of_a_call() -> None:
    table = _table()
    table.insert("a", 3)
    assert table.lookup(tf.constant(["a", "b"]), _long(5, 6)).numpy().tolist() == [3, 6]
    assert table.lookup(["a", "b", "c"], 7).numpy().tolist() == [3, 7, 7]
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected the shape"):
        table.lookup(tf.constant(["a", "b"]), _long(5))


def test_values_that_are_vectors() -> None:
    table = _table(tf.int64, tf.float32, [0.0, -1.0])
    table.insert(_long(1, 2), [[1.0, 2.0], [3.0, 4.0]])
    assert table.lookup(_long(2, 9)).numpy().tolist() == [[3.0, 4.0], [0.0, -1.0]]
    assert table.export()[1].shape == [2, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected the shape"):
        table.insert(_long(1, 2), [1.0, 2.0])


def test_string_values() -> None:
    table = _table("int64", "string", "d")
    table.insert(_long(1), tf.constant(["p\0"]))
    assert table.lookup(_long(1, 2)).numpy().tolist() == [b"p\0", b"d"]


@pytest.mark.parametrize("call, error", [
    (lambda t: t.insert(tf.constant(["a"]), _long(1, 2)), tf.errors.InvalidArgumentError),
    (lambda t: t.insert(tf.constant(["a"]), tf.constant([1])), ValueError),
    (lambda t: t.insert(tf.constant([1]), _long(1)), ValueError),
    (lambda t: t.remove(tf.constant([1])), TypeError),
    (lambda t: t.lookup(tf.constant([1])), ValueError)])
def test_a_refused_change_changes_nothing(call: Any, error: type[Exception]) -> None:
    table = _table()
    with pytest.raises(error):
        call(table)
    assert table.size().numpy() == 0


def test_a_traced_function_reads_and_writes_at_every_call() -> None:
    table = _table(default=0)

    @tf.function
    def count(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        table.insert(x, table.lookup(x) + 1)
        return table.lookup(tf.constant(["a"])), table.size()

    for wanted in (1, 2, 3):
        found, size = count(tf.constant(["a"]))
        assert found.numpy().tolist() == [wanted] and size.numpy() == 1
    table.insert(["a", "b"], [10, 20])
    found, size = count(tf.constant(["b"]))
    assert found.numpy().tolist() == [10] and size.numpy() == 2
    assert table.lookup(["b"]).numpy().tolist() == [21]


def test_an_export_makes_a_function_run_eagerly() -> None:
    table = _table()
    table.insert("a", 1)
    with pytest.warns(tf.errors.EagerFunctionWarning):
        assert tf.function(lambda: table.export()[1])().numpy().tolist() == [1]


def test_dense_tables_set_two_keys_apart() -> None:
    table = _X.DenseHashTable(tf.int64, tf.int64, -1, empty_key=-5, deleted_key=-6)
    table.insert(_long(1, 2), _long(3, 4))
    assert table.lookup(_long(1, 7)).numpy().tolist() == [3, -1]
    table.erase(_long(1))
    assert table.size().numpy() == 1 and table.export()[0].numpy().tolist() == [2]
    for call in (table.lookup, table.remove, lambda k: table.insert(k, _long(1))):
        with pytest.raises(tf.errors.InvalidArgumentError, match="empty_key -5"):
            call(_long(-5))
        with pytest.raises(tf.errors.InvalidArgumentError, match="deleted_key -6"):
            call(_long(-6))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must differ"):
        _X.DenseHashTable(tf.string, tf.int64, -1, "", "")


@pytest.mark.parametrize("options, why", [
    ({"empty_key": [0, 1]}, "empty_key must be a scalar"),
    ({"empty_key": "x"}, "the dtype int64"),
    ({"initial_num_buckets": 3}, "power of 2")])
def test_keys_and_buckets_that_dense_tables_do_not_have(options: dict[str, Any], why: str) -> None:
    given: dict[str, Any] = {"empty_key": -5, "deleted_key": -6} | options
    with pytest.raises(tf.errors.OpError, match=why):
        _X.DenseHashTable(tf.int64, tf.int64, -1, **given)


def test_an_initializer_fills_a_table_that_can_be_changed() -> None:
    table = _table()
    table.insert("a", 1)
    tf.lookup.KeyValueTensorInitializer(["b"], _long(2)).initialize(table)
    assert table.lookup(["a", "b"]).numpy().tolist() == [-1, 2]
    with pytest.raises(TypeError, match="Invalid key dtype for table, expected string but got"):
        tf.lookup.KeyValueTensorInitializer(_long(1), _long(2)).initialize(table)
    pairs = _table(default=[0, 0])
    pairs.insert("a", [1, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be filled"):
        tf.lookup.KeyValueTensorInitializer(["b"], _long(2)).initialize(pairs)
    assert pairs.lookup("a").numpy().tolist() == [1, 2]

"""Many Examples that are read side by side hold what each of them holds by itself."""

import numpy as np
import pytest

import gtape as tf
from gtape.core import dtypes
from gtape.files.example_columns import Each, Table, source

TYPES = {"x": dtypes.float32, "y": dtypes.int64, "s": dtypes.string, "v": dtypes.int64}


def example(rng, *names, length=None):
    """An Example of these features, written in this order."""
    kinds = {"x": lambda n: tf.train.Feature(float_list=tf.train.FloatList(
                 value=rng.random(n).tolist())),
             "y": lambda n: tf.train.Feature(int64_list=tf.train.Int64List(
                 value=rng.integers(-2 ** 40, 2 ** 40, n).tolist())),
             "s": lambda n: tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"t" * 50 * n])),
             "v": lambda n: tf.train.Feature(int64_list=tf.train.Int64List(
                 value=rng.integers(0, 5, n).tolist()))}
    made = b""
    for name in names:
        size = int(rng.integers(0, 40)) if length is None else length
        part = tf.train.Example(features=tf.train.Features(feature={
            name: kinds[name[0]](size)})).SerializeToString()
        made += part[2:] if part[1] < 128 else part[3:]
    head, size = b"\n", len(made)
    while size > 127:
        head, size = head + bytes([size & 127 | 128]), size >> 7
    return head + bytes([size]) + made


def same(examples, wanted=TYPES):
    table, each = source(examples, set(wanted)), Each.of(examples, set(wanted))
    for name, dtype in wanted.items():
        for a, b in zip(table.column(name, dtype), each.column(name, dtype)):
            assert a.dtype == b.dtype
            assert a.tolist() == b.tolist()
    return table


@pytest.mark.parametrize("length", [None, 1, 3, 30])
def test_like_examples_of_any_lengths(length):
    rng = np.random.default_rng(0)
    assert type(same([example(rng, "x", "y", "s", "v", length=length)
                      for _ in range(50)])) is Table


def test_other_orders_missing_and_unwanted_features():
    rng = np.random.default_rng(1)
    orders = [("x", "y"), ("y", "x"), ("s",), ("v", "yy", "x"), ("x" * 200, "s", "v"), ("x", "x")]
    found = [example(rng, *orders[i % len(orders)], length=i % 4 + 1) for i in range(60)]
    assert type(same(found)) is Table
    same([e for e in found for _ in range(2)], {"x": dtypes.float32})


def test_lists_that_are_not_packed_and_messages_of_more():
    def entry(feature):
        inner = b"\n\1y\x12" + bytes([len(feature)]) + feature
        return b"\n" + bytes([len(inner) + 2, 10, len(inner)]) + inner

    packed = entry(b"\x1a\4\n\2\7\x08")
    assert type(same([packed] * 9, {"y": dtypes.int64})) is Table
    for feature in (b"\x1a\4\x08\7\x08\x08", b"", b"\x1a\0", b"\x1a\3\n\1\5\x1a\3\n\1\6"):
        same([packed] * 8 + [entry(feature)], {"y": dtypes.int64})
        same([entry(feature)] * 9, {"y": dtypes.int64})
    same([packed + b"\x12\0"] * 9, {"y": dtypes.int64})
    same([b""] * 9, {"y": dtypes.int64})


def test_damaged_examples_are_refused_in_the_same_words():
    rng = np.random.default_rng(2)
    whole = [example(rng, "x", "y", "s", length=3) for _ in range(10)]
    for at in range(0, len(whole[4]), 3):
        for byte in (0, 255, whole[4][at] + 1 & 255):
            damaged = [*whole]
            damaged[4] = whole[4][:at] + bytes([byte]) + whole[4][at + 1:]
            assert outcome(source, damaged) == outcome(Each.of, damaged)
        assert outcome(source, whole[:9] + [whole[9][:at]]) == outcome(
            Each.of, whole[:9] + [whole[9][:at]])


def outcome(read, examples):
    try:
        found = read(examples, set(TYPES))
        return [[part.tolist() for part in found.column(n, d)] for n, d in TYPES.items()]
    except tf.errors.InvalidArgumentError as error:
        return str(error)


def test_single_examples_of_a_map_are_parsed_together(tmp_path):
    rng = np.random.default_rng(3)
    with tf.io.TFRecordWriter(str(tmp_path / "a")) as writer:
        for _ in range(70):
            writer.write(example(rng, "x", "s", "y", length=2))
    features = {"x": tf.io.FixedLenFeature([2], tf.float32),
                "y": tf.io.FixedLenFeature([2], tf.int64),
                "s": tf.io.FixedLenFeature([], tf.string)}
    records = tf.data.TFRecordDataset(str(tmp_path / "a"))
    parsed = records.map(lambda r: tf.io.parse_single_example(r, features))
    assert parsed._rows().calls[-1].vectorised
    alone = [tf.io.parse_single_example(r, features) for r in records]
    for found in (list(parsed), list(parsed.batch(16).unbatch())):
        assert [{k: np.asarray(v).tolist() for k, v in e.items()} for e in found] == [
            {k: np.asarray(v).tolist() for k, v in e.items()} for e in alone]
    batch = next(iter(records.batch(32)))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Key: y, Index: 0.*output shape"):
        tf.io.parse_example(batch, {"y": tf.io.FixedLenFeature([3], tf.int64)})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"map, element 0.*Data types"):
        next(iter(records.map(lambda r: tf.io.parse_single_example(
            r, {"y": tf.io.FixedLenFeature([2], tf.float32)})).batch(4)))

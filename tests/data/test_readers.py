"""Datasets of what files hold: records, lines, pieces of equal length."""

from __future__ import annotations

import gzip

import pytest

import gtape as tf

data = tf.data


def listed(dataset):
    return list(dataset.as_numpy_iterator())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for i in range(3):
        with tf.io.TFRecordWriter(f"r{i}") as writer:
            for j in range(4):
                writer.write(b"%d-%d" % (i, j))
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\r\n\nthree")
    (tmp_path / "b.txt").write_bytes(b"x\ny\n")
    (tmp_path / "empty").touch()
    (tmp_path / "z.gz").write_bytes(gzip.compress(b"p\nq\n"))
    (tmp_path / "f.bin").write_bytes(b"HHaabbccF")
    return tmp_path


def test_records_of_several_files_follow_each_other(folder):
    dataset = data.TFRecordDataset(["r0", "r1"])
    assert isinstance(dataset, data.Dataset)
    assert dataset.element_spec == tf.TensorSpec([], tf.string)
    assert dataset.cardinality().numpy() == data.UNKNOWN_CARDINALITY
    first = [b"0-0", b"0-1", b"0-2", b"0-3", b"1-0", b"1-1", b"1-2", b"1-3"]
    assert listed(dataset) == listed(dataset) == first
    assert listed(data.TFRecordDataset(folder / "r0")) == first[:4]
    assert listed(data.TFRecordDataset([folder / "r0", folder / "empty"])) == first[:4]
    assert listed(data.TFRecordDataset(data.Dataset.list_files("r[01]", shuffle=False))) == first
    assert [b.numpy().tolist() for b in dataset.batch(3)][2] == first[6:]


def test_files_side_by_side_give_a_record_in_turn(folder):
    # Measured with TensorFlow 2.21.
    assert listed(data.TFRecordDataset(["r0", "r1", "r2"], num_parallel_reads=2)) == [
        b"0-0", b"1-0", b"0-1", b"1-1", b"0-2", b"1-2", b"0-3", b"1-3", b"2-0", b"2-1", b"2-2",
        b"2-3"]
    assert listed(data.TFRecordDataset(["r0", "empty", "r2"], num_parallel_reads=10))[:4] == [
        b"0-0", b"2-0", b"0-1", b"2-1"]
    assert sorted(listed(data.TFRecordDataset(["r0", "r1"], num_parallel_reads=data.AUTOTUNE))) == (
        listed(data.TFRecordDataset(["r0", "r1"])))


def test_examples_through_a_pipeline(folder):
    train = tf.train
    with tf.io.TFRecordWriter("e", "GZIP") as writer:
        for i in range(10):
            writer.write(train.Example(features=train.Features(feature={
                "x": train.Feature(float_list=train.FloatList(value=[i, i + 1])),
                "y": train.Feature(int64_list=train.Int64List(value=[i % 2]))},
            )).SerializeToString())
    spec = {"x": tf.io.FixedLenFeature([2], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
    one = data.TFRecordDataset("e", "GZIP").map(lambda s: tf.io.parse_single_example(s, spec))
    many = data.TFRecordDataset("e", "GZIP").batch(4).apply(
        data.experimental.parse_example_dataset(spec))
    assert [e["y"] for e in listed(one)] == [0, 1] * 5
    assert [e["x"].tolist() for e in listed(many)][2] == [[8, 9], [9, 10]]
    assert one.element_spec["x"] == tf.TensorSpec([2], tf.float32)


def test_a_damaged_record_is_named_after_those_before_it(folder):
    content = bytearray((folder / "r1").read_bytes())
    content[len(content) - 6] ^= 1
    (folder / "r1").write_bytes(content)
    elements = iter(data.TFRecordDataset(["r0", "r1"]))
    assert [next(elements).numpy() for _ in range(7)][-1] == b"1-2"
    with pytest.raises(tf.errors.DataLossError, match=r"at 57 in 'r1': record 3 \(from 0\)"):
        next(elements)
    with pytest.raises(tf.errors.DataLossError, match="is this a TFRecord file"):
        listed(data.TFRecordDataset("a.txt"))


def test_lines(folder):
    assert listed(data.TextLineDataset(["a.txt", "empty", "b.txt"])) == [
        b"one", b"two", b"", b"three", b"x", b"y"]
    assert listed(data.TextLineDataset("z.gz", "GZIP")) == [b"p", b"q"]
    assert listed(data.TextLineDataset(["a.txt", "b.txt"], num_parallel_reads=2)) == [
        b"one", b"x", b"two", b"y", b"", b"three"]
    (folder / "long").write_bytes(b"l" * 600_000 + b"\nend\r\n")
    assert [len(line) for line in listed(data.TextLineDataset("long"))] == [600_000, 3]


def test_pieces_of_equal_length(folder):
    fixed = data.FixedLengthRecordDataset
    assert listed(fixed("f.bin", 2, 2, 1)) == [b"aa", b"bb", b"cc"]
    assert listed(fixed(["f.bin", "empty"], 3)) == [b"HHa", b"abb", b"ccF"]
    (folder / "large").write_bytes(bytes(range(250)) * 4000)
    assert len(listed(fixed("large", 1000))) == 1000
    (folder / "packed").write_bytes(gzip.compress(b"HHaabbccF"))
    assert listed(fixed("packed", 2, 2, 1, compression_type="GZIP")) == [b"aa", b"bb", b"cc"]


@pytest.mark.parametrize("make, error", [
    (lambda: data.FixedLengthRecordDataset("f.bin", 2), tf.errors.InvalidArgumentError),
    (lambda: data.FixedLengthRecordDataset("f.bin", 3, 100), tf.errors.InvalidArgumentError),
    (lambda: data.FixedLengthRecordDataset("f.bin", 0), tf.errors.InvalidArgumentError),
    (lambda: data.TextLineDataset("nope"), tf.errors.NotFoundError),
    (lambda: data.TFRecordDataset("nope"), tf.errors.NotFoundError),
    (lambda: data.TFRecordDataset("."), tf.errors.FailedPreconditionError),
    (lambda: data.TextLineDataset("a.txt", "GZIP"), tf.errors.DataLossError),
    (lambda: data.TextLineDataset("a.txt", "LZMA"), tf.errors.InvalidArgumentError),
    (lambda: data.TextLineDataset(3), TypeError),
    (lambda: data.TextLineDataset(data.Dataset.range(2)), TypeError)])
def test_what_readers_refuse(folder, make, error):
    with pytest.raises(error):
        listed(make())


def test_a_dataset_of_strings_is_written(folder):
    writer = data.experimental.TFRecordWriter("w", "ZLIB")
    writer.write(data.Dataset.from_tensor_slices(["a", "b"]))
    assert listed(data.TFRecordDataset("w", "ZLIB")) == [b"a", b"b"]
    for wrong in (data.Dataset.range(3), 3):
        with pytest.raises(TypeError, match="dataset"):
            writer.write(wrong)

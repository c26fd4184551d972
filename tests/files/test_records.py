"""TFRecord files: TensorFlow's bytes, checksums, and what is said of damaged ones."""

from __future__ import annotations

import gc
import gzip
import os
import re
import tracemalloc

import numpy as np
import pytest

import gtape as tf
from gtape.files import records as crc32c
from gtape.files.records import records
from gtape.files.streams import Stream

#: "one", "" and "three" three times, written by TensorFlow 2.21.
_GOLDEN = {
    "": "0300000000000000b099490e6f6e6501405508000000000000000029039807d8ea82a20f0000000000000"
        "06d532b0974687265657468726565746872656577deb352",
    "GZIP": "1f8b0800000000000003636680800d333df9f2f352191d4239a0220c9acc33d86fbc6a5ac40fe5e7066b73"
            "966414a5a62288f27b9b8300e16cd5a642000000",
    "ZLIB": "789c636680800d333df9f2f352191d4239a0220c9acc33d86fbc6a5ac40fe5e7066b73966414a5a62288f2"
            "7b9b8300a75b10da"}
_THREE = [b"one", b"", b"threethreethree"]


def bitwise(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_the_checksum_is_castagnolis():
    assert crc32c.crc32c(b"123456789") == 0xE3069283
    data = np.random.default_rng(0).bytes(5000)
    for size in [*range(60), 1023, 1024, 1025, 1027, 1028, 1030, 2048, 5000]:
        assert crc32c.crc32c(data[:size]) == bitwise(data[:size]), size


def test_checksums_of_many_parts_are_those_of_each():
    data = np.random.default_rng(1).bytes(6000)
    lengths = [0, 3, 4, 5, 8, 8, 31, 100, 1024, 1025, 1500]
    starts = np.cumsum(lengths) - lengths
    found = crc32c.of_parts(np.frombuffer(data, np.uint8), starts, lengths)
    assert found.tolist() == [crc32c.masked_crc32c(data[s:s + n]) for s, n in zip(starts, lengths)]


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
def test_files_of_tensorflow_are_read(tmp_path, kind):
    path = tmp_path / "f"
    path.write_bytes(bytes.fromhex(_GOLDEN[kind]))
    assert list(records(path, kind)) == _THREE


def test_the_bytes_are_tensorflows(tmp_path):
    with tf.io.TFRecordWriter(tmp_path / "f") as writer:
        for record in _THREE:
            writer.write(record)
    assert (tmp_path / "f").read_bytes().hex() == _GOLDEN[""]


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("chunk", [5, 1 << 18])
def test_what_is_written_is_read(tmp_path, kind, chunk):
    random = np.random.default_rng(2)
    written = [random.bytes(int(n)) for n in random.integers(0, 3000, 60)] + [bytes(600_000), b"x"]
    options = tf.io.TFRecordOptions(kind, compression_level=1)
    with tf.io.TFRecordWriter(str(tmp_path / "f"), options) as writer:
        for record in written:
            writer.write(record)
        writer.flush()
    assert list(records(tmp_path / "f", kind, chunk)) == written


def test_several_compressed_parts_are_one_file(tmp_path):
    plain = bytes.fromhex(_GOLDEN[""])
    (tmp_path / "f").write_bytes(gzip.compress(plain) + gzip.compress(plain))
    assert list(records(tmp_path / "f", "GZIP")) == _THREE * 2


@pytest.mark.parametrize("kind", ["", "GZIP"])
def test_a_writer_that_nobody_closes_ends_its_file(tmp_path, kind):
    writer = tf.io.TFRecordWriter(tmp_path / "f", kind)
    writer.write(b"one")
    del writer
    gc.collect()
    assert list(records(tmp_path / "f", kind)) == [b"one"]


def test_an_empty_file_has_no_records(tmp_path):
    (tmp_path / "f").touch()
    assert list(records(tmp_path / "f")) == list(records(tmp_path / "f", "GZIP")) == []


def damaged(path, kind=""):
    """The records before the damage, and the message."""
    found = []
    with pytest.raises(tf.errors.DataLossError) as caught:
        for record in records(path, kind):
            found.append(record)
    return found, str(caught.value)


@pytest.mark.parametrize("at, before, what", [
    (0, 0, "record 0 .* its length"), (9, 0, "record 0 .* its length"),
    (13, 0, "record 0 .* its bytes"), (16, 0, "record 0 .* its bytes"),
    (30, 1, "record 1 .* its length"), (50, 2, "record 2 .* its bytes")])
def test_a_changed_byte_is_found(tmp_path, at, before, what):
    content = bytearray.fromhex(_GOLDEN[""])
    content[at] ^= 1
    (tmp_path / "f").write_bytes(content)
    found, message = damaged(tmp_path / "f")
    assert found == _THREE[:before]
    assert re.search(what, message) and str(tmp_path / "f") in message


@pytest.mark.parametrize("size", [1, 11, 12, 14, 18, 20, 30, 65])
def test_a_file_that_is_cut_short_is_an_error(tmp_path, size):
    content = bytes.fromhex(_GOLDEN[""])
    (tmp_path / "f").write_bytes(content[:size])
    found, message = damaged(tmp_path / "f")
    assert found == _THREE[:len(found)] and "cut short" in message
    assert f"record {len(found)} " in message


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_compressed_files_are_checked(tmp_path, kind):
    content = bytes.fromhex(_GOLDEN[kind])
    (tmp_path / "short").write_bytes(content[:-6])
    assert "cut short" in damaged(tmp_path / "short", kind)[1]
    (tmp_path / "other").write_bytes(bytes.fromhex(_GOLDEN[""]))
    assert f"not compressed as {kind}" in damaged(tmp_path / "other", kind)[1]


def test_a_claim_of_2_to_the_60_bytes_allocates_nothing(tmp_path):
    length = (1 << 60).to_bytes(8, "little")
    head = length + crc32c.masked_crc32c(length).to_bytes(4, "little")
    (tmp_path / "f").write_bytes(head + b"abc")
    (tmp_path / "z").write_bytes(gzip.compress(head + b"abc"))
    tracemalloc.start()
    try:
        for name, kind in (("f", ""), ("z", "GZIP")):
            assert f"claims {1 << 60} bytes" in damaged(tmp_path / name, kind)[1]
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_what_a_writer_refuses(tmp_path):
    writer = tf.io.TFRecordWriter(tmp_path / "f")
    for record in (3, tf.constant(b"x"), None):
        with pytest.raises(TypeError, match="bytes"):
            writer.write(record)
    writer.close()
    writer.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match="closed"):
        writer.write(b"x")
    with pytest.raises(tf.errors.NotFoundError):
        tf.io.TFRecordWriter(tmp_path / "none" / "f")
    with pytest.raises(tf.errors.InvalidArgumentError, match="GZIP"):
        tf.io.TFRecordOptions("LZMA")
    with pytest.raises(tf.errors.NotFoundError):
        list(records(tmp_path / "none"))
    with pytest.raises(tf.errors.FailedPreconditionError):
        list(records(tmp_path))


def test_a_stream_says_how_much_can_come(tmp_path):
    (tmp_path / "f").write_bytes(os.urandom(100))
    with Stream(tmp_path / "f") as stream:
        assert stream.most() == 100
        stream.read(30)
        assert stream.most() == 70 and stream.at == 30

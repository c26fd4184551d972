"""Bytes changed at random: whatever is read is read, or is an error of gtape's; nothing large is
allocated."""

from __future__ import annotations

import gzip
import io as python_io
import random
import tracemalloc

import numpy as np
import pytest

import gtape as tf
from gtape.files.records import records

io, train = tf.io, tf.train
_TIMES = 60
_MOST = 8 << 20


def example():
    kinds = {"x": train.Feature(int64_list=train.Int64List(value=range(40))),
             "f": train.Feature(float_list=train.FloatList(value=[1, 2, 3])),
             "b": train.Feature(bytes_list=train.BytesList(value=[b"q", "é".encode()]))}
    return train.Example(features=train.Features(feature=kinds)).SerializeToString()


def sequence():
    step = train.Feature(int64_list=train.Int64List(value=[2, 300]))
    return train.SequenceExample(feature_lists=train.FeatureLists(feature_list={
        "t": train.FeatureList(feature=[step, step])})).SerializeToString()


def parsed(content):
    io.parse_example([example(), content, content], {
        "x": io.VarLenFeature(tf.int64), "f": io.FixedLenFeature([3], tf.float32),
        "b": io.RaggedFeature(tf.string)})


def parsed_sequence(content):
    io.parse_single_sequence_example(
        content, None, {"t": io.FixedLenSequenceFeature([2], tf.int64)})


def written(path, kind):
    with io.TFRecordWriter(path, kind) as writer:
        for i in range(5):
            writer.write(b"record %d" % i * 10)
    return path.read_bytes()


def read_by(path, read):
    def run(content):
        path.write_bytes(content)
        list(read(str(path)))

    return run


def picture(kind):
    image = pytest.importorskip("PIL.Image")
    shots = [image.fromarray(np.random.default_rng(i).integers(0, 256, (5, 7, 3)).astype(np.uint8))
             for i in range(3)]
    into = python_io.BytesIO()
    shots[0].save(into, kind, **({"save_all": True, "append_images": shots[1:]}
                                 if kind == "GIF" else {}))
    return into.getvalue()


def csv(path):
    return tf.data.experimental.CsvDataset(path, [[0], [0.0], [""]], header=True)


_CSV = b'a,b,c\n1,2.5,"x,y"\n3,4,"q""r"\n'

_CASES = {
    "Example": lambda t: (example(), lambda c: repr(train.Example.FromString(c))),
    "parse_example": lambda t: (example(), parsed),
    "parse_sequence_example": lambda t: (sequence(), parsed_sequence),
    "parse_tensor": lambda t: (io.serialize_tensor(np.arange(12.0).reshape(3, 4)).numpy(),
                               lambda c: io.parse_tensor(c, tf.float64)),
    "parse_tensor of strings": lambda t: (io.serialize_tensor(["a", "bc"]).numpy(),
                                          lambda c: io.parse_tensor(c, tf.string)),
    "decode_wav": lambda t: (tf.audio.encode_wav(np.zeros((10, 2), np.float32), 8000).numpy(),
                             tf.audio.decode_wav),
    "records": lambda t: (written(t / "f", ""), read_by(t / "f", records)),
    "packed records": lambda t: (written(t / "f", "GZIP"),
                                 read_by(t / "f", lambda p: records(p, "GZIP"))),
    "CSV": lambda t: (_CSV, read_by(t / "f", csv)),
    "decode_compressed": lambda t: (gzip.compress(b"abc" * 100),
                                    lambda c: io.decode_compressed(c, "GZIP")),
    "decode_base64": lambda t: (b"aGVsbG8_", io.decode_base64),
    **{kind: lambda t, kind=kind: (picture(kind), io.decode_image)
       for kind in ("PNG", "JPEG", "GIF", "BMP", "WEBP")}}


def changed(content, chance):
    """The bytes with some of them replaced, added or left out."""
    made = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 5])):
        at = chance.randrange(len(made) + 1)
        kind = chance.random()
        if kind < 0.6 and at < len(made):
            made[at] = chance.choice([0, 1, 127, 128, 255, chance.randrange(256)])
        elif kind < 0.75:
            del made[at:]
        elif kind < 0.9:
            del made[at:at + chance.randrange(1, 5)]
        else:
            made[at:at] = chance.randbytes(chance.randrange(1, 6))
    return bytes(made)


@pytest.mark.filterwarnings("ignore:Image size")
@pytest.mark.parametrize("name", _CASES)
def test_changed_bytes_are_read_or_an_error(name, tmp_path):
    good, read = _CASES[name](tmp_path)
    read(good)
    chance = random.Random(name)
    refused = 0
    for _ in range(_TIMES):
        content = changed(good, chance)
        tracemalloc.start()
        try:
            read(content)
        except tf.errors.OpError as error:
            refused += 1
            assert str(error)
        finally:
            largest = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert largest < _MOST, content
    assert refused > 5

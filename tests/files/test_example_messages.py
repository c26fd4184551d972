"""tf.train.Example: what Python's protobuf does with it, and TensorFlow's bytes."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import gtape as tf

train = tf.train
Feature = train.Feature

#: Written by TensorFlow 2.21.
_GOLDEN = [
    (Feature(int64_list=train.Int64List(value=[1, -2, 300])),
     b"\n\x18\n\x16\n\x01a\x12\x11\x1a\x0f\n\r\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\xac\x02"),
    (Feature(float_list=train.FloatList(value=[0.1, 2])),
     b"\n\x13\n\x11\n\x01a\x12\x0c\x12\n\n\x08\xcd\xcc\xcc=\x00\x00\x00@"),
    (Feature(bytes_list=train.BytesList(value=[b"x\x00\n\"'\xff", "é".encode()])),
     b"\n\x15\n\x13\n\x01a\x12\x0e\n\x0c\n\x06x\x00\n\"'\xff\n\x02\xc3\xa9"),
    (Feature(), b"\n\x07\n\x05\n\x01a\x12\x00")]


def example(**features):
    return train.Example(features=train.Features(feature=features))


def integers(*values):
    return Feature(int64_list=train.Int64List(value=values))


@pytest.mark.parametrize("feature, golden", _GOLDEN)
def test_the_bytes_are_tensorflows_both_ways(feature, golden):
    made = example(a=feature)
    assert made.SerializeToString() == golden and made.ByteSize() == len(golden)
    read = train.Example.FromString(golden)
    assert read == made and read.features.feature["a"] == feature
    other = train.Example()
    assert other.ParseFromString(golden) == len(golden) and other == made


def test_sequences_have_tensorflows_bytes():
    made = train.SequenceExample(
        context=train.Features(feature={"n": integers(2)}),
        feature_lists=train.FeatureLists(feature_list={"t": train.FeatureList(feature=[
            integers(2), Feature(float_list=train.FloatList(value=[2]))])}))
    golden = (b"\n\x0c\n\n\n\x01n\x12\x05\x1a\x03\n\x01\x02\x12\x18\n\x16\n\x01t\x12\x11\n\x05\x1a"
              b"\x03\n\x01\x02\n\x08\x12\x06\n\x04\x00\x00\x00@")
    assert made.SerializeToString() == golden
    assert train.SequenceExample.FromString(golden) == made
    assert made.feature_lists.feature_list["t"].feature[1].float_list.value == [2.0]


@pytest.mark.parametrize("values", [[2**63 - 1, -2**63, 0, 127, 128] * 20, range(100), []])
def test_any_integers_come_back(values):
    made = train.Int64List(value=values)
    assert train.Int64List.FromString(made.SerializeToString()).value == list(values)


def test_lists_without_packing_are_read():
    assert train.Int64List.FromString(b"\x08\x05\x08\x06\n\x02\x07\x08").value == [5, 6, 7, 8]
    assert train.FloatList.FromString(b"\r\x00\x00\x80?\n\x04\x00\x00\x00@").value == [1, 2]
    assert train.Example.FromString(b"\x20\x07" + _GOLDEN[0][1]) == example(a=_GOLDEN[0][0])


def test_the_text_is_protobufs():
    assert repr(example(b=Feature(float_list=train.FloatList(value=[0.1, 2])),
                        a=Feature(bytes_list=train.BytesList(value=[b"x\n\"\xff"])))) == (
        "features {\n  feature {\n    key: \"a\"\n    value {\n      bytes_list {\n"
        "        value: \"x\\n\\\"\\377\"\n      }\n    }\n  }\n"
        "  feature {\n    key: \"b\"\n    value {\n      float_list {\n        value: 0.1\n"
        "        value: 2\n      }\n    }\n  }\n}\n")


def test_one_kind_of_a_feature_is_set():
    feature = Feature()
    assert feature.WhichOneof("kind") is None and not feature.HasField("int64_list")
    feature.int64_list.value.append(3)
    assert feature.WhichOneof("kind") == "int64_list"
    assert feature.float_list.value == [] and feature.WhichOneof("kind") == "int64_list"
    feature.float_list.value.extend([1, 2])
    assert feature.WhichOneof("kind") == "float_list" and feature.int64_list.value == []
    assert Feature(int64_list=train.Int64List()).WhichOneof("kind") == "int64_list"


def test_maps_make_what_they_are_asked_for():
    made = train.Example()
    assert not made.HasField("features")
    made.features.feature["x"].int64_list.value.append(1)
    assert made == example(x=integers(1)) and "x" in made.features.feature
    assert [k for k, _ in made.features.feature.items()] == ["x"]
    made.features.feature["y"].CopyFrom(integers(2))
    assert made != example(x=integers(1))


def test_messages_are_copied():
    inner = integers(1)
    made = example(x=inner)
    inner.int64_list.value.append(2)
    assert made == example(x=integers(1))
    twin = copy.deepcopy(made)
    twin.features.feature["x"].int64_list.value[0] = 9
    assert made == example(x=integers(1))
    made.MergeFrom(example(y=integers(3)))
    assert sorted(made.features.feature) == ["x", "y"]
    made.Clear()
    assert made == train.Example() and made.SerializeToString() == b""


def test_arrays_are_values():
    assert train.Int64List(value=np.arange(3, dtype=np.int8)).value == [0, 1, 2]
    assert train.Int64List(value=[np.int32(3), np.bool_(True)]).value == [3, 1]
    assert train.FloatList(value=np.float64([0.1])).value == [float(np.float32(0.1))]
    assert train.FloatList(value=[1e300]).value == [np.inf]


@pytest.mark.parametrize("make, error", [
    (lambda: train.Int64List(value=[1.5]), TypeError),
    (lambda: train.Int64List(value=["a"]), TypeError),
    (lambda: train.Int64List(value=[2**63]), ValueError),
    (lambda: train.Int64List(value=3), TypeError),
    (lambda: train.FloatList(value=["1"]), TypeError),
    (lambda: train.BytesList(value=["text"]), TypeError),
    (lambda: train.BytesList(value=b"bytes"), TypeError),
    (lambda: train.BytesList(value=[tf.constant("x")]), TypeError),
    (lambda: Feature(int64_list=3), TypeError),
    (lambda: Feature(nonsense=3), ValueError),
    (lambda: train.Features(feature={"a": 3}), TypeError),
    (lambda: setattr(train.Example(), "features", 3), AttributeError),
    (lambda: setattr(train.Int64List(), "value", [3]), AttributeError),
    (lambda: train.Example().nonsense, AttributeError),
    (lambda: train.Features().feature.__setitem__("a", 3), ValueError),
    (lambda: train.Example.FromString("text"), TypeError),
    (lambda: hash(train.Example()), TypeError)])
def test_what_is_no_value_is_refused(make, error):
    with pytest.raises(error):
        make()


@pytest.mark.parametrize("content", [
    b"\xff", b"\n\x7f", b"\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x0b", b"\x00\x00",
    b"\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\n\x05\n\x03\n\x01\xff",
    b"\n\x04\n\x02\x08\x01", _GOLDEN[0][1][:-1], b"\n\x0a\n\x08\n\x01a\x12\x03\x12\x01\x01"])
def test_damaged_bytes_are_an_error_and_change_nothing(content):
    kept = example(a=integers(7))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Example|List|Feature"):
        kept.ParseFromString(content)
    assert kept == example(a=integers(7))

"""Bytes as tensors: TensorProtos, decode_raw, base 64, CSV."""

from __future__ import annotations

import gzip
import tracemalloc

import numpy as np
import pytest

import gtape as tf

io, errors = tf.io, tf.errors

#: Written by TensorFlow 2.21.
_PROTOS = [
    (np.float32([[1, 2.5]]), b'\x08\x01\x12\x08\x12\x02\x08\x01\x12\x02\x08\x02"\x08\x00\x00\x80?'
                             b'\x00\x00 @'),
    (np.int64(3), b'\x08\t\x12\x00"\x08\x03\x00\x00\x00\x00\x00\x00\x00'),
    (np.array([b"a", b"bcd"], object), b"\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x03bcd"),
    (np.array([True, False]), b'\x08\n\x12\x04\x12\x02\x08\x02"\x02\x01\x00'),
    (np.array([], np.float32), b"\x08\x01\x12\x02\x12\x00"),
    (np.float16(1.5), b'\x08\x13\x12\x00"\x02\x00>'),
    (np.complex64([1 + 2j]), b'\x08\x08\x12\x04\x12\x02\x08\x01"\x08\x00\x00\x80?\x00\x00\x00@')]


@pytest.mark.parametrize("array, golden", _PROTOS)
def test_tensors_have_tensorflows_bytes(array, golden):
    tensor = tf.constant(array)
    assert io.serialize_tensor(tensor).numpy() == golden
    back = io.parse_tensor(golden, tensor.dtype)
    assert back.shape == tensor.shape and (back.numpy() == array).all()


def test_values_that_stand_one_by_one_are_read():
    shape = b"\x12\x04\x12\x02\x08\x03"
    assert io.parse_tensor(b"\x08\x03" + shape + b":\x03\x01\x02\x03", tf.int32).numpy().tolist() \
        == [1, 2, 3]
    assert io.parse_tensor(b"\x08\x01" + shape + b"-\x00\x00\x80?", tf.float32).numpy().tolist() \
        == [1, 1, 1]


@pytest.mark.parametrize("content", [
    b"", b"\xff", b"\x08\x01", _PROTOS[0][1][:-1], b"\x08\x63" + _PROTOS[0][1][2:],
    b'\x08\x01\x12\x0c\x12\n\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"\x04\x00\x00\x80?',
    b"\x08\x01\x12\x08\x12\x06\x08\x80\x80\x80\x80\x10-\x00\x00\x80?",
    b"\x08\x01\x12\x0d\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"])
def test_damaged_tensors_are_errors_that_allocate_nothing(content):
    tracemalloc.start()
    try:
        with pytest.raises(errors.InvalidArgumentError):
            io.parse_tensor(content, tf.float32)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_tensor_of_another_dtype_is_refused():
    with pytest.raises(errors.InvalidArgumentError, match=r"of tf.float32, not of tf.int64"):
        io.parse_tensor(_PROTOS[0][1], tf.int64)


def test_bytes_as_numbers():
    assert io.decode_raw([b"ab", b"cd"], tf.uint8).numpy().tolist() == [[97, 98], [99, 100]]
    assert io.decode_raw(b"\x01\x02", tf.int16, little_endian=False).numpy().tolist() == [258]
    assert io.decode_raw(b"\x02\x00", tf.bool).numpy().tolist() == [True, False]
    assert io.decode_raw([[b"ab"], [b"cd"]], tf.uint8).shape == (2, 1, 2)
    assert io.decode_raw([b"ab", b"c"], tf.uint8, fixed_length=4).numpy().tolist() == [
        [97, 98, 0, 0], [99, 0, 0, 0]]
    assert io.decode_raw([b"abcdef"], tf.int16, fixed_length=4).numpy().tolist() == [[25185, 25699]]
    assert io.decode_raw([], tf.uint8).shape == (0, 0)


@pytest.mark.parametrize("call", [
    lambda: io.decode_raw(b"abc", tf.int16), lambda: io.decode_raw([b"ab", b"c"], tf.uint8),
    lambda: io.decode_raw(b"abcd", tf.int16, fixed_length=3),
    lambda: io.decode_raw(b"ab", tf.string), lambda: io.decode_raw(3, tf.uint8)])
def test_bytes_that_are_no_numbers(call):
    with pytest.raises(errors.InvalidArgumentError):
        call()


def test_base_64():
    assert io.encode_base64(b"a\xff?>").numpy() == b"Yf8_Pg"
    assert io.encode_base64([b"a", b""], pad=True).numpy().tolist() == [b"YQ==", b""]
    assert io.decode_base64(["YQ==", "_-", "YQ", "YR", ""]).numpy().tolist() == [
        b"a", b"\xff", b"a", b"a", b""]
    for wrong in ("Y", "a+", "Y=Q", "====", "YQ=", "Y==="):
        with pytest.raises(errors.InvalidArgumentError, match=r"[Bb]ase64"):
            io.decode_base64(wrong)


def test_unpacking():
    packed = gzip.compress(b"text")
    assert io.decode_compressed([packed], "GZIP").numpy().tolist() == [b"text"]
    assert io.decode_compressed(b"x").numpy() == b"x"
    for value in (b"x", packed[:-3]):
        with pytest.raises(errors.DataLossError):
            io.decode_compressed(value, "GZIP")


def columns(*args, **kwargs):
    return [c.numpy().tolist() for c in io.decode_csv(*args, **kwargs)]


def test_csv():
    assert columns(["1,2.5,a", "3,,b"], [[0], [1.5], [""]]) == [[1, 3], [2.5, 1.5], [b"a", b"b"]]
    assert [c.dtype.name for c in io.decode_csv("1,2,x", [0, 0.5, ""])] == [
        "int32", "float32", "string"]
    assert columns("1,2", [[0], [0]]) == [1, 2]
    assert columns(['"a,b""c",2', '"a\nb",3'], [[""], [0]]) == [[b'a,b"c', b"a\nb"], [2, 3]]
    assert columns(['a"b,2'], [[""], [0]], use_quote_delim=False) == [[b'a"b'], [2]]
    assert columns(["1;2"], [[0], [0]], field_delim=";") == [[1], [2]]
    assert columns(["NA,2"], [[7], [0]], na_value="NA") == [[7], [2]]
    assert columns(["1,2,3"], [[0.0], [0]], select_cols=[0, 2]) == [[1.0], [3]]
    assert columns([" 1 , 2"], [[0], [""]]) == [[1], [b" 2"]]
    assert columns(['"",1'], [["d"], [0]]) == [[b"d"], [1]]
    assert columns(["1e3,inf"], [[0.0], [0.0]]) == [[1000], [np.inf]]
    assert columns([["1"], ["3"]], [[0]]) == [[[1], [3]]]
    assert columns(tf.zeros([0], tf.string), [[0]]) == [[]]
    assert columns(["5"], [tf.constant([], tf.int64)]) == [[5]]


@pytest.mark.parametrize("record, message", [
    ("1", "record 1: Expect 2 fields but have 1"), ("1,2,3", "Expect 2 fields but have 3"),
    ("", "Expect 2 fields but have 0"), ("x,2", "record 1: Field 0 is not a valid int32: 'x'"),
    ("1.5,2", "not a valid int32"), ("1_0,2", "not a valid int32"), ("0x1,2", "not a valid int32"),
    ("99999999999,2", "not a valid int32"), (",2", "Field 0 is required but missing"),
    ('a"b,2', "Unquoted fields cannot have quotes"), ("1,2\n", "Unquoted fields"),
    ('"1,2', "Quoted field has to end with quote"), ('"1"x,2', "Quote inside a string")])
def test_records_that_are_no_csv(record, message):
    with pytest.raises(errors.InvalidArgumentError, match=message):
        io.decode_csv(["1,2", record], [tf.int32, [0]])


def test_arguments_of_decode_csv():
    for call in (lambda: io.decode_csv("1", [[0]], field_delim=",,"),
                 lambda: io.decode_csv("1", [[True]]), lambda: io.decode_csv("1", []),
                 lambda: io.decode_csv("1", [[0, 1]]),
                 lambda: io.decode_csv("1", [[0], [0]], select_cols=[1, 0]),
                 lambda: io.decode_csv("1", [[0]], select_cols=[-1])):
        with pytest.raises(ValueError):
            call()

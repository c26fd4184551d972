"""Records of files are rows: what chooses, orders, maps and batches them takes many at once."""

import numpy as np
import pytest

import gtape as tf

data = tf.data


@pytest.fixture
def lines(tmp_path):
    (tmp_path / "t").write_text("".join(f"{i}\n" for i in range(1000)))
    return data.TextLineDataset(str(tmp_path / "t"))


def numbers(dataset):
    return [int(x) for e in dataset.as_numpy_iterator() for x in np.atleast_1d(e).tolist()]


def test_choices_and_orders(lines):
    assert numbers(lines.skip(3).take(5)) == [3, 4, 5, 6, 7]
    assert numbers(lines.shard(400, 7)) == [7, 407, 807]
    assert numbers(lines.take(2).repeat(3)) == [0, 1] * 3
    assert [len(b) for b in lines.batch(300)] == [300, 300, 300, 100]
    shuffled = lines.shuffle(100, seed=1)
    first, second = numbers(shuffled.batch(7)), numbers(shuffled)
    assert sorted(first) == sorted(second) == list(range(1000))
    assert first != second
    assert numbers(lines.filter(lambda s: tf.strings.length(s) == 1)) == list(range(10))


def test_beside_rows_in_memory(lines):
    both = data.Dataset.zip((lines, data.Dataset.range(1000))).shuffle(50).batch(9)
    for text, number in both:
        assert [int(t) for t in text.numpy()] == number.numpy().tolist()
    assert [(int(i), int(t)) for i, t in lines.take(3).enumerate()] == [(0, 0), (1, 1), (2, 2)]


def test_two_passes_at_once(lines):
    first, second = iter(lines.shuffle(10, seed=3).batch(5)), iter(lines)
    assert int(next(second)) == 0
    next(first)
    assert [int(next(second)) for _ in range(3)] == [1, 2, 3]


def test_functions_of_strings_take_many_at_once(lines):
    mapped = lines.map(lambda s: (tf.strings.to_number(s, tf.int64) * 2, tf.strings.length(s)))
    assert mapped._rows().calls[-1].vectorised
    wanted = [(2 * i, len(str(i))) for i in range(1000)]
    assert [(int(a), int(b)) for a, b in mapped] == wanted
    assert [(int(a), int(b)) for a, b in mapped.batch(64).unbatch()] == wanted


def test_what_fails_for_one_is_named(tmp_path):
    (tmp_path / "t").write_text("1\n2\nx\n4\n")
    made = data.TextLineDataset(str(tmp_path / "t")).map(lambda s: tf.strings.to_number(s))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"map, element 2.*'x'"):
        list(made.batch(4))
    assert numbers(made.ignore_errors()) == [1, 2, 4]


def test_records_before_a_damaged_one_come(tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "r")) as writer:
        for i in range(40):
            writer.write(b"%d" % i)
    whole = (tmp_path / "r").read_bytes()
    (tmp_path / "r").write_bytes(whole[:-3])
    found = []
    with pytest.raises(tf.errors.DataLossError, match="record 39"):
        for record in data.TFRecordDataset(str(tmp_path / "r")):
            found.append(int(record))
    assert found == list(range(39))


def test_held_records_are_written_by_flush_and_close(tmp_path):
    path = str(tmp_path / "r")
    writer = tf.io.TFRecordWriter(path)
    for i in range(1500):
        writer.write(b"%d" % i * (i % 50))
    writer.flush()
    assert len(list(data.TFRecordDataset(path))) == 1500
    writer.write(b"x" * 3000)
    writer.write(b"")
    writer.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match="closed"):
        writer.flush()
    found = [r.numpy() for r in data.TFRecordDataset(path)]
    assert found == [*[b"%d" % i * (i % 50) for i in range(1500)], b"x" * 3000, b""]


@pytest.mark.parametrize("rows", [
    ["1,2.5,a", "2,1e400,b", "3,-inf,c"], ["1,2,a", ",,", "3,nan,"], ['1,"2",a', "2,3,b"],
    ["2147483647,1,a", " 7 , 8 ,x"], ["-2147483648,3.5e38,a", "0,3.4028235e38,b"]])
def test_columns_of_records_are_those_of_each(tmp_path, rows):
    (tmp_path / "c").write_text("\n".join(rows) + "\n")
    types = [tf.constant(9, tf.int32), tf.constant(0.5), tf.constant("-")]
    dataset = data.experimental.CsvDataset(str(tmp_path / "c"), types)
    whole = [c.numpy().tolist() for c in next(iter(dataset.batch(9)))]
    each = [[np.asarray(v).tolist() for v in e] for e in dataset]
    assert repr(whole) == repr([list(c) for c in zip(*each)])
    alone = [tf.io.decode_csv(row, types) for row in rows]
    assert repr([[np.asarray(v).tolist() for v in row] for row in alone]) == repr(each)


@pytest.mark.parametrize("row, message", [
    ("2147483648,1", "Field 0 is not a valid int32"), ("1_0,1", "Field 0 is not a valid int32"),
    ("1,1_0", "Field 1 is not a valid float32"), ("1", "Expect 2 fields but have 1")])
def test_a_record_that_cannot_be_read_is_named(tmp_path, row, message):
    (tmp_path / "c").write_text("1,2\n" * 30 + row + "\n3,4\n")
    dataset = data.experimental.CsvDataset(str(tmp_path / "c"), [tf.int32, tf.float32])
    for made in (dataset, dataset.batch(64), dataset.shuffle(64).batch(8)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"line 31: {message}"):
            list(made)
    assert len(list(dataset.ignore_errors())) == 31
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"record 1: {message}"):
        tf.io.decode_csv(["1,2", row], [tf.int32, tf.float32])

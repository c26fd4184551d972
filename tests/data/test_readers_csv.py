"""Datasets of CSV files."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

data = tf.data
CsvDataset = data.experimental.CsvDataset
make = data.experimental.make_csv_dataset


def listed(dataset):
    return list(dataset.as_numpy_iterator())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.csv").write_text('a,b,s,y\n1,2.5,x,0\n3,,z,1\n,4,w,0\n5,6,"q\nr",1\n')
    (tmp_path / "d.csv").write_bytes(b"a,b,s,y\r\n7,8,u,1\r\n")
    (tmp_path / "empty").touch()
    return tmp_path


def test_records_are_tuples(folder):
    dataset = CsvDataset(["c.csv", "d.csv"], [[9], [0.0], "", tf.int64], header=True)
    assert listed(dataset) == [(1, 2.5, b"x", 0), (3, 0.0, b"z", 1), (9, 4.0, b"w", 0),
                               (5, 6.0, b"q\nr", 1), (7, 8.0, b"u", 1)]
    assert [s.dtype.name for s in dataset.element_spec] == ["int32", "float32", "string", "int64"]


def test_columns_are_chosen(folder):
    wanted = [(1, 0), (3, 1), (9, 0), (5, 1)]
    assert listed(CsvDataset("c.csv", [[9], tf.int32], header=True, select_cols=[0, 3])) == wanted
    assert listed(CsvDataset("c.csv", [[9], tf.int32], header=True, exclude_cols=[1, 2])) == wanted
    assert listed(CsvDataset("empty", [[0]])) == []


@pytest.mark.parametrize("content, message", [
    ("1,2\n3\n", "'x', line 2: Expect 2 fields but have 1"),
    ('1,2\n"3\n3",4\n5\n', "'x', line 2: Field 0 is not a valid int32"),
    ('1,2\n\n', "'x', line 2: Expect 2 fields but have 0"),
    ("1,2\n,4\n", "'x', line 2: Field 0 is required but missing"),
    ("1,2\n3,4\n5,zz\n", "'x', line 3: Field 1 is not a valid int32: 'zz'"),
    ('1,2\n3,"4\n5,6\n', "'x', line 2: Quoted field has to end .* open at line 3"),
    ('1,2\n3,4"4"\n', "'x', line 2: Unquoted fields")])
def test_what_is_no_record_is_named_by_file_and_line(folder, content, message):
    (folder / "x").write_text(content)
    elements = iter(CsvDataset("x", [tf.int32, tf.int32]))
    assert [v.numpy() for v in next(elements)] == [1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(elements)


def test_an_empty_file_has_no_header(folder):
    with pytest.raises(tf.errors.InvalidArgumentError, match="'empty': Can't read header"):
        listed(CsvDataset("empty", [[0]], header=True))


def test_batches_by_name(folder):
    dataset = make("c.csv", 3, label_name="y", shuffle=False, num_epochs=1)
    (first, label), (second, _) = listed(dataset)
    assert list(first) == ["a", "b", "s"]
    assert [first[n].tolist() for n in first] == [[1, 3, 0], [2.5, 0, 4], [b"x", b"z", b"w"]]
    assert label.tolist() == [0, 1, 0] and second["s"].tolist() == [b"q\nr"]
    features, spec = dataset.element_spec
    assert spec == tf.TensorSpec([None], tf.int32) and features["b"].dtype == tf.float32


def test_batches_without_end_and_of_several_files(folder):
    dataset = make("c.csv", 3, shuffle=False).take(3)
    assert [b["a"].tolist() for b in listed(dataset)] == [[1, 3, 0], [5, 1, 3], [0, 5, 1]]
    both = make("*.csv", 5, shuffle=False, num_epochs=1, select_columns=["a", 3])
    assert [{k: v.tolist() for k, v in b.items()} for b in listed(both)] == [
        {"a": [1, 3, 0, 5, 7], "y": [0, 1, 0, 1, 1]}]
    shuffled = make("*.csv", 5, num_epochs=1, shuffle_seed=3)
    assert sorted(listed(shuffled)[0]["a"].tolist()) == [0, 1, 3, 5, 7]


def test_dtypes_are_found_from_the_rows(folder):
    (folder / "t").write_text("a,b,c,d,e\n1,3000000000,1e300,,x\n2,1,2,,\n")
    spec = make("t", 2, num_epochs=1).element_spec
    assert [spec[n].dtype.name for n in "abcde"] == ["int32", "int64", "float64", "string",
                                                    "string"]
    given = make("t", 2, num_epochs=1, column_defaults=[0.0, tf.int64, 0.0, "-", ""], shuffle=False)
    assert listed(given)[0]["d"].tolist() == [b"-", b"-"]
    assert listed(given)[0]["a"].dtype == np.float32


def test_records_that_are_none_are_left_out_where_that_is_asked(folder):
    (folder / "x").write_text("a,b\n1,2\n3\n4,5\n")
    with pytest.raises(ValueError, match="line 3 has 1"):
        make("x", 5, num_epochs=1)
    dataset = make("x", 5, num_epochs=1, shuffle=False, ignore_errors=True, column_defaults=[0, 0])
    assert listed(dataset)[0]["a"].tolist() == [1, 4]


@pytest.mark.parametrize("arguments", [
    {"file_pattern": "*.nope"}, {"label_name": "q"}, {"header": False},
    {"select_columns": ["q"]}, {"select_columns": [9]}, {"column_names": ["a", "a"]},
    {"file_pattern": "empty"}])
def test_what_is_not_there_is_named(folder, arguments):
    with pytest.raises(ValueError):
        make(**{"file_pattern": "c.csv", "batch_size": 2, **arguments})

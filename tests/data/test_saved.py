"""Datasets in folders: Dataset.save and load."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gtape as tf

Dataset = tf.data.Dataset


def listed(dataset):
    return list(dataset.as_numpy_iterator())


def example():
    return Dataset.from_tensor_slices((np.arange(6).reshape(3, 2), {"s": ["a", "", "c"]}))


@pytest.mark.parametrize("compression", [None, "GZIP", "NONE"])
def test_what_is_saved_is_loaded(tmp_path, compression):
    example().save(str(tmp_path / "d"), compression)
    loaded = Dataset.load(str(tmp_path / "d"))
    assert loaded.element_spec == example().element_spec and len(loaded) == 3
    assert [(x.tolist(), d["s"]) for x, d in listed(loaded)] == [
        ([0, 1], b"a"), ([2, 3], b""), ([4, 5], b"c")]


def test_elements_of_several_lengths_and_dtypes(tmp_path):
    made = Dataset.range(4).map(lambda n: (tf.range(n), tf.cast(n, tf.bfloat16), n > 1))
    tf.data.experimental.save(made, tmp_path)
    found = listed(tf.data.experimental.load(tmp_path))
    assert [x.tolist() for x, _, _ in found] == [[], [0], [0, 1], [0, 1, 2]]
    assert [bool(b) for _, _, b in found] == [False, False, True, True]


def test_shards(tmp_path):
    Dataset.range(6).save(tmp_path, shard_func=lambda n: n % 2)
    assert listed(Dataset.load(tmp_path)) == [0, 2, 4, 1, 3, 5]
    turns = Dataset.load(tmp_path, reader_func=lambda d: d.interleave(lambda x: x, cycle_length=2))
    assert listed(turns) == [0, 1, 2, 3, 4, 5]


def test_saving_again_replaces(tmp_path):
    Dataset.range(3).save(tmp_path)
    Dataset.range(5).save(tmp_path)
    assert len(listed(Dataset.load(tmp_path))) == 5
    assert len(list(tmp_path.iterdir())) == 2


def test_a_dataset_that_fails_leaves_what_was_there(tmp_path):
    Dataset.range(3).save(tmp_path)

    def numbers():
        yield 1
        raise ValueError("no more")

    with pytest.raises(tf.errors.InvalidArgumentError):
        Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int64)).save(tmp_path)
    assert listed(Dataset.load(tmp_path)) == [0, 1, 2]
    assert len(list(tmp_path.iterdir())) == 2


def test_the_spec_is_checked(tmp_path):
    Dataset.range(3).save(tmp_path)
    assert len(Dataset.load(tmp_path, tf.TensorSpec(None, tf.int64))) == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="element_spec"):
        Dataset.load(tmp_path, tf.TensorSpec([], tf.float32))
    with pytest.raises(tf.errors.NotFoundError, match="no dataset was saved"):
        Dataset.load(tmp_path / "none")


@pytest.mark.parametrize("change", [
    {"format": 9}, {"shards": [["../x", 3]]}, {"shards": [["x", -1]]}, {"shards": 3},
    {"spec": {"tensor": ["nonsense", []]}}, {"spec": {"code": "x"}}, {"spec": []},
    {"compression": "LZMA"}])
def test_a_damaged_description_is_an_error(tmp_path, change):
    Dataset.range(3).save(tmp_path)
    about = json.loads((tmp_path / "dataset.json").read_text())
    (tmp_path / "dataset.json").write_text(json.dumps({**about, **change}))
    with pytest.raises(tf.errors.DataLossError, match=r"dataset.json' is damaged"):
        Dataset.load(tmp_path)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{}", "null", "\x00"])
def test_a_description_that_is_none_is_an_error(tmp_path, text):
    (tmp_path / "dataset.json").write_text(text)
    with pytest.raises(tf.errors.DataLossError):
        Dataset.load(tmp_path)


def test_damaged_elements_name_file_and_element(tmp_path):
    Dataset.range(3).save(tmp_path)
    about = json.loads((tmp_path / "dataset.json").read_text())
    (tmp_path / "dataset.json").write_text(json.dumps({**about, "spec": {
        "tensor": ["float32", []]}}))
    with pytest.raises(tf.errors.DataLossError, match="element 0 is damaged"):
        listed(Dataset.load(tmp_path))
    (tmp_path / "dataset.json").write_text(json.dumps(
        {**about, "shards": [[about["shards"][0][0], 4]]}))
    with pytest.raises(tf.errors.DataLossError, match="3 elements, where 4 were saved"):
        listed(Dataset.load(tmp_path))

"""Datasets of values that are there already."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

Dataset = tf.data.Dataset


def test_slices_are_the_rows() -> None:
    made = list(Dataset.from_tensor_slices(([1, 2], {"a": ["x", "y"]})))
    assert [int(x) for x, _ in made] == [1, 2]
    assert [d["a"].numpy() for _, d in made] == [b"x", b"y"]


def test_slices_of_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="Dimensions 2 and 3 are not compatible"):
        Dataset.from_tensor_slices(([1, 2], [1, 2, 3]))


def test_from_tensors_has_one_element() -> None:
    dataset = Dataset.from_tensors(([1, 2], None))
    assert len(dataset) == 1
    (x, none), = dataset
    assert none is None
    np.testing.assert_array_equal(x, [1, 2])

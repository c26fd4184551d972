"""random_index_shuffle: a permutation for every seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gtape as tf


@given(st.integers(0, 300), st.integers(0, 2**31 - 1))
def test_every_seed_gives_a_permutation(top: int, seed: int) -> None:
    made = tf.random_index_shuffle(np.arange(top + 1), [seed, 1, 2], top).numpy()
    assert sorted(made.tolist()) == list(range(top + 1))


def test_one_index_at_a_time_and_a_seed_for_each() -> None:
    together = tf.random_index_shuffle(np.arange(10), [1, 2, 3], 9).numpy().tolist()
    assert [int(tf.random_index_shuffle(i, [1, 2, 3], 9)) for i in range(10)] == together
    several = tf.random_index_shuffle([4, 4], [[1, 2, 3], [1, 2, 4]], [9, 9])
    assert several.numpy()[0] == together[4] and several.dtype == tf.int32


def test_seeds_differ() -> None:
    orders = {tuple(tf.random_index_shuffle(np.arange(50), [s, 0, 0], 49).numpy().tolist())
              for s in range(10)}
    assert len(orders) == 10


def test_places_are_spread_evenly() -> None:
    seeds = np.stack([np.arange(2000), np.zeros(2000, int), np.zeros(2000, int)], 1)
    made = tf.random_index_shuffle(np.full(2000, 3), seeds, np.full(2000, 9)).numpy()
    counts = np.bincount(made, minlength=10)
    assert ((counts - 200) ** 2 / 200).sum() < 35


@pytest.mark.parametrize("index, seed, top, rounds", [
    (5, [1, 2, 3], 3, 4), (-1, [1, 2, 3], 3, 4), (0, [1, 2], 3, 4), (0, [1, 2, 3], 3, 3),
    (0.5, [1, 2, 3], 3, 4)])
def test_bad_input(index: Any, seed: Any, top: int, rounds: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.random_index_shuffle(index, seed, top, rounds)

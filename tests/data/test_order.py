"""Random orders: what a buffer allows, and that seeds repeat them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf

Dataset = tf.data.Dataset


def _order(dataset: Any) -> list[int]:
    return [int(x) for x in dataset.as_numpy_iterator()]


@pytest.fixture(autouse=True)
def _no_seed() -> Any:
    tf.random.set_seed(None)
    yield
    tf.random.set_seed(None)


@pytest.mark.parametrize("in_rows", [True, False])
@pytest.mark.parametrize(("count", "size"), [(100, 10), (5000, 7), (3000, 3000), (10, 100), (0, 3)])
def test_an_element_comes_no_earlier_than_the_buffer_lets_it(
        count: int, size: int, in_rows: bool) -> None:
    source = Dataset.range(count)
    dataset = source if in_rows else source.take_while(lambda x: True)
    order = _order(dataset.shuffle(size, seed=1))
    assert sorted(order) == list(range(count))
    # The k-th result is drawn when the first k + size elements have gone in.
    assert all(x < at + size for at, x in enumerate(order))


@pytest.mark.parametrize("in_rows", [True, False])
def test_a_place_of_the_buffer_is_drawn_as_often_as_any_other(in_rows: bool) -> None:
    size, source = 4, Dataset.range(20)
    dataset = (source if in_rows else source.take_while(lambda x: True)).shuffle(size, seed=3)
    first = np.bincount([next(iter(dataset)).numpy() for _ in range(4000)], minlength=size)
    assert len(first) == size
    # 1000 each; the standard deviation is 27.
    assert np.abs(first - 1000).max() < 150


def test_the_delay_of_an_element_is_geometric() -> None:
    size, delays = 50, []
    order = _order(Dataset.range(20_000).shuffle(size, seed=5))
    for at, x in enumerate(order):
        if size < x < 19_000:
            delays.append(at + size - 1 - x)
    # It leaves at each step with probability 1 / size: the mean number of steps is size - 1.
    assert min(delays) == 0
    assert abs(np.mean(delays) - (size - 1)) < 2


def test_every_pass_has_another_order_unless_it_may_not() -> None:
    again = Dataset.range(50).shuffle(50)
    assert _order(again) != _order(again)
    fixed = Dataset.range(50).shuffle(50, reshuffle_each_iteration=False)
    assert _order(fixed) == _order(fixed)
    repeated = _order(Dataset.range(50).shuffle(50, seed=2).repeat(2))
    assert repeated[:50] != repeated[50:]
    assert sorted(repeated[:50]) == sorted(repeated[50:]) == list(range(50))
    same = _order(Dataset.range(50).shuffle(50, reshuffle_each_iteration=False).repeat(2))
    assert same[:50] == same[50:]


def test_a_shuffle_after_repeat_mixes_the_passes() -> None:
    order = _order(Dataset.range(10).repeat(3).shuffle(30, seed=1))
    assert sorted(order) == sorted(list(range(10)) * 3)
    assert len(set(order[:10])) < 10


def test_a_seed_gives_the_same_orders_again() -> None:
    def orders() -> list[list[int]]:
        dataset = Dataset.range(30).shuffle(30, seed=7)
        return [_order(dataset), _order(dataset)]

    assert orders() == orders()


def test_the_global_seed_gives_the_same_orders_again() -> None:
    def orders() -> list[list[int]]:
        tf.random.set_seed(11)
        return [_order(Dataset.range(30).shuffle(30)) for _ in range(2)]

    first, second = orders(), orders()
    assert first == second
    assert first[0] != first[1]
    tf.random.set_seed(12)
    assert _order(Dataset.range(30).shuffle(30)) != first[0]


def test_samples_follow_the_weights() -> None:
    datasets = [Dataset.from_tensors(i).repeat() for i in range(3)]
    drawn = Dataset.sample_from_datasets(datasets, [0.5, 0.25, 0.25], seed=1).take(4000)
    counts = np.bincount(_order(drawn))
    # The standard deviations are 32 and 27.
    assert np.abs(counts - [2000, 1000, 1000]).max() < 160


def test_a_dataset_without_elements_left_is_sampled_no_more() -> None:
    datasets = [Dataset.range(3), Dataset.range(10, 15)]
    drawn = _order(Dataset.sample_from_datasets(datasets, seed=1))
    assert sorted(drawn) == [0, 1, 2, 10, 11, 12, 13, 14]


def test_random_numbers_repeat_in_every_pass_unless_they_are_renewed() -> None:
    fixed = Dataset.random(seed=4).take(5)
    assert _order(fixed) == _order(fixed)
    renewed = Dataset.random(seed=4, rerandomize_each_iteration=True).take(5)
    assert _order(renewed) != _order(renewed)
    assert all(0 <= x < 2 ** 32 for x in _order(renewed))


def test_resampling_gives_the_classes_wanted() -> None:
    source = Dataset.from_tensor_slices(np.repeat([0, 1], [9000, 1000]).astype(np.int32))
    made = source.shuffle(10_000, seed=1).rejection_resample(
        lambda x: x, [0.5, 0.5], [0.9, 0.1], seed=2)
    classes = [int(c) for c, _ in made]
    assert 0.45 < np.mean(classes) < 0.55
    assert len(classes) > 1500


def test_map_draws_other_numbers_for_every_element() -> None:
    tf.random.set_seed(3)
    drawn = list(Dataset.range(20).map(lambda x: tf.random.uniform([])).as_numpy_iterator())
    assert len(set(drawn)) == 20


def _augmented(image: Any) -> Any:
    x = tf.cast(image, tf.float32) / 255.0
    x = tf.cond(tf.random.uniform([]) < 0.5, lambda: tf.image.flip_left_right(x), lambda: x)
    x += tf.random.normal([8, 8, 3]) * 0.1
    return x * tf.random.uniform([3], 0.8, 1.2) + tf.cast(
        tf.random.uniform([2, 1, 1], 0, 5, tf.int32)[0], tf.float32)


@pytest.mark.parametrize("function", [
    _augmented, lambda i: tf.random.uniform([3], seed=5) + tf.random.uniform([]),
    lambda i: tf.random.normal([2], dtype=tf.float64), lambda i: tf.random.shuffle(tf.range(9)),
    lambda i: tf.random.truncated_normal([3])])
def test_numbers_drawn_for_whole_batches_are_those_drawn_one_by_one(function: Any) -> None:
    images = np.random.default_rng(0).integers(0, 255, (50, 8, 8, 3)).astype(np.uint8)
    source = Dataset.from_tensor_slices(images)
    tf.random.set_seed(3)
    together = np.concatenate(list(source.map(function).batch(32).as_numpy_iterator()))
    tf.random.set_seed(3)
    single = source.take_while(lambda image: True).map(function)
    np.testing.assert_array_equal(together, np.stack(list(single.as_numpy_iterator())))

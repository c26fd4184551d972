"""tf.random: sequences, seeds, ranges, gradients, Generator, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gtape as tf


def _draws():
    return [tf.random.normal([3]).numpy(), tf.random.uniform([3], seed=5).numpy(),
            tf.random.uniform([3], seed=5).numpy(), tf.random.normal([3]).numpy()]


def test_set_seed_resets_every_sequence():
    tf.random.set_seed(1)
    first = _draws()
    tf.random.set_seed(1)
    for a, b in zip(first, _draws()):
        np.testing.assert_array_equal(a, b)
    tf.random.set_seed(2)
    assert all(np.any(a != b) for a, b in zip(first, _draws()))
    assert len({tuple(a) for a in first}) == 4


def test_set_seed_none_is_unpredictable():
    tf.random.set_seed(None)
    first = tf.random.normal([4]).numpy()
    tf.random.set_seed(None)
    assert np.any(first != tf.random.normal([4]).numpy())


def test_moments_of_the_distributions():
    tf.random.set_seed(0)
    n = [20000]
    for values, mean, std in [
            (tf.random.normal(n, 2.0, 3.0), 2, 3), (tf.random.uniform(n, -1, 1), 0, 0.577),
            (tf.random.truncated_normal(n), 0, 0.8796), (tf.random.poisson(n, 4.0), 4, 2),
            (tf.random.gamma(n, 4.0, 2.0), 2, 1)]:
        assert abs(np.mean(values.numpy()) - mean) < 0.1
        assert abs(np.std(values.numpy()) - std) < 0.1


def test_shapes_and_dtypes():
    assert tf.random.normal(tf.constant([2, 3]), dtype=tf.float64).dtype is tf.float64
    assert tf.random.normal([]).shape == ()
    assert tf.random.normal([0, 3]).shape == (0, 3)
    assert tf.random.gamma([5], [1.0, 2.0]).shape == (5, 2)
    assert tf.random.poisson([5], [1.0, 2.0, 3.0]).shape == (5, 3)
    assert tf.random.normal([2], [1.0, 2.0]).shape == (2,)


def test_integers():
    tf.random.set_seed(0)
    values = tf.random.uniform([1000], -2, 3, tf.int32)
    assert values.dtype is tf.int32
    np.testing.assert_array_equal(np.unique(values), [-2, -1, 0, 1, 2])


def test_location_and_scale_are_differentiable():
    mean, scale = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.random.normal([4, 2], mean, scale)
    d_mean, d_scale = tape.gradient(y, [mean, scale])
    np.testing.assert_array_equal(d_mean, [4, 4])
    noise = (y.numpy() - mean.numpy()) / 3
    np.testing.assert_allclose(d_scale, noise.sum(), rtol=1e-4)


def test_gamma_is_differentiable_in_its_shape():
    tf.random.set_seed(0)
    alpha = tf.Variable([0.3, 2.0, 50.0], dtype=tf.float64)
    with tf.GradientTape() as tape:
        mean = tf.reduce_mean(tf.random.gamma([20000], alpha, dtype=tf.float64), 0)
    np.testing.assert_allclose(tape.gradient(mean, alpha), [1, 1, 1], atol=0.05)


def test_categorical():
    tf.random.set_seed(0)
    drawn = tf.random.categorical([[0.0, np.log(3.0)], [9.0, -np.inf]], 4000).numpy()
    assert drawn.dtype == np.int64
    assert abs(drawn[0].mean() - 0.75) < 0.03
    assert not drawn[1].any()


def test_shuffle():
    x = tf.Variable(np.arange(20.0))
    with tf.GradientTape() as tape:
        y = tf.random.shuffle(x)
    np.testing.assert_array_equal(np.sort(y), np.arange(20))
    assert np.any(y.numpy() != np.arange(20))
    assert tape.gradient(y, x) is None


def test_stateless_functions_are_pure():
    for function in (tf.random.stateless_normal, tf.random.stateless_uniform,
                     tf.random.stateless_truncated_normal):
        first = function([5], [1, 2]).numpy()
        np.testing.assert_array_equal(function([5], tf.constant([1, 2])), first)
        assert np.any(function([5], [1, 3]).numpy() != first)
    full = tf.random.stateless_uniform([100], [1, 2], None, None, tf.int32).numpy()
    assert full.min() < -1e8 and full.max() > 1e8


def test_split_and_fold_in():
    seeds = tf.random.split([1, 2], 3)
    assert seeds.shape == (3, 2) and seeds.dtype is tf.int32
    assert len(np.unique(seeds.numpy()[:, 0])) == 3
    a, b = (tf.random.fold_in([1, 2], step).numpy() for step in (1, 2))
    assert a.shape == (2,) and np.any(a != b)


def test_bounded_normal_values():
    values = tf.random.stateless_parameterized_truncated_normal(
        [1000], [1, 2], 0.0, 1.0, -0.5, 3.0).numpy()
    assert values.min() >= -0.5 and values.max() <= 3 and values.std() > 0.4


def test_generator_goes_on_from_its_state():
    made = tf.random.Generator.from_seed(3)
    made.normal([7])
    copy = tf.random.Generator.from_state(made.state, "philox")
    np.testing.assert_array_equal(made.uniform([5]), copy.uniform([5]))
    made.reset_from_seed(3)
    first = made.normal([7]).numpy()
    made.reset(tf.random.create_rng_state(3, "philox"))
    np.testing.assert_array_equal(made.normal([7]), first)


def test_generator_skips_and_splits():
    a, b = (tf.random.Generator.from_seed(3) for _ in range(2))
    a.normal([10])
    b.skip(10)
    np.testing.assert_array_equal(a.normal([4]), b.normal([4]))
    left, right = a.split(2)
    assert np.any(left.normal([4]).numpy() != right.normal([4]).numpy())
    assert a.make_seeds(3).shape == (2, 3)
    assert a.binomial([4], 10.0, 0.5).dtype is tf.int32
    assert a.uniform_full_int([2]).dtype is tf.uint64
    assert a.algorithm == tf.random.Algorithm.PHILOX.value


def test_global_generator():
    mine = tf.random.Generator.from_key_counter(5, [7, 0], "philox")
    tf.random.set_global_generator(mine)
    assert tf.random.get_global_generator() is mine
    np.testing.assert_array_equal(mine.state, [7, 0, 5])


@pytest.mark.parametrize("call, error", [
    (lambda: tf.random.uniform([2], dtype=tf.int32), ValueError),
    (lambda: tf.random.uniform([2], 5, 5, tf.int32), tf.errors.InvalidArgumentError),
    (lambda: tf.random.normal([2], dtype=tf.int32), TypeError),
    (lambda: tf.random.normal([-2]), tf.errors.InvalidArgumentError),
    (lambda: tf.random.normal([2.5]), TypeError),
    (lambda: tf.random.normal([2], [1.0, 2.0, 3.0]), tf.errors.InvalidArgumentError),
    (lambda: tf.random.categorical([1.0, 2.0], 3), tf.errors.InvalidArgumentError),
    (lambda: tf.random.shuffle(1.0), tf.errors.InvalidArgumentError),
    (lambda: tf.random.stateless_normal([2], [1, 2, 3]), tf.errors.InvalidArgumentError),
    (lambda: tf.random.set_seed("a"), TypeError),
    (lambda: tf.random.Generator.from_seed(1, "threefry"), ValueError),
    (lambda: tf.random.Generator(), ValueError)])
def test_errors(call, error):
    with pytest.raises(error):
        call()


def test_absent_names_say_what_to_use():
    with pytest.raises(AttributeError, match="categorical"):
        tf.random.uniform_candidate_sampler


def test_poisson_of_a_negative_mean_is_zero():
    assert tf.random.poisson([4], -1.0).numpy().tolist() == [0] * 4


def test_a_floating_dtype_holds_inf_for_more_successes_than_it_has() -> None:
    made = tf.random.stateless_binomial([3], [1, 2], 1e5, 0.99, output_dtype=tf.float16)
    assert made.numpy().tolist() == [np.inf] * 3


@pytest.mark.parametrize("draw", [
    lambda g: g.normal([2], mean="x"), lambda g: g.uniform([2**62]), lambda g: g.make_seeds(-1)])
def test_a_generator_that_refuses_has_drawn_nothing(draw: Any) -> None:
    made = tf.random.Generator.from_seed(3)
    before = made.state.numpy().tolist()
    with pytest.raises((TypeError, ValueError, tf.errors.OpError)):
        draw(made)
    assert made.state.numpy().tolist() == before


# ---------------------------------------------------------------- a shuffled order without a table
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

"""Random arrays: their distributions, their limits, and that they are pure functions."""

import numpy as np
import pytest

from gtape.numerics import distributions, rejection
from gtape.numerics.distributions import normal_pairs

stats = pytest.importorskip("scipy.stats")

KEY, COUNT = (2024, 7), 40_000
# Fixed keys make these tests deterministic; the level only has to exclude a wrong formula.
LEVEL = 1e-3


def fits(values, expected):
    return stats.kstest(values, expected.cdf).pvalue > LEVEL


def fits_discrete(values, expected):
    low, high = int(expected.ppf(1e-3)), int(expected.ppf(1 - 1e-3))
    support = np.arange(low, high + 1)
    seen = np.array([(values == v).sum() for v in support])
    hoped = expected.pmf(support) * len(values)
    common = hoped > 8
    seen, hoped = (np.append(c[common], len(values) - c[common].sum()) for c in (seen, hoped))
    return stats.chisquare(seen, hoped).pvalue > LEVEL


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "draw, parameters, expected",
    [
        (distributions.uniform, (-1.0, 3.0), stats.uniform(-1, 4)),
        (distributions.normal, (1.0, 2.0), stats.norm(1, 2)),
        (distributions.truncated_normal, (0.0, 1.0), stats.truncnorm(-2, 2)),
        (rejection.gamma, (0.2, 1.0), stats.gamma(0.2)),
        (rejection.gamma, (1.0, 2.0), stats.gamma(1.0, scale=0.5)),
        (rejection.gamma, (30.0, 2.0), stats.gamma(30.0, scale=0.5)),
    ],
)
def test_continuous_distributions(draw, parameters, expected, dtype):
    values = draw(np, KEY, 5, (COUNT,), dtype, *parameters)
    assert values.dtype == dtype
    assert fits(values.astype(float), expected)


@pytest.mark.parametrize("mean", [0.3, 9.9, 10.1, 500.0])
def test_poisson(mean):
    values = rejection.poisson(np, KEY, 5, (COUNT,), np.int64, mean)
    assert values.dtype == np.int64
    assert fits_discrete(values, stats.poisson(mean))


@pytest.mark.parametrize("n, p", [(1, 0.3), (20, 0.9), (50, 0.5), (1000, 0.01), (10_000, 0.97)])
def test_binomial(n, p):
    values = rejection.binomial(np, KEY, 5, (COUNT,), np.int64, n, p)
    assert fits_discrete(values, stats.binom(n, p))


def test_limits_of_poisson_and_binomial():
    assert not rejection.poisson(np, KEY, 0, (4,), np.float32, 0.0).any()
    hits = rejection.binomial(np, KEY, 0, (4,), np.int32, [0, 5, 5, 400], [0.5, 0, 1, 1.0])
    np.testing.assert_array_equal(hits, [0, 0, 5, 400])
    assert rejection.binomial(np, KEY, 0, (), np.float32, 0, np.nan) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pairs_of_normal_values_are_right_to_the_last_bits(dtype):
    digits = 23 if dtype == "float32" else 52
    bits = np.random.default_rng(0).integers(1, 2**digits, (2, 20_000))
    bits[1, :8] = np.arange(8) << digits - 3
    u, v = (bits.astype(np.longdouble) / 2**digits)
    made = normal_pairs(np, u.astype(dtype), v.astype(dtype))
    radius, turn = np.sqrt(-2 * np.log(np.maximum(u, 1e-7))), 2 * np.longdouble(np.pi) * v
    wanted = radius[:, None] * np.stack([np.sin(turn), np.cos(turn)], 1)
    np.testing.assert_allclose(made, wanted, rtol=0, atol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uniform_stays_below_its_upper_end(dtype):
    values = distributions.uniform(np, KEY, 0, (COUNT,), dtype)
    assert values.dtype == dtype and values.min() >= 0 and values.max() < 1
    shifted = distributions.uniform(np, KEY, 0, (COUNT,), dtype, 100.0, 101.0)
    assert shifted.min() >= 100 and shifted.max() < 101


def test_truncated_normal_stays_within_two_deviations():
    values = distributions.truncated_normal(np, KEY, 0, (COUNT,), np.float16, 0.0, 1.0)
    assert np.abs(values).max() <= 2


@pytest.mark.parametrize(
    "dtype, low, high",
    [("int32", -3, 4), ("int64", -(2**63), 2**63 - 1), ("uint64", 0, 2**64), ("uint8", 250, 256)],
)
def test_integers_lie_in_their_range(dtype, low, high):
    values = distributions.uniform_int(np, KEY, 0, (COUNT,), dtype, low, high)
    assert values.dtype == dtype
    assert low <= int(values.min()) and int(values.max()) < high
    if high - low < 100:
        _, seen = np.unique(values, return_counts=True)
        assert len(seen) == high - low and stats.chisquare(seen).pvalue > LEVEL


def test_an_empty_integer_range_is_refused():
    with pytest.raises(ValueError, match=r"low < high; got low 3, high 3"):
        distributions.uniform_int(np, KEY, 0, (2,), np.int32, 3, 3)


def test_bernoulli():
    mask = distributions.bernoulli(np, KEY, 0, (COUNT,), 0.3)
    assert mask.dtype == bool and abs(mask.mean() - 0.3) < 0.01
    assert distributions.bernoulli(np, KEY, 0, (9,), 1.0).all()
    assert not distributions.bernoulli(np, KEY, 0, (9,), 0.0).any()


def test_categorical_follows_the_softmax_and_skips_impossible_classes():
    with np.errstate(divide="ignore"):
        logits = np.log(np.array([[0.1, 0.2, 0.0, 0.7], [0.0, 0.0, 1.0, 0.0]])) + 3
    drawn = distributions.categorical(np, KEY, 0, logits.astype(np.float32), COUNT)
    assert drawn.dtype == np.int64 and drawn.shape == (2, COUNT)
    seen = np.bincount(drawn[0], minlength=4)
    assert seen[2] == 0 and (drawn[1] == 2).all()
    hoped = np.array([0.1, 0.2, 0.7]) * COUNT
    assert stats.chisquare(seen[[0, 1, 3]], hoped).pvalue > LEVEL


def test_one_class_is_always_drawn():
    assert not distributions.categorical(np, KEY, 0, np.zeros((2, 1)), 5).any()


def test_permutation_is_one():
    order = distributions.permutation(np, KEY, 0, 1000)
    np.testing.assert_array_equal(np.sort(order), np.arange(1000))
    assert (order != np.arange(1000)).mean() > 0.9


DRAWS = [
    lambda key, offset, n: distributions.uniform(np, key, offset, (n,), np.float64),
    lambda key, offset, n: distributions.normal(np, key, offset, (n,), np.float64),
    lambda key, offset, n: distributions.truncated_normal(np, key, offset, (n,), np.float64),
    lambda key, offset, n: distributions.permutation(np, key, offset, n),
    lambda key, offset, n: rejection.gamma(np, key, offset, (n,), np.float64, 0.5, 1.0),
    lambda key, offset, n: rejection.poisson(np, key, offset, (n,), np.float64, 30.0),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_draws_are_pure_functions_of_key_and_offset(draw):
    first = draw((1, 2), 100, 50)
    np.testing.assert_array_equal(first, draw((1, 2), 100, 50))
    assert (first != draw((1, 2), 150, 50)).any()
    assert (first != draw((1, 3), 100, 50)).any()


def test_consecutive_draws_share_no_value():
    n = 1000
    values = [DRAWS[1]((1, 2), i * n, n) for i in range(4)]
    assert len(np.unique(np.concatenate(values))) == 4 * n


def test_a_value_does_not_depend_on_its_neighbours_rejections():
    alone = rejection.gamma(np, KEY, 3, (1,), np.float64, 2.0, 1.0)
    among = rejection.gamma(np, KEY, 0, (50,), np.float64, np.linspace(0.1, 9, 50), 1.0)
    same = rejection.gamma(np, KEY, 0, (4,), np.float64, [0.1, 9.0, 4.0, 2.0], 1.0)
    assert same[3] == alone[0] and among[0] == same[0]


def test_shapes():
    assert distributions.normal(np, KEY, 0, (), np.float32).shape == ()
    assert distributions.normal(np, KEY, 0, (0, 3), np.float16).shape == (0, 3)
    assert rejection.gamma(np, KEY, 0, (2, 3), np.float32, np.ones((2, 1)), 1.0).shape == (2, 3)

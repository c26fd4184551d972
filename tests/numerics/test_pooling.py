"""Max and average pooling."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gtape.numerics import pooling, windows


@st.composite
def problems(draw):
    rank = draw(st.integers(1, 3))
    size = [draw(st.integers(1, 3)) for _ in range(rank)]
    strides = [draw(st.integers(1, 3)) for _ in range(rank)]
    dilations = [draw(st.integers(1, 2)) for _ in range(rank)]
    spatial = [draw(st.integers(5, 7)) for _ in range(rank)]
    kind = draw(st.sampled_from(["SAME", "VALID"]))
    pads = windows.padding(kind, spatial, size, strides, dilations)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # Few different values, so that ties are common.
    x = rng.integers(-3, 0, (2, *spatial, 3)).astype(np.float64)
    return rng, x, (size, strides, dilations, pads)


def seen(x, out, size, strides, dilations, pads):
    """The cells of x[n, *, c] that one window sees and that are no padding, with their places."""
    for k in product(*map(range, size)):
        at = [o * s + i * d - before for o, s, i, d, (before, _) in
              zip(out, strides, k, dilations, pads, strict=True)]
        if all(0 <= i < n for i, n in zip(at, x.shape, strict=True)):
            yield tuple(at), x[tuple(at)]


@given(problems())
@settings(max_examples=25, deadline=None)
def test_pooling_is_the_definition(problem):
    rng, x, geometry = problem
    largest, mean = pooling.max_pool(np, x, *geometry), pooling.avg_pool(np, x, *geometry)
    places = pooling.winners(np, x, largest, *geometry)
    index = pooling.flat_index(np, places, x.shape, *geometry)
    g = rng.standard_normal(largest.shape)
    to_winner, shared = np.zeros(x.shape), np.zeros(x.shape)
    for n, *out, c in np.ndindex(*largest.shape):
        image, window = x[n, ..., c], (n, *out, c)
        inside = list(seen(image, out, *geometry))
        winner, top = max(inside, key=lambda cell: cell[1])
        assert largest[window] == top
        assert index[window] == np.ravel_multi_index((*winner, c), x.shape[1:])
        to_winner[(n, *winner, c)] += g[window]
        np.testing.assert_allclose(mean[window], sum(v for _, v in inside) / len(inside))
        for at, _ in inside:
            shared[(n, *at, c)] += g[window] / len(inside)
    spread = pooling.unpool(np, g, places, x.shape, *geometry)
    np.testing.assert_allclose(spread, to_winner, atol=1e-12)
    gradient = pooling.avg_pool_grad(np, g, x.shape, *geometry)
    np.testing.assert_allclose(gradient, shared, atol=1e-12)


@given(problems())
@settings(max_examples=40, deadline=None)
def test_max_is_the_first_of_the_largest_cells(problem):
    _, x, geometry = problem
    size, strides, dilations, pads = geometry
    padded = windows.pad(np, x, pads, -np.inf)
    seen = windows.patches(np, padded, size, strides, dilations)
    rank = len(size)
    flat = np.moveaxis(seen, -1, 1 + rank).reshape(*seen.shape[: 1 + rank], x.shape[-1], -1)
    y = pooling.max_pool(np, x, *geometry)
    np.testing.assert_array_equal(y, flat.max(axis=-1))
    found = pooling.winners(np, x, y, *geometry)
    np.testing.assert_array_equal(found, flat.argmax(axis=-1))
    np.testing.assert_array_equal(pooling.pick(np, x, found, *geometry), y)
    index = pooling.flat_index(np, found, x.shape, *geometry, include_batch=True)
    np.testing.assert_array_equal(x.ravel()[index], y)
    within = pooling.flat_index(np, found, x.shape, *geometry)
    np.testing.assert_array_equal(x[1].ravel()[within[1]], y[1])


@given(problems())
@settings(max_examples=40, deadline=None)
def test_unpool_and_avg_pool_grad_are_adjoints(problem):
    rng, x, geometry = problem
    y = pooling.max_pool(np, x, *geometry)
    found = pooling.winners(np, x, y, *geometry)
    g = rng.standard_normal(y.shape)
    spread = pooling.unpool(np, g, found, x.shape, *geometry)
    np.testing.assert_allclose(np.vdot(spread, x), np.vdot(g, y), atol=1e-9)
    mean = pooling.avg_pool(np, x, *geometry)
    shared = pooling.avg_pool_grad(np, g, x.shape, *geometry)
    np.testing.assert_allclose(np.vdot(shared, x), np.vdot(g, mean), atol=1e-9)


def test_padding_is_not_counted_in_the_mean():
    x = np.array([[1.0, 3.0], [3.0, 2.0]]).reshape(1, 2, 2, 1)
    pads = windows.padding("SAME", (2, 2), (2, 2), (1, 1), (1, 1))
    mean = pooling.avg_pool(np, x, (2, 2), (1, 1), (1, 1), pads)
    np.testing.assert_array_equal(mean.ravel(), [2.25, 2.5, 2.5, 2.0])


def test_padding_never_wins():
    x = np.full((1, 3, 1), -5, np.int32)
    pads = windows.padding("SAME", (3,), (3,), (1,), (1,))
    assert (pooling.max_pool(np, x, (3,), (1,), (1,), pads) == -5).all()


def test_a_nan_wins_and_is_found():
    x = np.array([1.0, np.nan, 3.0, np.nan]).reshape(1, 4, 1)
    geometry = ((4,), (4,), (1,), ((0, 0),))
    y = pooling.max_pool(np, x, *geometry)
    assert np.isnan(y).all()
    assert pooling.winners(np, x, y, *geometry).item() == 1


def test_an_infinite_gradient_reaches_the_winner_only():
    x = np.array([1.0, 2.0]).reshape(1, 2, 1)
    geometry = ((2,), (2,), (1,), ((0, 0),))
    found = pooling.winners(np, x, pooling.max_pool(np, x, *geometry), *geometry)
    for dtype in ("float16", "float32", "float64"):
        g = np.full((1, 1, 1), np.inf, dtype)
        spread = pooling.unpool(np, g, found, x.shape, *geometry)
        assert spread.dtype == dtype
        np.testing.assert_array_equal(spread.ravel(), [0.0, np.inf])


def test_float16_means_are_summed_in_float32():
    x = np.full((1, 4096, 1), 1.0, np.float16)
    mean = pooling.avg_pool(np, x, (4096,), (1,), (1,), ((0, 0),))
    assert mean.dtype == np.float16 and mean.item() == 1.0

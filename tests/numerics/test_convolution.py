"""Convolutions against a sum written out, and their gradients as adjoints."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gtape.numerics import convolution, windows


def written_out(x, filters, strides, dilations, pads, groups):
    """The definition, one output at a time."""
    *size, depth, features = filters.shape
    padded = windows.pad(np, x, pads)
    outs = windows.out_sizes(x.shape[1:-1], size, strides, dilations, pads)
    y = np.zeros((x.shape[0], *outs, features))
    for n, f in product(range(x.shape[0]), range(features)):
        first = f // (features // groups) * depth
        for out in product(*map(range, outs)):
            for k in product(*map(range, size)):
                at = tuple(
                    o * s + c * d for o, s, c, d in zip(out, strides, k, dilations, strict=True)
                )
                cell = padded[(n, *at)][first : first + depth]
                y[(n, *out, f)] += cell @ filters[(*k, slice(None), f)]
    return y


@st.composite
def problems(draw):
    rank = draw(st.integers(1, 3))
    size = [draw(st.integers(1, 3)) for _ in range(rank)]
    strides = [draw(st.integers(1, 2)) for _ in range(rank)]
    dilations = [draw(st.integers(1, 2)) for _ in range(rank)]
    spatial = [draw(st.integers(5, 6 if rank < 3 else 5)) for _ in range(rank)]
    kind = draw(st.sampled_from(["SAME", "VALID", [(1, 2)] * rank]))
    pads = windows.padding(kind, spatial, size, strides, dilations)
    groups = draw(st.sampled_from([1, 2]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.standard_normal((2, *spatial, 2 * groups))
    filters = rng.standard_normal((*size, 2, 3 * groups))
    return rng, x, filters, (strides, dilations, pads), groups


@given(problems())
@settings(max_examples=15, deadline=None)
def test_forward_is_the_definition(problem):
    _, x, filters, geometry, groups = problem
    y = convolution.conv_forward(np, x, filters, *geometry, groups)
    np.testing.assert_allclose(y, written_out(x, filters, *geometry, groups), atol=1e-10)


@given(problems())
@settings(max_examples=30, deadline=None)
def test_gradients_are_adjoints(problem):
    rng, x, filters, geometry, groups = problem
    y = convolution.conv_forward(np, x, filters, *geometry, groups)
    g = rng.standard_normal(y.shape)
    dx = convolution.conv_input_grad(np, g, filters, x.shape, *geometry, groups)
    size = filters.shape[:-2]
    dw = convolution.conv_filter_grad(np, x, g, size, *geometry, groups)
    assert dx.shape == x.shape and dw.shape == filters.shape
    np.testing.assert_allclose(np.vdot(dx, x), np.vdot(g, y), atol=1e-9)
    np.testing.assert_allclose(np.vdot(dw, filters), np.vdot(g, y), atol=1e-9)


@given(problems())
@settings(max_examples=30, deadline=None)
def test_depthwise_is_a_convolution_with_a_group_per_channel(problem):
    rng, x, _, geometry, _ = problem
    channels, multiplier = x.shape[-1], 2
    size = tuple(rng.integers(1, 3, x.ndim - 2))
    strides, dilations, _ = geometry
    pads = windows.padding("SAME", x.shape[1:-1], size, strides, dilations)
    filters = rng.standard_normal((*size, channels, multiplier))
    grouped = filters.reshape(*size, 1, channels * multiplier)
    y = convolution.depthwise_forward(np, x, filters, strides, dilations, pads)
    expected = convolution.conv_forward(np, x, grouped, strides, dilations, pads, channels)
    np.testing.assert_allclose(y, expected, atol=1e-10)
    g = rng.standard_normal(y.shape)
    dx = convolution.depthwise_input_grad(np, g, filters, x.shape, strides, dilations, pads)
    dw = convolution.depthwise_filter_grad(np, x, g, size, strides, dilations, pads)
    assert dx.shape == x.shape and dw.shape == filters.shape
    np.testing.assert_allclose(np.vdot(dx, x), np.vdot(g, y), atol=1e-9)
    np.testing.assert_allclose(np.vdot(dw, filters), np.vdot(g, y), atol=1e-9)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtype_is_kept_and_float16_is_summed_in_float32(dtype):
    x = np.full((1, 64, 1), 1.0, dtype)
    filters = np.full((64, 1, 1), 1 / 64, dtype)
    geometry = ((1,), (1,), ((0, 0),))
    y = convolution.conv_forward(np, x, filters, *geometry)
    assert y.dtype == dtype and y.shape == (1, 1, 1) and y[0, 0, 0] == 1
    g = np.ones_like(y)
    assert convolution.conv_input_grad(np, g, filters, x.shape, *geometry).dtype == dtype
    assert convolution.conv_filter_grad(np, x, g, (64,), *geometry).dtype == dtype
    assert convolution.depthwise_forward(np, x, filters, *geometry).dtype == dtype


def test_blocks_of_a_large_batch_agree_with_one_block(monkeypatch):
    rng = np.random.default_rng(0)
    x, filters = rng.standard_normal((5, 4, 4, 2)), rng.standard_normal((3, 3, 2, 3))
    geometry = ((1, 1), (1, 1), ((1, 1), (1, 1)))
    g = rng.standard_normal((5, 4, 4, 3))
    whole = convolution.conv_forward(np, x, filters, *geometry)
    whole_grad = convolution.conv_filter_grad(np, x, g, (3, 3), *geometry)
    monkeypatch.setattr(convolution, "HOST_BLOCK", 5000)
    pieces = convolution.conv_forward(np, x, filters, *geometry)
    pieces_grad = convolution.conv_filter_grad(np, x, g, (3, 3), *geometry)
    np.testing.assert_allclose(pieces, whole, atol=1e-12)
    np.testing.assert_allclose(pieces_grad, whole_grad, atol=1e-12)


def test_an_empty_batch_gives_an_empty_result():
    geometry = ((1, 1), (1, 1), ((1, 1), (1, 1)))
    x, filters = np.zeros((0, 4, 4, 2)), np.zeros((3, 3, 2, 3))
    assert convolution.conv_forward(np, x, filters, *geometry).shape == (0, 4, 4, 3)
    g = np.zeros((0, 4, 4, 3))
    assert not convolution.conv_filter_grad(np, x, g, (3, 3), *geometry).any()


def test_wrong_channels_are_refused():
    geometry = ((1,), (1,), ((0, 0),))
    x = np.zeros((1, 5, 4))
    with pytest.raises(ValueError, match=r"input \(1, 5, 4\), filter \(2, 3, 6\), groups 1"):
        convolution.conv_forward(np, x, np.zeros((2, 3, 6)), *geometry)
    with pytest.raises(ValueError, match="groups 2"):
        convolution.conv_forward(np, x, np.zeros((2, 2, 5)), *geometry, 2)
    with pytest.raises(ValueError, match=r"one row per input channel; got input \(1, 5, 4\)"):
        convolution.depthwise_forward(np, x, np.zeros((2, 3, 1)), *geometry)

"""Padding rules, and patches and fold as an adjoint pair."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gtape.numerics import windows

lengths = st.integers(3, 7)
small = st.integers(1, 3)


@st.composite
def geometries(draw):
    rank = draw(st.integers(1, 3))
    size = [draw(small) for _ in range(rank)]
    dilations = [draw(st.integers(1, 2)) for _ in range(rank)]
    strides = [draw(small) for _ in range(rank)]
    spatial = [draw(lengths) for _ in range(rank)]
    spatial = [max(n, windows.span(k, d)) for n, k, d in zip(spatial, size, dilations, strict=True)]
    return spatial, size, strides, dilations


def test_same_puts_the_odd_cell_at_the_end():
    assert windows.padding("SAME", (5, 6), (2, 3), (1, 2), (1, 1)) == ((0, 1), (0, 1))
    assert windows.padding("same", (8,), (3,), (1,), (2,)) == ((2, 2),)
    assert windows.padding("VALID", (8,), (3,), (1,), (1,)) == ((0, 0),)
    assert windows.padding([[1, 2]], (8,), (3,), (1,), (1,)) == ((1, 2),)


@given(geometries())
@settings(max_examples=50, deadline=None)
def test_same_gives_one_output_per_stride(geometry):
    spatial, *rest = geometry
    pads = windows.padding("SAME", spatial, *rest)
    expected = tuple(-(-n // s) for n, s in zip(spatial, rest[1], strict=True))
    assert windows.out_sizes(spatial, *rest, pads) == expected


@pytest.mark.parametrize("kind", ["FULL", [[1, 1]], [[-1, 0], [0, 0]]])
def test_unknown_padding_is_refused(kind):
    with pytest.raises(ValueError, match=r"padding must .*\(before, after\) pairs"):
        windows.padding(kind, (4, 4), (2, 2), (1, 1), (1, 1))


def test_a_window_larger_than_its_input_is_refused():
    with pytest.raises(ValueError, match=r"window \(5,\).*spatial sizes \(3,\).*SAME"):
        windows.out_sizes((3,), (5,), (1,), (1,), ((0, 0),))


@given(geometries(), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_fold_is_the_adjoint_of_patches(geometry, seed):
    spatial, size, strides, dilations = geometry
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, *spatial, 3))
    view = windows.patches(np, x, size, strides, dilations)
    g = rng.standard_normal(view.shape)
    folded = windows.fold(np, g, x.shape, size, strides, dilations)
    assert folded.shape == x.shape
    np.testing.assert_allclose(np.vdot(view, g), np.vdot(x, folded), atol=1e-9)


def test_patches_hold_what_each_window_sees():
    x = np.arange(12.0).reshape(1, 6, 2)
    view = windows.patches(np, x, (2,), (2,), (3,))
    assert view.shape == (1, 2, 2, 2)
    np.testing.assert_array_equal(view[0, :, :, 0], [[0, 6], [4, 10]])


def test_crop_undoes_pad():
    x = np.arange(12.0).reshape(1, 2, 3, 2)
    pads = ((1, 0), (2, 1))
    padded = windows.pad(np, x, pads, -1.0)
    assert padded.shape == windows.padded_shape(x.shape, pads) == (1, 3, 6, 2)
    assert padded[0, 0, 0, 0] == -1.0
    np.testing.assert_array_equal(windows.crop(padded, pads), x)
    assert windows.pad(np, x, ((0, 0), (0, 0))) is x

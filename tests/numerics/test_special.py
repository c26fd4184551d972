"""Special functions against SciPy, at their special values, and in each dtype."""

import warnings

import numpy as np
import pytest

from gtape.numerics import special

reference = pytest.importorskip("scipy.special")

INF, NAN = np.inf, np.nan
RNG = np.random.default_rng(7)
REAL = np.concatenate([RNG.uniform(-6, 6, 2000), RNG.normal(0, 1e-3, 200), [0.0, 1e-300]])
POSITIVE = np.concatenate([RNG.uniform(0, 30, 2000), np.logspace(-30, 30, 400)])
# Away from the poles, where SciPy loses digits.
NEGATIVE = -RNG.integers(0, 40, 1000) - RNG.uniform(0.05, 0.95, 1000)
INSIDE = np.concatenate([RNG.uniform(-1, 1, 2000), 1 - np.logspace(-15, -1, 100)])
UNIT = np.concatenate([RNG.uniform(0, 1, 2000), np.logspace(-300, -1, 200)])
SHAPE = np.exp(RNG.uniform(-3, 5, 1000))
OTHER = np.exp(RNG.uniform(-3, 5, 1000))
NEAR = SHAPE * np.exp(RNG.normal(0, 0.5, 1000))
ORDER = RNG.integers(1, 5, 1000).astype(float)
FRACTION = RNG.uniform(0.01, 0.99, 1000)

CASES = [
    ("erf", reference.erf, (REAL,)),
    ("erfc", reference.erfc, (np.concatenate([REAL, RNG.uniform(0, 26, 500)]),)),
    ("erfinv", reference.erfinv, (INSIDE,)),
    ("ndtri", reference.ndtri, (UNIT,)),
    ("lgamma", reference.gammaln, (POSITIVE,)),
    ("lgamma", reference.gammaln, (NEGATIVE,)),
    ("digamma", reference.digamma, (POSITIVE,)),
    ("digamma", reference.digamma, (NEGATIVE,)),
    ("polygamma", lambda n, x: reference.polygamma(n.astype(int), x), (ORDER, SHAPE)),
    ("zeta", reference.zeta, (1.0 + SHAPE, OTHER)),
    ("lbeta", reference.betaln, (SHAPE, OTHER)),
    ("i0", reference.i0, (REAL * 20,)),
    ("i0e", reference.i0e, (REAL * 1000,)),
    ("i1", reference.i1, (REAL * 20,)),
    ("i1e", reference.i1e, (REAL * 1000,)),
    ("igamma", reference.gammainc, (SHAPE, NEAR)),
    ("igammac", reference.gammaincc, (SHAPE, NEAR)),
    ("betainc", reference.betainc, (SHAPE, OTHER, FRACTION)),
]

EXACT = [
    ("erf", (0.3,), 0.3286267594591274),
    ("erf", (2.7,), 0.9998656672600594),
    ("erfc", (0.75,), 0.28884436634648486),
    ("erfc", (19.5,), 2.0909541479227294e-167),
    ("erfinv", (0.7,), 0.7328690779592167),
    ("erfinv", (-0.99999,), -3.123413274341571),
    ("ndtri", (1e-12,), -7.034483825301132),
    ("ndtri", (0.51,), 0.025068908258711057),
    ("lgamma", (1.0001,), -5.771334222047127e-05),
    ("lgamma", (0.9998,), 0.00011547603486754889),
    ("lgamma", (2.0001,), 4.2281658112919945e-05),
    ("lgamma", (7.5,), 7.534364236758733),
    ("lgamma", (10000000000.0,), 220258509288.81058),
    ("lgamma", (-3.25,), -0.6231534513209986),
    ("digamma", (0.01,), -100.56088545786868),
    ("digamma", (6.5,), 1.792911330399933),
    ("digamma", (-1.9999902436619628,), -102496.5507459762),
    ("polygamma", (2.0, -4.29), 77.00061527441845),
    ("polygamma", (3.0, 12.5), 0.0011534128049134052),
    ("zeta", (1.5, 1.0), 2.612375348685488),
    ("zeta", (13.9, 9.15), 5.75738524395695e-14),
    ("lbeta", (10000000000.0, 0.5), -10.940560522033028),
    ("lbeta", (300.0, 41.0), -126.15245924227953),
    ("i0", (7.9,), 389.406283282158),
    ("i0e", (50.0,), 0.05656162664745419),
    ("i1", (-3.0,), -3.9533702174026093),
    ("i1e", (8.5,), 0.13054935509459586),
    ("igamma", (0.5, 0.01), 0.1124629160182849),
    ("igamma", (1000.0, 1010.0), 0.6276789447369947),
    ("igammac", (25.585652447138287, 40.58755111872519), 0.004778947647951969),
    ("igammac", (0.6539882270145366, 2.16333332459504), 0.057045676373886335),
    ("betainc", (2.0, 3.0, 0.25), 0.26171875),
    ("betainc", (120.0, 80.0, 0.61), 0.6100745513523669),
]


@pytest.mark.parametrize("name, expected, inputs", CASES)
def test_float64_agrees_with_scipy(name, expected, inputs):
    result = getattr(special, name)(np, *inputs)
    # SciPy's own error reaches 1e-12 for igammac and 1e-13 for erfc.
    values = expected(*inputs)
    crossing = 1e-13 * (np.abs(values) > 1e-5) if name in ("lgamma", "digamma") else 0.0
    np.testing.assert_array_less(
        np.abs(result - values), 3e-12 * np.abs(values) + crossing + 1e-290
    )


def test_float64_is_right_to_the_last_digits():
    """Values from 40-digit arithmetic (mpmath)."""
    for name, inputs, exact in EXACT:
        result = getattr(special, name)(np, *(np.array(float(x)) for x in inputs))
        assert abs(result - exact) <= 2e-15 * abs(exact), (name, inputs)


@pytest.mark.parametrize("name, expected, inputs", CASES)
def test_float32_is_right_to_its_precision(name, expected, inputs):
    short = [x.astype(np.float32) for x in inputs]
    result = getattr(special, name)(np, *short)
    assert result.dtype == np.float32
    with np.errstate(over="ignore"):
        exact = expected(*(x.astype(np.float64) for x in short)).astype(np.float32)
    normal = np.abs(exact) > 1e-37
    np.testing.assert_allclose(result[normal], exact[normal], rtol=5e-7)


@pytest.mark.parametrize(
    "name, inputs, expected",
    [
        ("erf", ([-INF, -0.0, INF, NAN],), [-1, 0, 1, NAN]),
        ("erfc", ([-INF, 0, INF, 30, NAN],), [2, 1, 0, 0, NAN]),
        ("erfinv", ([-1, 0, 1, 1.5, NAN],), [-INF, 0, INF, NAN, NAN]),
        ("ndtri", ([0, 0.5, 1, -0.1, 1.1, NAN],), [-INF, 0, INF, NAN, NAN, NAN]),
        ("lgamma", ([0, -1, 1, 2, INF, -INF, NAN],), [INF, INF, 0, 0, INF, INF, NAN]),
        ("digamma", ([0, -1, -20, INF, -INF, NAN],), [NAN, NAN, NAN, INF, NAN, NAN]),
        ("polygamma", ([1, 2, 1.5, -1, 1], [-1, -1, 2, 2, INF]), [INF, NAN, NAN, NAN, 0]),
        ("zeta", ([1, 0.5, 2, 3, INF, INF, 2], [2, 2, 0, -1, 2, 1, INF]),
         [INF, NAN, INF, NAN, 0, 1, 0]),
        ("i0", ([0, INF, -INF, NAN],), [1, INF, INF, NAN]),
        ("i1", ([0, INF, -INF, NAN],), [0, INF, -INF, NAN]),
        ("i0e", ([0, INF, -INF, NAN],), [1, 0, 0, NAN]),
        ("i1e", ([0, INF, -INF, NAN],), [0, 0, 0, NAN]),
        ("igamma", ([0, 0, 1, -1, 1, INF, 1, INF, NAN], [0, 1, 0, 1, -1, 1, INF, INF, 1]),
         [NAN, 1, 0, NAN, NAN, 0, 1, NAN, NAN]),
        ("igammac", ([0, 1, 1, INF], [1, 0, INF, 1]), [0, 1, 0, 1]),
        ("betainc", ([1, 1, 1, 0, 1, NAN], [1] * 6, [0, 1, -0.1, 0.5, 1.1, 0.5]),
         [0, 1, NAN, NAN, NAN, NAN]),
    ],
)  # fmt: skip
def test_special_values(name, inputs, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = getattr(special, name)(np, *(np.array(x, float) for x in inputs))
    np.testing.assert_array_equal(result, np.array(expected, float))


def test_an_element_does_not_depend_on_slower_neighbours():
    a, x = np.array([0.6539882270145366, 5e3]), np.array([2.16333332459504, 5.1e3])
    for name in ("igamma", "igammac"):
        together = getattr(special, name)(np, a, x)
        alone = getattr(special, name)(np, a[:1], x[:1])
        assert together[0] == alone[0]


def test_negative_arguments_of_zeta():
    # 1 / 1.5**2 + 1 / 0.5**2 + zeta(2, 1/2), and the same for cubes.
    powers, starts = np.array([2.0, 3.0, 2.5]), np.full(3, -1.5)
    halves = reference.zeta([2.0, 3.0], 0.5)
    expected = [1 / 1.5**2 + 4 + halves[0], -1 / 1.5**3 - 8 + halves[1], np.nan]
    np.testing.assert_allclose(special.zeta(np, powers, starts), expected, rtol=1e-13)


def test_erf_is_odd_and_never_above_one():
    for dtype in ("float16", "float32", "float64"):
        x = np.linspace(0, 8, 5001).astype(dtype)
        y = special.erf(np, x)
        assert y.dtype == dtype
        np.testing.assert_array_equal(special.erf(np, -x), -y)
        assert (y <= 1).all() and y[-1] == 1


def test_shapes_broadcast_and_scalars_stay_scalars():
    a, x = np.ones((3, 1)), np.ones(4)
    assert special.igamma(np, a, x).shape == (3, 4)
    assert special.lgamma(np, np.float64(3.0)).shape == ()
    assert special.erf(np, np.zeros((0, 2))).shape == (0, 2)
    assert special.zeta(np, np.zeros(0), np.zeros(0)).shape == (0,)

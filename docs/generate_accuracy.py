"""Writes docs/accuracy.md, and measures what it promises: `python docs/generate_accuracy.py`.

With `--measure` it prints the largest errors found, against mpmath.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp, mpf

import gtape as tf

PATH = Path(__file__).with_name("accuracy.md")
HEAD = """# Accuracy

Written by `docs/generate_accuracy.py`. For each function of numbers: the largest error of its value
and of its derivative over a domain, in units in the last place (ulp), eager and compiled. The tests
hold these limits against mpmath, at numbers drawn over the domain and at its ends. Half a ulp is
the least error there can be. Where a result passes through 0 as a sum of larger terms, as `lgamma`
does between negative integers, the unit is that of the terms.

"""
Exact = Callable[..., Any]
SINGLE, DOUBLE = np.float32, np.float64


class Row(NamedTuple):
    """A function, its exact value and derivatives, and its domain in words and numbers."""

    name: str
    fn: Callable[..., Any]
    exact: Exact
    slopes: Sequence[Exact | None]
    domain: str
    points: Callable[[], Sequence[Any]]
    #: The size of the terms that a value and a derivative are sums of, where these cancel.
    scale: Exact | None = None
    slope_scale: Exact | None = None


# ---------------------------------------------------------------- where to look
def _uniform(low: float, high: float, count: int = 40) -> list[float]:
    return list(np.random.default_rng(3).uniform(low, high, count))


def _decades(low: float, high: float, count: int = 30) -> list[float]:
    """Numbers between two powers of 10, evenly in their logarithm."""
    return list(10.0 ** np.random.default_rng(4).uniform(low, high, count))


def _both(values: Sequence[float]) -> list[float]:
    return [*values, *(-v for v in values)]


def _pairs(*ranges: Sequence[float]) -> list[Any]:
    """The arguments of a function of several numbers: each list in an order of its own."""
    rng = np.random.default_rng(5)
    count = max(map(len, ranges))
    return [rng.permutation(np.resize(np.asarray(r), count)) for r in ranges]


def _one(*parts: Sequence[float]) -> Callable[[], list[Any]]:
    return lambda: [np.concatenate(parts)]


def _many(*ranges: Sequence[float]) -> Callable[[], list[Any]]:
    return lambda: _pairs(*ranges)


# ---------------------------------------------------------------- exact values
def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(x)) if x < 0 else x + mp.log1p(mp.exp(-x))


def _phi(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def _cdf(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _gate(x: Any) -> Any:
    return _sigmoid(2 * mp.sqrt(2 / mp.pi) * (x + mpf(0.044715) * x**3))


def _gate_slope(x: Any) -> Any:
    gate = _gate(x)
    return gate + x * gate * (1 - gate) * 2 * mp.sqrt(2 / mp.pi) * (1 + 3 * mpf(0.044715) * x * x)


def _quantile(p: Any) -> Any:
    """The normal quantile, by Newton's iteration from the tail's asymptote."""
    if p > 0.5:
        return -_quantile(1 - p)
    if p == 0.5:
        return mpf(0)
    x = -mp.sqrt(-2 * mp.log(p)) if p < 0.1 else (p - mpf(0.5)) * 2.5
    for _ in range(60):
        step = (mp.log(_cdf(x)) - mp.log(p)) * _cdf(x) / _phi(x)
        x -= step
        if abs(step) < abs(x) * mpf(10) ** (5 - mp.dps):
            break
    return x


def _erfinv(x: Any) -> Any:
    with mp.extradps(30):
        return mp.sign(x) * -_quantile((1 - abs(x)) / 2) / mp.sqrt(2)


def _erfcinv(x: Any) -> Any:
    return -_quantile(x / 2) / mp.sqrt(2)


def _lgamma(x: Any) -> Any:
    return mp.log(abs(mp.gamma(x))) if x < 100 else mp.loggamma(x)


def _mish(x: Any) -> Any:
    return x * mp.tanh(_softplus(x))


def _mish_slope(x: Any) -> Any:
    t = mp.tanh(_softplus(x))
    return t + x * (1 - t * t) * _sigmoid(x)


def _i1_slope(x: Any) -> Any:
    return mp.besseli(0, x) - mp.besseli(1, x) / x if x else mpf(0.5)


def _scaled(order: int, x: Any) -> Any:
    return mp.exp(-abs(x)) * mp.besseli(order, x)


def _zeta(s: Any, q: Any) -> Any:
    """By Euler and Maclaurin's sum (DLMF 25.11.28): mpmath's own has absolute precision only."""
    total = mp.fsum((q + k) ** -s for k in range(30))
    base, factor = q + 30, s * (q + 30) ** (-s - 1)
    total += base ** (1 - s) / (s - 1) + base**-s / 2
    for k in range(1, 30):
        total += factor * mp.bernoulli(2 * k) / mp.factorial(2 * k)
        factor *= (s + 2 * k - 1) * (s + 2 * k) / base**2
    return total


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return mp.exp((a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x)) / mp.beta(a, b)


_ROOT = 2 / mp.sqrt(mp.pi)
_ANY = _one(_both(_decades(-30, 30)), _both(_uniform(0, 10)), [0.5, 1.0, -1.0])
_NEAR = _one(_both(_decades(-30, 0)), _both(_uniform(0, 10)), _both(_uniform(10, 80)))
_INSIDE = _one(_both(_decades(-30, 0)), _both(_uniform(0, 1)),
               _both([1 - 2.0**-k for k in range(2, 24)]))
_ABOVE = _one(_decades(-30, 30), _uniform(0, 10))
_GAMMA = _one(_decades(-30, 30), _uniform(0, 30, 80), [1.0, 1.5, 2.0, 3.0])
_NEGATIVE = _one([-v for v in _uniform(0, 40, 80)], [-v - 1000 for v in _uniform(0, 3, 20)],
                 [-2.4570247382208006, -2.7476826467274127, -1.5, -10.25])
_ORDERS = [1.0, 2.0, 3.0, 7.0]
_SHAPES = [*_decades(-2, 3, 50), *_uniform(0, 10)]
_UNIT = _one(_decades(-30, 0), _uniform(0, 1), [1 - 2.0**-k for k in range(2, 24)],
             [0.5 + s * 2.0**-k for k in range(3, 24) for s in (1, -0.5)])


def _row(name: str, exact: Exact, slope: Exact | None, domain: str, points: Any, fn: Any = None,
         **options: Any) -> Row:
    return Row(name, fn or getattr(tf.math, name.split(",")[0]), exact, (slope,), domain, points,
               **options)


@cache
def rows() -> list[Row]:
    """The table."""
    r = _row
    any_, near, inside, above = _ANY, _NEAR, _INSIDE, _ABOVE
    made = [
        r("exp", mp.exp, mp.exp, "|x| < 80", near),
        r("expm1", mp.expm1, mp.exp, "|x| < 80", near),
        r("log", mp.log, lambda x: 1 / x, "0 < x < 1e30", above),
        r("log1p", mp.log1p, lambda x: 1 / (1 + x), "0 < x < 1e30", above),
        r("sqrt", mp.sqrt, lambda x: 0.5 / mp.sqrt(x), "0 < x < 1e30", above),
        r("rsqrt", lambda x: 1 / mp.sqrt(x), lambda x: -0.5 / (x * mp.sqrt(x)), "1e-12 < x < 1e12",
          _one(_decades(-12, 12), _uniform(0, 10))),
        r("reciprocal", lambda x: 1 / x, lambda x: -1 / x**2, "1e-18 < |x| < 1e18",
          _one(_both(_decades(-18, 18)), _both(_uniform(0, 10)))),
        r("sin", mp.sin, mp.cos, "|x| < 1e30", any_),
        r("cos", mp.cos, lambda x: -mp.sin(x), "|x| < 1e30", any_),
        r("tan", mp.tan, lambda x: 1 + mp.tan(x) ** 2, "|x| < 80", near),
        r("asin", mp.asin, lambda x: 1 / mp.sqrt((1 - x) * (1 + x)), "|x| < 1", inside),
        r("acos", mp.acos, lambda x: -1 / mp.sqrt((1 - x) * (1 + x)), "|x| < 1", inside),
        r("atan", mp.atan, lambda x: 1 / (1 + x * x), "|x| < 1e15",
          _one(_both(_decades(-15, 15)), _both(_uniform(0, 10)))),
        r("sinh", mp.sinh, mp.cosh, "|x| < 80", near),
        r("cosh", mp.cosh, mp.sinh, "|x| < 80", near),
        r("tanh", mp.tanh, lambda x: 1 - mp.tanh(x) ** 2, "|x| < 80", near,
          slope_scale=lambda x: mpf(1)),
        r("asinh", mp.asinh, lambda x: 1 / mp.sqrt(1 + x * x), "|x| < 1e15",
          _one(_both(_decades(-15, 15)), _both(_uniform(0, 10)))),
        r("acosh", mp.acosh, lambda x: 1 / mp.sqrt((x - 1) * (x + 1)), "1 < x < 1e15",
          _one([1 + 2.0**-k for k in range(23)], _decades(0, 15), _uniform(1, 10))),
        r("atanh", mp.atanh, lambda x: 1 / ((1 - x) * (1 + x)), "|x| < 1", inside),
        r("sigmoid", _sigmoid, lambda x: _sigmoid(x) * _sigmoid(-x), "|x| < 80", near,
          slope_scale=_sigmoid),
        r("softplus", _softplus, _sigmoid, "|x| < 80", near),
        r("log_sigmoid", lambda x: -_softplus(-x), lambda x: _sigmoid(-x), "|x| < 80", near),
        r("softsign", lambda x: x / (1 + abs(x)), lambda x: (1 + abs(x)) ** -2, "|x| < 1e15",
          _one(_both(_decades(-15, 15)), _both(_uniform(0, 10)))),
        r("elu", lambda x: x if x > 0 else mp.expm1(x), lambda x: mpf(1) if x > 0 else mp.exp(x),
          "|x| < 80", near, fn=tf.nn.elu, slope_scale=lambda x: mpf(1)),
        r("gelu", lambda x: x * _cdf(x), lambda x: _cdf(x) + x * _phi(x), "-12 < x < 80",
          _one(_decades(-30, 0), _uniform(-12, 12, 100), _uniform(10, 80), [-4.0, -6.0, -10.5]),
          fn=tf.nn.gelu, slope_scale=lambda x: max(_cdf(x), abs(x) * _phi(x) * max(1, x * x / 2))),
        r("gelu, by tanh", lambda x: x * _gate(x), _gate_slope, "-12 < x < 80",
          _one(_decades(-30, 0), _uniform(-5, 12, 100), _uniform(10, 80)),
          fn=lambda x: tf.nn.gelu(x, approximate=True),
          slope_scale=lambda x: _gate(x) * max(1, x * x)),
        r("silu", lambda x: x * _sigmoid(x),
          lambda x: _sigmoid(x) * (1 + x * _sigmoid(-x)), "|x| < 80", near, fn=tf.nn.silu,
          slope_scale=lambda x: _sigmoid(x) * max(1, abs(x))),
        r("erf", mp.erf, lambda x: _ROOT * mp.exp(-x * x), "|x| < 80",
          _one(_both(_decades(-30, 0)), _both(_uniform(0, 6, 80))),
          slope_scale=lambda x: _ROOT * mp.exp(-x * x) * max(1, x * x)),
        r("erfc", mp.erfc, lambda x: -_ROOT * mp.exp(-x * x), "-6 < x < 9",
          _one(_decades(-30, 0), _uniform(-6, 9, 100)),
          slope_scale=lambda x: _ROOT * mp.exp(-x * x) * max(1, x * x)),
        r("erfinv", _erfinv, lambda x: mp.exp(_erfinv(x) ** 2) / _ROOT, "|x| < 1", inside),
        r("erfcinv", _erfcinv, lambda x: -mp.exp(_erfcinv(x) ** 2) / _ROOT, "0 < x < 2",
          lambda: [2 * p for p in _UNIT()]),
        r("ndtri", _quantile, lambda x: 1 / _phi(_quantile(x)), "0 < x < 1", _UNIT),
        r("lgamma", _lgamma, mp.digamma, "0 < x < 1e30", _GAMMA),
        r("lgamma, x < 0", _lgamma, mp.digamma, "-1003 < x < 0", _NEGATIVE,
          scale=lambda x: max(abs(_lgamma(x)), mpf(1)),
          slope_scale=lambda x: max(abs(mp.digamma(x)), mp.log(1 - x))),
        r("digamma", mp.digamma, lambda x: mp.psi(1, x), "0 < x < 1e15",
          _one(_decades(-15, 15), _uniform(0, 30, 80))),
        r("digamma, x < 0", mp.digamma, lambda x: mp.psi(1, x), "-1003 < x < 0", _NEGATIVE,
          scale=lambda x: max(abs(mp.digamma(x)), mp.log(1 - x))),
        r("bessel_i0", lambda x: mp.besseli(0, x), lambda x: mp.besseli(1, x), "|x| < 80", near),
        r("bessel_i1", lambda x: mp.besseli(1, x), _i1_slope, "|x| < 80", near,
          slope_scale=lambda x: mp.besseli(0, x)),
        r("bessel_i0e", lambda x: _scaled(0, x),
          lambda x: _scaled(1, x) - mp.sign(x) * _scaled(0, x), "|x| < 80", near,
          slope_scale=lambda x: _scaled(0, x)),
        r("bessel_i1e", lambda x: _scaled(1, x),
          lambda x: mp.exp(-abs(x)) * _i1_slope(x) - mp.sign(x) * _scaled(1, x), "|x| < 80", near,
          slope_scale=lambda x: _scaled(0, x)),
    ]
    several = [
        Row("pow", tf.pow, lambda a, b: a**b,
            (lambda a, b: b * a ** (b - 1), lambda a, b: a**b * mp.log(a)),
            "0.01 < x < 1000, |y| < 12", _many(_decades(-2, 3, 60), _both(_uniform(0, 12, 30)))),
        Row("atan2", tf.math.atan2, mp.atan2,
            (lambda a, b: b / (a * a + b * b), lambda a, b: -a / (a * a + b * b)),
            "1e-8 < |x|, |y| < 1e8", _many(_both(_decades(-8, 8)), _both(_decades(-8, 8, 25)))),
        Row("polygamma", tf.math.polygamma, lambda n, x: mp.psi(int(n), x),
            (None, lambda n, x: mp.psi(int(n) + 1, x)), "n of 1, 2, 3, 7; 1e-3 < x < 1e3",
            _many(_ORDERS, [*_decades(-3, 3, 40), *_uniform(0, 30)])),
        Row("polygamma, x < 0", tf.math.polygamma, lambda n, x: mp.psi(int(n), x),
            (None, lambda n, x: mp.psi(int(n) + 1, x)), "n of 1, 2, 3, 7; -1003 < x < 0",
            _many(_ORDERS, [*(-v for v in _uniform(0, 30)),
                            *(-1000 - v for v in _uniform(0, 3, 9))]),
            scale=lambda n, x: mp.psi(int(n) | 1, x), slope_scale=lambda n, x: mp.psi(
                int(n) + 1 | 1, x)),
        Row("zeta", tf.math.zeta, _zeta, (None, lambda s, q: -s * _zeta(s + 1, q)),
            "1.05 < s < 30, 0.01 < q < 1e3",
            _many([1.05, 1.5, 2, 3.5, 7, 30], _decades(-2, 3, 40))),
        Row("lbeta", lambda a, b: tf.math.lbeta(tf.stack([a, b], -1)),
            lambda a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b),
            (lambda a, b: mp.digamma(a) - mp.digamma(a + b),
             lambda a, b: mp.digamma(b) - mp.digamma(a + b)),
            "0.01 < a, b < 1e3", _many(_SHAPES, _decades(-2, 3, 49)),
            scale=lambda a, b: max(abs(mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)),
                                   mpf(1)),
            slope_scale=lambda a, b: max(abs(mp.digamma(a)), abs(mp.digamma(b)),
                                         abs(mp.digamma(a + b)))),
        Row("igamma", tf.math.igamma, lambda a, x: mp.gammainc(a, 0, x, regularized=True),
            (None, lambda a, x: mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))),
            "0.01 < a < 1e3, x = a e^t, |t| < 0.7",
            lambda: _around(_SHAPES)),
        Row("igammac", tf.math.igammac, lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
            (None, lambda a, x: -mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))),
            "0.01 < a < 1e3, x = a e^t, |t| < 0.7",
            lambda: _around(_SHAPES)),
        Row("betainc", tf.math.betainc, lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
            (None, None, _beta_density), "0.05 < a, b < 20; 0.01 < x < 0.99",
            _many(_decades(-1.3, 1.3, 50), _decades(-1.3, 1.3, 49), _uniform(0.01, 0.99))),
    ]
    return made + several


#: In ulps: float32's value and derivative, float64's value and derivative. Half as much again as
#: the largest error found with NumPy 2.4 and GCC 12 on x86-64, since each release has its own.
LIMITS: dict[str, tuple[float, float, float, float]] = {
    "exp": (3, 3, 2, 2),
    "expm1": (2, 3, 2, 2),
    "log": (2, 2, 2, 2),
    "log1p": (2, 2, 2, 2),
    "sqrt": (2, 2, 2, 2),
    "rsqrt": (2, 6, 2, 6),
    "reciprocal": (2, 3, 2, 3),
    "sin": (3, 3, 2, 2),
    "cos": (3, 3, 2, 2),
    "tan": (2, 3, 2, 3),
    "asin": (3, 2, 2, 2),
    "acos": (2, 2, 2, 2),
    "atan": (2, 2, 2, 2),
    "sinh": (2, 2, 2, 2),
    "cosh": (2, 2, 2, 2),
    "tanh": (2, 2, 2, 2),
    "asinh": (2, 2, 2, 2),
    "acosh": (2, 3, 2, 4),
    "atanh": (2, 2, 2, 2),
    "sigmoid": (3, 3, 3, 3),
    "softplus": (3, 3, 2, 3),
    "log_sigmoid": (3, 3, 2, 3),
    "softsign": (2, 4, 2, 3),
    "elu": (2, 2, 2, 2),
    "gelu": (6, 4, 5, 3),
    "gelu, by tanh": (20, 30, 20, 20),
    "silu": (4, 3, 4, 3),
    "erf": (6, 3, 3, 2),
    "erfc": (2, 4, 4, 2),
    "erfinv": (2, 20, 3, 30),
    "erfcinv": (3, 70, 6, 400),
    "ndtri": (2, 90, 4, 500),
    "lgamma": (3, 2, 3, 2),
    "lgamma, x < 0": (3, 2, 4, 4),
    "digamma": (2, 2, 2, 4),
    "digamma, x < 0": (2, 2, 4, 6),
    "bessel_i0": (2, 2, 8, 9),
    "bessel_i1": (2, 2, 9, 8),
    "bessel_i0e": (2, 2, 5, 6),
    "bessel_i1e": (2, 2, 7, 7),
    "pow": (2, 40, 2, 2),
    "atan2": (2, 3, 2, 2),
    "polygamma": (2, 2, 5, 5),
    "polygamma, x < 0": (2, 2, 5, 5),
    "zeta": (2, 2, 4, 4),
    "lbeta": (2, 2, 20, 4),
    "igamma": (2, 2, 300, 300),
    "igammac": (2, 2, 60, 300),
    "betainc": (2, 70, 50, 70),
}


def _around(shapes: Sequence[float]) -> list[Any]:
    a = np.asarray(shapes)
    return [a, a * np.exp(np.random.default_rng(6).uniform(-0.7, 0.7, a.size))]


# ---------------------------------------------------------------- measuring
def ulps(found: Any, exact: Sequence[Any], scale: Sequence[Any], dtype: Any) -> Any:
    """Distances in units in the last place of the larger of `exact` and `scale`."""
    info = np.finfo(dtype)
    distances = []
    for got, wanted, size in zip(np.asarray(found, DOUBLE).tolist(), exact, scale):
        largest = max(abs(wanted), abs(size))
        exponent = max(mp.frexp(largest)[1] - 1 if largest else info.minexp, info.minexp)
        overflows = exponent > info.maxexp - 1
        if overflows:
            distances.append(0.0 if abs(got) == np.inf else np.inf)
        elif not np.isfinite(got):
            distances.append(np.inf)
        else:
            distances.append(float(abs(mpf(got) - wanted) / mpf(2) ** (exponent - info.nmant)))
    return np.array(distances)


def points(row: Row) -> list[Any]:
    """The arguments, numbers of float32, so that both dtypes have one exact result."""
    return [np.asarray(p, SINGLE) for p in row.points()]


@cache
def exact(index: int) -> tuple[Any, ...]:
    """Values, their scales, and for each slope its values and scales."""
    row = rows()[index]
    with mp.workdps(40):
        at = list(zip(*(map(mpf, p.astype(DOUBLE).tolist()) for p in points(row))))
        return (_sized(row.exact, row.scale, at),
                *(f and _sized(f, row.slope_scale, at) for f in row.slopes))


def _sized(fn: Exact, scale: Exact | None, at: Any) -> tuple[Any, Any]:
    values = [fn(*a) for a in at]
    return values, [scale(*a) for a in at] if scale else values


def pulled(row: Row) -> Callable[..., Any]:
    """Value and derivatives of a row's function."""
    def run(*args: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(args)
            y = row.fn(*args)
        wanted = [a for a, s in zip(args, row.slopes) if s is not None]
        return [y, *tape.gradient(y, wanted)]

    return run


def errors(index: int, dtype: Any, results: Sequence[Any]) -> tuple[float, float, Any]:
    """The largest errors of the value and of the derivatives, and the arguments of both."""
    row = rows()[index]
    wanted = [e for e in exact(index) if e is not None]
    found = [ulps(r.numpy(), *e, dtype) for r, e in zip(results, wanted)]
    at = [[float(p[int(np.argmax(f))]) for p in points(row)] for f in found]
    return float(found[0].max()), max(float(f.max()) for f in found[1:]), at


def inputs(row: Row, dtype: Any) -> list[Any]:
    return [tf.constant(p, dtype) for p in points(row)]


# ---------------------------------------------------------------- the page
def text() -> str:
    """The page."""
    lines = ["| function | domain | float32 | its derivative | float64 | its derivative |",
             "|---|---|---|---|---|---|"]
    for row in rows():
        limits = " | ".join(f"{v:g}" for v in LIMITS[row.name])
        domain = row.domain.replace("|", "\\|")
        lines.append(f"| `{row.name}` | {domain} | {limits} |")
    return HEAD + "\n".join(lines) + "\n"


def _measure() -> None:
    for index, row in enumerate(rows()):
        shown = []
        for dtype in (SINGLE, DOUBLE):
            args = inputs(row, dtype)
            for run in (pulled(row), tf.function(pulled(row))):
                value, slope, at = errors(index, dtype, run(*args))
                shown.append(f"{value:9.3g}{slope:9.3g}")
                where = at
        print(f"{row.name:15s}{row.domain[:14]:15s}{'|'.join(shown)}  {where}", flush=True)


if __name__ == "__main__":
    if "--measure" in sys.argv:
        _measure()
    else:
        PATH.write_text(text(), encoding="utf-8")

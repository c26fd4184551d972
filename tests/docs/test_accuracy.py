"""The limits of docs/accuracy.md, eager and compiled, against mpmath."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf

mpmath = pytest.importorskip("mpmath")
mp, mpf = mpmath.mp, mpmath.mpf
sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
try:
    accuracy: Any = importlib.import_module("generate_accuracy")
finally:
    sys.path.pop(0)

ROWS = accuracy.rows()


def _hold(index: int, kind: int, run: Any) -> None:
    row, dtype = ROWS[index], (np.float32, np.float64)[kind]
    value, slope, at = accuracy.errors(index, dtype, run(*accuracy.inputs(row, dtype)))
    limits = accuracy.LIMITS[row.name][2 * kind:2 * kind + 2]
    assert value <= limits[0] and slope <= limits[1], (value, slope, at)


@pytest.mark.parametrize("kind", [0, 1], ids=["float32", "float64"])
@pytest.mark.parametrize("index", range(len(ROWS)), ids=[r.name for r in ROWS])
def test_eager_results_keep_the_limits(index: int, kind: int) -> None:
    _hold(index, kind, accuracy.pulled(ROWS[index]))


@pytest.mark.native
@pytest.mark.parametrize("kind", [0, 1], ids=["float32", "float64"])
@pytest.mark.parametrize("index", range(len(ROWS)), ids=[r.name for r in ROWS])
def test_compiled_results_keep_the_limits(index: int, kind: int) -> None:
    _hold(index, kind, tf.function(accuracy.pulled(ROWS[index])))


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["digamma", "digamma, x < 0", "lbeta", "ndtri", "gelu", "erfinv"])
def test_kernels_keep_the_limits(name: str) -> None:
    """Of the functions that CUDA lacks, or that the emulator brings along."""
    index = [r.name for r in ROWS].index(name)
    with tf.device("GPU:0"):
        for kind in (0, 1):
            _hold(index, kind, accuracy.pulled(ROWS[index]))


def test_the_page_of_accuracy_is_up_to_date() -> None:
    assert accuracy.PATH.read_text(encoding="utf-8") == accuracy.text(), (
        "run python docs/generate_accuracy.py")


@pytest.mark.parametrize("found, exact, dtype, distance", [
    (1 + 2.0**-23, 1, np.float32, 1), (1 + 2.0**-23, 1, np.float64, 2.0**29),
    (0.0, 0, np.float32, 0), (2.0**-149, 0, np.float32, 1),
    (np.inf, mpf(2) ** 128, np.float32, 0), (1.0, 3, np.float64, 2**52),
    (np.nan, 1, np.float32, np.inf), (3e38, mpf(2) ** 128, np.float32, np.inf)])
def test_distances_in_units_of_the_last_place(found: float, exact: Any, dtype: Any,
                                              distance: float) -> None:
    assert accuracy.ulps([found], [mpf(exact)], [mpf(exact)], dtype) == [distance]


def test_a_worse_function_is_found() -> None:
    index = [r.name for r in ROWS].index("gelu")
    with pytest.raises(AssertionError):
        _hold(index, 0, accuracy.pulled(ROWS[index]._replace(
            fn=lambda x: x * (0.5 + 0.5 * tf.math.erf(x * np.float32(0.5**0.5))))))


# ---------------------------------------------------------------- the ends of float64
_TINY = [10.0**-k for k in range(17, 300, 40)]
_MIDDLE = [0.5 + s * 2.0**-k for k in range(25, 53, 6) for s in (1, -0.5)]
_LAST = [1 - 2.0**-k for k in range(25, 54, 5)]
_ENDS = {
    "ndtri": [*_TINY, *_MIDDLE, *_LAST],
    "erfcinv": [2 * p for p in (*_TINY, *_MIDDLE, *_LAST)],
    "lgamma": [*_TINY, *(1 / v for v in _TINY), *(2 * p for p in _MIDDLE), 171.5, -1e-200, -1e-17],
    "digamma": [*_TINY, *(1 / v for v in _TINY), 1.4616321449683622, 1.4616321449683625, -1e-200],
    "erfc": [9.5, 15.447, 20.0526, 26.4],
    "gelu": [-13.0, -22.5263, -33.0526, -37.0]}


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.native)])
@pytest.mark.parametrize("name", _ENDS)
def test_float64_is_as_good_at_its_ends(name: str, compiled: bool) -> None:
    row = next(r for r in ROWS if r.name == name)
    with mp.workdps(60):
        exact = [row.exact(mpf(v)) for v in _ENDS[name]]
    run = tf.function(row.fn) if compiled else row.fn
    found = run(tf.constant(_ENDS[name], tf.float64)).numpy()
    distances = accuracy.ulps(found, exact, exact, np.float64)
    assert distances.max() <= max(6, accuracy.LIMITS[name][2]), distances

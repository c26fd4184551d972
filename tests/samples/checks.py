"""What is checked of a sample; each check raises AssertionError, or GradientMismatch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gtape as tf
from gtape import testing
from gtape.core.op import Case
from tests.samples.sample import (
    Sample,
    arrays,
    call,
    label,
    unit,
    widened,
    with_gradients,
)


def _flat(made: Any) -> list[np.ndarray]:
    return [np.asarray(m) for m in made] if isinstance(made, (tuple, list)) else [np.asarray(made)]


def assert_near(got: Any, wanted: np.ndarray, near: float, mixed: bool, what: str,
                coarse: float = 0.0) -> None:
    """`got` holds `wanted`, rounded to its dtype; nan and inf where these are. `coarse` is the unit
    of the inputs, where these are shorter."""
    found = np.asarray(got)
    assert found.shape == wanted.shape, f"{what}: {found.shape} instead of {wanted.shape}"
    assert (found.dtype.kind == "c") == (wanted.dtype.kind == "c"), f"{what}: {found.dtype}"
    if found.dtype.kind not in "fcV":
        np.testing.assert_array_equal(found, wanted, err_msg=what)
        return
    step = max(unit(found.dtype.name), coarse)
    with np.errstate(all="ignore"):
        rounded = wanted.astype(found.dtype)
    a, b = widened([found, rounded])
    size = np.abs(np.where(np.isfinite(b), b, 0))
    scale = size.max(initial=0.0) if mixed else size
    # Below the least normal number, a step is worth less than a unit.
    least = float(np.finfo(np.float32).tiny) * step if found.dtype.itemsize >= 4 else 2.0 ** -24
    bound = near * np.maximum(step * scale, least)
    with np.errstate(all="ignore"):
        right = (np.abs(a - b) <= bound) | (a == b) | (np.isnan(a) & np.isnan(b))
    assert right.all(), (f"{what}: {found[~right].ravel()[:4]} instead of "
                         f"{rounded[~right].ravel()[:4]}; {near} units are allowed")


def check_value(s: Sample, dtype: str) -> None:
    """The results against the reference, or against those in double precision."""
    inputs = arrays(s, dtype)
    results = call(s, [tf.constant(x) for x in inputs])
    wide = widened(inputs)
    if s.reference is not None:
        with np.errstate(all="ignore"):
            wanted = _flat(s.reference(*wide, **s.options))
    else:
        wanted = [np.asarray(r) for r in call(s, [tf.constant(x) for x in wide])]
    assert len(results) == len(wanted)
    for i, (got, want) in enumerate(zip(results, wanted)):
        assert_near(got, want, s.near, s.mixed, f"{s.name} {dtype}, result {i}", unit(dtype))


def check_short_gradient(s: Sample, dtype: str) -> None:
    """The gradients in `dtype` against those in double precision for the same numbers."""
    inputs = arrays(s, dtype)
    _, short = with_gradients(s, [tf.constant(x) for x in inputs])
    _, wide = with_gradients(s, [tf.constant(x) for x in widened(inputs)])
    assert len(short) == len(wide)
    for i, (got, want) in enumerate(zip(short, wide)):
        assert (got is None) == (want is None), f"{s.name}: gradient {i} is None in one dtype"
        if got is None:
            continue
        assert got.dtype.name == dtype, f"{s.name}: gradient {i} is {got.dtype.name}"
        assert_near(got, np.asarray(want), 4 * s.near, True, f"{s.name} {dtype}, gradient {i}")


class _Whole:
    """A sample that stands for an op."""

    nondifferentiable = False
    has_gradient = True
    attr_names: tuple[str, ...] = ()

    def __init__(self, s: Sample) -> None:
        self.sample, self.name = s, s.name

    def reapply(self, inputs: list[Any], attrs: tuple[Any, ...]) -> list[Any]:
        return call(self.sample, inputs)


def check_derivatives(s: Sample) -> None:
    """Both derivatives along random directions against differences, in double precision."""
    dtype = "complex128" if set(s.dtypes) <= {"complex64", "complex128"} else "float64"
    given = Case(tuple(arrays(s, dtype)), orders=s.orders)
    testing.check_gradient(_Whole(s), given, dtype, s.orders)


def strided(array: np.ndarray) -> Any:
    """A tensor of the same numbers that lies in memory as a view of another: every second row,
    backwards, of a transposed array."""
    if not array.ndim:
        return tf.constant(array)
    turned = np.ascontiguousarray(array.T)
    spread = np.repeat(turned, 2, axis=-1) if turned.size else np.concatenate([turned] * 2, -1)
    x = tf.transpose(tf.constant(spread[..., ::-1]))
    view = x[::-2][:array.shape[0]] if array.shape[0] else x[:0]
    assert tuple(view.shape) == array.shape
    return view


def check_strided(s: Sample, dtype: str) -> None:
    """Results and gradients of views are those of arrays in order."""
    inputs = arrays(s, dtype)
    plain = with_gradients(s, [tf.constant(x) for x in inputs])
    views = with_gradients(s, [strided(x) for x in inputs])
    assert_same(views, plain, 4 * s.near, f"{s.name} of strided inputs")


def assert_same(got: Sequence[Sequence[Any]], wanted: Sequence[Sequence[Any]], near: float,
                what: str) -> None:
    """Results and gradients of two ways to compute."""
    for kind, ours, theirs in zip(("result", "gradient"), got, wanted):
        assert len(ours) == len(theirs)
        for i, (a, b) in enumerate(zip(ours, theirs)):
            assert (a is None) == (b is None), f"{what}: {kind} {i} is None in one way"
            if a is None:
                continue
            found, want = np.asarray(a), np.asarray(b)
            assert found.dtype == want.dtype, f"{what}: {kind} {i}"
            assert_near(found, want, near, True, f"{what}, {kind} {i}")


def in_one_function(samples: Sequence[Sample], dtypes: Sequence[str],
                    tensor: Callable[[np.ndarray], Any] = tf.constant) -> list[Any]:
    """Results and gradients of all samples, computed by one function. Integers beside floats are
    constants of it: indices that decide a shape must be known."""
    inputs = [[tensor(x) for x in arrays(s, d)] for s, d in zip(samples, dtypes)]
    given = [[x for x in xs if _is_given(x, xs)] for xs in inputs]

    @tf.function(autograph=False)
    def whole(given: Any) -> Any:
        made = []
        for s, known, symbols in zip(samples, inputs, given):
            rest = iter(symbols)
            made.append(with_gradients(s, [next(rest) if _is_given(x, known) else x
                                           for x in known]))
        return made

    with warnings.catch_warnings():
        # A function that would run eagerly proves nothing.
        warnings.simplefilter("error")
        return whole(given)


def _is_given(x: Any, beside: Sequence[Any]) -> bool:
    """Whether an input is an argument of the function."""
    return x.dtype.is_floating or x.dtype.is_complex or not any(
        y.dtype.is_floating or y.dtype.is_complex for y in beside)


def check_function(samples: Sequence[Sample], dtypes: Sequence[str],
                   tensor: Callable[[np.ndarray], Any] = tf.constant) -> None:
    """A function of what `tensor` makes of the inputs gives what the calls give eagerly."""
    wrong = []
    for s, dtype, got in zip(samples, dtypes, in_one_function(samples, dtypes, tensor)):
        eager = with_gradients(s, [tf.constant(x) for x in arrays(s, dtype)])
        try:
            assert_same(got, eager, 4 * s.near, f"{label(s)} {dtype} in a function")
        except AssertionError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)

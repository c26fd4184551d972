"""Matrices that hold nan or inf: the routines of LAPACK do not say what becomes of them.

A pivot search passes nan by, so that a determinant may come out as 0 and a system as a number; an
iteration fails, and with it the whole batch. So these matrices never reach a routine: each of a
batch for itself is replaced by the identity, and its results by what a `NonfiniteRule` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from .precision import Array


class NonfiniteRule(NamedTuple):
    """How matrices with nan or inf are treated: the results of those that are left out are nan,
    unless `instead` computes them."""

    #: Whether inf is left out too: elimination computes with it, iterations do not.
    infinite: bool = True
    #: The part of the matrices that is read: xp, a -> a with the rest finite.
    part: Callable[[Any, Any], Any] | None = None
    #: Replaces the routine for the matrices left out.
    instead: Callable[..., Any] | None = None


NAN = NonfiniteRule()
#: Elimination: an inf goes through as 1/inf = 0 does.
ONLY_NAN = NonfiniteRule(infinite=False)


def lower(rule: NonfiniteRule) -> NonfiniteRule:
    """The rule for a routine that reads the lower triangle."""
    return rule._replace(part=lambda xp, a: xp.tril(a))


def upper(rule: NonfiniteRule) -> NonfiniteRule:
    return rule._replace(part=lambda xp, a: xp.triu(a))


def guarded(xp: Any, routine: Callable[..., object], arrays: Sequence[Any],
            rule: NonfiniteRule) -> Any:
    """routine(*arrays), but for the matrices of the first array that `rule` leaves out."""
    a = arrays[0]
    # One pass in BLAS; a sum that overflows is looked at again below.
    if xp is np and math.isfinite(np.vdot(a, a).real):
        return routine(*arrays)
    seen = a if rule.part is None else rule.part(xp, a)
    bad = ~xp.isfinite(seen) if rule.infinite else xp.isnan(seen)
    out = bad.any(axis=(-2, -1))
    if not bool(out.any()):
        return routine(*arrays)
    eye = xp.eye(*a.shape[-2:], dtype=a.dtype)
    result = routine(xp.where(out[..., None, None], eye, a), *arrays[1:])
    other = None if rule.instead is None else rule.instead(*arrays)
    if isinstance(result, tuple):
        others = other or (None,) * len(result)
        return tuple([_filled(xp, m, out, o) for m, o in zip(result, others)])
    return _filled(xp, result, out, other)


def _filled(xp: ModuleType, result: Any, out: Array, other: object) -> Any:
    """`result` with `other`, or nan, for the matrices left out; orders of rows stay as they are."""
    if other is None and result.dtype.kind not in "fc":
        return result
    mask = out.reshape(out.shape + (1,) * (result.ndim - out.ndim))
    return xp.where(mask, math.nan if other is None else other, result).astype(result.dtype)

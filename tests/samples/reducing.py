"""Samples of reductions, scans, segments and norms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gtape as tf
from tests.samples.sample import COMPLEX, WIDE, Sample, of, sample

sp = pytest.importorskip("scipy.special")
_AXES = (((), None, False), ((7,), None, True), ((7,), 0, False), ((1,), -1, False),
         ((2, 3, 5), 1, False), ((2, 3, 5), [0, -1], True), ((3, 1), -1, True), ((2, 3), [], False))
_EMPTY = (((0,), None, False), ((2, 0, 3), 1, True), ((0, 3), -1, False))


def _axis(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def _over(reduce: Any) -> Any:
    return lambda x, axis=None, keepdims=False: reduce(x, axis=_axis(axis), keepdims=keepdims)


def _logsumexp(x: Any, axis: Any, keepdims: bool) -> Any:
    return sp.logsumexp(x, axis=axis, keepdims=keepdims)


def _euclidean(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.sqrt((np.abs(x) ** 2).sum(axis=axis, keepdims=keepdims))


#: name: reference, whether it takes complex numbers, whether nothing has a value.
_REDUCTIONS = {
    "reduce_sum": (np.sum, True, True), "reduce_prod": (np.prod, True, True),
    "reduce_mean": (np.mean, True, False), "reduce_max": (np.max, False, False),
    "reduce_min": (np.min, False, False), "reduce_logsumexp": (_logsumexp, False, False),
    "math.reduce_variance": (np.var, False, False), "math.reduce_std": (np.std, False, False),
    "math.reduce_euclidean_norm": (_euclidean, False, True)}


def samples() -> Iterator[Sample]:
    for name, (reference, takes_complex, of_nothing) in _REDUCTIONS.items():
        for shape, axis, keepdims in (*_AXES, *(_EMPTY if of_nothing else ())):
            if axis == [] and name not in ("reduce_sum", "reduce_prod", "reduce_mean"):
                continue
            smooth = not (name.endswith(("std", "norm")) and np.prod(shape, dtype=int) <= 1) and (
                (shape != (3, 1) and shape != (1,)) or not name.endswith(("std", "norm")))
            yield sample(name, of(*shape), reference=_over(reference), axis=axis,
                         keepdims=keepdims, orders=2 if smooth else 0, gradients=smooth)
        if takes_complex:
            yield sample(name, of(3, 4), reference=_over(reference), axis=-1, dtypes=COMPLEX)
    yield from _integers()
    yield from _scans()
    yield from _segments()
    yield from _norms()
    yield from _more()


def _integers() -> Iterator[Sample]:
    full = {"uint8": 250, "int8": -120, "int32": 2 ** 31 - 5, "int64": 2 ** 62 + 3}
    for dtype, value in full.items():
        yield sample("reduce_mean", np.array([value, value + 2, value + 1], dtype),
                     reference=lambda x: np.array(sum(map(int, x)) // 3, x.dtype), orders=0)
    for name, reference in (("reduce_sum", np.sum), ("reduce_prod", np.prod),
                            ("reduce_max", np.max), ("reduce_min", np.min)):
        for dtype in ("int32", "int64", "uint8"):
            yield sample(name, np.arange(1, 7).reshape(2, 3).astype(dtype), axis=1, orders=0,
                         reference=lambda x, axis, r=reference: r(x, axis=axis).astype(x.dtype))


def _shifted(x: Any, axis: int, exclusive: bool, reverse: bool, one: float, how: Any) -> Any:
    if reverse:
        x = np.flip(x, axis)
    if exclusive:
        head = np.full_like(np.take(x, [0], axis), one)
        x = np.concatenate([head, np.delete(x, -1, axis)], axis)
    made = how(x, axis=axis)
    return np.flip(made, axis) if reverse else made


def _cumlogsumexp(x: Any, axis: int) -> Any:
    return np.logaddexp.accumulate(x, axis=axis)


def _scans() -> Iterator[Sample]:
    for name, one, how in (("cumsum", 0.0, np.cumsum), ("math.cumprod", 1.0, np.cumprod),
                           ("math.cumulative_logsumexp", -np.inf, _cumlogsumexp)):
        for shape, axis in (((7,), 0), ((2, 3), -1), ((3, 2), 0), ((1,), 0)):
            for exclusive in (False, True):
                for reverse in (False, True):
                    yield sample(
                        name, of(*shape), near=32, axis=axis, exclusive=exclusive,
                        reverse=reverse,
                        orders=0 if (exclusive and one == -np.inf) or shape != (7,) else 2,
                        reference=lambda x, axis, exclusive, reverse, one=one, how=how: _shifted(
                            x, axis, exclusive, reverse, one, how))


def _per_segment(reduce: Any, empty: float) -> Any:
    def reference(x: Any, ids: Any, num_segments: Any = None) -> Any:
        count = int(ids.max()) + 1 if num_segments is None else num_segments
        rows = [x[ids == i] for i in range(count)]
        return np.stack([reduce(r, axis=0) if len(r) else np.full(x.shape[1:], empty)
                         for r in rows])

    return reference


def _segments() -> Iterator[Sample]:
    ids, some = np.array([0, 0, 1, 3, 3]), np.array([2, 0, 2, 0, 3])
    for name, reduce, empty in (("sum", np.sum, 0.0), ("prod", np.prod, 1.0),
                                ("mean", np.mean, 0.0), ("max", np.max, 0.0),
                                ("min", np.min, 0.0)):
        reference = _per_segment(reduce, empty)
        yield sample(f"math.segment_{name}", of(5, 3), ids, reference=reference)
        yield sample(f"math.segment_{name}", of(5), np.zeros(5, int), reference=reference)
    for name, reduce, empty in (("sum", np.sum, 0.0), ("prod", np.prod, 1.0),
                                ("mean", np.mean, 0.0)):
        reference = _per_segment(reduce, empty)
        yield sample(f"math.unsorted_segment_{name}", of(5, 3), some, num_segments=4,
                     reference=reference)
    yield sample("math.unsorted_segment_sqrt_n", of(5, 3), some, num_segments=4,
                 reference=_per_segment(lambda r, axis: r.sum(axis) / np.sqrt(len(r)), 0.0))
    for name in ("max", "min"):
        yield sample(f"math.unsorted_segment_{name}", of(5, 3), np.array([1, 0, 1, 0, 2]),
                     num_segments=3, reference=_per_segment(getattr(np, name), 0.0))


def _norms() -> Iterator[Sample]:
    for order in (1, 2, np.inf, 3.0):
        for axis in (None, 0, -1):
            yield sample("norm", of(3, 4, low=0.2, high=2), ord=order, axis=axis,
                         reference=lambda x, ord, axis: (
                             np.linalg.norm(x.reshape(-1) if axis is None else x, ord, axis)))
    for order in ("fro", 1, np.inf):
        yield sample("norm", of(2, 3, 4), ord=order, axis=[-2, -1], dtypes=WIDE,
                     reference=lambda x, ord, axis: np.linalg.norm(x, ord, (-2, -1)))
    yield sample("norm", of(3, 4), axis=0, dtypes=COMPLEX,
                 reference=lambda x, axis: np.linalg.norm(x, axis=axis))
    yield sample("linalg.global_norm", of(3, 4), of(2), function=lambda a, b: (
        tf.linalg.global_norm([a, b])), reference=lambda a, b: np.sqrt((a * a).sum() + b @ b))
    yield sample("linalg.normalize", of(3, 4), axis=1,
                 reference=lambda x, axis: (x / np.linalg.norm(x, axis=1, keepdims=True),
                                            np.linalg.norm(x, axis=1, keepdims=True)))
    yield sample("math.l2_normalize", of(3, 4), axis=-1,
                 reference=lambda x, axis: x / np.linalg.norm(x, axis=-1, keepdims=True))
    yield sample("clip_by_norm", of(3, 4), clip_norm=0.5,
                 reference=lambda x, clip_norm: x * clip_norm / np.linalg.norm(x))
    yield sample("clip_by_norm", of(3, 4), clip_norm=1.5, axes=[1], orders=2,
                 reference=lambda x, clip_norm, axes: x * clip_norm / np.maximum(
                     np.linalg.norm(x, axis=1, keepdims=True), clip_norm))
    yield sample("clip_by_global_norm", of(3, 4), of(2), reference=None, dtypes=WIDE,
                 function=lambda a, b: tf.clip_by_global_norm([a, b], 0.7)[0])


def _more() -> Iterator[Sample]:
    yield sample("add_n", of(3, 4), of(3, 4), of(3, 4), function=lambda *x: tf.add_n(x),
                 reference=lambda *x: sum(x))
    yield sample("math.accumulate_n", of(3, 4), of(3, 4),
                 function=lambda *x: tf.math.accumulate_n(x), reference=lambda *x: sum(x))
    yield sample("nn.l2_loss", of(3, 5), reference=lambda x: (x * x).sum() / 2)
    for axes, keepdims in (([0], False), ([0, 1], True), ([-1], False)):
        yield sample("nn.moments", of(3, 5), axes=axes, keepdims=keepdims, near=32,
                     reference=lambda x, axes, keepdims: (
                         x.mean(tuple(axes), keepdims=keepdims),
                         x.var(tuple(axes), keepdims=keepdims)))
    yield sample("nn.moments", of(4, 3), axes=[0], dtypes=COMPLEX, orders=1,
                 reference=lambda x, axes: (
                     x.mean(0), (np.abs(x - x.mean(0)) ** 2).mean(0).astype(x.dtype)))
    yield sample("nn.weighted_moments", of(4, 3), of(4, 1, low=0.2, high=1), dtypes=WIDE,
                 function=lambda x, w: tf.nn.weighted_moments(x, [0], w),
                 reference=lambda x, w: (
                     (w * x).sum(0) / w.sum(),
                     (w * (x - (w * x).sum(0) / w.sum()) ** 2).sum(0) / w.sum()))
    yield sample("math.zero_fraction", np.array([0.0, 1.0, 0.0, 2.0]), gradients=False, dtypes=WIDE,
                 reference=lambda x: np.float32(0.5))
    yield sample("math.top_k", of(3, 7), k=3, reference=lambda x, k: (
        -np.sort(-x, -1)[..., :k], np.argsort(-x, -1, kind="stable")[..., :k].astype(np.int32)))
    yield sample("sort", of(3, 7), axis=0, reference=np.sort)
    yield sample("sort", of(7), direction="DESCENDING", reference=lambda x, direction: -np.sort(-x))

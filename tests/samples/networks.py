"""Samples of activations over rows, losses, normalization, convolution and pooling."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gtape as tf
from tests.samples.sample import WIDE, Sample, of, sample

sp = pytest.importorskip("scipy.special")
_IMAGE = of(2, 7, 5, 3)


def samples() -> Iterator[Sample]:
    yield from _rows()
    yield from _losses()
    yield from _normalization()
    yield from _convolution()
    yield from _pooling()


def _rows() -> Iterator[Sample]:
    for name, reference in (("math.softmax", sp.softmax), ("math.log_softmax", sp.log_softmax)):
        for shape, axis in (((3, 7), -1), ((2, 5, 3), 1), ((1,), -1), ((4, 1), -1), ((0, 3), -1)):
            yield sample(name, of(*shape), axis=axis, reference=lambda x, axis, r=reference: (
                r(x, axis=axis) if x.size else x), orders=2 if shape == (3, 7) else 0)
        yield sample(name, of(3, 7, low=-300, high=300), axis=-1, dtypes=WIDE, gradients=False,
                     reference=reference)
    yield sample("nn.bias_add", of(2, 4, 3), of(3), reference=np.add)
    yield sample("nn.dropout", of(3, 4), rate=0.0, reference=lambda x, rate: x)
    yield sample("nn.local_response_normalization", _IMAGE, depth_radius=1, dtypes=WIDE)


def _by_alignments(logits: Any, labels: Any, lengths: Any, frames: Any) -> Any:
    """CTC loss as a sum over every way to give a class to each frame."""
    z = sp.log_softmax(logits, axis=-1)
    losses = []
    for b, (label, length, count) in enumerate(zip(labels, lengths, frames)):
        total = 0.0
        for path in itertools.product(range(logits.shape[2]), repeat=count):
            found = [c for c, _ in itertools.groupby(path) if c]
            if found == label[:length].tolist():
                total += np.exp(sum(z[t, b, c] for t, c in enumerate(path)))
        losses.append(-np.log(total))
    return np.array(losses)


def _losses() -> Iterator[Sample]:
    labels = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    one = np.array([2, 0])
    yield sample("nn.softmax_cross_entropy_with_logits", labels, of(2, 3),
                 reference=lambda z, x: -(z * sp.log_softmax(x, axis=-1)).sum(-1))
    yield sample("nn.sparse_softmax_cross_entropy_with_logits", one, of(2, 3),
                 reference=lambda z, x: -sp.log_softmax(x, axis=-1)[[0, 1], z])
    yield sample("nn.ctc_loss", np.array([[1, 2], [2, 0]]), of(4, 2, 3), np.array([2, 1]),
                 np.array([4, 3]), dtypes=WIDE,
                 reference=lambda y, x, n, t: _by_alignments(x, y, n, t))
    yield sample("nn.sigmoid_cross_entropy_with_logits", labels, of(2, 3),
                 reference=lambda z, x: np.logaddexp(0, x) - x * z)
    yield sample("nn.weighted_cross_entropy_with_logits", labels, of(2, 3), pos_weight=2.0,
                 reference=lambda z, x, pos_weight: (
                     (1 - z) * np.logaddexp(0, x) + 2 * z * np.logaddexp(0, -x)))
    yield sample("nn.log_poisson_loss", of(2, 3, low=1, high=4), of(2, 3), dtypes=WIDE,
                 reference=lambda z, x: np.exp(x) - x * z)
    yield sample("nn.compute_average_loss", of(4), global_batch_size=8, dtypes=WIDE,
                 reference=lambda x, global_batch_size: x.sum() / 8)
    yield sample("nn.scale_regularization_loss", of(), dtypes=("float32",), reference=lambda x: x,
                 orders=0)
    yield sample("nn.isotonic_regression", of(2, 6), dtypes=WIDE, orders=1, traced=False)


def _normalized(x: Any, mean: Any, variance: Any, offset: Any, scale: Any,
                variance_epsilon: float) -> Any:
    return (x - mean) / np.sqrt(variance + variance_epsilon) * scale + offset


def _normalization() -> Iterator[Sample]:
    spread = of(3, low=0.5, high=2)
    yield sample("nn.batch_normalization", of(4, 3), of(3), spread, of(3), of(3), dtypes=WIDE,
                 variance_epsilon=1e-3, reference=_normalized)
    yield sample("nn.batch_normalization", of(4, 3), variance_epsilon=1e-3, dtypes=WIDE,
                 near=64, function=_by_moments, reference=lambda x, variance_epsilon: (
                     (x - x.mean(0)) / np.sqrt(x.var(0) + variance_epsilon)))
    yield sample("nn.batch_norm_with_global_normalization", of(2, 2, 2, 3), of(3), spread, of(3),
                 of(3), variance_epsilon=1e-3, scale_after_normalization=True, dtypes=WIDE,
                 reference=lambda x, m, v, b, s, variance_epsilon, scale_after_normalization: (
                     _normalized(x, m, v, b, s, variance_epsilon)))
    yield sample("nn.normalize_moments", of(), of(3), spread, shift=0.5, dtypes=WIDE,
                 function=lambda c, m, v, shift: tf.nn.normalize_moments(
                     tf.constant(4.0, m.dtype), m, v, tf.constant(shift, m.dtype)), orders=2)


def _by_moments(x: Any, variance_epsilon: float) -> Any:
    mean, variance = tf.nn.moments(x, [0])
    return tf.nn.batch_normalization(x, mean, variance, None, None, variance_epsilon)


def _convolved(x: Any, w: Any, strides: int, padding: str) -> Any:
    """The definition, with loops."""
    n, height, width, _ = x.shape
    rows, columns, _, channels = w.shape
    if padding == "SAME":
        out = [-(-height // strides), -(-width // strides)]
        spans = [max((o - 1) * strides + k - m, 0) for o, k, m in zip(out, w.shape, x.shape[1:3])]
        x = np.pad(x, [(0, 0), *((s // 2, s - s // 2) for s in spans), (0, 0)])
    else:
        out = [(height - rows) // strides + 1, (width - columns) // strides + 1]
    made = np.zeros((n, *out, channels))
    for i in range(out[0]):
        for j in range(out[1]):
            patch = x[:, i * strides:i * strides + rows, j * strides:j * strides + columns]
            made[:, i, j] = np.tensordot(patch, w, 3)
    return made


def _convolution() -> Iterator[Sample]:
    for channels in (1, 4, 5):
        for strides, padding in ((1, "SAME"), (2, "VALID"), (2, "SAME")):
            yield sample("nn.conv2d", _IMAGE, of(3, 2, 3, channels), strides=strides,
                         padding=padding, reference=_convolved,
                         orders=2 if channels == 4 else 0)
    yield sample("nn.conv1d", of(2, 7, 3), of(3, 3, 2), stride=1, padding="SAME", dtypes=WIDE)
    yield sample("nn.conv3d", of(1, 4, 3, 3, 2), of(2, 2, 2, 2, 3), strides=[1] * 5,
                 padding="VALID", dtypes=WIDE)
    yield sample("nn.convolution", _IMAGE, of(3, 2, 3, 2), dilations=2, padding="SAME",
                 dtypes=WIDE)
    yield sample("nn.atrous_conv2d", _IMAGE, of(2, 2, 3, 2), rate=2, padding="VALID", dtypes=WIDE)
    yield sample("nn.depthwise_conv2d", _IMAGE, of(3, 2, 3, 2), strides=[1, 1, 1, 1],
                 padding="SAME", dtypes=WIDE)
    yield sample("nn.separable_conv2d", _IMAGE, of(3, 2, 3, 1), of(1, 1, 3, 2),
                 strides=[1, 1, 1, 1], padding="VALID", dtypes=WIDE)
    yield sample("nn.conv2d_transpose", of(1, 4, 3, 2), of(3, 2, 3, 2), output_shape=[1, 8, 6, 3],
                 strides=2, dtypes=WIDE)
    yield sample("nn.conv1d_transpose", of(1, 4, 2), of(3, 3, 2), output_shape=[1, 8, 3],
                 strides=2, dtypes=WIDE)
    yield sample("nn.conv3d_transpose", of(1, 2, 2, 2, 2), of(2, 2, 2, 3, 2),
                 output_shape=[1, 4, 4, 4, 3], strides=2, dtypes=WIDE)
    yield sample("nn.atrous_conv2d_transpose", of(1, 4, 3, 2), of(2, 2, 3, 2),
                 output_shape=[1, 6, 5, 3], rate=2, padding="VALID", dtypes=WIDE)
    for name in ("dilation2d", "erosion2d"):
        yield sample(f"nn.{name}", of(1, 5, 4, 2), of(2, 2, 2), strides=[1, 1, 1, 1],
                     padding="VALID", data_format="NHWC", dilations=[1, 1, 1, 1], dtypes=WIDE)


def _pooling() -> Iterator[Sample]:
    for name in ("max", "avg"):
        for size, strides, padding in ((2, 2, "VALID"), (3, 2, "SAME"), ((2, 1), 1, "VALID")):
            yield sample(f"nn.{name}_pool2d", _IMAGE, ksize=size, strides=strides, padding=padding)
        yield sample(f"nn.{name}_pool1d", of(2, 7, 3), ksize=2, strides=1, padding="SAME",
                     dtypes=WIDE)
        yield sample(f"nn.{name}_pool3d", of(1, 4, 3, 5, 2), ksize=2, strides=2, padding="SAME",
                     dtypes=WIDE)
        yield sample(f"nn.{name}_pool", _IMAGE, ksize=[2, 2], strides=[1, 1], padding="VALID",
                     dtypes=WIDE)
    yield sample("nn.pool", _IMAGE, window_shape=[2, 2], pooling_type="AVG", padding="SAME",
                 dtypes=WIDE)
    yield sample("nn.max_pool_with_argmax", _IMAGE, ksize=2, strides=2, padding="VALID",
                 dtypes=WIDE)

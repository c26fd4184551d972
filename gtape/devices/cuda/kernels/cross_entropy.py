"""Softmax cross entropy over the last axis: the losses and, in the same launch, the probabilities
or the gradient for the logits.

Labels are classes by number (integers of any dtype, of the shape of the logits without the last
axis; one outside [0, classes) makes nan of its row) or dense (of the shape and dtype of the
logits). All functions return None for other arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gtape.devices.cuda.kernels.row_geometry import ONE_ROW, TWO_ROWS, forms, geometry
from gtape.devices.cuda.kernels.softmax import FLOATS
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel

if TYPE_CHECKING:
    from gtape.core.device import Array

#: What a launch writes beside the losses: `output` in the kernels.
_NOTHING, _PROBABILITIES, _GRADIENT = range(3)
#: Dense labels are read when their row of logits is on chip, so that a tile has one row in flight.
_VALUES = {"SparseLabels": ONE_ROW,
           "DenseLabels": TWO_ROWS | {2: TWO_ROWS[2]._replace(shared=16)}}
_GRAD_BLOCK = 256
_GRAD_VALUES = {2: 16, 4: 16, 8: 8}


def instances() -> Iterator[Kernel]:
    for dtype in FLOATS:
        size = numpy_dtype(dtype).itemsize
        for labels, values in _VALUES.items():
            for form, each in forms(values[size]):
                yield shipped_kernel("cross_entropy.cu", f"cross_entropy_{form}", dtype, each,
                                     labels)
        for targets in ("SparseTargets", "DenseTargets"):
            yield shipped_kernel("cross_entropy_grad.cu", "cross_entropy_grad", dtype,
                                 _GRAD_VALUES[size], targets)


def cross_entropy_loss(gpu: Executor, logits: Array, labels: object) -> Any:
    """ℓ = -Σ labels log softmax(logits), or -log softmax(logits)[label]."""
    if _labels(logits, labels) is None:
        return None
    return _launch(gpu, logits, labels, _NOTHING)[0]


def cross_entropy(gpu: Executor, logits: object, labels: object) -> Any:
    """(ℓ, softmax(logits))."""
    if _labels(logits, labels) is None:
        return None
    return _launch(gpu, logits, labels, _PROBABILITIES)


def cross_entropy_and_gradient(gpu: Executor, logits: Array, labels: object,
                               weights: Array | None = None, scale: float = 1.0,
                               in_place: bool = False) -> Any:
    """(ℓ, w (softmax(logits) - labels)), classes by number as one-hot rows.

    The gradient takes labels to sum to 1, whatever they are.

    Args:
        weights: the cotangent of each loss, of its shape and of the dtype of the logits.
        scale: w is `scale`, times the row's weight where weights are given.
        in_place: whether the gradient may take the memory of the logits. It does so where they
            are contiguous.
    """
    if _labels(logits, labels) is None or (weights is not None and (
            weights.shape != logits.shape[:-1] or weights.dtype != logits.dtype)):
        return None
    return _launch(gpu, logits, labels, _GRADIENT, weights, float(scale), in_place)


def cross_entropy_grad(gpu: Executor, a: Any, probs: Any, labels: object) -> Any:
    """a (probs - labels), classes by number as one-hot rows: the gradient for the logits where
    the losses have the cotangent a, made of the probabilities."""
    kind = _labels(probs, labels)
    if kind is None or a.dtype != probs.dtype or a.shape != probs.shape[:-1]:
        return None
    a, probs, labels = gpu.contiguous(a), gpu.contiguous(probs), gpu.contiguous(labels)
    y = gpu.empty(probs.shape, probs.dtype)
    if probs.size:
        cols = probs.shape[-1]
        rows = probs.size // cols
        values = _GRAD_VALUES[probs.dtype.itemsize]
        team = 4
        while team < _GRAD_BLOCK and team * values < cols:
            team *= 2
        kernel = shipped_kernel("cross_entropy_grad.cu", "cross_entropy_grad",
                                dtype_name(probs.dtype), values,
                                "SparseTargets" if kind else "DenseTargets")
        gpu.launch(kernel, gpu.blocks(rows, _GRAD_BLOCK // team, waves=64), (_GRAD_BLOCK, 1, 1),
                   (a, probs, labels, y, rows, cols, kind, team))
    return y


def _labels(logits: Any, labels: Any) -> int | None:
    """0 for dense labels, `kind` of kernels/class_labels.cuh for classes; None: not served."""
    if dtype_name(logits.dtype) not in FLOATS or not logits.ndim:
        return None
    if labels.dtype == logits.dtype:
        return 0 if labels.shape == logits.shape else None
    if labels.dtype.kind not in "iu" or labels.shape != logits.shape[:-1]:
        return None
    size = int(labels.dtype.itemsize)
    return -size if labels.dtype.kind == "u" else size


def _launch(gpu: Executor, logits: Any, labels: object, output: int, weights: Array | None = None,
            scale: float = 1.0, in_place: bool = False) -> tuple[Any, Any]:
    kind = _labels(logits, labels)
    x, labels = gpu.contiguous(logits), gpu.contiguous(labels)
    losses = gpu.empty(x.shape[:-1], x.dtype)
    # Where nothing is written beside the losses, x and the losses stand for arrays not used.
    second = x if output == _NOTHING or (in_place and x is logits) else gpu.empty(x.shape, x.dtype)
    weighted = weights is not None
    given = gpu.contiguous(weights) if weighted else losses
    cols = x.shape[-1]
    rows = math.prod(x.shape[:-1])
    name = "SparseLabels" if kind else "DenseLabels"
    # Losses of classes by number need their row once, and nothing of it afterwards.
    once = output == _NOTHING and bool(kind)
    to = geometry(gpu, rows, cols, x.dtype, _VALUES[name], cached=0 if once else 1)
    kernel = shipped_kernel("cross_entropy.cu", f"cross_entropy_{to.form}", dtype_name(x.dtype),
                            to.values, name)
    gpu.launch(kernel, to.grid, to.block,
               (x, labels, given, losses, second, rows, cols, kind, output, int(weighted), scale,
                *to.lanes), to.smem)
    return losses, second

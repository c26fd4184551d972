"""Checks of kernels/layer_norm.cu."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gtape.devices.cuda.kernels.layer_norm import layer_norm, layer_norm_backward
from gtape.kernelcheck.checks.bench import Bench, Check, meant
from gtape.kernelcheck.checks.row_norms import EPS, row_norm_checks
from gtape.ops.nn import normalization as ops


def checks() -> Iterator[Check]:
    return row_norm_checks("layer_norm", _run, _reference)


def _run(bench: Bench, x: object, scale: Any, shift: object, g: object) -> Any:
    y, mean, factor = layer_norm(bench.gpu, x, scale, shift, EPS)
    return y, (mean, factor), layer_norm_backward(bench.gpu, g, x, scale, mean, factor)


def _reference(bench: Bench, x: np.ndarray, scale: np.ndarray, shift: np.ndarray,
               g: np.ndarray) -> Any:
    along = {"axes": (x.ndim - 1,)}
    y, mean, factor = meant(ops.layer_norm, x, scale, shift, eps=EPS, **along)
    grads = meant(ops.layer_norm_grad_, g, x, scale, mean, factor, shift_shape=shift.shape, **along)
    return y, (mean[..., 0], factor[..., 0]), grads

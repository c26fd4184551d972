"""Checks of kernels/rms_norm.cu."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gtape.devices.cuda.kernels.rms_norm import rms_norm, rms_norm_backward
from gtape.kernelcheck.checks.bench import Bench, Check
from gtape.kernelcheck.checks.row_norms import EPS, row_norm_checks


def checks() -> Iterator[Check]:
    return row_norm_checks("rms_norm", _run, _reference)


def _run(bench: Bench, x: Any, scale: Any, shift: Any, g: Any) -> Any:
    y, factor = rms_norm(bench.gpu, x, scale, EPS)
    return y, (factor,), rms_norm_backward(bench.gpu, g, x, scale, factor)


def _reference(bench: Bench, x: np.ndarray, scale: np.ndarray, shift: np.ndarray,
               g: np.ndarray) -> Any:
    cols = np.float64(x.shape[-1])
    factor = 1 / np.sqrt((x ** 2).sum(-1, keepdims=True) / cols + EPS)
    n, a = x * factor, g * scale
    d_x = factor * (a - n * (a * n).sum(-1, keepdims=True) / cols)
    return n * scale, (factor[..., 0],), (d_x, (g * n).sum(tuple(range(x.ndim - 1))))

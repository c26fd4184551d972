"""Checks of kernels/layer_norm.cu."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gtape.devices.cuda.kernels.layer_norm import layer_norm, layer_norm_backward
from gtape.kernelcheck.checks.bench import Bench, Check
from gtape.kernelcheck.checks.row_norms import EPS, row_norm_checks


def checks() -> Iterator[Check]:
    return row_norm_checks("layer_norm", _run, _reference)


def _run(bench: Bench, x: Any, scale: Any, shift: Any, g: Any) -> Any:
    y, mean, factor = layer_norm(bench.gpu, x, scale, shift, EPS)
    return y, (mean, factor), layer_norm_backward(bench.gpu, g, x, scale, mean, factor)


def _reference(bench: Bench, x: np.ndarray, scale: np.ndarray, shift: np.ndarray,
               g: np.ndarray) -> Any:
    cols, over = x.shape[-1], tuple(range(x.ndim - 1))
    mean = x.sum(-1, keepdims=True) / cols if cols else np.full((*x.shape[:-1], 1), np.nan)
    centred = x - mean
    factor = 1 / np.sqrt((centred ** 2).sum(-1, keepdims=True) / np.float64(cols) + EPS)
    n, a = centred * factor, g * scale
    d_x = factor * (a - (a.sum(-1, keepdims=True) + n * (a * n).sum(-1, keepdims=True))
                    / np.float64(cols))
    return n * scale + shift, (mean[..., 0], factor[..., 0]), (d_x, (g * n).sum(over), g.sum(over))

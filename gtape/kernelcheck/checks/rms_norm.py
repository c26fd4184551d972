"""Checks of kernels/rms_norm.cu."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gtape.devices.cuda.kernels.rms_norm import rms_norm, rms_norm_backward
from gtape.kernelcheck.checks.bench import Bench, Check, meant
from gtape.kernelcheck.checks.row_norms import EPS, row_norm_checks
from gtape.ops.nn import normalization as ops


def checks() -> Iterator[Check]:
    return row_norm_checks("rms_norm", _run, _reference)


def _run(bench: Bench, x: object, scale: Any, shift: object, g: object) -> Any:
    y, factor = rms_norm(bench.gpu, x, scale, EPS)
    return y, (factor,), rms_norm_backward(bench.gpu, g, x, scale, factor)


def _reference(bench: Bench, x: np.ndarray, scale: np.ndarray, shift: np.ndarray,
               g: np.ndarray) -> Any:
    along = {"axes": (x.ndim - 1,)}
    y, factor = meant(ops.rms_norm, x, scale, eps=EPS, **along)
    return y, (factor[..., 0],), meant(ops.rms_norm_grad_, g, x, scale, factor, **along)

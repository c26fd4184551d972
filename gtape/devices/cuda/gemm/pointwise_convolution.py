"""Convolutions that are matrix products: one cell, step 1, no padding, one group.

y[n, o, f] = Σ x[n, o, c] w[c, f] over all positions at once, by cuBLASLt, which has tensor cores
for floats of two bytes. Each function gives None where the product is not served.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gtape.devices.cuda.gemm import gemm
from gtape.devices.cuda.runtime.executor import Executor


def is_product(size: Sequence[int], strides: Sequence[int], pads: Sequence[Sequence[int]],
               groups: int) -> bool:
    """Whether a convolution with filters of `size` cells is a matrix product."""
    return groups == 1 and {*size, *strides} == {1} and not any(map(any, pads))


def convolve(gpu: Executor, x: Any, filters: Any) -> Any:
    """x [N, *in, C] and filters [*1, C, F] -> [N, *in, F]."""
    product = gemm.matmul(gpu, _rows(gpu, x), _matrix(gpu, filters))
    return None if product is None else product.reshape((*x.shape[:-1], filters.shape[-1]))


def input_gradient(gpu: Executor, g: Any, filters: Any) -> Any:
    """g [N, *in, F] and filters [*1, C, F] -> [N, *in, C]."""
    product = gemm.matmul(gpu, _rows(gpu, g), _matrix(gpu, filters), transpose_b=True)
    return None if product is None else product.reshape((*g.shape[:-1], filters.shape[-2]))


def filter_gradient(gpu: Executor, x: Any, g: Any) -> Any:
    """x [N, *in, C] and g [N, *in, F] -> [*1, C, F]."""
    product = gemm.matmul(gpu, _rows(gpu, x), _rows(gpu, g), transpose_a=True)
    shape = (*(1,) * (x.ndim - 2), x.shape[-1], g.shape[-1])
    return None if product is None else product.reshape(shape)


def _rows(gpu: Executor, array: Any) -> Any:
    return gpu.contiguous(array).reshape((math.prod(array.shape[:-1]), array.shape[-1]))


def _matrix(gpu: Executor, filters: Any) -> Any:
    return gpu.contiguous(filters).reshape(filters.shape[-2:])

"""Random arrays in one launch: uniform, normal, truncated normal, truth values and class numbers.

The arguments are those of the functions of the same names in `gtape.numerics.distributions`, and
so are the values: bit by bit where no logarithm, sine or exponential is taken, else but for
rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core.dtypes import FLOATS, INTEGERS
from gtape.devices.cuda.runtime.executor import Executor
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name, shipped_kernel

if TYPE_CHECKING:
    from gtape.core.device import Array

_BLOCK = 256
_MASK64 = 0xFFFFFFFFFFFFFFFF

Key = tuple[int, int]


def instances() -> Iterator[Kernel]:
    for name in ("uniform", "normal", "truncated_normal"):
        for dtype in FLOATS:
            yield shipped_kernel("random.cu", name, dtype)
    for dtype in INTEGERS:
        yield shipped_kernel("random.cu", "uniform_int", dtype)
    yield shipped_kernel("random.cu", "bernoulli")
    for dtype in FLOATS:
        yield shipped_kernel("dropout.cu", "dropout", dtype)
    for name in ("class_edges", "class_draws"):
        for dtype in FLOATS:
            yield shipped_kernel("categorical.cu", name, dtype)


def counter(key: Key, offset: int) -> tuple[int, int, int]:
    """A key and a 128-bit counter as three signed 64-bit numbers: key, low, high."""
    return signed(key[0] | key[1] << 32), signed(offset), signed(offset >> 64)


def signed(number: int) -> int:
    """The signed number of the same lowest 64 bits."""
    wrapped = number & _MASK64
    return wrapped - 2**64 if wrapped >= 2**63 else wrapped


def threshold(probability: float) -> int:
    """What the lowest 23 bits of a word are at least with `probability`."""
    return round((1.0 - min(max(probability, 0.0), 1.0)) * 2**23)


def _filled(gpu: Executor, name: str, shape: Sequence[int], dtype: Any, key: Key, offset: int,
            *numbers: Any) -> Any:
    out = gpu.empty(tuple(shape), np.dtype(dtype))
    types = () if name == "bernoulli" else (dtype_name(out.dtype),)
    # At least four: a Philox counter gives four words, and none is drawn twice.
    per_thread = max(16 // out.dtype.itemsize, 4)
    if out.size:
        gpu.launch(shipped_kernel("random.cu", name, *types),
                   gpu.blocks(out.size, _BLOCK * per_thread), (_BLOCK, 1, 1),
                   (out, out.size, *counter(key, offset), *numbers))
    return out


def uniform(gpu: Executor, key: Key, offset: int, shape: Sequence[int], dtype: Any,
            low: float = 0.0, high: float = 1.0) -> Any:
    """Floats in [low, high); None for another dtype than those of FLOATS."""
    kind = np.dtype(dtype).type
    if np.dtype(dtype).name not in FLOATS:
        return None
    with np.errstate(all="ignore"):
        first, end = kind(low), kind(high)
        last = np.nextafter(end, first)
        # In the dtype, and rounded as `numerics.distributions` rounds, so that both give the same
        # bits.
        span = kind(high - low)
    numbers = [float(v) for v in (span, first, end, last)]
    return _filled(gpu, "uniform", shape, dtype, key, offset, *numbers)


def uniform_int(gpu: Executor, key: Key, offset: int, shape: Sequence[int], dtype: np.dtype,
                low: int, high: int) -> Any:
    """Integers in [low, high), low < high; None for another dtype than those of INTEGERS."""
    if np.dtype(dtype).name not in INTEGERS:
        return None
    span = (high - low) % 2**64
    # By it the kernel takes remainders with a multiplication: GPUs have no division of 64 bits.
    inverse = min(2**64 // span, _MASK64) if span else 0
    return _filled(gpu, "uniform_int", shape, dtype, key, offset, signed(low), signed(span),
                   signed(inverse))


def normal(gpu: Executor, key: Key, offset: int, shape: Sequence[int], dtype: np.dtype,
           mean: float = 0.0, stddev: float = 1.0, *, name: str = "normal") -> Any:
    """Normal values; None for another dtype than those of FLOATS."""
    if np.dtype(dtype).name not in FLOATS:
        return None
    return _filled(gpu, name, shape, dtype, key, offset, float(mean), float(stddev))


#: Normal values within two deviations.
truncated_normal = partial(normal, name="truncated_normal")


def bernoulli(gpu: Executor, key: Key, offset: int, shape: Sequence[int],
              probability: float) -> Any:
    """bool: True with `probability`, rounded to a multiple of 2**-23."""
    return _filled(gpu, "bernoulli", shape, np.bool_, key, offset, threshold(probability))


#: By the names of the functions of `gtape.numerics.distributions` that they stand for.
DISTRIBUTIONS: dict[str, Callable[..., Any]] = {
    "uniform": uniform, "uniform_int": uniform_int, "normal": normal,
    "truncated_normal": truncated_normal, "bernoulli": bernoulli}


def categorical(gpu: Executor, key: Key, offset: int, logits: Array, samples: int) -> Any:
    """int64 [batch, samples]: class k of row b with probability softmax(logits[b])[k].

    Args:
        logits: [batch, classes] of at least one class.

    Returns:
        None for another dtype than those of FLOATS.
    """
    dtype = dtype_name(logits.dtype)
    if dtype not in FLOATS:
        return None
    batch, classes = logits.shape
    numbers = gpu.empty((batch, samples), np.dtype(np.int64))
    if not numbers.size:
        return numbers
    logits = gpu.contiguous(logits)
    # float64 whatever the dtype: a running sum of thousands of float32 would lose the rare classes.
    edges = gpu.empty((batch, classes), np.dtype(np.float64))
    threads = min(512, max(32, 32 * math.ceil(classes / 128)))
    gpu.launch(shipped_kernel("categorical.cu", "class_edges", dtype),
               gpu.blocks(batch, 1, waves=64), (threads, 1, 1), (logits, edges, batch, classes))
    gpu.launch(shipped_kernel("categorical.cu", "class_draws", dtype),
               gpu.blocks(numbers.size, _BLOCK), (_BLOCK, 1, 1),
               (logits, edges, numbers, batch, classes, samples, *counter(key, offset)))
    return numbers


def dropout(gpu: Executor, x: Any, key: Key, offset: int, rate: float) -> Any:
    """0 with probability `rate`, else x / (1 - rate).

    The choice is that of `bernoulli(key, offset, x.shape, 1 - rate)`. The gradient of x is the same
    function of the gradient of y.

    Args:
        rate: in [0, 1].

    Returns:
        An array like x, or None for another dtype than those of FLOATS.
    """
    dtype = dtype_name(x.dtype)
    if dtype not in FLOATS:
        return None
    x = gpu.contiguous(x)
    y = gpu.empty(x.shape, x.dtype)
    share = 1 - rate
    # Rounded to the dtype, so that both backends multiply by the same number.
    scale = float(x.dtype.type(1 / share if share else 0.0))
    per_thread = max(16 // x.dtype.itemsize, 4)
    if x.size:
        gpu.launch(shipped_kernel("dropout.cu", "dropout", dtype),
                   gpu.blocks(x.size, _BLOCK * per_thread), (_BLOCK, 1, 1),
                   (x, y, x.size, *counter(key, offset), threshold(share), scale))
    return y

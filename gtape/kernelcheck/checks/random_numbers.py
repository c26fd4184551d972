"""Checks of random arrays and of dropout."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import erf, prod, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.kernels import random_numbers as kernels
from gtape.devices.cuda.runtime.executor import numpy_dtype
from gtape.kernelcheck.checks.bench import Bench, Check, drawn

SIZES = (0, 1, 3, 31, 33, 1001)
KEY = (0x243F6A88, 0x85A308D3)
#: A counter whose lower half overflows within the draw.
OFFSET = 7 << 64 | 0xFFFFFFFFFFFFFFFA
#: Salmon et al. 2011, the known answers of philox4x32-10: key, counter, words.
KNOWN = (
    ((0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF, 0xFFFFFFFF), 2**128 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0xA4093822, 0x299F31D0), 0x0370734413198A2E85A308D3243F6A88,
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)))
MANTISSA = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
#: How far normal values may be off, relative to the largest: by the rounding of their dtype.
NEAR = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6, "float64": 1e-13}


def checks() -> Iterator[Check]:
    yield Check("philox, known answers", _known_answers)
    for size in SIZES:
        for dtype in FLOATS:
            for name in ("uniform", "normal", "truncated_normal"):
                for bounds in ((0.0, 1.0), (-1.5, 2.25)):
                    yield Check(f"{name} {dtype} [{size}] {bounds}",
                                partial(_filled, name=name, dtype=dtype, size=size, bounds=bounds))
        for dtype in kernels.INTEGERS:
            yield Check(f"uniform_int {dtype} [{size}]", partial(_integers, dtype=dtype, size=size))
        yield Check(f"bernoulli [{size}]", partial(_bernoulli, size=size))
    for dtype in FLOATS:
        for size in (*SIZES, 4096):
            for misaligned in (False, True):
                yield Check(f"dropout {dtype} [{size}]{' misaligned' * misaligned}",
                            partial(_dropout, dtype=dtype, size=size, misaligned=misaligned))
        for batch, classes, samples in ((0, 5, 3), (2, 1, 4), (3, 5, 0), (2, 33, 31), (1, 1001, 9),
                                        (1, 5000, 3)):
            yield Check(f"categorical {dtype} [{batch}, {classes}] {samples}",
                        partial(_categorical, dtype=dtype, batch=batch, classes=classes,
                                samples=samples))


def _known_answers(bench: Bench) -> None:
    for key, counter, words in KNOWN:
        got = kernels.uniform_int(bench.gpu, key, counter, (2,), np.dtype(np.uint64), 0, 2**64)
        bench.same("words", got, np.array([words[0] | words[1] << 32, words[2] | words[3] << 32],
                                          np.uint64))


def _words(start: int, count: int) -> np.ndarray:
    """uint64: the 32-bit words of the counters start, start + 1, ... under KEY."""
    words = [_scrambled((start + i) % 2**128) for i in range(-(-count // 4))]
    return np.array(words, np.uint64).reshape(-1)[:count]


def _scrambled(counter: int) -> list[int]:
    """Philox4x32-10 in Python's integers."""
    a, b, c, d = (counter >> 32 * i & 0xFFFFFFFF for i in range(4))
    for turn in range(10):
        k0, k1 = (KEY[0] + turn * 0x9E3779B9) % 2**32, (KEY[1] + turn * 0xBB67AE85) % 2**32
        first, second = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = ((second >> 32) ^ b ^ k0, second % 2**32, (first >> 32) ^ d ^ k1,
                      first % 2**32)
    return [a, b, c, d]


def _bits64(count: int) -> np.ndarray:
    pairs = _words(OFFSET, 2 * count).reshape(-1, 2)
    return pairs[:, 0] | pairs[:, 1] << np.uint64(32)


def _fractions(count: int, bits: int) -> np.ndarray:
    """float64: multiples of 2**-bits in [0, 1)."""
    if bits <= 23:
        return (_words(OFFSET, count) % np.uint64(2**bits)).astype(np.float64) / 2**bits
    pairs = _words(OFFSET, 2 * count).reshape(-1, 2)
    steps = (pairs[:, 0] % np.uint64(2**20)).astype(np.float64) * 2.0**32 + pairs[:, 1]
    return steps / 2**52


def _uniform(size: int, dtype: str, low: float, high: float) -> np.ndarray:
    kind = numpy_dtype(dtype).type
    unit = _fractions(size, MANTISSA[dtype]).astype(kind)
    values = unit * kind(high - low) + kind(low)
    last = np.nextafter(kind(high), kind(low))
    return np.where(values < kind(high), values, last).astype(np.float64)


def _normal(size: int, dtype: str, mean: float, stddev: float) -> np.ndarray:
    unit = _fractions(size + size % 2, max(MANTISSA[dtype], 23)).reshape(-1, 2)
    radius = np.sqrt(-2 * np.log(np.maximum(unit[:, 0], 1e-7)))
    angle = 2 * np.pi * unit[:, 1]
    pairs = np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=1)
    return pairs.reshape(-1)[:size] * stddev + mean


def _truncated_normal(size: int, dtype: str, mean: float, stddev: float) -> np.ndarray:
    if dtype == "float64":
        v = ((_bits64(2 * size)[1::2] >> np.uint64(12)).astype(np.float64) + 0.5) / 2**52
    else:
        v = ((_words(OFFSET, 2 * size)[1::2] >> np.uint64(9)).astype(np.float64) + 0.5) / 2**23
    quantile = NormalDist().inv_cdf
    inner = erf(sqrt(2))
    return np.array([quantile(0.5 + (x - 0.5) * inner) for x in v]).reshape(size) * stddev + mean


REFERENCES = {"uniform": _uniform, "normal": _normal, "truncated_normal": _truncated_normal}


def _filled(bench: Bench, name: str, dtype: str, size: int, bounds: tuple[float, float]) -> None:
    shape = (3, size // 3) if size % 3 == 0 else (size,)
    got = getattr(kernels, name)(bench.gpu, KEY, OFFSET, shape, numpy_dtype(dtype), *bounds)
    reference = REFERENCES[name](prod(shape), dtype, *bounds).reshape(shape)
    bench.same(name, got, reference, 0.0 if name == "uniform" else NEAR[dtype])


def _integers(bench: Bench, dtype: str, size: int) -> None:
    info = np.iinfo(dtype)
    raw = [int(r) for r in _bits64(size)]
    for low, high in ((int(info.min), int(info.max) + 1), (0, 1), (int(info.min), 77), (3, 67)):
        got = kernels.uniform_int(bench.gpu, KEY, OFFSET, (size,), np.dtype(dtype), low, high)
        bench.same(f"[{low}, {high})", got,
                   np.array([low + r % (high - low) for r in raw], dtype))


def _bernoulli(bench: Bench, size: int) -> None:
    unit = _fractions(size, 23)
    for probability in (0.0, 0.3, 1.0):
        got = kernels.bernoulli(bench.gpu, KEY, OFFSET, (size,), probability)
        bench.same(f"p = {probability}", got, unit >= round((1 - probability) * 2**23) / 2**23)


def _logits(batch: int, classes: int, dtype: str) -> np.ndarray:
    values = drawn((batch, classes), low=-4, high=4, dtype=dtype)
    if classes > 2:
        values[..., [0, -1]] = -np.inf
    return values


def _categorical(bench: Bench, dtype: str, batch: int, classes: int, samples: int) -> None:
    values = _logits(batch, classes, dtype)
    edges = np.cumsum(np.exp(values - values.max(axis=1, keepdims=True)), axis=1)
    unit = _fractions(batch * samples, 52).reshape(batch, samples)
    wanted = np.array([np.searchsorted(row, u * row[-1], "right") for row, u in zip(edges, unit)],
                      np.int64).reshape(batch, samples)
    for misaligned in (False, True):
        logits: Any = bench.array(values, dtype, misaligned)
        got = kernels.categorical(bench.gpu, KEY, OFFSET, logits, samples)
        bench.same("class numbers", got, wanted)


def _dropout(bench: Bench, dtype: str, size: int, misaligned: bool) -> None:
    values = drawn((size,), dtype=dtype)
    values[::7] = np.inf
    values[::5] = np.nan
    # Kept is what a float32 of the same stream says; that stream has _dropout_checks of its own.
    unit = bench.host(kernels.uniform(bench.gpu, KEY, OFFSET, (size,), np.float32))
    for rate in (0.0, 0.25, 0.9):
        got = kernels.dropout(bench.gpu, bench.array(values, dtype, misaligned), KEY, OFFSET, rate)
        scale = np.float64(numpy_dtype(dtype).type(1 / (1 - rate)))
        kept = unit >= round(rate * 2**23) / 2**23
        bench.same(f"rate {rate}", got, np.where(kept, values * scale, 0.0))

"""Checks of random arrays and of dropout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.kernels import random_numbers as kernels
from gtape.devices.cuda.runtime.executor import numpy_dtype
from gtape.kernelcheck.checks.bench import Bench, Check, drawn
from gtape.numerics import distributions

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
_REFERENCES: dict[str, Callable[..., np.ndarray]] = {
    "uniform": distributions.uniform, "normal": distributions.normal,
    "truncated_normal": distributions.truncated_normal}
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


def _filled(bench: Bench, name: str, dtype: str, size: int, bounds: tuple[float, float]) -> None:
    shape = (3, size // 3) if size % 3 == 0 else (size,)
    # From the names of the functions that programs use, so that none of them goes unchecked.
    got = kernels.DISTRIBUTIONS[name](bench.gpu, KEY, OFFSET, shape, numpy_dtype(dtype), *bounds)
    wanted = _REFERENCES[name](np, KEY, OFFSET, shape, numpy_dtype(dtype), *bounds)
    bench.same(name, got, wanted.astype(np.float64), 0.0 if name == "uniform" else NEAR[dtype])


def _integers(bench: Bench, dtype: str, size: int) -> None:
    info = np.iinfo(dtype)
    for bounds in ((int(info.min), int(info.max) + 1), (0, 1), (int(info.min), 77), (3, 67)):
        given = KEY, OFFSET, (size,), np.dtype(dtype), *bounds
        bench.same(f"{bounds}", kernels.uniform_int(bench.gpu, *given),
                   distributions.uniform_int(np, *given))


def _bernoulli(bench: Bench, size: int) -> None:
    for probability in (0.0, 0.3, 1.0):
        bench.same(f"p = {probability}",
                   kernels.bernoulli(bench.gpu, KEY, OFFSET, (size,), probability),
                   distributions.bernoulli(np, KEY, OFFSET, (size,), probability))


def _logits(batch: int, classes: int, dtype: str) -> np.ndarray:
    values = drawn((batch, classes), low=-4, high=4, dtype=dtype)
    if classes > 2:
        values[..., [0, -1]] = -np.inf
    return values


def _categorical(bench: Bench, dtype: str, batch: int, classes: int, samples: int) -> None:
    values = _logits(batch, classes, dtype)
    wanted = distributions.categorical(np, KEY, OFFSET, values, samples)
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

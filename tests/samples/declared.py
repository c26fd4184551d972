"""Samples derived from the declarations: each case of each op in short floats, and with nan and inf
among its numbers."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from gtape import testing
from gtape.core.op import Case, Op
from gtape.ops import every_module
from tests.samples.sample import Sample, sample

every_module()

#: What is put among the numbers: at the first place, the last, the second and the middle.
_POISON = (np.nan, np.inf, -np.inf, -0.0)


#: Functions without short floats: there are no complex numbers of them, and the alpha of celu's
#: case is so near 0 that they overflow.
_LONG = ("complex", "rfft_", "celu")
#: Ops that refuse nan, or a zero among their numbers, as they should; and convolutions, whose
#: padding is zeros in one way of computing and left out in another, so that 0 nan is nan in one.
_UNPOISONED = ("check_numerics_", "triangular_solve_", "convolution_", "input_grad_",
               "filter_grad_", "depthwise_", "depthwise_input_grad_", "depthwise_filter_grad_")


def _cases() -> Iterator[tuple[Op, Case]]:
    for op, case in testing.declared():
        if op.has_gradient and not op.nondifferentiable and "float32" in case.dtypes:
            yield op, case


def _sample(op: Op, case: Case, inputs: list[np.ndarray], name: str) -> Sample:
    return sample(name, *inputs, dtypes=("float32",), function=(
        lambda *xs: testing.call(op, xs, case)), orders=0)


def ordinary() -> Iterator[Sample]:
    for number, (op, case) in enumerate(_cases()):
        if op.name in _LONG:
            continue
        drawn = testing.draw(case, "float64", zlib.crc32(op.name.encode()) % 1000)
        yield _sample(op, case, drawn, f"{op.name}-{number}")


def poisoned() -> Iterator[Sample]:
    """With nan, inf, -inf and -0 among the floats of each input, one after the other."""
    for number, (op, case) in enumerate(_cases()):
        if op.name in _UNPOISONED:
            continue
        drawn = testing.draw(case, "float64", zlib.crc32(op.name.encode()) % 1000)
        made = [_with_poison(a, i) if a.dtype.kind == "f" else a for i, a in enumerate(drawn)]
        yield _sample(op, case, made, f"{op.name}-{number}")


def _with_poison(array: np.ndarray, first: int) -> np.ndarray:
    made: Any = np.array(array)
    flat = made.reshape(-1)
    for i, at in enumerate((0, -1, 1, flat.size // 2)[:flat.size]):
        flat[at] = _POISON[(first + i) % len(_POISON)]
    return made

"""Every public differentiable function on its samples: values, gradients, programs, memory.

The samples compiled natively are drawn anew at every run, since a compiler takes long: the seed is
printed with a failure, and GTAPE_SAMPLES_SEED repeats a run.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pytest

import gtape as tf
from tests.samples import (
    checks,
    matrices,
    moving,
    networks,
    reducing,
    scalar,
    signals,
)
from tests.samples.sample import COMPLEX, Sample, label

_TABLES = (scalar, reducing, moving, matrices, networks, signals)
_SAMPLES = [s for table in _TABLES for s in table.samples()]
_AT_THE_ENDS = [*scalar.at_the_ends(), *scalar.integers()]
#: Samples traced or compiled into one program.
_TOGETHER = 40


def _groups(samples: Sequence[Sample]) -> list[Any]:
    """The samples of one function side by side, as one test."""
    together = [list(found) for _, found in groupby(samples, lambda s: s.name)]
    count: dict[str, int] = {}
    made = []
    for found in together:
        number = count[found[0].name] = count.get(found[0].name, -1) + 1
        made.append(pytest.param(found, id=found[0].name + (f"-{number}" if number else "")))
    return made


def _each(samples: Sequence[Sample], check: Any) -> None:
    for s in samples:
        try:
            check(s)
        except Exception as error:
            error.add_note(f"sample {label(s)}")
            raise


@pytest.mark.parametrize("samples", _groups(_SAMPLES + _AT_THE_ENDS))
def test_values(samples: list[Sample]) -> None:
    _each(samples, lambda s: [checks.check_value(s, d) for d in s.dtypes])


@pytest.mark.parametrize("samples", _groups([s for s in _SAMPLES if s.orders]))
def test_both_derivatives(samples: list[Sample]) -> None:
    _each(samples, checks.check_derivatives)


@pytest.mark.parametrize("samples", _groups([s for s in _SAMPLES if s.gradients]))
def test_gradients_in_lower_precision(samples: list[Sample]) -> None:
    _each(samples, lambda s: [checks.check_short_gradient(s, d) for d in s.dtypes
                              if d not in ("float64", "complex128")])


@pytest.mark.parametrize("samples", _groups(_SAMPLES))
def test_views_in_memory(samples: list[Sample]) -> None:
    _each(samples, lambda s: checks.check_strided(s, s.dtypes[0]))


def _pairs(samples: Sequence[Sample], dtypes: Sequence[str]) -> list[tuple[Sample, str]]:
    return [(s, d) for s in samples for d in s.dtypes if d in dtypes and s.traced]


_PROGRAMS = _pairs(_SAMPLES + _AT_THE_ENDS, ("float32", "float64", *COMPLEX))


def _chunk(at: int) -> list[tuple[Sample, str]]:
    return _PROGRAMS[at::-(-len(_PROGRAMS) // _TOGETHER)]


def _memory(number: int) -> Any:
    """Every second program gets views in memory."""
    return checks.strided if number % 2 else tf.constant


@pytest.mark.parametrize("at", range(-(-len(_PROGRAMS) // _TOGETHER)))
def test_numpy_programs(at: int) -> None:
    checks.check_function(*zip(*_chunk(at)), tensor=_memory(at))


@pytest.mark.native
@pytest.mark.parametrize("number", range(2))
def test_native_programs_of_samples_drawn_anew(number: int) -> None:
    seed = int(os.environ.get("GTAPE_SAMPLES_SEED") or random.SystemRandom().randrange(10 ** 6))
    print(f"GTAPE_SAMPLES_SEED={seed} repeats this")
    chosen = random.Random(seed + number).sample(_PROGRAMS, _TOGETHER)
    checks.check_function(*zip(*chosen), tensor=_memory(number))

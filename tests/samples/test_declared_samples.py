"""What follows from declarations, beside test_declarations.py: short floats, nan and inf."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from tests.samples import checks
from tests.samples.declared import ordinary, poisoned
from tests.samples.sample import Sample

_ORDINARY, _POISONED = list(ordinary()), list(poisoned())
_TOGETHER = 40
_CHUNKS = -(-len(_POISONED) // _TOGETHER)


def _params(samples: list[Sample]) -> Any:
    return pytest.mark.parametrize("s", samples, ids=lambda s: s.name)


@_params(_ORDINARY)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats(s: Sample, dtype: str) -> None:
    checks.check_value(s, dtype)
    checks.check_short_gradient(s, dtype)


@pytest.mark.parametrize("at", range(_CHUNKS))
def test_numpy_programs_carry_nan_and_inf(at: int) -> None:
    chosen = _POISONED[at::_CHUNKS]
    checks.check_function(chosen, ["float32"] * len(chosen))


@pytest.mark.native
def test_native_programs_carry_nan_and_inf() -> None:
    seed = int(os.environ.get("GTAPE_SAMPLES_SEED") or random.SystemRandom().randrange(10 ** 6))
    print(f"GTAPE_SAMPLES_SEED={seed} repeats this")
    chosen = random.Random(seed).sample(_POISONED, 2 * _TOGETHER)
    checks.check_function(chosen, ["float32"] * len(chosen))

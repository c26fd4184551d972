"""Every check of every kernel, under the emulator; the command runs them in all three schedules."""

from __future__ import annotations

import pytest

from gtape.kernelcheck.execution import run_all
from gtape.kernelcheck.sources import families

_FAMILIES = [name for name, family in families().items() if not family.needs_gpu]


@pytest.mark.slow
@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("family", _FAMILIES)
def test_kernels_give_what_numpy_gives(family: str) -> None:
    ran = 0
    for job, outcome in run_all([family], ["random"], 1):
        ran += outcome.checks
        assert not outcome.failures, (job.label, outcome.failures)
    assert ran


def test_no_family_is_left_out() -> None:
    assert {"broadcast", "casting", "cumulative", "derived", "indexing", "joined", "normalization",
            "random_numbers", "reductions", "softmax", "windows"} <= set(_FAMILIES)

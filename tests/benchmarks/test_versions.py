"""The benchmark that times two versions of gtape beside each other."""

from __future__ import annotations

import sys

import pytest

from benchmarks import harness, sums, versions
from benchmarks.harness import GTAPE, Samples


def test_ratios_are_taken_round_by_round():
    samples = Samples()
    for here, there in ((2e-6, 1e-6), (3e-6, 3e-6), (6e-6, 2e-6)):
        samples.add("chain", "gtape", here)
        samples.add("chain", "gtape other", there)
    (line,) = versions.compared(samples)[1:]
    assert line[:6] == ["chain", "3", "2", "1", "2.000", "2.000"]


def test_both_versions_run_the_programs_of_this_checkout():
    here, other = versions.pair(GTAPE, sys.executable)
    assert other.column == "gtape other" and other.programs == "gtape" == here.column
    samples = harness.measure("overhead", [here, other], rounds=1, turn_seconds=1e-4)
    assert samples.failed == []
    assert set(samples.costs["W2 control flow"]) == {"gtape", "gtape other"}


@pytest.mark.parametrize("column", ["numpy", "gtape", "gtape function"])
def test_programs_of_sums_are_right(column, monkeypatch):
    monkeypatch.setattr(sums, "SHAPES", {name: tuple(min(n, 64) for n in shape)
                                         for name, shape in sums.SHAPES.items()})
    for program in sums.programs(column).values():
        program.check()

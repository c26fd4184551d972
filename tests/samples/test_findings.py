"""Every finding in every mode: eagerly, in NumPy programs, in one native program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from tests.samples.checks import assert_near
from tests.samples.findings import Finding, findings

_FINDINGS = list(findings())


def _check(finding: Finding, results: Any) -> None:
    assert len(results) == len(finding.wanted)
    for i, (got, wanted) in enumerate(zip(results, finding.wanted)):
        assert_near(got, np.asarray(wanted), finding.near, False, f"{finding.name}, result {i}")


def _inputs(finding: Finding) -> list[Any]:
    return [tf.constant(x) for x in finding.inputs]


@pytest.mark.parametrize("finding", _FINDINGS, ids=lambda f: f.name.replace(" ", "-"))
def test_eagerly_and_in_a_numpy_program(finding: Finding) -> None:
    inputs = _inputs(finding)
    _check(finding, finding.run(*inputs))
    _check(finding, tf.function(finding.run, autograph=False)(*inputs))


@pytest.mark.native
def test_in_a_native_program() -> None:
    @tf.function(autograph=False)
    def whole(inputs: Any) -> Any:
        return [f.run(*xs) for f, xs in zip(_FINDINGS, inputs)]

    wrong = []
    for finding, results in zip(_FINDINGS, whole([_inputs(f) for f in _FINDINGS])):
        try:
            _check(finding, results)
        except AssertionError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)

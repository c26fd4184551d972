"""Scatter in float32 sorts instead of using atomics where determinism is required."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.core.modes import Modes
from gtape.devices.cuda.runtime.executor import Executor


@pytest.mark.parametrize("gpus", ["kernels"], indirect=True)
@pytest.mark.parametrize("required", [False, True])
def test_the_gradient_of_gather(gpus: Any, monkeypatch: pytest.MonkeyPatch, required: bool) -> None:
    monkeypatch.setattr(Modes, "deterministic", False)
    if required:
        tf.config.experimental.enable_op_determinism()
    loaded: Counter[str] = Counter()
    function = Executor.function

    def counting(self: Executor, kernel: Any) -> Any:
        loaded[kernel.entry.partition("<")[0]] += 1
        return function(self, kernel)

    monkeypatch.setattr(Executor, "function", counting)
    table = tf.Variable(np.ones((5, 3), np.float32))
    with tf.GradientTape() as tape:
        y = tf.gather(table, [1, 4, 1])
    gradient = tf.convert_to_tensor(tape.gradient(y, table))
    assert gradient.numpy().sum(axis=1).tolist() == [0, 6, 0, 0, 3]
    assert bool(loaded["scatter_add"]) is not required
    assert bool(loaded["segment_reduce"]) is required

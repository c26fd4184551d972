"""A device gives what the CPU gives, for every op × case × dtype, on every way to a result.

The CPU's results have the properties of test_declarations.py; equal ones have them too. On GPUs
that are NumPy's memory this runs everywhere, with kernels and without; on a card where one is.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import testing
from gtape.core.convert import convert
from gtape.core.device import CPU, Device, on
from gtape.core.tensor import EagerTensor
from gtape.ops import every_module
from gtape.trace.tracer import trace

every_module()

CASES = [(op, case, dtype) for op, case in testing.declared() for dtype in case.dtypes]
#: What `gpus` can be. An emulated GPU is the same as "kernels".
PLACES: list[Any] = ["functions", "kernels"]
if os.environ.get("GTAPE_EMULATED_GPU") != "1":
    PLACES.append(pytest.param("card", marks=pytest.mark.gpu))
#: How far results may be from the CPU's, on the stand-in and on a card. On the stand-in it is the
#: order of sums that differs, of numbers near 1 that may cancel.
_NEAR = {False: {"float32": 1e-5, "complex64": 1e-5}, True: {"float32": 2e-4, "complex64": 2e-4}}
_NEAR_IN_DOUBLE = 1e-8


def _weights(y: Any, device: Device) -> EagerTensor:
    """Weights of a sum, so that its gradient is not 0 where all of them together are constant."""
    numbers = np.cos(np.arange(np.prod(y.spec.shape, dtype=int), dtype=np.float64))
    return convert(numbers.reshape(y.spec.shape).astype(y.dtype.np_dtype), None, device)


def _phases(columns: Any) -> EagerTensor:
    """What makes the first row of `columns` real and positive, as a row."""
    row = columns[..., :1, :]
    return tf.math.conj(row) / tf.cast(tf.abs(row), row.dtype)


#: The factors of a matrix are its own up to the phases of columns, which a library chooses as it
#: likes. Here they are chosen once more, alike on all devices.
_FACTORS: dict[str, Any] = {
    "svd_": lambda s, u, v: [s, u * _phases(u), v * _phases(u)],
    "eigh_": lambda e, v: [e, v * _phases(v)],
    "eig_": lambda e, v: [e, v * _phases(v)],
    "qr_": lambda q, r: [q * _phases(q), tf.linalg.adjoint(_phases(q)) * r],
}


class _Ways:
    """What comes of an op: its values, and their derivatives by its inputs on `device`."""

    def __init__(self, item: int, device: Device) -> None:
        self.op, self.case, dtype = CASES[item]
        self.device = device
        self.inputs = [convert(a, None, device) for a in testing.draw(self.case, dtype)]
        self.sources = [t for t in self.inputs if t.dtype.is_differentiable]

    def values(self, *inputs: Any) -> list[Any]:
        results = testing.call(self.op, inputs or self.inputs, self.case)
        return _FACTORS[self.op.name](*results) if self.op.name in _FACTORS else results

    def traced(self) -> list[Any]:
        with on(self.device):
            graph = trace(lambda *xs: tuple(self.values(*xs)), [t.spec for t in self.inputs])
            return list(graph(*self.inputs))

    def gradient(self, values: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(self.sources)
            smooth = [y for y in values() if y.dtype.is_differentiable]
        return self._pulled(tape, smooth)

    def _pulled(self, tape: tf.GradientTape, smooth: list[Any]) -> list[Any]:
        return tape.gradient(smooth, self.sources, output_gradients=[
            _weights(y, self.device) for y in smooth])

    def both_orders(self) -> list[Any]:
        """The first derivatives as an outer tape records them, and the second."""
        with tf.GradientTape() as outer, tf.GradientTape() as inner:
            inner.watch(self.sources)
            outer.watch(self.sources)
            first = self._pulled(inner, [y for y in self.values() if y.dtype.is_differentiable])
        known = [g for g in first if g is not None]
        return [*first, *(outer.gradient(known, self.sources) if known else ())]

    def forward_mode(self) -> list[Any]:
        tangents = [_weights(x, self.device) for x in self.sources]
        with tf.autodiff.ForwardAccumulator(self.sources, tangents) as accumulator:
            smooth = [y for y in self.values() if y.dtype.is_differentiable]
        return list(accumulator.jvp(smooth))

    def all(self) -> dict[str, list[Any]]:
        values = self.values()
        ways = {"values": values, "traced": self.traced()}
        smooth = any(y.dtype.is_differentiable for y in values)
        if self.op.has_gradient and self.sources and smooth:
            ways["gradient"] = self.gradient(self.values)
            ways["gradient of a trace"] = self.gradient(self.traced)
            if self.case.orders > 1:
                ways["both orders"] = self._if_declared(self.both_orders)
            if not self.op.nondifferentiable:
                ways["forward mode"] = self._if_declared(self.forward_mode)
        return ways

    @staticmethod
    def _if_declared(way: Any) -> list[Any]:
        try:
            return way()
        except LookupError:  # the derivative has none of its own, by declaration
            return []


@cache
def _expected(item: int) -> dict[str, list[Any]]:
    with on(CPU):
        return _Ways(item, CPU).all()


@pytest.mark.parametrize("phase", [-1.0, 0.6 + 0.8j])
def test_factors_are_compared_up_to_the_phases_of_columns(phase: complex) -> None:
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(2, 3, 3)) + 1j * rng.normal(size=(2, 3, 3))
    turn = np.array([1.0, phase, 1.0])
    back = np.conj(turn)[:, None]

    def same(name: str, *pairs: tuple[np.ndarray, np.ndarray]) -> bool:
        one, other = (_FACTORS[name](*map(tf.constant, factors)) for factors in zip(*pairs))
        return all(np.allclose(x, y) for x, y in zip(one, other, strict=True))

    assert same("svd_", (v, v), (u, u * turn), (v, v * turn))
    assert same("qr_", (u, u * turn), (v, back * v))
    assert same("eigh_", (v, v), (u, u * turn)) and same("eig_", (v, v), (u, u * turn))
    assert not same("svd_", (v, v), (u, u * turn), (v, v))
    assert not same("qr_", (u, u * turn), (v, v))
    assert not same("eigh_", (v, v), (u, u + turn)) and not same("eig_", (v, u), (u, u))


@pytest.mark.parametrize("gpus", PLACES, indirect=True)
@pytest.mark.parametrize("default", ["host", "device"])
@pytest.mark.parametrize("item", range(len(CASES)), ids=[
    f"{op.name}-{i}-{d}" for i, (op, _, d) in enumerate(CASES)])
def test_a_declared_case(gpus: Any, item: int, default: str, request: Any) -> None:
    device = gpus[-1]
    card = request.node.callspec.params["gpus"] == "card"
    with on(CPU if default == "host" else device):
        ways = _Ways(item, device).all()
    assert ways.keys() == _expected(item).keys()
    for way, results in ways.items():
        for a, b in zip(_expected(item)[way], results, strict=True):
            assert (a is None) == (b is None), way
            if a is not None:
                _assert_same(*map(tf.convert_to_tensor, (a, b)), device, card, way)


def _assert_same(a: Any, b: Any, device: Any, card: bool, way: str) -> None:
    assert a.spec == b.spec and b.device == device.name, way
    assert type(b._a) is device.xp.ndarray and b._a.device.id == device.index, way
    assert b._a.dtype == a._a.dtype and b._a.shape == a._a.shape, way
    near = _NEAR[card].get(a.dtype.name, _NEAR_IN_DOUBLE)
    np.testing.assert_allclose(b._peek(), a._peek(), rtol=near, atol=near, err_msg=way)

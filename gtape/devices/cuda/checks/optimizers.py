"""Checks of kernels/optimizers.cu: three updates of several tensors by each rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from gtape.devices.cuda.addresses import address
from gtape.devices.cuda.checks.bench import FLOATS, Bench, Check, drawn
from gtape.devices.cuda.kernels import optimizers as kernels
from gtape.devices.cuda.kernels.optimizers import Layout, Limits

SIZES = (1, 3, 31, 0, 1001, 4099)
STEPS = 3

Array = np.ndarray
Rule = Callable[[Sequence[float], Array, list[Array]], Array]


def _momentum(k: Sequence[float], g: Array, s: list[Array], nesterov: bool) -> Array:
    s[0] = k[1] * s[0] - k[0] * g
    return k[0] * g - k[1] * s[0] if nesterov else -s[0]


def _lion(k: Sequence[float], g: Array, s: list[Array]) -> Array:
    before = s[0]
    s[0] = k[3] * before + k[4] * g
    return k[0] * np.sign(k[1] * before + k[2] * g)


def _mean(old: Array, new: Array, share: float) -> Array:
    return old * (1 - share) + new * share


def _adam(k: Sequence[float], g: Array, s: list[Array]) -> Array:
    s[0], s[1] = _mean(s[0], g, k[1]), _mean(s[1], g * g, k[2])
    if len(s) == 3:
        s[2] = np.maximum(s[2], s[1])
    return k[0] * s[0] / (np.sqrt(s[-1]) + k[3])


def _adamax(k: Sequence[float], g: Array, s: list[Array]) -> Array:
    s[0], s[1] = _mean(s[0], g, k[2]), np.maximum(k[3] * s[1], np.abs(g))
    return k[0] * s[0] / (k[1] * (s[1] + k[4]))


def _nadam(k: Sequence[float], g: Array, s: list[Array]) -> Array:
    s[0], s[1] = _mean(s[0], g, k[1]), _mean(s[1], g * g, k[2])
    return k[0] * (k[4] * s[0] + k[5] * g) / (np.sqrt(s[1] / k[6]) + k[3])


def _adagrad(k: Sequence[float], g: Array, s: list[Array]) -> Array:
    s[0] = s[0] + g * g
    return k[0] * g / np.sqrt(s[0] + k[1])


def _rmsprop(k: Sequence[float], g: Array, s: list[Array], momentum: bool,
             centered: bool) -> Array:
    s[0] = k[1] * s[0] + k[2] * g * g
    spread = s[0]
    if centered:
        s[-1] = k[1] * s[-1] + k[2] * g
        spread = spread - s[-1] ** 2
    step = k[0] * g / np.sqrt(spread + k[3])
    if momentum:
        step = s[1] = k[4] * s[1] + step
    return step


def _adadelta(k: Sequence[float], g: Array, s: list[Array]) -> Array:
    s[0] = k[1] * s[0] + k[2] * g * g
    change = g * np.sqrt((s[1] + k[3]) / (s[0] + k[3]))
    s[1] = k[1] * s[1] + k[2] * change * change
    return k[0] * change


#: The reference and the constants of each rule.
REFERENCES: dict[str, tuple[Rule, tuple[float, ...]]] = {
    "SGD": (lambda k, g, s: k[0] * g, (0.125,)),
    "MomentumSGD<false>": (partial(_momentum, nesterov=False), (0.125, 0.75)),
    "MomentumSGD<true>": (partial(_momentum, nesterov=True), (0.125, 0.75)),
    "Lion": (_lion, (0.125, 0.875, 0.125, 0.75, 0.25)),
    "Adam<false>": (_adam, (0.125, 0.125, 0.0625, 0.0009765625)),
    "Adam<true>": (_adam, (0.125, 0.125, 0.0625, 0.0009765625)),
    "Adamax": (_adamax, (0.125, 0.5, 0.125, 0.75, 0.0009765625)),
    "Nadam": (_nadam, (0.125, 0.125, 0.0625, 0.0009765625, 1.25, 0.5, 0.25)),
    "Adagrad": (_adagrad, (0.125, 0.0009765625)),
    "RMSprop<false, false>": (partial(_rmsprop, momentum=False, centered=False),
                              (0.125, 0.875, 0.125, 0.25, 0.0)),
    "RMSprop<true, false>": (partial(_rmsprop, momentum=True, centered=False),
                             (0.125, 0.875, 0.125, 0.25, 0.5)),
    "RMSprop<false, true>": (partial(_rmsprop, momentum=False, centered=True),
                             (0.125, 0.875, 0.125, 8.0, 0.0)),
    "RMSprop<true, true>": (partial(_rmsprop, momentum=True, centered=True),
                            (0.125, 0.875, 0.125, 8.0, 0.5)),
    "Adadelta": (_adadelta, (0.125, 0.875, 0.125, 0.0625))}


def checks() -> Iterator[Check]:
    for rule in kernels.RULES:
        for dtype in FLOATS:
            yield Check(f"{rule} {dtype}", partial(_updates, rule=rule, dtype=dtype))
    for rule in kernels.MIXED:
        for dtype in ("float16", "bfloat16"):
            yield Check(f"{rule} float32, copy in {dtype}",
                        partial(_updates, rule=rule, dtype="float32", narrow=dtype))
    for dtype in FLOATS:
        for norm in ("each", "all"):
            yield Check(f"norm of {norm} {dtype}", partial(_updates, rule="SGD", dtype=dtype,
                                                           norm=norm))
        yield Check(f"bound {dtype}", partial(_updates, rule="SGD", dtype=dtype, bound=0.25))
    yield Check("a norm of all that is not finite", _not_finite)
    yield Check("no elements", _nothing)


class _Tensor:
    """A tensor on the bench, and what an update should make of it."""

    def __init__(self, bench: Bench, at: int, dtype: str, narrow: str, slots: int) -> None:
        size = SIZES[at]
        # Every second tensor begins off the 16-byte boundary.
        self.misaligned = at % 2 == 1
        self.decays = at % 3 != 0
        self.weights = bench.array(drawn((size,), at, dtype=dtype), dtype, self.misaligned)
        self.fresh = bench.array(np.zeros(size), dtype, self.misaligned)
        self.copy = bench.array(np.zeros(size), narrow, self.misaligned) if narrow else None
        self.slots = [bench.array(np.abs(drawn((size,), 90 + at + i, dtype=dtype)), dtype,
                                  self.misaligned) for i in range(slots)]

    def compare(self, bench: Bench, rule: Rule, k: Sequence[float], g: Array, shrink: float,
                before: tuple[Array, list[Array]]) -> None:
        """Does the update again from the values `before` it, and compares."""
        weights, slots = before
        wanted = weights * (1 - shrink * self.decays) - rule(k, g, slots)
        bench.same("weights", self.fresh, wanted)
        for got, slot in zip(self.slots, slots):
            bench.same("slot", got, slot)
        if self.copy is not None:
            bench.same("copy", self.copy, wanted)

    def values(self, bench: Bench) -> tuple[Array, list[Array]]:
        return np.array(bench.host(self.weights)), [np.array(bench.host(s)) for s in self.slots]


def _updates(bench: Bench, rule: str, dtype: str, narrow: str = "", norm: str = "",
             bound: float = float("inf")) -> None:
    reference, k = REFERENCES[rule]
    given, shrink, unscale, limit = narrow or dtype, 0.0625, 0.5, 1.5
    slots = kernels.RULES[rule]
    tensors = [_Tensor(bench, at, dtype, narrow, slots) for at in range(len(SIZES))]
    layout = Layout(bench.gpu, SIZES, [t.decays for t in tensors])
    for step in range(STEPS):
        values = [drawn((n,), 1000 + 10 * step + i, dtype=given) for i, n in enumerate(SIZES)]
        arrays = [bench.array(v, given, t.misaligned) for v, t in zip(values, tensors)]
        before = [t.values(bench) for t in tensors]
        table = layout.table(
            _addresses(t.weights for t in tensors), _addresses(arrays),
            _addresses(t.fresh for t in tensors),
            [_addresses(t.slots[i] for t in tensors) for i in range(slots)],
            _addresses(t.copy for t in tensors) if narrow else 0)
        squares = kernels.square_sums(bench.gpu, table, given, unscale) if norm else None
        kernels.update(bench.gpu, table, rule, dtype, k, gradient_dtype=narrow,
                       limits=Limits(norm, limit, squares, bound), unscale=unscale, shrink=shrink)
        held = _held([v * unscale for v in values], norm, limit, bound)
        for tensor, g, start in zip(tensors, held, before):
            tensor.compare(bench, reference, k, g, shrink, start)
            tensor.weights, tensor.fresh = tensor.fresh, tensor.weights


def _addresses(arrays: Any) -> list[int]:
    return [address(a) for a in arrays]


def _held(gradients: list[Array], norm: str, limit: float, bound: float) -> list[Array]:
    norms = [float(np.sqrt((g**2).sum())) for g in gradients]
    if norm == "all":
        norms = [float(np.sqrt(sum(n**2 for n in norms)))] * len(norms)
    if norm:
        gradients = [g * (limit / max(n, limit)) for g, n in zip(gradients, norms)]
    return [np.clip(g, -bound, bound) for g in gradients]


def _not_finite(bench: Bench) -> None:
    w, g = bench.array(np.ones(5), "float32"), bench.array([1, 2, np.inf, 4, 5], "float32")
    table = Layout(bench.gpu, [5], [False]).table([address(w)], [address(g)], [address(w)])
    squares = kernels.square_sums(bench.gpu, table, "float32")
    kernels.update(bench.gpu, table, "SGD", "float32", [0.5], limits=Limits("all", 1.0, squares))
    bench.same("weights", w, np.full(5, np.nan))


def _nothing(bench: Bench) -> None:
    w = bench.array(np.ones(0), "float32")
    table = Layout(bench.gpu, [0], [False]).table([address(w)], [address(w)], [address(w)])
    kernels.update(bench.gpu, table, "SGD", "float32", [0.5])
    bench.same("weights", w, np.ones(0))

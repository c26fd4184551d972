"""Checks that follow from a declaration: value, gradients of both orders, tracing.

Gradients are checked along a random direction against central differences in float64: two
evaluations whatever the size (see Martins, Sturdza & Alonso 2003 for the method's error).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.autodiff.tape import GradientTape
from gtape.core import dtypes
from gtape.core.convert import convert
from gtape.core.errors import GradientMismatch
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.op import Bools, Case, Ints, Op
from gtape.core.op import declared as _declared_ops
from gtape.core.tensor import Tensor
from gtape.ops.elementwise.operators import real
from gtape.ops.reductions.reductions import reduce_sum
from gtape.ops.shape.casting import cast
from gtape.trace.symbolic_tensor import SymbolicTensor
from gtape.trace.tracer import trace

# Of central differences in float64: their error, of the order of the step squared, and that of
# rounding, of the order of 1e-16 over the step, are about alike.
_STEP = 1e-5
#: The dtypes on which an elementwise op of a typing rule is tested, where not floats.
_TYPED = {"logical": ("bool",), "integer": ("int32", "int64"), "complex": ("complex128",),
          "magnitude": ("complex128",), "number": ("float32", "float64", "complex128"),
          "float": ("float32", "float64", "complex128")}


def declared() -> list[tuple[Op, Case]]:
    """Every op with each of its cases."""
    return [(op, c) for op in _declared_ops() for c in op_cases(op)]


def op_cases(op: Op) -> list[Case]:
    """The declared cases; elementwise ops get their own from the number of inputs."""
    if op.cases:
        return op.cases
    domain = op.domain
    if domain is None:
        return []
    shapes: dict[int, list[Any]] = {
        1: [((2, 3),), ((),)], 2: [((2, 3), (2, 3)), ((3, 1), (4,)), ((), (2,))],
        3: [((2, 3),) * 3, ((3, 1), (), (4,))]}
    # Elementwise ops alone have a typing rule; others name their dtypes in their cases.
    kinds = _TYPED.get(op.types, ("float32", "float64"))  # type: ignore[attr-defined]
    cases = []
    for group in shapes[len(op.params)]:
        if op.types == "select":  # type: ignore[attr-defined]
            group = (Bools(group[0]), *group[1:])
        cases.append(Case(tuple(group), {}, domain, dtypes=kinds))
    return cases


def draw(case: Case, dtype: str, seed: int = 0) -> list[np.ndarray]:
    """The case's inputs: drawn arrays for shapes, given values as they are."""
    rng = np.random.default_rng(seed)
    low, high = case.domain or (-1.5, 1.5)
    arrays: list[np.ndarray] = []
    for item in case.inputs:
        if isinstance(item, Ints):
            arrays.append(rng.integers(0, item.below, item.shape).astype(np.int32))
        elif isinstance(item, Bools):
            arrays.append(rng.integers(0, 2, item.shape).astype(bool))
        elif type(item) is tuple and dtype == "bool":
            arrays.append(rng.integers(0, 2, item).astype(bool))
        elif type(item) is tuple and dtype.startswith("int"):
            arrays.append(rng.integers(1, 5, item).astype(dtype))
        elif type(item) is tuple:
            array = rng.uniform(low, high, item)
            if dtype.startswith("complex"):
                array = array + 1j * rng.uniform(low, high, item)
            arrays.append(array.astype(dtype))
        else:
            given = np.asarray(item)
            arrays.append(given.astype(dtype) if given.dtype.kind == "f" else given)
    return arrays


def call(op: Any, inputs: Sequence[Tensor], case: Case) -> list[Tensor]:
    """The op's results as a list."""
    if hasattr(op, "reapply"):
        names = op.attr_names
        full = getattr(op, "defaults", {}) | case.attrs
        return list(op.reapply(list(inputs), tuple(full[n] for n in names)))
    return [op(*inputs, **case.attrs)]


def _projected(y: Tensor, w: np.ndarray) -> Tensor:
    """Σ Re(conj(w) y), in float64 whatever the dtype of y."""
    wide = dtypes.complex128 if y.dtype.is_complex else dtypes.float64
    term = cast(y, wide) * convert(np.conj(w).astype(wide.np_dtype))
    return reduce_sum(real(term) if y.dtype.is_complex else term)


def _weighted(results: Sequence[Tensor], weights: Sequence[np.ndarray]) -> Tensor:
    """Σ Re(conj(w) y): a scalar that sees every element of every differentiable result."""
    return sum((_projected(y, w) for y, w in zip(results, weights) if y.dtype.is_differentiable),
               convert(0.0, dtypes.float64))


def directional(fn: Callable[[Sequence[Tensor]], Tensor], arrays: Sequence[np.ndarray],
                directions: Sequence[np.ndarray | None]) -> tuple[float, float]:
    """The derivative of scalar `fn` along the directions: by the tape, and by differences."""
    def at(step: float) -> float:
        moved = [a if d is None else (a + step * d).astype(a.dtype)
                 for a, d in zip(arrays, directions)]
        return float(np.real(fn([convert(a) for a in moved]).numpy()))

    by_tape = float(_slope(fn, [convert(a) for a in arrays], directions))
    return by_tape, (at(_STEP) - at(-_STEP)) / (2 * _STEP)


def check_gradient(op: Any, case: Case, dtype: str = "float64", order: int = 2,
                   seed: int = 0, rtol: float = 1e-6) -> None:
    """Compare the tape's derivative of `op` with central differences, to `order`. Raises
    GradientMismatch: they differ."""
    if op.nondifferentiable or not op.has_gradient:
        return
    arrays = draw(case, dtype, seed)
    # Another seed than that of the inputs: directions along them would hide errors.
    rng = np.random.default_rng(seed + 1)
    moved = [a.dtype.kind in "fc" and _carries_gradient(op, i) for i, a in enumerate(arrays)]
    # One random direction sees every partial derivative, at the cost of two evaluations.
    directions = [_direction(rng, a) if move else None for a, move in zip(arrays, moved)]
    # Integers and bools have no direction to move in.
    if all(d is None for d in directions):
        return
    results = call(op, [convert(a) for a in arrays], case)
    if not any(r.dtype.is_differentiable for r in results):
        return
    weights = [_direction(rng, np.asarray(r)) for r in results]

    def value(tensors: Sequence[Tensor]) -> Tensor:
        return _weighted(call(op, tensors, case), weights)

    _compare(op, 1, *directional(value, arrays, directions), rtol)
    if order >= 2 and case.orders >= 2:
        second = [_direction(rng, a) if move else None for a, move in zip(arrays, moved)]
        _compare(op, 2, *directional(lambda ts: _slope(value, ts, second), arrays, directions),
                 rtol)


def _carries_gradient(op: Op, position: int) -> bool:
    """False for an input of a scalar op that declares no gradient for it: it is held fixed."""
    rules = getattr(op, "rules", None)
    return rules is None or op.params[position] in rules


def _direction(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    values = rng.standard_normal(array.shape)
    return values + 1j * rng.standard_normal(array.shape) if array.dtype.kind == "c" else values


def _slope(value: Callable[[Sequence[Tensor]], Tensor], tensors: Sequence[Tensor],
           directions: Sequence[np.ndarray | None]) -> Tensor:
    """The derivative of `value` along `directions`, as a tensor that can be differentiated."""
    wanted = [i for i, d in enumerate(directions) if d is not None]
    sources = [tensors[i] for i in wanted]
    with GradientTape() as tape:
        tape.watch(sources)
        y = value(tensors)
    total = convert(0.0, dtypes.float64)
    for i, g in zip(wanted, tape.gradient(y, sources)):
        if g is not None:
            d = directions[i]
            assert d is not None
            total = total + _projected(g.to_dense() if isinstance(g, IndexedSlices) else g, d)
    return total


def _compare(op: Op, order: int, by_tape: float, by_differences: float, rtol: float) -> None:
    scale = max(abs(by_tape), abs(by_differences), 1.0)
    # Differences of derivatives lose a digit more.
    if math.isfinite(by_tape) and abs(by_tape - by_differences) <= rtol * scale * 10 ** (order - 1):
        return
    raise GradientMismatch(
        f"{op.name}: the derivative of order {order} along a random direction is {by_tape:.8g} by "
        f"the tape and {by_differences:.8g} by differences")


def _same(a: Tensor, b: Tensor) -> None:
    """Bit for bit on the CPU. On a GPU one may be made by a kernel and the other op by op."""
    dtype = a.dtype
    if a._t.device.is_host or not dtype.is_differentiable:
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        return
    # NumPy's finfo does not know bfloat16, which has 8 bits of precision.
    step = 2.0 ** -7 if dtype.name == "bfloat16" else float(np.finfo(dtype.real_dtype.np_dtype).eps)
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=64 * step, atol=64 * step)


def check_trace(op: Op, case: Case, dtype: str = "float32", seed: int = 0) -> None:
    """Compare the op run eagerly with its trace replayed. Raises AssertionError: they differ, or
    the trace infers other specs than came out."""
    tensors = [convert(a) for a in draw(case, dtype, seed)]
    eager = call(op, tensors, case)
    graph = trace(lambda *xs: tuple(call(op, xs, case)), [t.spec for t in tensors])
    assert all(isinstance(o, SymbolicTensor) for o in graph.outputs), f"{op.name} was not traced"
    assert [o.spec for o in graph.outputs] == [e.spec for e in eager], (
        f"{op.name} infers {[str(o.spec) for o in graph.outputs]} and makes "
        f"{[str(e.spec) for e in eager]}")
    for a, b in zip(eager, graph(*tensors)):
        _same(a, b)

"""The kernels that follow from declarations, and their checks against NumPy in float64."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gtape.core import dtypes
from gtape.core.device import CPU, ArrayType
from gtape.core.dtypes import FLOATS
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import declared
from gtape.devices.cuda.elementwise.map_kernels import combine
from gtape.devices.cuda.elementwise.map_text import MapFormula, MapOperand
from gtape.devices.cuda.elementwise.maps import DeviceMaps
from gtape.devices.cuda.runtime.executor import numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.kernelcheck.checks.bench import Bench, Check
from gtape.opdef.cuda_text import servable
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.elementwise_vjp import MapDefinition, backward_step, forward_step
from gtape.opdef.numpy_code import Printer, define
from gtape.opdef.scalar_graph import unused_name
from gtape.ops import every_module

_INTEGERS = ("int32", "int64", "uint8", "int8")
#: What a float32 formula of several steps may differ by, relative to its largest value.
_TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "float16": 4e-3, "bfloat16": 3e-2}
#: Odd, so that wide loads leave a rest; and fewer elements than one load has.
_SIZES = (1003, 3)
_SMALLEST = 0.05


class DerivedCase(NamedTuple):
    """One launch that an op needs for inputs of one dtype."""

    op: Elementwise
    step: MapDefinition

    @property
    def name(self) -> str:
        return f"{self.step.name} {self.step.types[0].dtype.name}"

    @property
    def formula(self) -> MapFormula:
        return MapFormula(self.step.name, self.step.outputs, self.step.params,
                          tuple(t.dtype.name for t in self.step.results))

    @property
    def operands(self) -> list[MapOperand]:
        return [MapOperand(t.dtype.name, "each") for t in self.step.types]


def elementwise_ops() -> list[Elementwise]:
    """Every declared elementwise op."""
    every_module()
    return [op for op in declared() if isinstance(op, Elementwise)]


def cases(op: Elementwise) -> Iterator[DerivedCase]:
    """The op and its backward for all inputs at once, in every dtype that kernels serve."""
    for name in (*FLOATS, *_INTEGERS, "bool"):
        like = CPU.typed(dtypes.as_dtype(name))
        types = [like] * len(op.params)
        if op.types == "select":
            types[0] = CPU.typed(dtypes.bool_)
        try:
            out = op.out_type(types)
        except InvalidArgumentError:
            continue
        for step in _steps(op, types, out):
            if servable(step.outputs, {n: t.dtype.name for n, t in zip(step.params, step.types)}):
                yield DerivedCase(op, step)


def _steps(op: Elementwise, types: Sequence[ArrayType], out: ArrayType) -> Iterator[MapDefinition]:
    yield forward_step(op, types, out)
    wrt = [i for i, t in enumerate(types) if t.differentiable]
    if op.nondifferentiable or not op.has_gradient or not out.differentiable:
        return
    try:
        parts = op.input_cotangents(wrt, False)
    except LookupError:
        return
    g = unused_name("g", op.params)
    pairs = [(i, p) for i, p in zip(wrt, parts)
             if p is not None and not (p.is_input and p.value == g)]
    if pairs:
        step = backward_step(op, types, pairs, g, unused_name("y", op.params))
        if step.params:
            yield step


def kernels() -> Iterator[tuple[str, Kernel]]:
    """Every derived kernel, op by op in one program each."""
    for op in elementwise_ops():
        formulas = [(c.formula, c.operands) for c in cases(op)]
        if formulas:
            yield from (("derived", kernel) for kernel in combine(formulas))


def checks() -> Iterator[Check]:
    """Each case: aligned and misaligned, an odd and a small size."""
    for op in elementwise_ops():
        for case in cases(op):
            yield Check(case.name, partial(_check, case=case))


def _check(bench: Bench, case: DerivedCase) -> None:
    launch = case.step.on(DeviceMaps(bench.gpu))
    for size in _SIZES:
        for misaligned in (False, True):
            values = _values(case, size)
            args = [bench.array(values[n], t.dtype.name, misaligned)
                    for n, t in zip(case.step.params, case.step.types)]
            outs = launch(*args)
            for got, wanted in zip(outs, _reference(case.step, values)):
                bench.same(case.name, got, _overflown(wanted, got.dtype),
                           _TOLERANCE.get(got.dtype.name))


def _overflown(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """float64 values, infinite where `dtype` has none so large."""
    if values.dtype.kind != "f":
        return values
    with np.errstate(over="ignore"):
        narrow = values.astype(dtype).astype(np.float64)
    return np.where(np.isinf(narrow), narrow, values)


def _values(case: DerivedCase, size: int) -> dict[str, np.ndarray]:
    """Inputs from the op's domain, a cotangent, and the result where the step reads it."""
    rng = np.random.default_rng(size)
    low, high = case.op.domain or (-2.0, 2.0)
    values = {}
    types = dict(zip(case.step.params, case.step.types))
    every = {p: types.get(p, case.step.types[-1]) for p in case.op.params}
    for name, like in (every | types).items():
        values[name] = _drawn(rng, like, size, low, high)
    result = unused_name("y", case.op.params)
    if result in types and result not in case.op.params:
        scope_step = forward_step(case.op, [every[p] for p in case.op.params], types[result])
        forward = _reference(scope_step, values)[0]
        values[result] = forward.astype(numpy_dtype(types[result].dtype.name)).astype(forward.dtype)
    return values


def _drawn(rng: Any, like: ArrayType, size: int, low: float, high: float) -> np.ndarray:
    if like.dtype.is_bool:
        return rng.integers(0, 2, size).astype(bool)
    if like.dtype.is_integer:
        smallest = 0 if like.dtype.is_unsigned else -9
        return rng.integers(smallest, 9, size).astype(like.dtype.np_dtype)
    values = rng.uniform(low, high, size)
    # Quotients by nearly 0 leave the range of float32 on the way, and not that of float64.
    values = np.where(np.abs(values) < _SMALLEST, _SMALLEST, values)
    return values.astype(like.dtype.np_dtype).astype(np.float64)


def _reference(step: MapDefinition, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs in float64, or in integers, by NumPy."""
    printer = Printer(np)
    assigned, texts = printer.lines(list(step.outputs))
    lines = "".join(f"    {line}\n" for line in assigned)
    source = f"def formula({', '.join(step.params)}):\n{lines}    return [{', '.join(texts)}]\n"
    with np.errstate(all="ignore"):
        outputs = define(source, "formula", printer.names)(*(values[p] for p in step.params))
    shape = values[step.params[0]].shape
    return [np.broadcast_to(np.asarray(m), shape) for m in outputs]

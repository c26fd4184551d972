"""The kernels that follow from declarations, and their checks against NumPy in float64: whole ops,
how operands are read (broadcast, strided, summed to a shape), many tensors in one launch, casts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gtape.core import dtypes
from gtape.core.device import CPU, ArrayType
from gtape.core.dtypes import FLOATS, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import declared
from gtape.devices.cuda.elementwise.elementwise_map import combine, kernel_of
from gtape.devices.cuda.elementwise.joined import joined_kernel
from gtape.devices.cuda.elementwise.map_text import BLOCK, MapFormula, MapOperand
from gtape.devices.cuda.elementwise.maps import DeviceMaps, cast, cast_kernels
from gtape.devices.cuda.elementwise.summed import summed_entry, summed_text
from gtape.devices.cuda.runtime.executor import numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.kernelcheck.checks.bench import Bench, Check, drawn
from gtape.opdef.cuda_text import C_TYPES, compute_dtype, servable
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.elementwise_vjp import MapDefinition, backward_step, forward_step
from gtape.opdef.numpy_code import Printer, define
from gtape.opdef.scalar_graph import ScalarGraph, unused_name
from gtape.ops import every_module
from gtape.ops.elementwise import scalars
from gtape.ops.elementwise.scalars import multiply

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


def kernels() -> Iterator[Kernel]:
    """Every derived kernel, op by op in one program each."""
    for op in elementwise_ops():
        formulas = [(c.formula, c.operands) for c in cases(op)]
        if formulas:
            yield from combine(formulas)


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
    # A domain of its own where derivatives are infinite at the edge, as those of acos at 1.
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


_DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "uint8")
#: Shapes of two operands: rows, columns, one element, and what only coordinates can read.
_PAIRS = (((5, 7), (7,)), ((5, 8), (8,)), ((9, 64), (64,)), ((5, 8), (5, 1)), ((5, 7), (5, 1)),
          ((5, 8), ()), ((1, 1), (33,)), ((4, 1), (1, 3)), ((2, 3, 4), (2, 1, 4)),
          ((3, 1, 5), (4, 1)), ((), ()), ((0, 4), (4,)), ((2, 1, 3, 1, 4), (3, 2, 4)))
#: Shapes of two operands and the shape that their product is summed to.
_SUMS = (((37, 24), (37, 24), (24,)), ((37, 24), (37, 24), (37, 1)), ((37, 25), (37, 25), ()),
         ((3, 700), (3, 700), (3, 1)), ((2, 5, 8), (2, 5, 8), (5, 1)),
         ((2, 5, 8), (2, 5, 8), (2, 1, 8)), ((40, 16), (16,), (16,)),
         ((40, 16), (40, 1), (40, 1)), ((40, 16), (), (1, 16)),
         ((40, 16), (40, 16), (40, 16)), ((0, 4), (0, 4), (4,)),
         ((2, 3, 4, 5), (2, 3, 4, 5), (3, 1, 5)), ((37, 24), (24,), (37, 1)),
         ((37, 24), (37, 1), (37, 1)), ((37, 24), (), (37, 1)), ((40, 16), (40, 1), (16,)),
         ((2, 20000), (2, 20000), (2, 1)), ((2, 20000), (20000,), (2, 1)),
         ((2, 20000), (2, 1), (2, 1)), ((2, 20000), (), (2, 1)), ((20000, 8), (20000, 8), (8,)),
         ((20000, 8), (8,), (8,)), ((20000, 8), (20000, 1), (8,)), ((20000, 8), (), (8,)))


#: Sums of 20000 float32 numbers differ from those in float64 by more than one rounding.
_ROUNDED = {"float32": 1e-5}
#: How the second operand of a product is read.
_MODES = ("row", "column", "one", "number", "strided")


def broadcast_kernels() -> Iterator[Kernel]:
    """A product in every mode, with large indices, and summed by both templates."""
    for dtype in _DTYPES:
        formula = MapFormula("multiply", (multiply.op.body(),), multiply.op.params, (dtype,))
        for mode in _MODES:
            rank = 3 if mode == "strided" else 0
            yield kernel_of(formula, [dtype] * 2, ["each", mode], rank)[0]
        yield kernel_of(formula, [dtype] * 2, ["each", "row"], 0, large=True)[0]
    for dtype in _DTYPES[:4]:
        running = compute_dtype(dtype)
        formula = MapFormula("multiply", (multiply.op.body(),), multiply.op.params, (running,))
        for mode in ("each", *_MODES[:4]):
            operands = (MapOperand(dtype, "each"), MapOperand(dtype, mode))
            for template in ("rows", "columns"):
                width = 16 // numpy_dtype(dtype).itemsize
                for out in dict.fromkeys((dtype, running)):
                    text = summed_text(formula, operands, template, dtype, out, width)
                    yield Kernel(text, summed_entry(formula, operands, template, out))


def broadcast_checks() -> Iterator[Check]:
    """Products of operands of many shapes and layouts, and their sums."""
    for dtype in _DTYPES:
        yield Check(f"broadcast {dtype}", partial(_broadcast, dtype=dtype))
        yield Check(f"strided {dtype}", partial(_strided, dtype=dtype))
        yield Check(f"numbers {dtype}", partial(_numbers, dtype=dtype))
        yield Check(f"large {dtype}", partial(_large, dtype=dtype))
    for dtype in _DTYPES[:4]:
        yield Check(f"summed {dtype}", partial(_summed, dtype=dtype))


def _product(bench: Bench, dtype: str) -> tuple[DeviceMaps, Any]:
    maps = DeviceMaps(bench.gpu)
    like = CPU.typed(dtypes.as_dtype(dtype))
    return maps, forward_step(multiply.op, [like, like], like).on(maps)


def _factors(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    if dtype in ("int32", "uint8"):
        return np.random.default_rng(seed).integers(0, 9, shape).astype(dtype)
    return drawn(shape, seed, 0.5, 2.0, dtype)


def _broadcast(bench: Bench, dtype: str) -> None:
    _, product = _product(bench, dtype)
    for left, right in _PAIRS:
        a, b = _factors(dtype, left, 1), _factors(dtype, right, 2)
        for misaligned in (False, True):
            (got,) = product(bench.array(a, dtype, misaligned), bench.array(b, dtype))
            bench.same(f"{left} x {right}", got, a * b)
            (got,) = product(bench.array(b, dtype), bench.array(a, dtype, misaligned))
            bench.same(f"{right} x {left}", got, a * b)


def _strided(bench: Bench, dtype: str) -> None:
    _, product = _product(bench, dtype)
    a, b = _factors(dtype, (6, 5, 8), 1), _factors(dtype, (8, 5, 6), 2)
    left, right = bench.array(a, dtype), bench.array(b, dtype)
    views = ((left, a, right.T, b.T), (left[::2], a[::2], left[1::2], a[1::2]),
             (left[:, :, ::-1], a[:, :, ::-1], left, a), (left[..., 3:4], a[..., 3:4], left, a))
    for x, x_host, y, y_host in views:
        (got,) = product(x, y)
        bench.same("views", got, x_host * y_host)


def _numbers(bench: Bench, dtype: str) -> None:
    _, product = _product(bench, dtype)
    a = _factors(dtype, (7, 9), 1)
    for number in (3, 3.0):
        bench.same("x 3", product(bench.array(a, dtype), number)[0], a * 3)
        bench.same("3 x", product(number, bench.array(a.T, dtype))[0], a.T * 3)


def _large(bench: Bench, dtype: str) -> None:
    """The text for more than 2^31 elements, on fewer."""
    formula = MapFormula("multiply", (multiply.op.body(),), multiply.op.params, (dtype,))
    for shape in ((9, 64), (9, 7)):
        a, b = _factors(dtype, shape, 1), _factors(dtype, shape[1:], 2)
        kernel, _ = kernel_of(formula, [dtype] * 2, ["each", "row"], 0, large=True)
        out = bench.gpu.empty(shape, numpy_dtype(dtype))
        bench.gpu.launch(kernel, (2, 1, 1), (BLOCK, 1, 1), (
            bench.array(a, dtype), bench.array(b, dtype), out, a.size, shape[1]))
        bench.same(f"{shape}", out, a * b)


def _summed(bench: Bench, dtype: str) -> None:
    maps, product = _product(bench, dtype)
    summed = maps.summed(product)
    for left, right, target in _SUMS:
        a, b = _factors(dtype, left, 1), _factors(dtype, right, 2)
        whole = np.broadcast_to(a * b, np.broadcast_shapes(left, right))
        lead = whole.ndim - len(target)
        axes = tuple(i for i in range(whole.ndim) if i < lead or (
            target[i - lead] == 1 and whole.shape[i] != 1))
        wanted = whole.sum(axis=axes, keepdims=True).reshape(target)
        for misaligned in (False, True):
            got = summed(target, bench.array(a, dtype, misaligned), bench.array(b, dtype))
            bench.same(f"{left} x {right} summed to {target}", got, wanted, _ROUNDED.get(dtype))
    for shape, target in (((37, 24), (37, 1)), ((2, 20000), (2, 1)), ((40, 16), (16,)),
                          ((20000, 8), (8,))):
        a = _factors(dtype, shape, 1)
        got = summed(target, bench.array(a, dtype), 2)
        wanted = (a * 2).sum(axis=1 if target[-1] == 1 else 0).reshape(target)
        bench.same(f"{shape} x 2 summed to {target}", got, wanted, _ROUNDED.get(dtype))


#: Of one chunk and of many, of a few elements and of none, and none a multiple of a wide load.
_SHAPES = ((1,), (3,), (31,), (0,), (7, 11, 13), (4099,), (), (2, 70001))
_STEPS = 3


def _update(square_root: Any, w: Any, g: Any, m: Any, v: Any, rate: Any) -> list[Any]:
    """The update of Adam (arXiv:1412.6980): the new weight, momentum and velocity."""
    # Factors that every dtype has exactly, so that both sides multiply by the same.
    m = m + (g - m) * 0.125
    v = v + (g * g - v) * 0.0625
    return [w - rate * m / (square_root(v) + 0.0009765625), m, v]


def _update_formula(dtype: str) -> MapFormula:
    scope = ScalarGraph()
    params = ("w", "g", "m", "v", "rate")
    outputs = _update(lambda x: scope.node(scalars.sqrt.op, (x,)), *map(scope.input, params))
    return MapFormula("update", tuple(outputs), params, (dtype,) * 3)


def _sum(dtype: str) -> MapFormula:
    scope = ScalarGraph()
    total = scope.node(scalars.add.op, (scope.input("a"), scope.input("b")))
    return MapFormula("sum", (total,), ("a", "b"), (dtype,))


def _joined_operands(dtype: str, numbers: int) -> tuple[MapOperand, ...]:
    return (*[MapOperand(dtype, "each")] * 4, MapOperand(dtype, "one"))[: 4 + numbers]


def joined_kernels() -> Iterator[Kernel]:
    """An update of several results, and a sum, in every dtype."""
    for dtype in FLOATS:
        yield joined_kernel(_update_formula(dtype), _joined_operands(dtype, 1))
        yield joined_kernel(_sum(dtype), _joined_operands(dtype, 0)[:2])


def joined_checks() -> Iterator[Check]:
    """Members of many sizes, every second of them off the 16-byte boundary."""
    for dtype in FLOATS:
        yield Check(f"updates {dtype}", partial(_updates, dtype=dtype))
        yield Check(f"sums {dtype}", partial(_sums, dtype=dtype))
        yield Check(f"no elements {dtype}", partial(_nothing, dtype=dtype))


def _joined(bench: Bench, formula: MapFormula, shapes: Sequence[tuple[int, ...]],
            each: Sequence[bool]) -> Any:
    maps, dtype = DeviceMaps(bench.gpu), numpy_dtype(formula.results[0])
    one = maps.make(formula.name, formula.outputs, formula.params,
                    [dtype] * len(formula.params), [dtype] * len(formula.results))
    assert one is not None
    return maps.joined(one, shapes, each)


def _updates(bench: Bench, dtype: str) -> None:
    update = _joined(bench, _update_formula(dtype), _SHAPES, [True] * 4 + [False])
    rate = np.asarray(0.125)
    state = []
    for i, shape in enumerate(_SHAPES):
        for k in range(3):
            values = drawn(shape, 10 * i + k, dtype=dtype)
            state.append(bench.array(np.abs(values) if k == 2 else values, dtype, i % 2 == 1))
    for step in range(_STEPS):
        arrays: list[Any] = []
        wanted: list[np.ndarray] = []
        for i, shape in enumerate(_SHAPES):
            w, m, v = state[3 * i: 3 * i + 3]
            g = drawn(shape, 1000 + 10 * step + i, dtype=dtype)
            arrays += [w, bench.array(g, dtype, i % 2 == 1), m, v, bench.array(rate, dtype)]
            wanted += _update(np.sqrt, bench.host(w), g, bench.host(m), bench.host(v), rate)
        state = update(arrays)
        for got, value in zip(state, wanted, strict=True):
            bench.same("state", got, value)


def _sums(bench: Bench, dtype: str) -> None:
    """Members that share inputs, and inputs that lie in no order."""
    a, b = drawn((6, 10), 1, dtype=dtype), drawn((10, 6), 2, dtype=dtype)
    first, second = bench.array(a, dtype), bench.array(b, dtype)
    sums = _joined(bench, _sum(dtype), [(6, 10), (6, 10), (3, 10)], [True, True])([
        first, second.T, first, first, first[::2], second.T[1::2]])
    for got, wanted in zip(sums, (a + b.T, a + a, a[::2] + b.T[1::2]), strict=True):
        bench.same("sum", got, wanted)


def _nothing(bench: Bench, dtype: str) -> None:
    empty = bench.array(np.zeros((0, 3)), dtype)
    (got,) = _joined(bench, _sum(dtype), [(0, 3)], [True, True])([empty, empty])
    bench.same("sum", got, np.zeros((0, 3)))


def cast_checks() -> Iterator[Check]:
    combined = list(cast_kernels())
    assert len(combined) == len(C_TYPES) * (len(C_TYPES) - 1)
    for source in C_TYPES:
        yield Check(f"casts of {source}", partial(_cast_check, source=source))


def _cast_check(bench: Bench, source: str) -> None:
    unsigned = source == "bool" or source.startswith("uint")
    values = np.arange(0 if unsigned else -40, 61) * (0.75 if source in FLOATS else 1)
    host = values.astype(numpy_dtype(source))
    for dtype in C_TYPES:
        fits = host if source in ("bool", dtype) or not dtype.startswith("uint") else abs(host)
        wanted = fits.astype(numpy_dtype(dtype))
        for misaligned in (False, True):
            got = cast(bench.gpu, bench.array(fits, source, misaligned), as_dtype(dtype))
            exact = wanted.astype(np.float64) if dtype in FLOATS else wanted
            bench.same(f"{source} to {dtype}", got, exact, 0.0)

"""What follows from a declaration, for every op × case × dtype, without writing a test.

That a device gives what the CPU gives is in tests/devices/cuda/test_same_as_cpu.py; what the tape
keeps is asked on every device here.
"""

from __future__ import annotations

import gc
import weakref
import zlib
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import testing
from gtape.core.convert import convert
from gtape.core.op import Op, declared
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor
from gtape.opdef.composite import Composite
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.primitive import Primitive
from gtape.ops import every_module
from gtape.trace.tracer import check, trace

every_module()

#: How far a float32 result may be from the float64 one, in units of the largest entry.
_SINGLE = 2e-4


def _is_differentiable(op: Op) -> bool:
    return op.has_gradient and not op.nondifferentiable


def _all() -> list[Any]:
    count: dict[str, int] = {}
    made = []
    for op, case in testing.declared():
        number = count[op.name] = count.get(op.name, -1) + 1
        for dtype in case.dtypes:
            made.append(pytest.param(op, case, dtype, id=f"{op.name}-{number}-{dtype}"))
    return made


def _some(wanted: Any) -> Any:
    chosen = [p for p in _all() if wanted(*p.values)]
    return pytest.mark.parametrize("op, case, dtype", chosen)


def _wide(dtype: str) -> bool:
    return dtype in ("float64", "complex128")


def _seed(op: Op) -> int:
    return zlib.crc32(op.name.encode()) % 1000


def _tensors(op: Op, case: Any, dtype: str) -> list[EagerTensor]:
    return [convert(a) for a in testing.draw(case, dtype, _seed(op))]


def _floats(tensors: list[EagerTensor]) -> list[int]:
    return [i for i, t in enumerate(tensors) if t.dtype.is_differentiable]


def _numbers(value: Any) -> np.ndarray:
    if isinstance(value, tf.IndexedSlices):
        value = value.to_dense()
    return np.asarray(value)


# -------------------------------------------------------------------------- completeness


def test_every_differentiable_op_has_a_case() -> None:
    missing = sorted({op.name for op in declared()
                      if _is_differentiable(op) and not testing.op_cases(op)})
    assert not missing, f"declare .cases for {', '.join(missing)}"


def test_every_public_op_says_what_it_computes() -> None:
    public = {op for op in declared() if not op.name.startswith("_") and not op.name.endswith("_")}
    assert not sorted(op.name for op in public if not (op.__doc__ or "").strip())


# -------------------------------------------------------------------------- values and specs


@_some(lambda op, case, dtype: True)
def test_infer_equals_what_comes_out(op: Op, case: Any, dtype: str) -> None:
    tensors = _tensors(op, case, dtype)
    results = testing.call(op, tensors, case)
    assert [r.spec for r in results] == _inferred(op, case, tensors)
    for result in results:
        array = result._array_()
        assert tuple(array.shape) == result.spec.shape
        assert array.dtype == result.dtype.np_dtype, f"the array itself holds {array.dtype}"
        assert result.device == "CPU:0"


def _inferred(op: Op, case: Any, tensors: list[EagerTensor]) -> list[Any]:
    specs = [t.spec for t in tensors]
    if isinstance(op, Elementwise):
        shape = op.infer(specs).shape
        return [Spec(shape, op.out_type([t._t for t in tensors]).dtype)]
    full = getattr(op, "defaults", {}) | case.attrs
    if isinstance(op, Primitive):
        return list(op.result_specs(specs, tuple(full[n] for n in op.attr_names)))
    assert isinstance(op, Composite)
    return op._infer(tuple(tensors), full)


@_some(lambda op, case, dtype: dtype in ("float32", "complex64"))
def test_value_equals_the_value_in_double_precision(op: Op, case: Any, dtype: str) -> None:
    arrays = testing.draw(case, dtype, _seed(op))
    wide = [_widened(a) for a in arrays]
    single = testing.call(op, [convert(a) for a in arrays], case)
    double = testing.call(op, [convert(a) for a in wide], case)
    for got, wanted in zip(single, double):
        _assert_close(_numbers(got), _numbers(wanted), _SINGLE)


def _widened(array: np.ndarray) -> np.ndarray:
    names = {"float32": "float64", "complex64": "complex128"}
    return array.astype(names.get(array.dtype.name, array.dtype))


def _assert_close(got: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    if wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, wanted)
        return
    scale = max(1.0, float(np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted))))
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * scale)


def _assert_same_answers(got: list[Any], wanted: list[Any]) -> None:
    for a, b in zip(got, wanted, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            _assert_close(_numbers(a), _numbers(b), 1e-12)


# -------------------------------------------------------------------------- gradients


@_some(lambda op, case, dtype: _is_differentiable(op) and _wide(dtype))
def test_gradients_of_both_orders(op: Op, case: Any, dtype: str) -> None:
    testing.check_gradient(op, case, dtype, seed=_seed(op))


def _pulled(op: Op, case: Any, tensors: list[EagerTensor], call: Any = None) -> list[Any]:
    """The gradients of Σ Re(w y) for all floating inputs, with w fixed by the shapes."""
    at = _floats(tensors)
    with tf.GradientTape() as tape:
        tape.watch([tensors[i] for i in at])
        results = list((call or testing.call)(op, tensors, case))
    targets = [r for r in results if r.dtype.is_differentiable]
    seeds = [convert(_weights(t)) for t in targets]
    return tape.gradient(targets, [tensors[i] for i in at], output_gradients=seeds)


def _weights(tensor: Any) -> np.ndarray:
    count = int(np.prod(tensor.spec.shape, dtype=int))
    made = np.cos(np.arange(count, dtype=np.float64)).reshape(tensor.spec.shape)
    return made.astype(tensor.dtype.np_dtype)


@_some(lambda op, case, dtype: _is_differentiable(op) and dtype == "float32")
def test_gradient_has_the_dtype_and_shape_of_its_source(op: Op, case: Any, dtype: str) -> None:
    arrays = testing.draw(case, dtype, _seed(op))
    tensors = [convert(a) for a in arrays]
    assert _floats(tensors)
    single = _pulled(op, case, tensors)
    double = _pulled(op, case, [convert(_widened(a)) for a in arrays])
    for i, got, wanted in zip(_floats(tensors), single, double):
        assert (got is None) == (wanted is None)
        if got is None:
            continue
        dense = got.to_dense() if isinstance(got, tf.IndexedSlices) else got
        assert dense.spec == tensors[i].spec
        assert dense._array_().dtype == tensors[i].dtype.np_dtype
        _assert_close(_numbers(dense), _numbers(wanted), 10 * _SINGLE)


@_some(lambda op, case, dtype: getattr(op, "linear", ()) and _wide(dtype))
def test_linear_ops_obey_superposition_and_have_their_adjoint(op: Op, case: Any,
                                                              dtype: str) -> None:
    # A pad with ones is linear but for a constant, so the weights here add up to 1.
    tensors = _tensors(op, case, dtype)
    at = [i for i in _floats(tensors) if op.variadic or op.params[i] in op.linear]
    assert at
    other = [convert(a) for a in testing.draw(case, dtype, _seed(op) + 1)]
    u, v, both = (list(tensors) for _ in range(3))
    for i in at:
        v[i] = other[i]
        both[i] = 3.0 * tensors[i] - 2.0 * other[i]
    f_u, f_v, f_both = (testing.call(op, xs, case) for xs in (u, v, both))
    for a, b, c in zip(f_u, f_v, f_both):
        _assert_close(_numbers(c), 3.0 * _numbers(a) - 2.0 * _numbers(b), 1e-10)
    if op.holomorphic:
        _assert_adjoint(op, case, u, at, f_u)


def _assert_adjoint(op: Op, case: Any, tensors: list[EagerTensor], at: list[int],
                    results: list[Any]) -> None:
    """⟨f x - f 0, w⟩ = ⟨x, vjp w⟩."""
    zeros = [0 * t if i in at else t for i, t in enumerate(tensors)]
    left = sum(np.vdot(_weights(r), _numbers(r) - _numbers(r_0))
               for r, r_0 in zip(results, testing.call(op, zeros, case))
               if r.dtype.is_differentiable)
    grads = dict(zip(_floats(tensors), _pulled(op, case, tensors)))
    right = sum(np.vdot(_numbers(grads[i]), _numbers(tensors[i]))
                for i in at if grads[i] is not None)
    np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-10)


@_some(lambda op, case, dtype: isinstance(op, Primitive) and op.definition is not None)
def test_the_array_function_computes_the_definition(op: Primitive, case: Any, dtype: str) -> None:
    tensors = _tensors(op, case, dtype)
    wanted = op.definition(*tensors, **op.defaults | case.attrs)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for got, want in zip(testing.call(op, tensors, case), wanted, strict=True):
        assert got.spec == want.spec
        _assert_close(_numbers(got), _numbers(want), 1e-12 if _wide(dtype) else 1e-5)


@_some(lambda op, case, dtype: op.definition is not None and op.vjp_rules.any and _wide(dtype))
def test_rule_equals_the_derivative_of_the_definition(op: Composite | Primitive, case: Any,
                                                      dtype: str) -> None:
    tensors = _tensors(op, case, dtype)

    def by_rule(op: Composite, xs: Any, case: Any) -> Any:
        return testing.call(op, xs, case)[:1]

    def by_definition(op: Composite, xs: Any, case: Any) -> Any:
        made = op.definition(*xs, **op.defaults | case.attrs)
        return made[:1] if isinstance(made, tuple) else [made]

    pairs = zip(_pulled(op, case, tensors, by_rule), _pulled(op, case, tensors, by_definition))
    for got, wanted in pairs:
        if got is not None and wanted is not None:
            _assert_close(_numbers(got), _numbers(wanted), 1e-9)


@_some(lambda op, case, dtype: _is_differentiable(op) and _wide(dtype))
def test_the_backward_on_arrays_equals_the_one_that_other_tapes_record(
        op: Op, case: Any, dtype: str) -> None:
    tensors = _tensors(op, case, dtype)
    plain = _pulled(op, case, tensors)
    with tf.GradientTape():
        recorded = _pulled(op, case, tensors)
    _assert_same_answers(recorded, plain)


@_some(lambda op, case, dtype: _is_differentiable(op) and _wide(dtype))
def test_forward_mode_agrees_with_reverse_mode(op: Op, case: Any, dtype: str) -> None:
    tensors = _tensors(op, case, dtype)
    at = _floats(tensors)
    assert at
    tangents = [convert(_weights(tensors[i])) for i in at]
    with tf.autodiff.ForwardAccumulator([tensors[i] for i in at], tangents) as accumulator:
        results = testing.call(op, tensors, case)
    targets = [r for r in results if r.dtype.is_differentiable]
    products = accumulator.jvp(targets)
    left = sum(np.vdot(_weights(r), _numbers(p)) for r, p in zip(targets, products)
               if p is not None)
    right = sum(np.vdot(_numbers(g), _numbers(t))
                for g, t in zip(_pulled(op, case, tensors), tangents) if g is not None)
    scale = max(1.0, abs(left))
    assert abs(np.real(left) - np.real(right)) <= 1e-9 * scale


# -------------------------------------------------------------------------- tracing


@_some(lambda op, case, dtype: True)
def test_traced_equals_eager(op: Op, case: Any, dtype: str) -> None:
    testing.check_trace(op, case, dtype, seed=_seed(op))


@_some(lambda op, case, dtype: _is_differentiable(op) and _wide(dtype))
def test_gradient_through_a_trace_equals_the_eager_one(op: Op, case: Any, dtype: str) -> None:
    tensors = _tensors(op, case, dtype)
    graph = trace(lambda *xs: tuple(testing.call(op, xs, case)), [t.spec for t in tensors])
    check(graph)
    wanted = _pulled(op, case, tensors)
    got = _pulled(op, case, tensors, lambda op, xs, case: graph(*xs))
    _assert_same_answers(got, wanted)


# -------------------------------------------------------------------------- what the tape keeps


def _read_by_rules(op: Any, tensors: list[EagerTensor], known: list[int]) -> set[str]:
    """The names of the inputs and results whose values the wanted rules read."""
    if isinstance(op, Elementwise):
        mask = sum(1 << i for i in known)
        types = tuple(t._t for t in tensors)
        program = op.vjp_program(types, mask)
        reads = (False,) * (len(tensors) + 1) if program is None else program.reads
        return {n for n, read in zip((*op.params, "y"), reads) if read}
    found: set[str] = set()
    for i in known:
        rule = op.vjp_rules.rule_of(i)
        if rule is not None:
            found |= {n for n, spec_only in zip(rule.sources, rule.spec_only) if not spec_only}
    return found


@_some(lambda op, case, dtype: _is_differentiable(op) and dtype == "float64"
       and not (isinstance(op, Composite) and (len(op.outputs) > 1 or not op.vjp_rules.any)))
def test_the_tape_keeps_what_the_rules_read_and_nothing_else(op: Op, case: Any, dtype: str,
                                                             device: str) -> None:
    sources = _tensors(op, case, dtype)
    at = _floats(sources)
    assert at
    wanted = _pulled(op, case, sources)
    gc.disable()
    try:
        tape, targets, alive = _recorded(op, case, sources, at)
        unread = [name for name, ref in alive if ref() is not None]
    finally:
        gc.enable()
    got = tape.gradient(targets, [sources[i] for i in at], output_gradients=[
        convert(_weights(t)) for t in targets])
    _assert_same_answers(got, wanted)
    assert not unread, f"the rules do not read {unread}, but the tape keeps them"


def _recorded(op: Op, case: Any, sources: list[EagerTensor], at: list[int]) -> Any:
    """A tape of the op on copies that nobody else holds, and what it should not keep."""
    with tf.GradientTape() as tape:
        tape.watch([sources[i] for i in at])
        inputs = [tf.identity(s) for s in sources]
        results = testing.call(op, inputs, case)
        targets = [tf.identity(r) for r in results if r.dtype.is_differentiable]
    reads = _read_by_rules(op, inputs, at)
    names = op.params * len(inputs) if op.variadic else op.params
    named = [*zip(names, inputs), *zip(op.outputs, results)]
    return tape, targets, [(n, weakref.ref(t)) for n, t in named if n not in reads]

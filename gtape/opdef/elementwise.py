"""Elementwise ops: a scalar function mapped over broadcast inputs.

A `ScalarOp` is one that devices spell, a `ScalarFunction` is composed of scalar ops. An
`ElementwiseVjp` is the backward of either, found by differentiating its expression. All three are
one op forward and one backward, at every order, because the backward of an elementwise op is an
elementwise op.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.context import active, tracer_now
from gtape.core.convert import convert_like
from gtape.core.device import Array, ArrayModule, ArrayType, ignore, ignored_context, restore
from gtape.core.dtypes import DType, bool_
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import Attrs, Function, Op, positional_names
from gtape.core.recording import Recorded, record_general, same_device, trace_or_none
from gtape.core.spec import Spec, broadcast_shapes, check_size, exhausted, outgrows
from gtape.core.tensor import EagerTensor, Tensor, note_origin
from gtape.opdef.elementwise_vjp import Launches, VjpProgram, VjpSlot, apply_map, build_vjp_program
from gtape.opdef.numpy_code import LARGE, Blocked, Printer, define, fits, schedule
from gtape.opdef.scalar_graph import Expr, ScalarGraph, expression_vjp, scalar_vjp, substitute

Types = Sequence[ArrayType]


def _names(types: Types) -> str:
    return ", ".join(t.dtype.name for t in types)


def _equal(name: str, types: Types) -> ArrayType:
    first = types[0]
    for other in types[1:]:
        if other.dtype is not first.dtype:
            raise InvalidArgumentError(
                f"{name}: the inputs must have one dtype; got {_names(types)}. Tensors are never "
                f"promoted in silence: write tf.cast(x, tf.{first.dtype.name})")
    return first


def _only(allowed: Callable[[DType], bool], what: str) -> Callable[[str, Types], ArrayType]:
    def rule(name: str, types: Types) -> ArrayType:
        first = _equal(name, types)
        if not allowed(first.dtype):
            raise InvalidArgumentError(f"{name} takes {what}; got {_names(types)}. "
                                       f"Cast first: tf.cast(x, tf.float32)")
        return first

    return rule


def _bool_of(inner: Callable[[str, Types], ArrayType]) -> Callable[[str, Types], ArrayType]:
    def rule(name: str, types: Types) -> ArrayType:
        return inner(name, types).device.typed(dtypes.bool_)

    return rule


def _real_of(inner: Callable[[str, Types], ArrayType]) -> Callable[[str, Types], ArrayType]:
    def rule(name: str, types: Types) -> ArrayType:
        operand = inner(name, types)
        return operand.device.typed(operand.dtype.real_dtype)

    return rule


def _select(name: str, types: Types) -> ArrayType:
    if not types[0].dtype.is_bool:
        raise InvalidArgumentError(f"{name}: the condition must be bool; got {_names(types[:1])}. "
                                   f"Write a comparison such as x > 0")
    return _equal(name, types[1:])


def _make_complex(name: str, types: Types) -> ArrayType:
    part = _equal(name, types)
    if part.dtype.name not in ("float32", "float64"):
        raise InvalidArgumentError(f"{name} takes float32 or float64; got {_names(types)}")
    wide = dtypes.complex64 if part.dtype is dtypes.float32 else dtypes.complex128
    return part.device.typed(wide)


_any = _only(lambda d: True, "any dtype")
_number = _only(lambda d: d.is_differentiable or d.is_integer, "numbers")
_real = _only(lambda d: d.is_floating or d.is_integer, "real numbers")
_complex = _only(lambda d: d.is_complex, "complex tensors")

#: What the `types` of an op say: which dtypes it takes, and which its result has.
_TYPE_RULES: dict[str, Callable[[str, Types], ArrayType]] = {
    "any": _any,
    "number": _number,
    # Strings are added too: one behind the other.
    "sum": _only(lambda d: d.is_differentiable or d.is_integer or d.name == "string",
                 "numbers or strings"),
    # Bools are multiplied too: that both hold.
    "product": _only(lambda d: d.is_differentiable or d.is_integer or d.is_bool, "numbers"),
    "real": _real,
    "float": _only(lambda d: d.is_differentiable, "floating or complex tensors"),
    "complex": _complex,
    "real_float": _only(lambda d: d.is_floating, "real floating tensors"),
    "integer": _only(lambda d: d.is_integer, "integers"),
    "logical": _only(lambda d: d.is_bool, "bools"),
    "compare": _bool_of(_real),
    "equal": _bool_of(_any),
    "test": _bool_of(_number),
    "magnitude": _real_of(_complex),
    "select": _select,
    "make_complex": _make_complex,
}


class Elementwise(Op):
    """What scalar ops, scalar functions and their derivatives share."""

    def __init__(self, name: str, params: tuple[str, ...], types: str, doc: str,
                 tf_name: str | None) -> None:
        super().__init__(name, params, doc, tf_name)
        self.types = types
        self._vjp_programs: dict[tuple[object, ...], VjpProgram | None] = {}
        #: The Python function of the op, when it is a public one.
        self.python: Function | None = None
        #: Kernels by the types of inputs and result; see `elementwise_vjp`.
        self.maps: dict[tuple[ArrayType, ...], Any] = {}
        self.launches: dict[ArrayType, Launches] = {}

    # -------------------------------------------------------------- meaning

    def expression(self, graph: ScalarGraph, args: Sequence[Expr]) -> Expr:
        """The op applied to expressions."""
        raise NotImplementedError

    def body(self) -> Expr:
        """The expression in inputs named as the parameters."""
        graph = ScalarGraph()
        return self.expression(graph, [graph.input(p) for p in self.params])

    def input_cotangents(self, wrt: Sequence[int], complex_: bool) -> list[Expr | None]:
        """The cotangent of each wanted input, as expressions of `g`, the inputs and `y`."""
        raise NotImplementedError

    def derivative(self, position: int, body: Expr, types: dict[str, ArrayType],
                   out_type: ArrayType) -> ElementwiseVjp:
        """The op that computes `body`, the cotangent of an input, from what has these types."""
        return ElementwiseVjp(f"d_{self.params[position]} {self.name}", tuple(types), body,
                              out_type, tuple(types.values()))

    def may_refuse(self, inputs: Sequence[Tensor]) -> bool:
        """Only division of integers does, by what may be 0."""
        by = inputs[-1]
        return (self.refuses and by.dtype.is_integer and super().may_refuse(inputs)
                and not (type(by) is EagerTensor and by._peek().all()))

    def out_type(self, types: Sequence[ArrayType]) -> ArrayType:
        """The type of the result.

        Raises:
            InvalidArgumentError: the op does not take these types.
        """
        return _TYPE_RULES[self.types](self.name, types)

    def operand_types(self, array_type: ArrayType) -> tuple[ArrayType, ...]:
        """The types of the inputs of a result of `array_type`: that, but for a condition."""
        types = (array_type,) * len(self.params)
        return (array_type.device.typed(bool_), *types[1:]) if self.types == "select" else types

    def compute(self, array_type: ArrayType, arrays: Sequence[Array]) -> Array:
        """The value for arrays of one device; `array_type` is the result's."""
        raise NotImplementedError

    def infer(self, specs: Sequence[Spec]) -> Spec:
        return Spec(broadcast_shapes(self.name, *specs), specs[0].dtype)

    # -------------------------------------------------------------- the tape's side

    def vjp_program(self, types: tuple[ArrayType, ...], wanted: int, numbers: int = 0,
                    same_shape: bool = False) -> VjpProgram | None:
        """How to pull back to the inputs in the bit mask `wanted`; None: no gradient flows.

        `types` are those of the inputs; the inputs in the mask `numbers` are Python numbers;
        `same_shape` says that no input in `wanted` was broadcast.
        """
        key = (types, wanted, numbers, same_shape)
        try:
            return self._vjp_programs[key]
        except KeyError:
            program = build_vjp_program(self, types, wanted, numbers, same_shape)
            # `setdefault`, since threads may have built the same: records name the backward, and
            # those of one op are to name one.
            return self._vjp_programs.setdefault(key, program)

    def fill_vjp_slot(self, slots: list[VjpSlot | None], array_type: ArrayType, slot: int,
                      ) -> VjpSlot:
        """The pullback for the inputs that `slot` says, remembered in `slots`."""
        arity = len(self.params)
        mask = (1 << arity) - 1
        program = self.vjp_program(self.operand_types(array_type), slot & mask,
                                   slot >> arity & mask, bool(slot >> 2 * arity))
        filled = (VjpSlot(None, (False,) * (arity + 1)) if program is None
                  else VjpSlot(program.backward, program.reads))
        slots[slot] = filled
        return filled

    def record(self, mask: int, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
               attrs: Attrs) -> Recorded | None:
        """The (backward, input keys, payload) of a record; None when no gradient flows.

        A Python number among the inputs has the type of the tensors beside it.
        """
        like = next(x._t for x in inputs if isinstance(x, Tensor))
        types = tuple(x._t if isinstance(x, Tensor) else like for x in inputs)
        if not outputs[0]._t.differentiable:
            return None
        mask = sum(1 << i for i, t in enumerate(types) if mask >> i & 1 and t.differentiable)
        numbers = sum(1 << i for i, x in enumerate(inputs) if not isinstance(x, Tensor))
        if not mask:
            return None
        program = self.vjp_program(types, mask, numbers)
        return None if program is None else program.entry(inputs, outputs[0])

    # -------------------------------------------------------------- application

    def apply(self, inputs: Sequence[Tensor]) -> Tensor:
        """The op on tensors: check, compute, record. The one way that is right for all inputs."""
        types = tuple(x._t for x in inputs)
        out_type = self.out_type(types)
        same_device(self.name, inputs)
        emitted = trace_or_none(self, inputs, (), lambda: [self._result(out_type, inputs)])
        if emitted is None and tracer_now() is not None:
            emitted = self._left_to_calls(out_type, inputs)
        if emitted is not None:
            result = emitted[0]
        else:
            try:
                result = note_origin(EagerTensor(self._evaluate(out_type, inputs), out_type))
            except MemoryError as error:
                raise exhausted(self.name, [self._result(out_type, inputs)], error) from error
        record_general(self, tuple(inputs), (result,), ())
        return result

    def _result(self, out_type: ArrayType, inputs: Sequence[Tensor]) -> Spec:
        """The spec of the result.

        Raises:
            InvalidArgumentError: the shapes do not fit.
        """
        spec = Spec(self.infer([x.spec for x in inputs]).shape, out_type.dtype)
        check_size(self.name, spec)
        return spec

    def _left_to_calls(self, out_type: ArrayType, inputs: Sequence[Tensor],
                       ) -> tuple[Tensor, ...] | None:
        """A symbol in a trace for what is much larger than the inputs; None for the rest."""
        spec = self._result(out_type, inputs)
        if not outgrows([spec], [x.spec for x in inputs]):
            return None
        return tracer_now().emit(self, inputs, (), [spec], [out_type])

    def _evaluate(self, out_type: ArrayType, inputs: Sequence[Tensor]) -> Array:
        # Shapes are looked at when NumPy refuses, not before: it compares them anyway, and to do it
        # first in Python costs every call as much as a small op.
        arrays = [x._array_() for x in inputs]
        state = ignore()
        try:
            with out_type.device.scope():
                array = apply_map(self, out_type, arrays)
                return self.compute(out_type, arrays) if array is None else array
        except (ValueError, TypeError) as error:
            self._result(out_type, inputs)
            raise InvalidArgumentError(f"{self.name}: {error}") from None
        finally:
            restore(state)

    def reapply(self, inputs: Sequence[Tensor], attrs: Attrs) -> tuple[Tensor, ...]:
        return (self.apply(inputs),)


class ScalarGraphOp(Elementwise):
    """An elementwise op given by an expression: printed once per array module, then called."""

    def __init__(self, name: str, params: tuple[str, ...], types: str, doc: str,
                 tf_name: str | None) -> None:
        super().__init__(name, params, types, doc, tf_name)
        self._functions: dict[ArrayModule, Function] = {}
        # A list, as None says that no blocks can be made of it, which is looked for once.
        self._blocked: list[Blocked | None] = []

    def function(self, xp: ArrayModule) -> Function:
        """The op as a function of `xp`'s arrays."""
        function = self._functions.get(xp)
        if function is None:
            printer = Printer(xp)
            assigned, (text,) = printer.lines([self.body()])
            lines = "".join(f"    {line}\n" for line in assigned)
            source = f"def formula({', '.join(self.params)}):\n{lines}    return {text}\n"
            function = self._functions.setdefault(xp, define(source, "formula", printer.names))
        return function

    def compute(self, array_type: ArrayType, arrays: Sequence[Array]) -> Array:
        if array_type.fast and any(
                isinstance(a, np.ndarray) and a.size >= LARGE for a in arrays) and fits(arrays):
            if not self._blocked:
                self._blocked.append(schedule(self.body(), self.params))
            if self._blocked[0] is not None:
                return self._blocked[0].run(arrays)
        result = self.function(array_type.xp)(*arrays)
        wanted = array_type.dtype.np_dtype
        # A formula of constants alone is a Python number, and NumPy's choice of dtype where a
        # number meets float16 is not ours.
        if getattr(result, "dtype", None) != wanted:
            result = array_type.xp.asarray(result, dtype=wanted)
        if all(a.shape == result.shape for a in arrays):
            return result
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        return result if result.shape == shape else np.broadcast_to(result, shape)


class ElementwiseVjp(ScalarGraphOp):
    """The backward of an elementwise op for one input: its result has that input's type."""

    def __init__(self, name: str, params: tuple[str, ...], body: Expr, out_type: ArrayType,
                 in_types: tuple[ArrayType, ...]) -> None:
        super().__init__(name, params, "any", f"The derivative {name}.", None)
        self._body = body
        self._out_type = out_type
        self._in_types = in_types
        self._all_differentiable = all(t.differentiable for t in in_types)
        self._by_mask: dict[int, VjpProgram | None] = {}

    def apply_mixed(self, values: Sequence[Any]) -> Tensor:
        """`apply` where some values are the Python numbers that the forward op was given."""
        for value, array_type in zip(values, self._in_types):
            if type(value) is not EagerTensor or value._t is not array_type or (
                    not array_type.fast):
                break
        else:
            return self._applied(values)
        return self.apply([v if isinstance(v, Tensor) else convert_like(v, t, self.name)
                           for v, t in zip(values, self._in_types)])

    def _applied(self, values: Sequence[EagerTensor]) -> Tensor:
        """`apply` on host floats of the declared types: nothing is left to check."""
        arrays = [v._a for v in values]
        array = None
        if arrays[0].size < LARGE:
            array = ignored_context.call(self.function(np), *arrays)
        # What is not of the shape of the operands was stretched, or has lost an operand to
        # simplification: `compute` knows what to do with that.
        if array is None or getattr(array, "shape", None) != arrays[-1].shape or (
                array.shape != arrays[0].shape):
            array = ignored_context.call(self.compute, self._out_type, arrays)
        result = EagerTensor(array, self._out_type)
        if active():
            record_general(self, tuple(values), (result,), ())
        return result

    def record(self, mask: int, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
               attrs: Attrs) -> Recorded | None:
        if outputs[0]._t is not self._out_type or not self._all_differentiable:
            return super().record(mask, inputs, outputs, attrs)
        try:
            program = self._by_mask[mask]
        except KeyError:
            program = self._by_mask[mask] = self.vjp_program(self._in_types, mask)
        return None if program is None else program.entry(inputs, outputs[0])

    def body(self) -> Expr:
        return self._body

    def expression(self, graph: ScalarGraph, args: Sequence[Expr]) -> Expr:
        own = self._body.graph
        replaced = {id(own.input(p)): a for p, a in zip(self.params, args)}
        return substitute([self._body], replaced, graph)[0]

    def out_type(self, types: Sequence[ArrayType]) -> ArrayType:
        return self._out_type

    def input_cotangents(self, wrt: Sequence[int], complex_: bool) -> list[Expr | None]:
        return expression_vjp(self._body, self.params, wrt, complex_)


#: A comparison in CUDA text; shifts are none.
_COMPARISON = re.compile(r"[=!<>]=|(?<![<>])[<>](?![<>])")


class ScalarVjp:
    """A scalar op's rule for one input: `fn`'s parameters name what it reads."""

    __slots__ = ("fn", "names")

    def __init__(self, fn: Function) -> None:
        self.fn = fn
        self.names = positional_names(fn)


class ScalarOp(Elementwise):
    """A scalar function that devices spell, with its spellings and its pullbacks.

    Args:
        signature: "name(a, b)".
        numpy: the function on arrays: a ufunc name found in the array module, or a function
            `(xp, *arrays)`; the op's own name unless given.
        infix: a template of Python operators, such as "{0} * {1}", used in place of a call.
        cuda: the expression in CUDA C++, in the parameters' names; the call itself unless given;
            "" where there is none, and the array function serves GPUs too. `nearest(…)` in it is a
            number that is rounded to the dtype of two bytes, where there is one.
        integers: whether the CUDA expression is right for integers.
        types: the rule of `typing_rules` for its dtypes.
        holomorphic: for complex values the derivative is a complex number times g.
        simplify: args -> a simpler expression or None.
        domain: where test inputs are drawn from.
        jumps: the result jumps as an operand passes some number, which its spellings do not show.
        of_complex: the function of complex tensors, where it is another formula.
        pullbacks: `d_a=lambda g, b: …`; None declares that no gradient flows; absent altogether
            means that none is registered.
    """

    def __init__(self, signature: str, *, numpy: str | Function | None = None,
                 infix: str | None = None, cuda: str | None = None, integers: bool = True,
                 types: str = "float", doc: str = "", tf_name: str | None = None,
                 holomorphic: bool = True,
                 simplify: Callable[[Sequence[Expr]], Expr | None] | None = None,
                 domain: tuple[float, float] = (-2.0, 2.0), makes_bool: bool = False,
                 jumps: bool = False, of_complex: Callable[..., Tensor] | None = None,
                 **pullback_fns: Function | None) -> None:
        name, _, rest = signature.partition("(")
        params = tuple(p.strip() for p in rest.rstrip(")").split(","))
        super().__init__(name, params, types, doc, tf_name)
        self.cuda = signature if cuda is None else cuda
        self.integers = integers
        self.infix = infix
        self.holomorphic = holomorphic
        self.simplify = simplify
        self.domain = domain
        self.makes_bool = makes_bool
        self._of_complex = of_complex
        self._numpy = numpy or name
        self.ufunc = self._ufunc()
        given = {k.removeprefix("d_"): f for k, f in pullback_fns.items()}
        self.nondifferentiable = bool(given) and all(f is None for f in given.values())
        self.rules = {k: ScalarVjp(f) for k, f in given.items() if f is not None}
        self.has_gradient = bool(given)
        #: Whether a small change of an operand may make a large one of the result: it takes its
        #: operands as their dtype has them, not with more digits than that.
        self.jumps = jumps or makes_bool or self.nondifferentiable or bool(
            _COMPARISON.search(self.cuda))
        self._check_rules(set(given))

    def _ufunc(self) -> Function | None:
        if isinstance(self._numpy, str):
            return getattr(np, self._numpy)
        return getattr(self._numpy, "with_out", None)

    def _check_rules(self, named: set[str]) -> None:
        known = {"g", "y", *self.params}
        for name, rule in self.rules.items():
            unknown = set(rule.names) - known
            if unknown:
                raise TypeError(f"the rule of {self.name} for {name} asks for {sorted(unknown)}; "
                                f"it can have {', '.join(sorted(known))}")
        if named and named != set(self.params):
            raise TypeError(f"{self.name} must say of each input {list(self.params)} how it is "
                            f"pulled back, None where no gradient flows; got {sorted(named)}")

    def on(self, xp: ArrayModule) -> Function:
        """The function on `xp`'s arrays."""
        if isinstance(self._numpy, str):
            return getattr(xp, self._numpy)
        function = self._numpy
        return lambda *arrays: function(xp, *arrays)

    def expression(self, graph: ScalarGraph, args: Sequence[Expr]) -> Expr:
        return graph.node(self, args)

    def apply(self, inputs: Sequence[Tensor]) -> Tensor:
        if self._of_complex is not None and inputs[0].dtype.is_complex:
            return self._of_complex(*inputs)
        return super().apply(inputs)

    def input_cotangents(self, wrt: Sequence[int], complex_: bool) -> list[Expr | None]:
        graph = ScalarGraph()
        args = [graph.input(p) for p in self.params]
        cotangents = scalar_vjp(self, graph.input("g"), graph.input("y"), args, complex_)
        return [cotangents[i] for i in wrt]

    def compute(self, array_type: ArrayType, arrays: Sequence[Array]) -> Array:
        result = self.on(array_type.xp)(*arrays)
        if type(result) is bytes:
            # What NumPy gives of arrays of one string.
            return np.array(result, object)
        return result if result.dtype == array_type.dtype.np_dtype else result.astype(
            array_type.dtype.np_dtype)


class ScalarFunction(ScalarGraphOp):
    """A function written in scalar ops: `lambda x: x * sigmoid(x)`.

    Its backward is derived; `pullback`, (g, x) -> a formula, is given where that is shorter.
    """

    def __init__(self, fn: Function, *, types: str = "float", name: str | None = None,
                 tf_name: str | None = None, domain: tuple[float, float] = (-2.0, 2.0),
                 pullback: Callable[[Expr, Expr], Expr] | None = None) -> None:
        super().__init__(name or fn.__name__, positional_names(fn), types, fn.__doc__ or "",
                         tf_name)
        self._fn = fn
        self._pullback = pullback
        self.domain = domain

    def expression(self, graph: ScalarGraph, args: Sequence[Expr]) -> Expr:
        formula = self._fn(*args)
        return formula if isinstance(formula, Expr) else graph.constant(formula)

    def input_cotangents(self, wrt: Sequence[int], complex_: bool) -> list[Expr | None]:
        if self._pullback is not None:
            graph = ScalarGraph()
            return [self._pullback(graph.input("g"), graph.input(self.params[0]))]
        return expression_vjp(self.body(), self.params, wrt, complex_)

"""Elementwise ops: a scalar function mapped over broadcast inputs.

A `ScalarOp` is one that devices spell, a `ScalarFunction` is composed of scalar ops: `scalar_ops`
has both. An `ElementwiseVjp` is the backward of either, found by differentiating its expression.
All three are one op forward and one backward, at every order, because the backward of an
elementwise op is an elementwise op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.core.context import active, tracer_now
from gtape.core.convert import convert_like
from gtape.core.device import Array, ArrayModule, ArrayType
from gtape.core.dtypes import bool_
from gtape.core.errors import InvalidArgumentError
from gtape.core.fp_errors import ignore, ignored_context, restore
from gtape.core.op import Attrs, Function, Op
from gtape.core.recording import Recorded, record_general, trace_or_none
from gtape.core.size_limits import check_size, exhausted, outgrows
from gtape.core.spec import Spec, broadcast_shapes
from gtape.core.tensor import EagerTensor, Tensor, note_origin
from gtape.opdef import dtype_rules
from gtape.opdef.blocks import LARGE, Blocked, fits, schedule
from gtape.opdef.differentiate import expression_vjp
from gtape.opdef.eager_source import VjpSlot
from gtape.opdef.elementwise_vjp import VjpProgram, build_vjp_program
from gtape.opdef.kernel_calls import Launches, apply_map
from gtape.opdef.printers.numpy import Printer, define
from gtape.opdef.scalar_graph import Expr, ScalarGraph, substitute


class Elementwise(Op):
    """What scalar ops, scalar functions and their derivatives share."""

    def __init__(self, name: str, params: tuple[str, ...], types: str, doc: str,
                 tf_name: str | None) -> None:
        super().__init__(name, params, doc, tf_name)
        self.types = types
        self._vjp_programs: dict[tuple[object, ...], VjpProgram | None] = {}
        #: The Python function of the op, when it is a public one.
        self.python: Function | None = None
        #: Kernels by the types of inputs and result; see `kernel_calls`.
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
        return dtype_rules.RULES[self.types](self.name, types)

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
        dtype_rules.same_device(self.name, inputs)
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

"""The Python functions of elementwise ops: a fast way for the common case, the op for the rest.

The fast way serves float16, float32 and float64 tensors in host memory, tensors on a GPU whose
kernel is at hand, all of one type, and Python numbers beside them. It gives the same results and
records as `Elementwise.apply`; a test holds it to that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from gtape.core.composite_tensor import CompositeOperand, elementwise
from gtape.core.context import active, new_key
from gtape.core.convert import convert, convert_like
from gtape.core.device import others
from gtape.core.fp_errors import ignored_context
from gtape.core.recording import CUT, UNKNOWN, _seen_globals, mark, user_of
from gtape.core.source_location import here
from gtape.core.tensor import ComputedFrom, EagerTensor, Tensor, noted
from gtape.core.variable import Variable
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.kernel_calls import launched, shorten, unknown
from gtape.opdef.scalar_graph import Expr, is_expr

Function = Callable[..., Any]
_getframe = sys._getframe
new = object.__new__
seen = _seen_globals


def operands(name: str, args: Sequence[Any]) -> list[Tensor]:
    """The arguments as tensors; the first tensor among them sets dtype and device of the rest."""
    like = None
    for arg in args:
        if isinstance(arg, Tensor) or hasattr(arg, "_read_"):
            like = arg._t
            break
    if like is None:
        made = [convert(args[0])]
        for arg in args[1:]:
            made.append(convert_like(arg, made[0]._t, name))
        return made
    return [convert_like(arg, like, name) for arg in args]


def _operands(op: Elementwise, args: Sequence[Any]) -> list[Tensor]:
    """`operands`; a condition has a dtype of its own."""
    if op.types != "select":
        return operands(op.name, args)
    branches = operands(op.name, args[1:])
    return [convert(args[0], None, branches[0]._t.device), *branches]


def slow_path(op: Elementwise, args: Sequence[Any]) -> Any:
    """The op on any arguments: expressions build expressions, the rest become tensors."""
    for a in args:
        if type(a) is EagerTensor:
            if a._t.device.maps is not None:
                made = launched(op, a._t, args)
                if made is not NotImplemented:
                    return made
            break
    if is_expr(args):
        scope = next(a for a in args if type(a) is Expr).graph
        return op.expression(scope, [a if type(a) is Expr else scope.constant(a) for a in args])
    if any(isinstance(a, Variable) for a in args):
        return _read_first(op, args)
    try:
        given = _operands(op, args)
    except CompositeOperand as refusal:
        return elementwise(refusal, op, args)
    return op.apply(given)


def _read_first(op: Elementwise, args: Sequence[Any]) -> Any:
    """The op on variables: their values go the fast way if they can."""
    read = [a._read_() if isinstance(a, Variable) else a for a in args]
    if op.python is not None and all(
            type(a) is EagerTensor or type(a) is float or type(a) is int for a in read):
        made = op.python(*read)
    else:
        try:
            given = _operands(op, read)
        except CompositeOperand as refusal:
            return elementwise(refusal, op, read)
        made = op.apply(given)
    if not active():
        note_variable(made, args)
    return made


def note_variable(made: Any, args: Sequence[Any]) -> None:
    """Remember that a tensor was computed from a Variable outside every tape: `x = x + 1`."""
    for arg in args:
        if isinstance(arg, Variable) and type(made) is EagerTensor:
            made._origin = ComputedFrom(arg._resource_(), *here())
            return


def unary(op: Elementwise, compute: Function, param: str) -> Function:
    """`f(x, name=None)`. The recording is written out here: a call would cost a tenth more."""
    fast, on_device, name_of_op = op.fast, op.short, op.name

    def function(x: Any, name: str | None = None) -> Any:
        if type(x) is not EagerTensor:
            return slow_path(op, (x,))
        array_type = x._t
        y = new(EagerTensor)
        if array_type.fast:
            plans = fast
            try:
                y._a = ignored_context.run(compute, x._a)
            except RuntimeError:
                y._a = ignored_context.call(compute, x._a)
            except MemoryError:
                return slow_path(op, (x,))
            if others:
                noted(y)
        else:
            short = on_device.get(array_type) or unknown(op, array_type)
            launch = short[0]
            if launch is None:
                launch = shorten(op, array_type, 0)
            if not launch:
                return slow_path(op, (x,))
            try:
                y._a = launch(x._a)[0]
            except MemoryError:
                return slow_path(op, (x,))
            plans = short[3]
        y._t = array_type
        y._k = 0
        stack = active()
        if stack:
            frame = _getframe(1)
            if frame.f_globals is not seen[0]:
                frame = user_of(frame)
            for tape in stack:
                if not tape.is_tape:
                    tape.observe(op, (x,), (y,), ())
                    continue
                known = tape._known
                key = x._k
                if key not in known:
                    mark(tape, UNKNOWN, name_of_op, (x,), (y,), frame)
                    continue
                plan = plans[17] or op.fill_vjp_slot(plans, array_type, 1, 0, True)
                if not plan[0]:
                    mark(tape, CUT, name_of_op, (x,), (y,), frame)
                    continue
                made = y._k
                if not made:
                    y._k = made = new_key()
                known.add(made)
                tape._records.append(
                    (plan[0], made, frame.f_code, frame.f_lasti, op, key,
                     x if plan[1] else None, y if plan[3] else None))
        return y

    return with_signature(function, op, (param,))


def binary(op: Elementwise, compute: Function, params: tuple[str, str],
           takes_numbers: bool = False) -> Function:
    """`f(x, y, name=None)`; x or y may be a Python number, which `compute` gets as it is if it
    `takes_numbers`: if it gives a number the dtype of the array beside it."""
    fast, on_device, name_of_op = op.fast, op.short, op.name

    def function(x: Any, y: Any, name: str | None = None) -> Any:
        numbers = 0
        if type(x) is EagerTensor:
            array_type = x._t
            a = x._a
            kx = x._k
            if type(y) is EagerTensor:
                if y._t is not array_type:
                    return slow_path(op, (x, y))
                b = y._a
                ky = y._k
            elif type(y) is float or type(y) is int:
                b = y
                ky = 0
                numbers = 2
            else:
                return slow_path(op, (x, y))
        elif (type(x) is float or type(x) is int) and type(y) is EagerTensor:
            array_type = y._t
            a, b = x, y._a
            kx, ky = 0, y._k
            numbers = 1
        else:
            return slow_path(op, (x, y))
        z = new(EagerTensor)
        if not array_type.fast:
            short = on_device.get(array_type) or unknown(op, array_type)
            launch = short[numbers]
            if launch is None:
                launch = shorten(op, array_type, numbers)
            if not launch:
                return slow_path(op, (x, y))
            try:
                z._a = launch(a, b)[0]
            except (ValueError, OverflowError, MemoryError):
                return slow_path(op, (x, y))
            plans = short[3]
        elif numbers and not takes_numbers:
            return slow_path(op, (x, y))
        else:
            plans = fast
            try:
                z._a = ignored_context.run(compute, a, b)
            except (ValueError, OverflowError, MemoryError):
                return slow_path(op, (x, y))
            except RuntimeError:
                z._a = ignored_context.call(compute, a, b)
            if others:
                noted(z)
        z._t = array_type
        z._k = 0
        stack = active()
        if stack:
            frame = _getframe(1)
            if frame.f_globals is not seen[0]:
                frame = user_of(frame)
            for tape in stack:
                if not tape.is_tape:
                    tape.observe(op, (x, y), (z,), ())
                    continue
                known = tape._known
                if kx in known:
                    which = 3 if ky in known else 1
                elif ky in known:
                    which = 2
                else:
                    mark(tape, UNKNOWN, name_of_op, (x, y), (z,), frame)
                    kx, ky = getattr(x, "_k", 0), getattr(y, "_k", 0)
                    continue
                if numbers:
                    same = 16
                elif which == 3:
                    same = 16 if a.shape == b.shape else 0
                elif which == 1:
                    same = 16 if not b.ndim or a.shape == z._a.shape else 0
                else:
                    same = 16 if not a.ndim or b.shape == z._a.shape else 0
                plan = plans[which | numbers << 2 | same] or op.fill_vjp_slot(
                    plans, array_type, which, numbers, same > 0)
                if not plan[0]:
                    mark(tape, CUT, name_of_op, (x, y), (z,), frame)
                    kx, ky = getattr(x, "_k", 0), getattr(y, "_k", 0)
                    continue
                made = z._k
                if not made:
                    z._k = made = new_key()
                known.add(made)
                tape._records.append(
                    (plan[0], made, frame.f_code, frame.f_lasti, op,
                     (kx, ky) if which == 3 else kx if which == 1 else ky,
                     None if same else a.shape, None if same else b.shape,
                     x if plan[1] else None, y if plan[2] else None, z if plan[3] else None))
        return z

    return with_signature(function, op, params)


def unspecialised(op: Elementwise, params: tuple[str, ...]) -> Function:
    """A function of any number of inputs, always by `Elementwise.apply`."""
    if len(params) == 1:
        def function(x: Any, name: str | None = None) -> Any:
            return slow_path(op, (x,))
    elif len(params) == 2:
        def function(x: Any, y: Any, name: str | None = None) -> Any:  # type: ignore[misc]
            return slow_path(op, (x, y))
    else:
        def function(x: Any, y: Any, z: Any, name: str | None = None) -> Any:  # type: ignore[misc]
            return slow_path(op, (x, y, z))
    return with_signature(function, op, params)


def with_signature(function: Function, op: Elementwise, params: tuple[str, ...]) -> Function:
    """`function` with the op's name, documentation and TensorFlow's parameter names."""
    code = function.__code__
    names = (*params, *code.co_varnames[len(params):])
    function.__code__ = code.replace(co_varnames=names)
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.__doc__
    function.op = op  # type: ignore[attr-defined]
    op.python = function
    function.__module__ = "gtape"
    return function

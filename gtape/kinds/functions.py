"""The Python functions of elementwise ops: a fast way for the common case, the op for the rest.

The fast way serves float16, float32 and float64 tensors in host memory, of one type, and Python
numbers beside them. It gives the same results and records as `Elementwise.apply`; a test holds it
to that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gtape.core.convert import convert, convert_like
from gtape.core.quiet import hush, unhush
from gtape.core.recording import record1, record2
from gtape.core.state import active
from gtape.core.tensor import EagerTensor, Tensor
from gtape.kinds.elementwise import Elementwise
from gtape.kinds.expr import Expr, is_expr

Function = Callable[..., Any]


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


def general(op: Elementwise, args: Sequence[Any]) -> Any:
    """The op on any arguments: expressions build expressions, the rest become tensors."""
    if is_expr(args):
        scope = next(a for a in args if type(a) is Expr).scope
        return op.expression(scope, [a if type(a) is Expr else scope.constant(a) for a in args])
    return op.apply(operands(op.name, args))


def unary(op: Elementwise, compute: Function, param: str) -> Function:
    """`f(x, name=None)`."""
    def function(x: Any, name: str | None = None) -> Any:
        if type(x) is EagerTensor and x._t.fast:
            state = hush()
            try:
                y = EagerTensor(compute(x._a), x._t)
            finally:
                unhush(state)
            stack = active()
            if stack:
                record1(op, stack, x, y)
            return y
        return general(op, (x,))

    return _dressed(function, op, (param,))


def binary(op: Elementwise, compute: Function, params: tuple[str, str]) -> Function:
    """`f(x, y, name=None)`."""
    def function(x: Any, y: Any, name: str | None = None) -> Any:
        if type(x) is EagerTensor:
            array_type = x._t
            a = x._a
            if type(y) is EagerTensor:
                if y._t is not array_type:
                    return general(op, (x, y))
                b = y._a
            elif type(y) is float or type(y) is int:
                b = y
            else:
                return general(op, (x, y))
        elif (type(x) is float or type(x) is int) and type(y) is EagerTensor:
            array_type = y._t
            a, b = x, y._a
        else:
            return general(op, (x, y))
        if not array_type.fast:
            return general(op, (x, y))
        state = hush()
        try:
            z = EagerTensor(compute(a, b), array_type)
        except (ValueError, OverflowError):
            return general(op, (x, y))
        finally:
            unhush(state)
        stack = active()
        if stack:
            record2(op, stack, x, y, z, array_type)
        return z

    return _dressed(function, op, params)


def plain(op: Elementwise, params: tuple[str, ...]) -> Function:
    """A function of any number of inputs, always by `Elementwise.apply`."""
    if len(params) == 1:
        def function(x: Any, name: str | None = None) -> Any:
            return general(op, (x,))
    elif len(params) == 2:
        def function(x: Any, y: Any, name: str | None = None) -> Any:  # type: ignore[misc]
            return general(op, (x, y))
    else:
        def function(x: Any, y: Any, z: Any, name: str | None = None) -> Any:  # type: ignore[misc]
            return general(op, (x, y, z))
    return _dressed(function, op, params)


def _dressed(function: Function, op: Elementwise, params: tuple[str, ...]) -> Function:
    """`function` with the op's name, documentation and TensorFlow's parameter names."""
    code = function.__code__
    names = (*params, *code.co_varnames[len(params):])
    function.__code__ = code.replace(co_varnames=names)
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.__doc__
    function.op = op  # type: ignore[attr-defined]
    function.__module__ = "gtape"
    return function

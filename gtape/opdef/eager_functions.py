"""The Python functions of elementwise ops: a fast way for the common case, the op for the rest.

The fast way, which `eager_source` prints, serves float16, float32 and float64 tensors in host
memory, tensors on a GPU whose kernel is at hand, all of one type, and Python numbers beside them.
It gives the same results and records as `Elementwise.apply`; a test holds it to that.
"""

from __future__ import annotations

import functools
import linecache
import sys
from collections.abc import Callable, Sequence
from typing import Any

from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import CompositeOperand, elementwise
from gtape.core.context import active, new_key
from gtape.core.convert import convert, convert_like
from gtape.core.device import others
from gtape.core.dtypes import bool_
from gtape.core.fp_errors import ignored_context
from gtape.core.op import Function
from gtape.core.recording import CUT, UNKNOWN, _seen_globals, mark, user_of
from gtape.core.source_location import here
from gtape.core.state_ref import Readable
from gtape.core.tensor import ComputedFrom, EagerTensor, Tensor, note_origin
from gtape.core.variable import Variable
from gtape.opdef.eager_source import source, vjp_slots
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.kernel_calls import add_launches, find_launch, launch_op
from gtape.opdef.scalar_graph import Expr, is_expr

#: What the text of `eager_source` names. It is a library's, so its frames are no user's.
_GLOBALS = {
    "__package__": __package__, "EagerTensor": EagerTensor, "new": object.__new__,
    "ignored_context": ignored_context, "others": others, "note_origin": note_origin,
    "bool_": bool_, "add_launches": add_launches, "find_launch": find_launch, "active": active,
    "_getframe": sys._getframe, "seen": _seen_globals, "user_of": user_of, "mark": mark,
    "UNKNOWN": UNKNOWN, "CUT": CUT, "new_key": new_key}


def operands(name: str, args: Sequence[object]) -> list[Tensor]:
    """The arguments as tensors; the first tensor among them sets dtype and device of the rest."""
    like = None
    for arg in args:
        if isinstance(arg, (Tensor, Readable)):
            like = arg._t
            break
    if like is None:
        tensors = [convert(args[0])]
        for arg in args[1:]:
            tensors.append(convert_like(arg, tensors[0]._t, name))
        return tensors
    return [convert_like(arg, like, name) for arg in args]


def _operands(op: Elementwise, args: Sequence[object]) -> list[Tensor]:
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
                result = launch_op(op, a._t, args)
                if result is not NotImplemented:
                    return result
            break
    if is_expr(args):
        graph = next(a for a in args if type(a) is Expr).graph
        return op.expression(graph, [a if type(a) is Expr else graph.constant(a) for a in args])
    if any(isinstance(a, Variable) for a in args):
        return _read_first(op, args)
    try:
        given = _operands(op, args)
    except CompositeOperand as refusal:
        return elementwise(refusal, op, args)
    return op.apply(given)


def _read_first(op: Elementwise, args: Sequence[object]) -> Any:
    """The op on variables: their values go the fast way if they can."""
    read = [a._read_() if isinstance(a, Variable) else a for a in args]
    if op.python is not None and all(
            type(a) is EagerTensor or type(a) is float or type(a) is int for a in read):
        result = op.python(*read)
    else:
        try:
            given = _operands(op, read)
        except CompositeOperand as refusal:
            return elementwise(refusal, op, read)
        result = op.apply(given)
    if not active():
        note_variable(result, args)
    return result


def note_variable(result: object, args: Sequence[object]) -> None:
    """Remember that a tensor was computed from a Variable outside every tape: `x = x + 1`."""
    for arg in args:
        if isinstance(arg, Variable) and type(result) is EagerTensor:
            result._origin = ComputedFrom(arg._resource_(), *here())
            return


def specialised(op: Elementwise, compute: Function, params: tuple[str, ...],
                takes_numbers: bool = False) -> Function:
    """The op's function, `f(x, …, name=None)`, with the fast way of one, two or three operands.

    `compute` is the op on NumPy's floating arrays. Where it `takes_numbers` it gives a Python
    number among its arguments the dtype of the array beside it.
    """
    arity = len(params)
    make = _factory(arity, op.types == "select")
    return with_signature(make(op, compute, vjp_slots(arity), takes_numbers), op, params)


@functools.cache
def _factory(arity: int, select: bool) -> Callable[..., Function]:
    """`make` of `eager_source`, compiled: a thousandth of a second, once for each arity."""
    text, file = source(arity, select), f"<gtape function of {arity}{' select' * select}>"
    # Tracebacks show its lines.
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    defined: dict[str, Function] = {}
    exec(compile(text, file, "exec"), _GLOBALS | {"slow_path": slow_path}, defined)
    return defined["make"]


def unspecialised(op: Elementwise, params: tuple[str, ...]) -> Function:
    """The op's function, always by `Elementwise.apply`."""
    if len(params) == 1:
        def function(x: Any, name: str | None = None) -> Any:
            return slow_path(op, (x,))
    elif len(params) == 2:
        def function(x: Any, y: TensorLike, name: str | None = None) -> Any:  # type: ignore[misc]
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

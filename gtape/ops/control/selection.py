"""Choices: where between elements; cond, case and switch_case between functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import takes_composites
from gtape.core.context import here, resolve
from gtape.core.convert import convert
from gtape.core.device import at_home
from gtape.core.dtypes import int64
from gtape.core.errors import InvalidArgumentError, NotTraceableError
from gtape.core.formatting import shown
from gtape.core.recording import CUT, mark_all
from gtape.core.tensor import EagerTensor, Readable, Tensor
from gtape.opdef.eager_functions import operands
from gtape.ops.arguments import as_int, as_items
from gtape.ops.control.branches import chosen_case, chosen_cond, chosen_switch
from gtape.ops.elementwise import scalars as s
from gtape.trace.symbolic_tensor import SymbolicTensor


def _dense(value: TensorLike) -> Any:
    return value.to_dense() if hasattr(value, "to_dense") else value


@takes_composites
def where(condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None,
          name: str | None = None) -> Tensor:
    """`x` where the condition holds and `y` elsewhere; all three are broadcast.

    Without `x` and `y`: the positions of the true (or nonzero) elements, int64 [n, rank], in
    row-major order. Each of `x` and `y` gets the gradient of the elements it gave. An infinite
    slope on the side not taken still makes nan: 0 · inf. Then make that side safe first, as in
    `tf.where(x > 0, tf.math.log(tf.where(x > 0, x, 1.0)), 0.0)`.

    Raises:
        ValueError: only one of `x` and `y` is given.
        InvalidArgumentError: the condition is not bool, the dtypes differ, or the shapes do not
            broadcast.
    """
    if x is None and y is None:
        return _positions(convert(_dense(condition)))
    if x is None or y is None:
        raise ValueError("where: give both x and y, or neither")
    chosen = condition if isinstance(condition, Tensor) else convert(condition)
    x, y = _dense(x), _dense(y)
    # Two Python numbers have no device; the condition says where the result is wanted.
    if not _has_type(x) and not _has_type(y):
        x = convert(x, None, chosen._t.device)
    a, b = operands("where", (x, y))
    return s.where.op.apply((chosen, a, b))


def _has_type(value: TensorLike) -> bool:
    return isinstance(value, (Tensor, Readable))


@at_home
def _positions(condition: Tensor) -> Tensor:
    """The index tuples of the elements that are not 0."""
    if not isinstance(condition, EagerTensor):
        raise NotTraceableError(f"{resolve(*here())}: where(condition) has a result whose shape "
                                f"depends on the values; while tracing {condition.spec} has none. "
                                f"Use where(condition, x, y)")
    array_type = condition._t.device.typed(int64)
    places = array_type.xp.argwhere(condition._array_()).astype(array_type.dtype.np_dtype)
    result = EagerTensor(places, array_type)
    mark_all(CUT, "where", (condition,), (result,))
    return result


def _truth(name: str, pred: TensorLike) -> Any:
    """A condition as a Python bool, or as the symbol that it is."""
    if not _has_type(pred):
        return bool(pred)  # of a Python bool no tensor need be made
    x = convert(pred)
    if math.prod(x.spec.shape) != 1:
        raise InvalidArgumentError(f"{name}: the condition must be a scalar; got {x.spec}. "
                                   f"Write tf.reduce_all(condition), or tf.where to choose "
                                   f"element by element")
    # `bool` notes on tapes that a value has left: `explain` can name this line.
    return x if type(x) is SymbolicTensor else bool(x)


def _function(name: str, what: str, function: Callable[..., object]) -> Callable[[], Any]:
    if not callable(function):
        raise TypeError(f"{name}: {what} must be a function without arguments; got "
                        f"{shown(function)}. Write lambda: value")
    return function


def cond(pred: TensorLike, true_fn: Any = None, false_fn: Any = None, name: str | None = None,
         ) -> Any:
    """`true_fn()` if the condition holds, else `false_fn()`. Only that function runs.

    In a traced function both are traced, and the one is applied for which the condition holds at a
    call. Where they only assign to Variables, by formulas and sums that cannot fail, both are
    applied. Their results must be alike there: one structure, and dtypes and shapes that agree.
    Where one cannot be traced, the calls that take it run eagerly.

    Raises:
        TypeError: a function is not callable, or the dtypes of traced results differ.
        ValueError: structures or shapes of traced results differ.
        InvalidArgumentError: the condition is a tensor of several elements.
    """
    taken = _function("cond", "true_fn", true_fn)
    other = _function("cond", "false_fn", false_fn)
    held = _truth("cond", pred)
    if type(held) is SymbolicTensor:
        return chosen_cond(held, taken, other)
    return taken() if held else other()


def case(pred_fn_pairs: TensorLike, default: Callable[..., object] | None = None,
         exclusive: bool = False, strict: bool = False, name: str = "case") -> Any:
    """The result of the first function whose condition holds, else of `default`.

    Args:
        pred_fn_pairs: (condition, function) pairs.
        default: the function to call when no condition holds.
        exclusive: more than one true condition is an error.
        strict: without effect: results are given as they are.

    Raises:
        TypeError: not pairs of conditions and functions.
        InvalidArgumentError: no condition holds and there is no default, or several hold and
            `exclusive` is true.
    """
    pairs = as_items(pred_fn_pairs.items() if isinstance(pred_fn_pairs, Mapping) else
                     pred_fn_pairs, "case: pred_fn_pairs")
    if any(not isinstance(pair, (list, tuple)) or len(pair) != 2 for pair in pairs):
        raise TypeError(f"case takes (condition, function) pairs; got {shown(pred_fn_pairs)}")
    # All of them, before a condition is looked at: a wrong one must not wait for its turn.
    for _, function in pairs:
        _function("case", "each second item of a pair", function)
    chosen = None if default is None else _function("case", "default", default)
    held = []
    for at, (pred, function) in enumerate(pairs):
        truth = _truth("case", pred)
        if type(truth) is SymbolicTensor:
            # Conditions known to be false are left out, but several that hold must be counted.
            rest = pairs if exclusive else pairs[at:]
            return chosen_case([p for p, _ in rest], [f for _, f in rest], chosen, exclusive)
        if truth:
            held.append(function)
            if not exclusive:
                break  # later conditions cannot matter
    if len(held) > 1:
        raise InvalidArgumentError(f"case: the conditions must exclude each other; {len(held)} of "
                                   f"{len(pairs)} hold. Leave out exclusive=True to take the first")
    if not held and chosen is None:
        raise InvalidArgumentError("case: no condition holds; give a default function")
    return (held[0] if held else chosen)()  # type: ignore[misc]


def _branches(branch_fns: object) -> Sequence[Any]:
    """The functions in the order of their keys 0, 1, …"""
    items = as_items(branch_fns.items() if isinstance(branch_fns, Mapping) else branch_fns,
                     "switch_case: branch_fns")
    if not items:
        raise ValueError("switch_case needs at least one function; got none")
    if all(isinstance(item, (list, tuple)) and len(item) == 2 for item in items):
        keys = [as_int(key, "switch_case: key") for key, _ in items]
        if sorted(keys) != list(range(len(keys))):
            raise ValueError(f"switch_case: the keys must be 0 … {len(keys) - 1}, each once; got "
                             f"{sorted(keys)}")
        items = [function for _, function in sorted(zip(keys, (f for _, f in items)),
                                                    # Functions have no order.
                                                    key=lambda pair: pair[0])]
    return [_function("switch_case", "each branch", function) for function in items]


def _scalar_index(index: Tensor) -> Tensor:
    if index.spec.shape or not index.dtype.is_integer:
        raise TypeError(f"switch_case: branch_index must be an integer scalar; got {index.spec}")
    return index


def switch_case(branch_index: Any, branch_fns: Any, default: Any = None,
                name: str = "switch_case") -> Any:
    """The result of `branch_fns[branch_index]()`; out of range that of `default`, or of the last.

    Args:
        branch_index: an integer scalar.
        branch_fns: functions, or (index, function) pairs or a dict with the indices 0, 1, …
        default: the function for indices out of range.

    Raises:
        TypeError: `branch_index` is no integer, or a branch is not callable.
        ValueError: no functions, or keys missing or repeated.
    """
    functions = _branches(branch_fns)
    if type(branch_index) is SymbolicTensor:
        chosen = None if default is None else _function("switch_case", "default", default)
        return chosen_switch(_scalar_index(branch_index), functions, chosen)
    index = as_int(branch_index, "switch_case: branch_index")
    if 0 <= index < len(functions):
        return functions[index]()
    # TensorFlow's rule: out of range, below 0 too, is the last one.
    return (functions[-1] if default is None else _function("switch_case", "default", default))()

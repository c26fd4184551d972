"""Assertions on values: they raise, or give None.

Nothing is recorded on tapes. On traced tensors the values are checked at every call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, SupportsFloat

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.context import paused, tracer_now
from gtape.core.convert import convert, convert_like
from gtape.core.dtypes import DType, as_dtype, float32
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.introspection import is_tensor
from gtape.core.tensor import EagerTensor, Tensor
from gtape.opdef.eager_functions import operands
from gtape.ops.arguments import as_int, as_items, named
from gtape.ops.elementwise import scalars as s
from gtape.ops.elementwise.operators import absolute
from gtape.trace.host_steps import HostCallback, symbolic


def _failed(message: str | None, text: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{message}: {text}" if message else text)


def _shown(value: Tensor, summarize: int | None) -> str:
    """The first elements of a value as text."""
    array = np.asarray(value._peek() if isinstance(value, EagerTensor) else value)
    flat = array.reshape(-1)
    limit = flat.size if summarize == -1 else summarize or 3
    more = " …" if flat.size > limit else ""
    return f"[{' '.join(str(v) for v in flat[:limit])}{more}]"


def Assert(condition: TensorLike, data: TensorLike, summarize: int | None = None,
           name: str | None = None) -> None:
    """Check a bool scalar; `data` is shown when it is false.

    Raises:
        InvalidArgumentError: the condition is false, or no scalar.
    """
    x = convert(condition)
    if x.ndim:
        raise InvalidArgumentError(f"Assert: the condition must be a scalar; got {x.spec}. "
                                   f"Write tf.reduce_all(condition)")
    if isinstance(x, EagerTensor) and bool(x._peek()):
        return
    values = [v if isinstance(v, str) else convert(v)
              for v in (data if isinstance(data, (list, tuple)) else [data])]

    def check(held: Any, *tensors: Tensor) -> None:
        if not bool(held._peek()):
            # Tensors come back in the order in which they were given, between the strings.
            fresh = iter(tensors)
            shown = ", ".join(v if isinstance(v, str) else _shown(next(fresh), summarize)
                              for v in values)
            raise InvalidArgumentError(f"the asserted condition is false; data: {shown}")

    _at_every_call("Assert", check, x, *(v for v in values if not isinstance(v, str)))


def _at_every_call(name: str, check: Callable[..., None], *tensors: Tensor) -> None:
    """`check(*tensors)`: now, or in a traced function whenever it gets here, if it can fail."""
    if tracer_now() is None:
        check(*tensors)
        return
    if not symbolic(*tensors):
        # What holds while tracing holds at every call, and costs none of them. What fails may stand
        # in a branch that is not taken: it raises at the call.
        with suppress(InvalidArgumentError):
            check(*tensors)
            return

    def run(*values: Tensor) -> list[Tensor]:
        check(*values)
        return []

    HostCallback(name, run, (), (), has_side_effect=True, differentiable=False)(*tensors)


# ---------------------------------------------------------------- two values
def _compared(name: str, relation: str, compare: Callable[..., Any], x: TensorLike, y: TensorLike,
              message: str | None, summarize: int | None) -> None:
    def check(held: Any, a: Tensor, b: Tensor) -> None:
        # The common case, in one pass and without copies to the host.
        if held._t.xp.all(held._a):
            return
        ok = np.asarray(held._peek())
        at = tuple(int(i) for i in np.argwhere(~ok)[0])
        left = np.broadcast_to(a._peek(), ok.shape)[at]
        right = np.broadcast_to(b._peek(), ok.shape)[at]
        raise _failed(message, (
            f"{name}: x {relation} y must hold everywhere; first broken at {list(at)}: x = {left}, "
            f"y = {right} ({int((~ok).sum())} of {ok.size} elements). x = {_shown(a, summarize)} "
            f"{a.spec}, y = {_shown(b, summarize)} {b.spec}"))

    with paused():
        left, right = operands(name, (x, y))
        _at_every_call(name, check, compare(left, right), left, right)


def _ordered(public: str, relation: str, compare: Callable[..., object]) -> Callable[..., None]:
    def check(x: Any, y: Any, message: str | None = None, summarize: int | None = None,
              name: str | None = None) -> None:
        _compared(public, relation, compare, x, y, message, summarize)

    return named(check, public, f"""Check x {relation} y element by element, broadcast.

    Raises:
        InvalidArgumentError: it does not hold, or shapes or dtypes do not fit.
    """)


def _signed(public: str, relation: str, compare: Callable[..., object]) -> Callable[..., None]:
    def check(x: object, message: str | None = None, summarize: int | None = None,
              name: str | None = None) -> None:
        _compared(public, relation, compare, convert(x), 0, message, summarize)

    return named(check, public, f"Check x {relation} 0 everywhere. Raises InvalidArgumentError.")


def assert_none_equal(x: float, y: float, summarize: int | None = None, message: str | None = None,
                      name: str | None = None) -> None:
    """Check x ≠ y element by element, broadcast. Raises as `assert_equal`."""
    # TensorFlow has these two in another order than in the other assertions.
    _compared("assert_none_equal", "!=", s.not_equal, x, y, message, summarize)


assert_equal = _ordered("assert_equal", "==", s.equal)
assert_less = _ordered("assert_less", "<", s.less)
assert_less_equal = _ordered("assert_less_equal", "<=", s.less_equal)
assert_greater = _ordered("assert_greater", ">", s.greater)
assert_greater_equal = _ordered("assert_greater_equal", ">=", s.greater_equal)
assert_negative = _signed("assert_negative", "<", s.less)
assert_positive = _signed("assert_positive", ">", s.greater)
assert_non_negative = _signed("assert_non_negative", ">=", s.greater_equal)
assert_non_positive = _signed("assert_non_positive", "<=", s.less_equal)


def assert_near(x: float, y: float, rtol: SupportsFloat | None = None,
                atol: SupportsFloat | None = None, message: str | None = None,
                summarize: int | None = None, name: str | None = None) -> None:
    """Check |x - y| < atol + rtol |y| element by element; both are 10 machine epsilons by default.

    Raises:
        InvalidArgumentError: it does not hold, the dtypes differ, or integers.
    """
    def near(a: Tensor, b: Tensor) -> Tensor:
        if not a.dtype.is_differentiable:
            raise InvalidArgumentError(f"assert_near takes floating tensors; got {a.spec}. Use "
                                       f"tf.debugging.assert_equal")
        # TensorFlow's default.
        tolerance = 10 * float(np.finfo(a.dtype.real_dtype.np_dtype).eps)
        gap = absolute(a - b)
        relative = convert_like(tolerance if rtol is None else rtol, gap._t, "assert_near")
        allowed = s.add(s.multiply(absolute(b), relative), tolerance if atol is None else atol)
        return s.less(gap, allowed)

    _compared("assert_near", "≈", near, x, y, message, summarize)


# ---------------------------------------------------------------- ranks
def _rank_in(name: str, x: TensorLike, accepts: Callable[[int], bool], wanted: str,
             message: str | None) -> Tensor:
    tensor = convert(x)
    if not accepts(tensor.ndim):
        text = f"{name}: the rank must be {wanted}; got {tensor.spec} of rank {tensor.ndim}"
        raise ValueError(f"{message}: {text}" if message else text)
    return tensor


def assert_rank(x: TensorLike, rank: int, message: str | None = None, name: str | None = None,
                ) -> None:
    """Check the number of axes.

    Raises:
        ValueError: there are more or fewer.
    """
    wanted = as_int(rank, "assert_rank: rank")
    _rank_in("assert_rank", x, lambda n: n == wanted, str(wanted), message)


def assert_rank_at_least(x: TensorLike, rank: Any, message: str | None = None,
                         name: str | None = None) -> None:
    """Check that there are at least `rank` axes.

    Raises:
        ValueError: there are fewer.
    """
    wanted = as_int(rank, "assert_rank_at_least: rank")
    _rank_in("assert_rank_at_least", x, lambda n: n >= wanted, f"at least {wanted}", message)


def assert_rank_in(
        x: TensorLike, ranks: object, message: str | None = None, name: str | None = None) -> None:
    """Check that the number of axes is one of `ranks`.

    Raises:
        ValueError: it is not.
    """
    wanted = [as_int(r, "assert_rank_in: rank") for r in as_items(ranks, "assert_rank_in: ranks")]
    _rank_in("assert_rank_in", x, lambda n: n in wanted, f"one of {wanted}", message)


def assert_scalar(tensor: float, message: str | None = None, name: str | None = None) -> Tensor:
    """`tensor`, which must have no axes.

    Raises:
        ValueError: it has some.
    """
    return _rank_in("assert_scalar", tensor, lambda n: n == 0, "0", message)


# ---------------------------------------------------------------- types and containers
def _typed(value: object) -> Any:
    return value if is_tensor(value) else convert(value)


def assert_type(tensor: TensorLike, tf_type: DType, message: str | None = None,
                name: str | None = None) -> None:
    """Check the dtype.

    Raises:
        TypeError: it is another.
    """
    wanted, found = as_dtype(tf_type), _typed(tensor).dtype
    if found is not wanted:
        raise TypeError(f"{message + ': ' if message else ''}the tensor must be {wanted!r}; got "
                        f"{found!r}. Write tf.cast(x, tf.{wanted.name})")


def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> None:
    """Check that the dtype is an integer type.

    Raises:
        TypeError: it is not.
    """
    kind = _typed(x).dtype
    if not kind.is_integer:
        raise TypeError(f"{message + ': ' if message else ''}the tensor must be of an integer "
                        f"type; got {kind!r}. Write tf.cast(x, tf.int32)")


def assert_same_float_dtype(tensors: TensorLike | None = None, dtype: object = None) -> DType:
    """The one floating dtype of `tensors` (None entries are left out); float32 for none.

    Raises:
        ValueError: they differ from each other or from `dtype`, or it is not floating.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    for tensor in () if tensors is None else as_items(tensors, "assert_same_float_dtype: tensors"):
        if tensor is None:
            continue
        kind = _typed(tensor).dtype
        if wanted is None:
            wanted = kind
        elif kind is not wanted:
            raise ValueError(f"the tensors must all be {wanted!r}; got {kind!r}")
    wanted = wanted or float32
    if not wanted.is_floating:
        raise ValueError(f"the dtype must be real and floating; got {wanted!r}")
    return wanted


def assert_proper_iterable(values: TensorLike) -> None:
    """Check that `values` is a list of things: no tensor, array or string.

    Raises:
        TypeError: it is one of those, or cannot be iterated over.
    """
    # Each of these can be iterated over, but is one value to whoever wrote it.
    unwanted = (Tensor, IndexedSlices, np.ndarray, bytes, str)
    if isinstance(values, unwanted) or is_tensor(values):
        raise TypeError(f"expected a list of values, and not one {type(values).__name__}; write "
                        f"[value]")
    if not hasattr(values, "__iter__"):
        raise TypeError(f"expected a list of values; got {type(values).__name__}")


def is_numeric_tensor(tensor: TensorLike) -> bool:
    """Whether `tensor` is a Tensor of numbers; bools and strings are none."""
    return isinstance(tensor, Tensor) and (
        tensor.dtype.is_differentiable or tensor.dtype.is_integer)


# ---------------------------------------------------------------- shapes
def assert_shapes(shapes: TensorLike, data: TensorLike | None = None, summarize: int | None = None,
                  message: str | None = None, name: str | None = None) -> None:
    """Check the shapes of several tensors, and that lengths of one name are equal.

        tf.debugging.assert_shapes([(x, ("N", "D")), (w, ("D", 3)), (y, ("N", 3))])

    A length is a number, a name, or None or '.' for any. A shape that begins with `...` or '*'
    speaks of the last axes only; () is a scalar.

    Raises:
        ValueError: a rank or length is not as stated.
    """
    pairs = as_items(shapes.items() if isinstance(shapes, Mapping) else shapes,
                     "assert_shapes: shapes")
    if any(not isinstance(pair, (list, tuple)) or len(pair) != 2 for pair in pairs):
        raise TypeError(f"assert_shapes takes pairs (tensor, shape); got {shown(shapes)}")
    known: dict[Any, tuple[int, str]] = {}
    for position, (tensor, wanted) in enumerate(pairs):
        if hasattr(tensor, "deref"):
            tensor = tensor.deref()
        found = tuple(_typed(tensor).shape)
        _check_shape(found, _entries(wanted), f"tensor {position} of shape {list(found)}", known,
                     f"{message}: " if message else "")


def _entries(wanted: Any) -> tuple[object, ...]:
    if isinstance(wanted, (int, np.integer)) or wanted is None:
        return (wanted,)
    return tuple(wanted)


def _check_shape(shape: tuple[int, ...], wanted: tuple[object, ...], what: str,
                 known: dict[Any, tuple[int, str]], prefix: str) -> None:
    open_front = bool(wanted) and (wanted[0] is Ellipsis or wanted[0] == "*")
    named = wanted[1:] if open_front else wanted
    if len(shape) < len(named) or (len(shape) > len(named) and not open_front):
        least = "at least " if open_front else ""
        raise ValueError(f"{prefix}{what} must have {least}{len(named)} axes, as {list(wanted)}")
    for axis, (length, entry) in enumerate(zip(shape[len(shape) - len(named):], named)):
        if entry is None or entry == ".":
            continue
        number = _number(entry)
        if number is not None:
            if length != number:
                raise ValueError(f"{prefix}{what} must have length {number} at axis {axis} of "
                                 f"{list(wanted)}; it has {length}")
            continue
        first = known.setdefault(entry, (length, what))
        if first[0] != length:
            raise ValueError(f"{prefix}{what} has length {length} for {entry!r}, but {first[1]} "
                             f"has {first[0]}")


def _number(entry: Any) -> int | None:
    try:
        return int(entry)
    except (TypeError, ValueError):
        return None

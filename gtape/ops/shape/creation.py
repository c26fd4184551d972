"""Tensors from nothing but a shape, a range or a Python value."""

from __future__ import annotations

import math
from typing import Any, SupportsFloat

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import DTypeLike, IntsLike, TensorLike
from gtape.core.composite_tensor import takes_composites
from gtape.core.context import here, paused, resolve, tracer_now
from gtape.core.convert import convert, holds_tensor
from gtape.core.device import CPU, Array, ArrayModule, ArrayType, current_device
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError, NotTraceableError
from gtape.core.op import case
from gtape.core.recording import EXIT, mark_all
from gtape.core.spec import Spec, check_size, exhausted, normal_axes, outgrows, room_for
from gtape.core.symbolic_dim import is_open
from gtape.core.tensor import EagerTensor, Tensor, note_origin
from gtape.core.variable import is_variable
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, as_ints, as_shape, as_tensors, optional_dtype
from gtape.ops.elementwise.scalars import equal, where
from gtape.ops.shape.casting import cast
from gtape.ops.shape.identity import move
from gtape.ops.shape.layout import broadcast_to_, expand_dims, reshape
from gtape.trace.symbolic_tensor import SymbolicTensor


def _full(name: str, shape: tuple[int, ...], value: bytes | int, array_type: ArrayType) -> Tensor:
    tracer = tracer_now()
    if tracer is not None:
        spec = Spec(shape, array_type.dtype)
        # A large constant would stand in the graph with all its bytes; a node is made at the call.
        if is_open(shape) or outgrows([spec]):
            check_size(name, spec)
            return tracer.filled(spec, array_type, value)
    try:
        with array_type.device.scope():
            y = array_type.xp.full(shape, value, dtype=array_type.dtype.np_dtype)
    except (MemoryError, ValueError, OverflowError) as error:
        spec = Spec(shape, array_type.dtype)
        check_size(name, spec)
        raise exhausted(name, [spec], error) from error
    return note_origin(EagerTensor(y, array_type))


def constant(value: Any, dtype: DTypeLike | None = None, shape: object = None, name: str = "Const",
             ) -> Tensor:
    """A tensor of a Python or NumPy value; a Tensor is given back as it is.

    Python floats become float32, ints int32 (int64 where they must), complex complex128; NumPy
    values keep their dtype. A Variable's value is copied and its gradient path ends.

    Args:
        dtype: the dtype wanted.
        shape: a single value is repeated, any other is reshaped.

    Raises:
        TypeError: the value does not fit dtype or shape.
        ValueError: no tensor can be made of it.
    """
    if isinstance(value, (list, tuple)) and holds_tensor(value):
        raise ValueError("tf.constant takes no tensors inside lists; use tf.stack, or "
                         "tf.convert_to_tensor(value)")
    # TensorFlow's constant takes the value of the moment. Tapes are told that the path ends here,
    # so that `explain` can say why a gradient is None.
    if is_variable(value):
        state = value._read_()
        mark_all(EXIT, "tf.constant(variable)", (state,), ())
        value = EagerTensor(state._array_(), state._t)
    x = convert(value, optional_dtype(dtype))
    if shape is not None:
        x = _shaped(x, as_ints(shape, "constant: shape"))
    return x


def _shaped(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    size = math.prod(tensor.spec.shape)
    if size == math.prod(shape):  # before one value is repeated: it may be reshaped, too
        return reshape(tensor, shape)
    if size == 1:
        return broadcast_to_(reshape(tensor, ()), shape=shape)
    raise TypeError(f"constant: {size} values cannot fill the shape {list(shape)}")


def convert_to_tensor(value: TensorLike, dtype: DTypeLike | None = None, dtype_hint: Any = None,
                      name: str | None = None) -> Tensor:
    """`value` as a tensor: Tensors pass through, Variables are read, lists may hold tensors.

    Raises:
        ValueError: it is a Tensor of another dtype, or no tensor can be made of it.
        TypeError: a Python value does not fit `dtype`.
    """
    if hasattr(value, "to_dense"):
        value = value.to_dense()
    wanted = optional_dtype(dtype)
    if wanted is None and dtype_hint is not None:
        try:
            # A hint yields to what does not fit, a dtype does not.
            return convert(value, as_dtype(dtype_hint))
        except (TypeError, ValueError):
            return convert(value)
    return convert(value, wanted)


def zeros(shape: IntsLike, dtype: object = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of zeros (False, b'')."""
    wanted = as_dtype(dtype)
    fill: Any = b"" if wanted is dtypes.string else 0
    return _full("zeros", as_shape(shape), fill, current_device().typed(wanted))


def _no_strings(name: str, dtype: DType) -> None:
    if dtype is dtypes.string:
        raise TypeError(f"{name}: strings have no 1; write tf.fill(shape, 'text')")


def ones(shape: IntsLike, dtype: object = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of ones (True). Raises TypeError: of strings."""
    _no_strings("ones", as_dtype(dtype))
    return _full("ones", as_shape(shape), 1, current_device().typed(as_dtype(dtype)))


@takes_composites
def zeros_like(input: TensorLike, dtype: object = None, name: str | None = None) -> Tensor:
    """Zeros of the shape of `input`, and of its dtype unless one is given."""
    x = convert(input)
    wanted = x._t if dtype is None else x._t.device.typed(as_dtype(dtype))
    return _full("zeros_like", x.spec.shape, b"" if wanted.dtype is dtypes.string else 0, wanted)


@takes_composites
def ones_like(input: TensorLike, dtype: object = None, name: str | None = None) -> Tensor:
    """Ones of the shape of `input`, and of its dtype unless one is given.

    Raises:
        TypeError: of strings.
    """
    x = convert(input)
    wanted = x._t if dtype is None else x._t.device.typed(as_dtype(dtype))
    _no_strings("ones_like", wanted.dtype)
    return _full("ones_like", x.spec.shape, 1, wanted)


def fill(dims: IntsLike, value: TensorLike, name: str | None = None) -> Tensor:
    """A tensor of shape `dims` filled with the scalar `value`; differentiable in `value`.

    Raises:
        InvalidArgumentError: `value` is not a scalar.
    """
    x = convert(value)
    if x.ndim:
        raise InvalidArgumentError(f"fill: the value must be a scalar; got {x.spec}")
    return broadcast_to_(x, shape=as_shape(dims, "fill: dims"))


def eye(num_rows: int, num_columns: int | None = None, batch_shape: IntsLike | None = None,
        dtype: object = dtypes.float32, name: str | None = None) -> Tensor:
    """The identity matrix [num_rows, num_columns], repeated over `batch_shape`.

    Raises:
        InvalidArgumentError: a negative number.
    """
    rows = as_int(num_rows, "eye: num_rows")
    columns = rows if num_columns is None else as_int(num_columns, "eye: num_columns")
    array_type = current_device().typed(as_dtype(dtype))
    spec = Spec((rows, columns), array_type.dtype)
    with room_for("eye", spec):
        if tracer_now() is not None and outgrows([spec]):
            y = one_hot(np.arange(rows), columns, dtype=array_type.dtype)
        else:
            array = array_type.xp.eye(rows, columns, dtype=array_type.dtype.np_dtype)
            y = note_origin(EagerTensor(array, array_type))
    if batch_shape is None:
        return y
    return broadcast_to_(y, shape=(*as_shape(batch_shape), rows, columns))


def _number_dtype(values: list[Tensor]) -> DType:
    # TensorFlow's order for tf.range, in which float16 is wider than int64.
    order = [dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32, dtypes.float64]
    parts = [v.dtype for v in values]
    return max(parts, key=lambda d: order.index(d) if d in order else -1)


@primitive(nondifferentiable=True, tf_name="Range")
def sequence_(xp: ArrayModule, start: Array, *, step: int | Array, count: int, dtype: DType,
              ) -> Array:
    """start, start + step, … : so many numbers."""
    return (xp.arange(count) * step + start).astype(dtype.np_dtype)


sequence_.infer(lambda start, *, count, dtype, **_: Spec((count,), dtype))
sequence_.cases = [case((), step=2, count=3, dtype=dtypes.float64)]


def range_(start: TensorLike, limit: TensorLike | None = None, delta: SupportsFloat = 1,
           dtype: object = None, name: str = "range") -> Tensor:
    """start, start + delta, … before `limit`; range_(n) counts from 0. Not differentiable.

    Raises:
        InvalidArgumentError: delta is 0, or points away from the limit; the numbers are not real
            scalars, or no number of steps leads to the limit, which is infinite or NaN.
    """
    if limit is None:
        start, limit = 0, start
    # Python numbers are read in the dtype asked for: 0.1 as float32 first is another float64.
    exact = None if dtype is None or not as_dtype(dtype).is_floating else as_dtype(dtype)
    parts = [convert(v, exact if type(v) in (int, float) else None, CPU)
             for v in (start, limit, delta)]
    if any(type(p) is SymbolicTensor for p in parts):
        raise NotTraceableError(f"{resolve(*here())}: range of a traced number has a length "
                                f"that is not known while tracing; `for i in tf.range(n)` may")
    wanted = as_dtype(dtype) if dtype is not None else _number_dtype(parts)
    if any(p.ndim for p in parts) or not all(
            d.is_integer or d.is_floating for d in (wanted, *(p.dtype for p in parts))):
        raise InvalidArgumentError(
            f"range: start, limit and delta must be real scalars, and so must be the result's "
            f"dtype; got {', '.join(str(p.spec) for p in parts)} and {wanted.name}")
    low, high, step = (p.numpy() for p in parts)
    count = _steps(low, high, step, wanted)
    spec = Spec((count,), wanted)
    with room_for("range", spec):
        if tracer_now() is not None and outgrows([spec]):
            return sequence_(convert(low), step=step.item(), count=count, dtype=wanted)
        # Computed on the host: the same numbers on every device.
        return convert(sequence_.value(np, low, step=step, count=count, dtype=wanted), wanted)


def _steps(low: Any, high: Any, step: Any, dtype: DType) -> int:
    """How many numbers a range holds."""
    if step and not dtype.is_integer:
        # In the result's own precision, as TensorFlow counts: 0.1 to 1.1 by 0.1 are ten float32.
        low, high, step = np.array([low, high, step]).astype(dtype.np_dtype)
    with np.errstate(all="ignore"):
        length = float((high - low) / step) if step else math.nan
    if not 0 <= length <= 2.0 ** 63:
        raise InvalidArgumentError(
            f"range: delta must lead from start to limit in fewer than 2**63 steps; got "
            f"start={low}, limit={high}, delta={step}")
    if not dtype.is_integer:
        # np.arange's own count is computed in float64 and may differ by one.
        return math.ceil(length)
    low, high, step = int(low), int(high), int(step)
    if not step:
        raise InvalidArgumentError(f"range: delta must not be 0 as {dtype.name}")
    return max(0, -((low - high) // step) if step > 0 else -((high - low) // -step))


def linspace(start: float, stop: float, num: int, name: str | None = None, axis: int = 0) -> Tensor:
    """`num` evenly spaced values from `start` to `stop` inclusive, along a new axis.

    Differentiable in its end points. Integers give float64.

    Raises:
        InvalidArgumentError: num < 0, or no such axis.
    """
    count = as_int(num, "linspace: num")
    if count < 0:
        raise InvalidArgumentError(f"linspace: num must not be negative; got {count}")
    low, high = as_tensors([start, stop], "linspace")
    if low.dtype.is_integer:
        low, high = cast(low, dtypes.float64), cast(high, dtypes.float64)
    (at,) = normal_axes("linspace", as_int(axis, "linspace: axis"), low.ndim + 1)
    shape = [1] * (low.ndim + 1)
    shape[at] = count
    with room_for("linspace", Spec((count,), low.dtype)):
        # One value is the start itself: no division by 0.
        steps = np.arange(count, dtype=low.dtype.np_dtype) / max(count - 1, 1)
        weight = convert(steps.reshape(shape), low.dtype, low._t.device)
    a, b = expand_dims(low, at), expand_dims(high, at)
    return a + (b - a) * weight


def is_class(numbers: Any, classes: int) -> Any:
    """Whether each of 0 … classes - 1, along a new last axis, is the number."""
    if numbers.dtype.size < 4:  # which may not count all classes
        numbers = cast(numbers, dtypes.int64)
    return equal(expand_dims(numbers, -1), convert(np.arange(classes), numbers.dtype))


@takes_composites
def one_hot(indices: TensorLike, depth: int, on_value: object = None, off_value: object = None,
            axis: int | None = None, dtype: DTypeLike | None = None, name: str | None = None,
            ) -> Tensor:
    """`on_value` at each index along a new axis of length `depth`, `off_value` elsewhere.

    Indices outside [0, depth) give all `off_value`. Not differentiable in `indices`.

    Raises:
        InvalidArgumentError: `indices` are not integers, `depth` is negative, or no such axis.
    """
    x = convert(indices)
    if not x.dtype.is_integer:
        raise InvalidArgumentError(f"one_hot: indices must be integers; got {x.spec}")
    count = as_int(depth, "one_hot: depth")
    # 2**59 numbers of 16 bytes are 2**63 bytes, which NumPy cannot count.
    if not 0 <= count < 2 ** 59:
        raise InvalidArgumentError(f"one_hot: depth must be below 2**59 and not negative; got "
                                   f"{count}")
    at = x.ndim
    if axis not in (None, -1):
        (at,) = normal_axes("one_hot", as_int(axis, "one_hot: axis"), at + 1)
    wanted = optional_dtype(dtype)
    if wanted is None:
        given = on_value if on_value is not None else off_value
        wanted = dtypes.float32 if given is None else convert(given).dtype
    shape = x.spec.shape
    spec = Spec((*shape[:at], count, *shape[at:]), wanted)
    try:
        return _one_hot(x, at, count, on_value, off_value, spec)
    except (MemoryError, OverflowError) as error:
        check_size("one_hot", spec)
        raise exhausted("one_hot", [spec], error) from error


def _one_hot(indices: Tensor, at: int, count: int, on_value: object, off_value: object, spec: Spec,
             ) -> Tensor:
    wanted, xp = spec.dtype, indices._t.xp
    axes = [1] * len(spec.shape)
    axes[at] = count
    classes = np.arange(count).reshape(axes)
    on = convert(1 if on_value is None else on_value, wanted, CPU)
    off = convert(0 if off_value is None else off_value, wanted, CPU)
    if on.spec.shape or off.spec.shape:
        raise InvalidArgumentError(f"one_hot: on_value and off_value must be scalars; got "
                                   f"{on.spec} and {off.spec}")
    folded = tracer_now() is None or not outgrows([spec], [indices.spec])
    if not folded or wanted is dtypes.string or any(
            type(v) is not EagerTensor for v in (indices, on, off)):
        return _hot(indices, at, classes, on, off)
    with indices._t.device.scope():
        hit = xp.expand_dims(indices._array_(), at) == xp.asarray(classes)
        array = xp.where(hit, on.numpy(), off.numpy()).astype(wanted.np_dtype)
    return note_origin(EagerTensor(array, indices._t.device.type_of(array.dtype)))


def _hot(indices: Tensor, at: int, classes: np.ndarray, on: Tensor, off: Tensor) -> Tensor:
    """`one_hot` of a traced tensor, as formulas that compile."""
    device = indices._t.device
    with paused():
        hit = equal(expand_dims(cast(indices, dtypes.int64), at), convert(classes, None, device))
        return where(hit, move(on, device), move(off, device))

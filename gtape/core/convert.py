"""Python and NumPy values become tensors.

Python numbers are weak: `1.0` becomes float32, `1` int32, and next to a tensor either takes the
tensor's dtype. NumPy values keep their dtype. Values are copied, so no tensor aliases an array
that its owner may write to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core import dtypes, nest
from gtape.core.composite_tensor import CompositeOperand, CompositeTensor
from gtape.core.context import tracer_now
from gtape.core.device import CPU, ArrayType, Device, current_device, ignored_context, registered
from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.installed import installed
from gtape.core.op import Op
from gtape.core.spec import Spec, TensorShape
from gtape.core.symbolic_dim import SymbolicDim, need_number
from gtape.core.tensor import EagerTensor, Readable, Tensor, note_origin

if TYPE_CHECKING:
    from gtape.core.annotations import TensorLike

#: NumPy's limit.
_MAX_RANK = 64

_WEAK = (bool, int, float, complex, str, bytes)


def _first_leaf(value: TensorLike) -> Any:
    while isinstance(value, (list, tuple, range)) and len(value):
        value = value[0]
    return value


def holds_tensor(value: Any, depth: int = 1) -> bool:
    """Whether a Tensor, or what reads as one, is in these nested lists.

    Raises:
        ValueError: they nest deeper than arrays can have axes, or contain themselves.
    """
    if depth > _MAX_RANK:
        raise nest.too_deep(value, _MAX_RANK, "the lists of a tensor")
    for item in value:
        if isinstance(item, (list, tuple)):
            if holds_tensor(item, depth + 1):
                return True
        elif isinstance(item, (Tensor, Readable)):
            return True
    return False


def _weak_dtype(array: np.ndarray, leaf: TensorLike) -> np.dtype:
    """The dtype that Python numbers get when nobody asks for one."""
    if isinstance(leaf, (np.generic, np.ndarray)):
        return array.dtype
    if array.dtype.kind == "f":
        return np.dtype(np.float32)
    if array.dtype.kind == "i":
        # int32 as in TensorFlow, and int64 where a number needs it.
        small = not array.size or (array.min() >= -(2**31) and array.max() < 2**31)
        return np.dtype(np.int32) if small else array.dtype
    return array.dtype


def _check_leaves(value: TensorLike, leaf: TensorLike, array: np.ndarray) -> None:
    if (isinstance(leaf, bool) and array.dtype.kind not in "bO") or (
            array.dtype.kind in "US" and not isinstance(leaf, (str, bytes))):
        raise ValueError(f"a tensor holds values of one type; got mixed types in {shown(value)}")
    # NumPy makes strings of whatever stands beside one: only the list itself tells.
    if array.dtype.kind in "US":
        stack = [value]
        while stack:
            item = stack.pop()
            if isinstance(item, (list, tuple)):
                stack.extend(item)
            elif not isinstance(item, (str, bytes)):
                raise ValueError(f"a tensor holds values of one type; got mixed types in "
                                 f"{shown(value)}")


def _strings(value: TensorLike) -> np.ndarray:
    """An array of bytes. Read as objects: NumPy's own strings lose the NULs at their end."""
    array = np.array(value, object)
    strings = np.empty(array.shape, object)
    flat = strings.reshape(-1)
    for i, item in enumerate(array.reshape(-1)):
        flat[i] = item.encode() if isinstance(item, str) else bytes(item)
    return strings


def _exact_integers(value: Any, array: np.ndarray) -> np.ndarray:
    """Integers of which some are beyond int64: NumPy makes floats of a list of both."""
    integers = np.array(value, object)
    if all(type(x) is int and 0 <= x < 1 << 64 for x in integers.flat):
        return integers.astype(np.uint64)
    return array


def _of_large_integers(value: int, array: np.ndarray, dtype: DType | None) -> np.ndarray:
    """Integers that only a float can hold, where floats are asked for.

    Raises:
        ValueError: `array` holds other objects, or integers are asked for.
    """
    odd = [x for x in array.flat if not isinstance(x, (bool, int, float))]
    if odd and isinstance(odd[0], CompositeTensor):
        raise CompositeOperand(odd[0])
    if odd:
        raise ValueError(f"cannot make a tensor of {shown(value)}: unsupported type "
                         f"{type(odd[0]).__name__}")
    if dtype is None or not dtype.is_differentiable:
        raise ValueError(f"cannot make a tensor of {shown(value)}: an integer must lie in "
                         f"[-2**63, 2**64); give a floating dtype for larger ones")
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise ValueError(f"cannot make a tensor of {shown(value)}: it is beyond float64's "
                         f"range; write float('inf') if that is meant") from None


def _from_python(value: Any, dtype: DType | None) -> np.ndarray:
    try:
        array = np.array(value)
    except UnicodeDecodeError:
        # Beside a str, NumPy reads bytes as ASCII.
        array = np.array(value, object)
        if not all(isinstance(item, (str, bytes)) for item in array.flat):
            raise ValueError(f"a tensor holds values of one type, in rectangular lists; got "
                             f"{shown(value)}") from None
    except (ValueError, OverflowError) as error:
        raise ValueError(f"cannot make a tensor of {shown(value)}: the lists must be rectangular "
                         f"and hold numbers, bools or strings ({error})") from None
    leaf = _first_leaf(value)
    # Asked for by its dtype alone: whoever names none gets the float that NumPy makes of them.
    if dtype is dtypes.uint64 and array.dtype.kind == "f":
        array = _exact_integers(value, array)
    if array.dtype == object and not isinstance(leaf, (str, bytes)):
        array = _of_large_integers(value, array, dtype)
    _check_leaves(value, leaf, array)
    if array.dtype.kind in "US" or array.dtype == object:
        if dtype not in (None, dtypes.string):
            raise TypeError(f"cannot convert the string {shown(value)} to {dtype}")
        return _strings(value)
    if dtype is None:
        return _cast(array, _weak_dtype(array, leaf))
    if not isinstance(leaf, (np.generic, np.ndarray)):
        check_weak(array, dtype, value)
    return _cast(array, np.dtype(dtypes.require_usable(dtype).as_numpy_dtype))


def _cast(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A number too large for `dtype` becomes inf, without a warning."""
    return ignored_context.call(array.astype, dtype, copy=False)


def check_weak(array: np.ndarray, dtype: DType, value: TensorLike) -> None:
    """Refuse to lose what a Python number says.

    Raises:
        TypeError: a float for an integer tensor, a complex for a real one, a number for strings
            or bools, an integer outside the dtype's range.
    """
    kind = array.dtype.kind
    wrong = ((kind == "f" and not dtype.is_differentiable)
             or (kind == "c" and not dtype.is_complex)
             or (kind in "iu" and dtype.is_bool)
             or (dtype is dtypes.string))
    if wrong and array.size:
        raise TypeError(f"cannot convert {shown(value)} to {dtype!r} without losing what it says; "
                        f"write tf.cast(value, tf.{dtype.name}) if that is meant")
    if kind in "iu" and dtype.is_integer and array.size and (
            array.min() < dtype.min or array.max() > dtype.max):
        raise TypeError(f"{shown(value)} does not fit {dtype!r}, whose range is "
                        f"[{dtype.min}, {dtype.max}]")


def _from_numpy(array: np.ndarray, dtype: DType | None) -> np.ndarray:
    if array.dtype.kind == "O" or array.dtype.kind in "US":
        leaves = array.reshape(-1)
        if all(isinstance(item, (str, bytes)) for item in leaves):
            return _strings(array)
        raise ValueError(
            f"an array of Python objects cannot be a tensor (first item: "
            f"{type(leaves[0]).__name__ if len(leaves) else 'none'}); convert it to numbers first, "
            f"as with array.astype(np.float32)")
    wanted = dtypes.of_numpy(array.dtype) if dtype is None else dtypes.require_usable(dtype)
    # A copy, since the owner of the array may write to it; in C order, as kernels read.
    return ignored_context.call(np.array, array, dtype=wanted.np_dtype, order="C")


def _asked(value: Any) -> np.ndarray:
    """The array that an object of another library says it is."""
    try:
        return np.asarray(value)
    except Exception as error:
        raise ValueError(f"cannot make a tensor of {shown(value)}: its __array__ fails with "
                         f"{type(error).__name__}: {error}") from error


def host_array(value: Any, dtype: DType | None = None) -> np.ndarray:
    """A fresh NumPy array of a Python or NumPy value.

    Raises:
        ValueError: ragged lists, mixed types, None, Python objects.
        TypeError: the value does not fit `dtype`.
    """
    if isinstance(value, (np.ndarray, np.generic)) and not isinstance(value, (str, bytes)):
        return _from_numpy(np.asarray(value), dtype)
    if isinstance(value, (*_WEAK, list, tuple, range)):
        return _from_python(value, dtype)
    if value is not None and hasattr(value, "__array__"):
        return _from_numpy(_asked(value), dtype)
    raise ValueError(f"cannot make a tensor of {shown(value)}: unsupported type "
                     f"{type(value).__name__}")


def _lengths(shape: TensorShape) -> list[int | None]:
    """The lengths of a shape that is to be a tensor.

    Raises:
        ValueError: one is not known.
    """
    if not shape.is_fully_defined():
        raise ValueError(f"cannot make a tensor of {shape!r}: a length is not known; write "
                         f"tf.shape(x)")
    return shape.as_list()


def _foreign(value: Any) -> tuple[Device, Any] | None:
    """The device that owns a device array, and a copy of it."""
    for device in registered()[1:]:
        if device.owns(value):
            with device.scope():
                return device, value.copy()
    return None


def _retyped(tensor: Tensor, dtype: DType | None) -> Tensor:
    if dtype is not None and tensor.dtype is not dtype:
        raise ValueError(f"the tensor {tensor.spec} was to be {dtype!r}; tensors are never cast in "
                         f"silence: write tf.cast(x, tf.{dtype.name})")
    return tensor


def convert(value: Any, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """`value` as a tensor: tensors pass through, variables are read, other values are copied.

    An object with `__tf_tensor__(dtype, name)` says itself what tensor it is.

    Raises:
        ValueError: no tensor can be made of it, or a tensor has another dtype than `dtype`.
        CompositeOperand: it is made of several tensors.
        TypeError: a Python value does not fit `dtype`.
    """
    if isinstance(value, Tensor):
        return _retyped(value, dtype)
    if isinstance(value, Readable):
        return _retyped(value._read_(), dtype)
    if isinstance(value, (list, tuple)) and holds_tensor(value):
        return installed.pack(value, dtype)
    place = device or current_device()
    if type(value) is SymbolicDim:
        return dim_tensor(value, dtype or dtypes.int32, place)
    if type(value) is TensorShape:
        value = _lengths(value)
    foreign = None
    if not isinstance(value, (*_WEAK, list, tuple, np.ndarray)):
        if isinstance(value, CompositeTensor):
            if hasattr(value, "to_dense"):
                return _retyped(value.to_dense(), dtype)
            raise CompositeOperand(value)
        if hasattr(type(value), "__tf_tensor__"):
            return _retyped(value.__tf_tensor__(dtype, None), dtype)
        foreign = _foreign(value)
    if foreign is not None:
        owner, array = foreign
        if dtype is not None:
            with owner.scope():
                array = array.astype(dtype.np_dtype)
        return note_origin(EagerTensor(array, owner.type_of(array.dtype)))
    array = host_array(value, dtype)
    if not place.is_host and array.dtype != object:
        return note_origin(EagerTensor(place.upload(array), place.type_of(array.dtype)))
    return note_origin(EagerTensor(array, CPU.type_of(array.dtype)))


class _DimValue(Op):
    """The number of a SymbolicDim as a scalar: attributes (length, dtype, device), no inputs."""

    nondifferentiable = True

    def reapply(self, inputs: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, ...]:
        return (convert(*attrs),)


dim_value = _DimValue("length", (), "The length of an axis.")


def dim_tensor(length: SymbolicDim, dtype: DType, device: Device) -> Tensor:
    """A scalar that has another value where the lengths are others."""
    tracer = tracer_now()
    if tracer is None:
        need_number(length)
    return tracer.emit(dim_value, (), (length, dtype, device), [Spec((), dtype)],
                       [device.typed(dtype)])[0]


def convert_like(value: Any, like: ArrayType, name: str) -> Tensor:
    """A Python or NumPy operand of a tensor, in the tensor's dtype and on its device.

    Raises:
        InvalidArgumentError: the value does not fit, such as 1.5 beside an integer tensor.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Readable):
        return value._read_()
    if value is None:
        raise ValueError(f"{name}: an operand is None; a tensor or number is needed")
    if isinstance(value, (np.ndarray, np.generic)) and np.asarray(value).dtype.kind in "fc":
        array = np.asarray(value)
        if not like.dtype.is_differentiable or (array.dtype.kind == "c" and not
                                                like.dtype.is_complex):
            raise InvalidArgumentError(
                f"{name}: a {array.dtype} array beside a {like.dtype.name} tensor would be "
                f"truncated; write tf.cast(x, tf.{dtypes.of_numpy(array.dtype).name})")
    try:
        return convert(value, like.dtype, like.device)
    except TypeError as error:
        raise InvalidArgumentError(f"{name}: {error}") from None

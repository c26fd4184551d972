"""cast and kin: the same values in another dtype."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.context import stack_level
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import ComplexCastWarning, InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Readable, Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.elementwise.scalars import clip


@primitive(linear="x", tf_name="Cast", holomorphic=False)
def cast_(xp: Any, x: Any, *, dtype: DType) -> Any:
    """x in another dtype: floats are truncated towards zero for integers."""
    wanted = np.dtype(dtype.as_numpy_dtype)
    if x.dtype.kind == "c" and wanted.kind != "c":
        # NumPy warns of the lost imaginary part; `cast` has warned by the user's line.
        x = x.real
    return xp.asarray(x).astype(wanted)


cast_.on_cuda("elementwise.maps.cast")


@cast_.infer
def _(x: Spec, *, dtype: DType) -> Spec:
    # NumPy would parse and print numbers; TensorFlow has tf.strings for that.
    if dtypes.string in (x.dtype, dtype) and x.dtype is not dtype:
        raise InvalidArgumentError(f"cast: {x.dtype!r} cannot become {dtype!r}")
    return Spec(x.shape, dtypes.require_usable(dtype))


cast_.vjp(x=lambda g, x_spec: cast_(g, dtype=x_spec.dtype))
cast_.cases = [case((2, 3), dtype=dtypes.float64),
               case((3,), dtype=dtypes.complex128, dtypes=("float64",))]


def cast(x: Any, dtype: object, name: str | None = None) -> Any:
    """`x` as `dtype`. The same dtype gives the same object; the gradient comes back in x's dtype.

    Raises:
        InvalidArgumentError: strings.
    """
    wanted = as_dtype(dtype)
    # A Variable of the dtype stays a Variable, as in TensorFlow.
    if isinstance(x, (Tensor, Readable)) and x.dtype is wanted:
        return x
    if not isinstance(x, Tensor) and hasattr(x, "_with"):
        return x._with(cast(x.values, wanted))
    tensor = convert(x)
    if tensor.dtype is wanted:
        return tensor
    if tensor.dtype.is_complex and not wanted.is_complex:
        warnings.warn(f"casting {tensor.dtype.name} to {wanted.name} drops the imaginary part; use "
                      f"tf.math.real(x) to say so", ComplexCastWarning, stacklevel=stack_level())
    return cast_(tensor, dtype=wanted)


def saturate_cast(value: TensorLike, dtype: object, name: str | None = None) -> Tensor:
    """`value` as `dtype`, values outside its range set to the nearest bound."""
    wanted = as_dtype(dtype)
    x = convert(value)
    # Bounds as Python integers: int64's largest is no float64.
    if x.dtype.is_integer:
        return cast(clip(x, int(max(wanted.min, x.dtype.min)), int(min(wanted.max, x.dtype.max))),
                    wanted)
    return cast(clip(x, _bound(wanted.min, x.dtype), _bound(wanted.max, x.dtype)), wanted)


def _bound(limit: Any, dtype: DType) -> float:
    """The number of a floating `dtype` that is nearest to `limit` and not beyond it."""
    kind = dtype.as_numpy_dtype
    # Python compares integers and floats exactly; the limits of int64 as floats are beyond it.
    exact = limit if isinstance(limit, int) else float(limit)
    if abs(exact) > float(dtype.max):  # as the bounds of int32 are to float16
        return math.copysign(float(dtype.max), exact)
    bound = kind(limit)
    if abs(float(bound)) > abs(exact):
        bound = np.nextafter(bound, kind(0))  # it was rounded up, as int32's largest in float32
    return float(bound)


@primitive(nondifferentiable=True, tf_name="Bitcast")
def bitcast_(xp: ArrayModule, x: Array, *, dtype: DType) -> Array:
    """The same bytes read as another dtype. Not differentiable."""
    # A view with another size of element needs a contiguous last axis; a scalar has none.
    return xp.ascontiguousarray(x).reshape(-1).view(dtype.np_dtype).reshape(
        _recut(x.shape, x.dtype.itemsize, dtype.size))


def _recut(shape: tuple[int, ...], before: int, after: int) -> tuple[int, ...]:
    """The shape of the same bytes as elements of another size."""
    if before == after:
        return shape
    return (*shape, before // after) if before > after else shape[:-1]


@bitcast_.infer
def _(x: Spec, *, dtype: DType) -> Spec:
    for kind in (x.dtype, dtype):
        if kind is dtypes.string or kind.is_bool:
            raise InvalidArgumentError(f"bitcast reads numbers as numbers; got {x} to be "
                                       f"{dtype!r}. Use tf.cast")
    before, after = x.dtype.size, dtypes.require_usable(dtype).size
    if before < after and (not x.ndim or x.shape[-1] != after // before):
        raise InvalidArgumentError(f"bitcast: the last axis must hold the {after // before} "
                                   f"elements of {x.dtype.name} that make one {dtype.name}; got "
                                   f"{x}")
    return Spec(_recut(x.shape, before, after), dtype)


bitcast_.cases = [case(np.array([[1, -2]], np.int32), dtype=kind)
                  for kind in (dtypes.float32, dtypes.int16, dtypes.int64)]


def bitcast(input: TensorLike, type: DType, name: str | None = None) -> Tensor:
    """The bytes of `input` read as `type`.

    Of a smaller type there are several to each element, in a new last axis; of a larger one the
    elements of the last axis make one, and it goes.

    Raises:
        InvalidArgumentError: strings or bools, or a last axis that is not as long as one
            element of a larger type needs.
    """
    return bitcast_(convert(input), dtype=as_dtype(type))

"""What the ops on matrices share: checks of shape and dtype, small floats, and failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics.precision import is_short
from gtape.ops.layout import swap_last


def check_matrix(name: str, x: Spec, square: bool = False) -> None:
    """Raises InvalidArgumentError unless `x` holds floating or complex (square) matrices."""
    if not x.dtype.is_differentiable:
        raise InvalidArgumentError(f"{name} takes floating or complex matrices; got {x}. "
                                   f"Write tf.cast(x, tf.float32)")
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        what = "square matrices [..., n, n]" if square else "rank 2 or more"
        raise InvalidArgumentError(f"{name} needs {what}; got {x}")


def computed(failure: str, routine: Callable[..., Any], *arrays: Any, **options: Any) -> Any:
    """routine(*arrays), float16 computed in float32.

    Raises:
        InvalidArgumentError: the routine fails; the message starts with `failure`.
    """
    dtype = arrays[0].dtype
    short = is_short(dtype)
    work = [a.astype(np.float32) for a in arrays] if short else arrays
    try:
        made = routine(*work, **options)
    except np.linalg.LinAlgError as error:
        raise InvalidArgumentError(f"{failure} ({error})") from None
    return _narrowed(made, dtype) if short else made


def _narrowed(made: Any, dtype: np.dtype) -> Any:
    if isinstance(made, tuple):
        return tuple([_narrowed(m, dtype) for m in made])
    return made.astype(dtype) if made.dtype == np.float32 else made


def adjoint_of(x: Tensor) -> Tensor:
    """The conjugate transpose."""
    from gtape.ops.scalars import conj

    moved = swap_last(x)
    return conj(moved) if x.dtype.is_complex else moved


def as_dtype_of(x: Tensor, dtype: DType) -> Tensor:
    """`x` in another dtype, real parts only where it is real."""
    from gtape.ops.casting import cast_

    return x if x.dtype is dtype else cast_(x, dtype=dtype)


def reciprocal_or_zero(x: Tensor) -> Tensor:
    """1 / x, and 0 where x is 0."""
    from gtape.ops.scalars import divide_no_nan

    return divide_no_nan(1.0, x)

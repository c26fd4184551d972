"""tf.experimental.numpy: the functions with NumPy's names and promotions that have no other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype, bool_, of_numpy
from gtape.core.tensor import Readable, Tensor
from gtape.ops.arguments import as_items
from gtape.ops.control.selection import where
from gtape.ops.shape.casting import cast


def finfo(dtype: object) -> Any:
    """The limits of a floating dtype: `numpy.finfo`, or that of ml-dtypes for its types. Raises
    ValueError: `dtype` is not floating."""
    wanted = as_dtype(dtype)
    if not (wanted.is_floating or wanted.is_complex):
        raise ValueError(f"finfo takes a floating dtype; got {wanted!r}. Use iinfo")
    return wanted.real_dtype._info()  # a complex number is two of these


def iinfo(dtype: object) -> Any:
    """The limits of an integer dtype: `numpy.iinfo`. Raises ValueError: `dtype` is not an integer
    type."""
    wanted = as_dtype(dtype)
    if not wanted.is_integer:
        raise ValueError(f"iinfo takes an integer dtype; got {wanted!r}. Use finfo")
    return wanted._info()


def _wide(value: TensorLike) -> Tensor:
    """A tensor; Python numbers become int64 and float64, as NumPy's."""
    if isinstance(value, (Tensor, Readable)):
        return convert(value)
    return convert(np.asarray(value))  # tf.constant would make int32 and float32


def _common(values: list[Tensor]) -> DType:
    """NumPy's common dtype."""
    return of_numpy(np.result_type(*[v.dtype.np_dtype for v in values]))


def select(condlist: TensorLike, choicelist: TensorLike, default: Any = 0) -> Tensor:
    """From each place of the first condition that holds there, the element of its choice.

    The choices and `default`, which is taken where no condition holds, are brought to one dtype by
    NumPy's rules. Differentiable in them.

    Raises:
        ValueError: no condition, or as many conditions as choices are not given.
    """
    conditions, choices = as_items(condlist, "select: condlist"), as_items(
        choicelist, "select: choicelist")
    if len(conditions) != len(choices):
        raise ValueError(f"select: condlist and choicelist must have one length; got "
                         f"{len(conditions)} and {len(choices)}")
    if not conditions:
        raise ValueError("select: condlist must not be empty")
    values = [_wide(v) for v in (*choices, default)]
    # As in NumPy 2, a Python number takes the dtype of the arrays (NEP 50).
    number = isinstance(default, (bool, int, float, complex))
    dtype = _common(values[:-1] if number and _weaker(default, values[:-1]) else values)
    *found, made = (cast(v, dtype) for v in values)
    # From the last: the first condition that holds is applied last, and wins.
    for condition, choice in zip(reversed(conditions), reversed(found)):
        made = where(cast(_wide(condition), bool_), choice, made)
    return made


def _weaker(number: float, values: list[Tensor]) -> bool:
    """Whether the dtypes of the values hold numbers of this kind, as floats do integers."""
    return _rank(of_numpy(np.asarray(number).dtype)) <= max(_rank(v.dtype) for v in values)


def _rank(dtype: DType) -> int:
    """Bools, integers, floats and complex numbers in this order."""
    return int(dtype.is_integer) + 2 * int(dtype.is_floating) + 3 * int(dtype.is_complex)


namespace = SimpleNamespace(finfo=finfo, iinfo=iinfo, newaxis=None, select=select)

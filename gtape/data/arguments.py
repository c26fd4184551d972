"""What pipelines accept, brought to what they need: numbers, functions, datasets, paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.dtypes import DType, as_dtype, int64, require_usable
from gtape.core.errors import InvalidArgumentError, NotTraceableError
from gtape.core.formatting import shown
from gtape.core.spec import TensorShape
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.type_specs import TypeSpec
from gtape.data.base import Dataset
from gtape.ops.arguments import as_int, as_items, host_value


def integer(value: TensorLike, what: str) -> int:
    """A Python integer of an argument: a number or a tensor of one."""
    number = as_int(value, what)
    # TensorFlow's arguments are int64 tensors: what is beyond could not be asked for there, and
    # would overflow NumPy's counts here.
    if not -(1 << 63) <= number < 1 << 63:
        raise InvalidArgumentError(f"{what} must be an integer of int64; got {shown(value)}")
    return number


def integer_or_none(value: int | None, what: str) -> int | None:
    """`integer`, or None as it is."""
    return None if value is None else integer(value, what)


def count_or_auto(value: int, what: str, least: int = 0) -> int:
    """An integer that is not below `least`, or tf.data.AUTOTUNE."""
    count = integer(value, what)
    if count < least and count != -1:
        raise InvalidArgumentError(f"{what} must be {least} or more, or tf.data.AUTOTUNE; got "
                                   f"{count}")
    return count


def flag(value: bool | None, what: str) -> bool:
    """A Python bool of an argument: a bool or number, or a tensor of one."""
    if value is None or isinstance(value, (bool, int)):
        return bool(value)
    array = host_value(value, what)
    if array.ndim or array.dtype.kind not in "biu":
        raise TypeError(f"{what} must be True or False; got {shown(value)}")
    return bool(array)


def dataset_of(value: object, what: str) -> Dataset:
    """A dataset."""
    if not isinstance(value, Dataset):
        raise TypeError(f"{what} must be a tf.data.Dataset; got {shown(value)}. Write "
                        f"tf.data.Dataset.from_tensor_slices(x) for the rows of a tensor")
    return value


def datasets_of(values: object, what: str) -> list[Dataset]:
    """The datasets of a list."""
    if isinstance(values, Dataset):
        raise TypeError(f"{what}: `datasets` must be a list of datasets; got one. Write [dataset]")
    items = as_items(values, f"{what}: `datasets`")
    if not items:
        raise ValueError(f"{what}: Invalid `datasets`. `datasets` should not be empty.")
    return [dataset_of(value, f"{what}: each of `datasets`") for value in items]


def known(tensor: Tensor, what: str) -> np.ndarray:
    """The numbers of a tensor, of which a dataset is made. Raises NotTraceableError: a function is
    being traced, and has them only at a call."""
    if not isinstance(tensor, EagerTensor):
        raise NotTraceableError(f"{what} must be known when the dataset is made; got "
                                f"{tensor.spec}, which is known only when the function runs")
    return tensor.numpy()


def specs_of(value: TypeSpec | tuple[TypeSpec, TypeSpec], what: str) -> Any:
    """A spec, or a nest of specs."""
    for leaf in nest.flatten(value):
        # A class such as tf.TensorSpec itself has the method too, and a shape is compatible with
        # shapes.
        if isinstance(leaf, (type, TensorShape)) or not hasattr(leaf, "is_compatible_with"):
            raise TypeError(f"{what} must contain objects that are subclass of `tf.TypeSpec` but "
                            f"found {shown(leaf)}. Write tf.TensorSpec(shape, dtype)")
    return value


def number_dtype(value: DType | None, what: str) -> DType:
    """A dtype of numbers; int64 for None."""
    dtype = int64 if value is None else as_dtype(value)
    if not dtype.is_numeric:
        raise TypeError(f"{what} must be a dtype of numbers; got {dtype.name}")
    return require_usable(dtype)


def weights(value: Any, count: int | None, what: str) -> np.ndarray:
    """A vector of `count` weights, float64: none negative, and not all zero."""
    array = host_value(value, what)
    if array.ndim != 1 or array.dtype.kind not in "fiub" or len(array) != (
            len(array) if count is None else count):
        wanted = "numbers" if count is None else f"{count} numbers"
        raise ValueError(f"{what} must be a vector of {wanted}; got {shown(value)}")
    vector = array.astype(np.float64)
    if not (np.isfinite(vector).all() and (vector >= 0).all() and vector.sum() > 0):
        raise ValueError(f"{what} must be finite, not negative, and not all zero; got {vector}")
    return vector

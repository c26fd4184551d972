"""How a feature of an Example becomes a tensor: FixedLenFeature and its like."""

from __future__ import annotations

from typing import Any, NamedTuple

from gtape.core import dtypes
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.shape import TensorShape


class FixedLenFeature(NamedTuple):
    """A feature of as many values as `shape` has elements: a dense tensor.

    `default_value` stands for one that is missing; without it that is an error.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature of any number of values: a SparseTensor."""

    dtype: Any


class FixedLenSequenceFeature(NamedTuple):
    """A feature of any number of rows of a `shape`: a dense tensor, in a batch filled up to the
    longest with `default_value`, or zeros.

    `allow_missing` must be True but for the steps of a SequenceExample: no values are no rows then.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class SparseFeature(NamedTuple):
    """Two features, `index_key` with places below `size` and `value_key` with their values: a
    SparseTensor. `already_sorted` says that the places are in order."""

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class RaggedFeature(NamedTuple):
    """A feature of any number of values: a RaggedTensor in a batch, a tensor of one example.

    `value_key` is the name of the feature where it is not the key in the dict of features.
    """

    dtype: Any
    value_key: str | None = None
    partitions: Any = ()
    row_splits_dtype: Any = dtypes.int32
    validate: bool = False


_TYPES = ("float32", "int64", "string")


def value_dtype(name: str, feature: Any) -> DType:
    """The dtype of a feature.

    Raises:
        InvalidArgumentError: an Example holds no such values.
    """
    found = as_dtype(feature.dtype)
    if found.name not in _TYPES:
        raise InvalidArgumentError(f"feature '{name}': an Example holds float32, int64 and string; "
                                   f"got {found!r}: parse it as one of these and tf.cast it")
    return found


def inner_shape(name: str, feature: Any) -> tuple[int, ...]:
    """The shape of a FixedLenFeature, or of a row of a FixedLenSequenceFeature.

    Raises:
        ValueError: a length is not known.
    """
    dims = TensorShape(feature.shape).dims
    if dims is None or any(n is None for n in dims):
        raise ValueError(f"feature '{name}': every length of the shape must be known; got "
                         f"{shown(feature)}: a FixedLenSequenceFeature or a VarLenFeature takes "
                         f"any number of values")
    return tuple(dims)  # type: ignore[arg-type]


def checked(features: Any, kinds: tuple[type, ...], steps: bool = False) -> dict[str, Any]:
    """The features by name, in the order of the names.

    Args:
        steps: they are of the steps of SequenceExamples.

    Raises:
        ValueError: there are none, or what stands for one is none of `kinds`.
    """
    if not isinstance(features, dict) or not features:
        raise ValueError(f"Argument `features` cannot be None or falsy. Got {shown(features)}; "
                         f"give a dict such as {{'x': tf.io.FixedLenFeature([], tf.float32)}}")
    for name, feature in features.items():
        if not isinstance(feature, kinds):
            raise ValueError(f"Unsupported {type(feature).__name__} {shown(feature)} for key "
                             f"'{name}'; it must be {' or '.join(k.__name__ for k in kinds)}")
        if isinstance(feature, FixedLenSequenceFeature) and not steps and not feature.allow_missing:
            raise ValueError("Unsupported: FixedLenSequenceFeature requires allow_missing to be "
                             f"True; got {shown(feature)} for key '{name}'")
        if isinstance(feature, RaggedFeature) and tuple(feature.partitions):
            raise ValueError(f"feature '{name}': a RaggedFeature is read without partitions; parse "
                             f"the lengths of the rows as a RaggedFeature of their own, and make "
                             f"tf.RaggedTensor.from_row_lengths of both")
    return {name: features[name] for name in sorted(features)}

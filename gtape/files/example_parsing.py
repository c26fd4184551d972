"""parse_example and parse_single_example: serialized Examples as tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.context import tracer_now
from gtape.core.convert import convert, host_array
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.files.example_columns import Each, ExampleColumn, alone
from gtape.files.example_features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    checked,
    inner_shape,
    value_dtype,
)
from gtape.files.example_tables import Table, source
from gtape.ops.arguments import as_strings, host_value
from gtape.trace.host_steps import step, untraceable

_KINDS = (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, SparseFeature, RaggedFeature)


def parse_example(serialized: Any, features: Any, example_names: Any = None,
                  name: str | None = None) -> dict[str, Any]:
    """The features of serialized Examples [n] as tensors [n, …], by name.

    Args:
        features: a dict of FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, SparseFeature
            or RaggedFeature by name.
        example_names: a vector of n names, for messages.

    Raises:
        InvalidArgumentError: bytes that are no Example; a feature without a default that is
            missing, has values of another type, or not as many as its shape has elements.
        ValueError: no features, or no vector of strings.
    """
    wanted = checked(features, _KINDS)
    examples = as_strings(serialized, "parse_example")
    if examples.ndim > 1:
        raise InvalidArgumentError(f"Expected serialized to be a scalar or vector, got shape: "
                                   f"{list(examples.spec.shape)}")
    if not examples.ndim:
        return _parsed(examples, wanted, example_names, single=True)
    return _parsed(examples, wanted, example_names, single=False)


def parse_single_example(serialized: Any, features: Any, example_names: Any = None,
                         name: str | None = None) -> dict[str, Any]:
    """The features of one serialized Example, a scalar, as tensors by name.

    Raises:
        InvalidArgumentError, ValueError: as `parse_example`.
    """
    wanted = checked(features, _KINDS)
    example = as_strings(serialized, "parse_single_example")
    if example.ndim:
        raise ValueError(f"Input serialized must be a scalar; got {example.spec}. parse_example "
                         f"takes a vector")
    return _parsed(example, wanted, example_names, single=True)


def _parsed(serialized: Tensor, wanted: dict[str, Any], names: Any, single: bool,
            ) -> dict[str, Any]:
    if tracer_now() is None:
        parser = _parser(serialized._peek(), keys(wanted), names, single)
        return {name: parser.tensor(name, feature) for name, feature in wanted.items()}
    if not all(isinstance(f, FixedLenFeature) for f in wanted.values()):
        raise untraceable("parse_example with features of any length")
    count = () if single else (serialized.spec.shape[0],)

    read = keys(wanted)

    def run(strings: Any, single: bool = single) -> list[Any]:
        parser = _parser(strings, read, names, single)
        return [parser.fixed(name, feature) for name, feature in wanted.items()]

    made = step("parse_example", run, [serialized],
                [Spec((*count, *inner_shape(n, f)), value_dtype(n, f)) for n, f in wanted.items()],
                rows=(lambda strings: run(strings, False)) if single else None)
    return dict(zip(wanted, made))


def _parser(strings: np.ndarray, read: set[str], names: Any, single: bool) -> Parser:
    examples = strings.reshape(-1).tolist()
    return Parser(Each.of(examples, read) if single else source(examples, read), names, single)


def keys(wanted: dict[str, Any]) -> set[str]:
    """The names of the features to be read."""
    found = set()
    for name, feature in wanted.items():
        if isinstance(feature, SparseFeature):
            indices = feature.index_key
            found |= {feature.value_key, *([indices] if isinstance(indices, str) else indices)}
        else:
            found.add(getattr(feature, "value_key", None) or name)
    return found


class Parser:
    """Tensors of what examples hold.

    Args:
        examples: what gives the columns of features.
        names: of the examples, for messages.
        single: there is one, and its tensors have no axis of examples.
    """

    def __init__(self, examples: Each | Table, names: Any, single: bool) -> None:
        self._examples, self._single = examples, single
        self._names = None if names is None else host_value(
            as_strings(names, "example_names"), "example_names").reshape(-1).tolist()

    def _name(self, i: int) -> str:
        if self._names is None or i >= len(self._names):
            return f"example {i}"
        return self._names[i].decode("utf-8", "replace")  # type: ignore[no-any-return]

    def tensor(self, name: str, feature: Any) -> Any:
        """The tensor of a feature."""
        dtype = value_dtype(name, feature)
        if isinstance(feature, FixedLenFeature):
            return convert(self.fixed(name, feature), dtype)
        if isinstance(feature, FixedLenSequenceFeature):
            return convert(self._rows(name, feature, dtype), dtype)
        if isinstance(feature, SparseFeature):
            return self._placed(name, feature, dtype)
        found = self._examples.column(getattr(feature, "value_key", None) or name, dtype)
        if isinstance(feature, RaggedFeature):
            if self._single:
                return convert(found.values, dtype)
            return ragged(found, dtype, feature.row_splits_dtype)
        return sparse(found, dtype, self._single)

    def fixed(self, name: str, feature: FixedLenFeature) -> np.ndarray:
        """The array of a FixedLenFeature.

        Raises:
            InvalidArgumentError: it is missing and has no default, or has another number of values.
        """
        dtype, shape = value_dtype(name, feature), inner_shape(name, feature)
        size = math.prod(shape)
        if self._single and isinstance(self._examples, Each):
            held = self._examples.examples[0].get(name)
            if held is not None and held.kind:
                values = alone(name, dtype, held)
                if len(values) == size:
                    return values.reshape(shape)
        found = self._examples.column(name, dtype)
        missing = found.counts < 0
        odd = np.flatnonzero(~missing & (found.counts != size))
        if len(odd):
            raise InvalidArgumentError(
                f"Name: {self._name(odd[0])}, Key: {name}, Index: {odd[0]}.  Number of "
                f"{dtype.name} values != expected.  Values size: {found.counts[odd[0]]} but output "
                f"shape: {list(shape)}")
        rows = len(found.counts)
        if not missing.any():
            made = found.values.reshape(rows, *shape)
        elif feature.default_value is None:
            raise InvalidArgumentError(
                f"Name: {self._name(int(missing.argmax()))}, Feature: {name} (data type: "
                f"{dtype.name}) is required but could not be found; give its FixedLenFeature a "
                f"default_value if it may be missing")
        else:
            made = np.empty((rows, *shape), found.values.dtype)
            made[missing] = _default(name, feature, dtype, shape)
            made[~missing] = found.values.reshape(-1, *shape)
        return made[0] if self._single else made

    def _rows(self, name: str, feature: FixedLenSequenceFeature, dtype: DType) -> np.ndarray:
        """The array of a FixedLenSequenceFeature, filled up to the longest."""
        shape = inner_shape(name, feature)
        found, size = self._examples.column(name, dtype), math.prod(shape)
        counts = np.maximum(found.counts, 0)
        odd = np.flatnonzero(counts % size if size else counts)
        if len(odd):
            raise InvalidArgumentError(
                f"Name: {self._name(odd[0])}, Key: {name}, Index: {odd[0]}.  Number of "
                f"{dtype.name} values is not a multiple of stride length. Saw {counts[odd[0]]} "
                f"values but output shape is: {[None, *shape]}")
        rows = counts // max(size, 1)
        made = filled(found.values.reshape(-1, *shape), rows, feature, name, dtype)
        return made[0] if self._single else made

    def _placed(self, name: str, feature: SparseFeature, dtype: DType) -> Any:
        """The SparseTensor of a SparseFeature."""
        indices = [feature.index_key] if isinstance(feature.index_key, str) else feature.index_key
        sizes = np.atleast_1d(feature.size).tolist()
        found = self._examples.column(feature.value_key, dtype)
        columns = [self._examples.column(key, dtypes.int64) for key in indices]
        counts = np.maximum(found.counts, 0)
        if any((np.maximum(c.counts, 0) != counts).any() for c in columns) or (
                len(sizes) != len(indices)):
            raise InvalidArgumentError(f"feature '{name}': each value needs one place along each "
                                       f"axis; got other numbers of values in "
                                       f"{', '.join([*indices, feature.value_key])}")
        parts = [c.values for c in columns]
        if any(((p < 0) | (p >= n)).any() for p, n in zip(parts, sizes)):
            raise InvalidArgumentError(f"feature '{name}': the places must lie in [0, size); size "
                                       f"is {sizes}")
        if not self._single:
            parts.insert(0, np.repeat(np.arange(len(counts)), counts))
            sizes.insert(0, len(counts))
        order = np.lexsort(parts[::-1])
        return sparse_tensor(np.stack(parts, 1)[order].astype(np.int64), found.values[order], sizes,
                       dtype)


def _default(name: str, feature: Any, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """The default of a feature in its shape; a scalar does for all of a row's elements."""
    value = host_array(feature.default_value, dtype)
    if value.size != math.prod(shape):
        raise InvalidArgumentError(f"feature '{name}': its default_value must be of the shape "
                                   f"{list(shape)}; got {shown(feature.default_value)}")
    return value.reshape(shape)


def filled(rows: np.ndarray, counts: np.ndarray, feature: Any, name: str,
           dtype: DType) -> np.ndarray:
    """Rows of examples that have `counts` of them each, filled up to the longest with a feature's
    default value."""
    longest = int(counts.max()) if len(counts) else 0
    blank: Any = b"" if dtype is dtypes.string else 0
    if feature.default_value is not None:
        value = host_array(feature.default_value, dtype)
        blank = value.reshape(-1)[0] if value.size == 1 else value
    made = np.empty((len(counts), longest, *rows.shape[1:]), rows.dtype)
    made[...] = blank
    made[np.arange(longest) < counts[:, None]] = rows
    return made


def sparse(found: ExampleColumn, dtype: DType, single: bool) -> Any:
    """A SparseTensor [n, longest] of values of which each example has some; [length] of one."""
    counts = np.maximum(found.counts, 0)
    within = np.arange(len(found.values)) - np.repeat(np.cumsum(counts) - counts, counts)
    longest = int(counts.max()) if len(counts) else 0
    if single:
        return sparse_tensor(within[:, None], found.values, [longest], dtype)
    places = np.stack([np.repeat(np.arange(len(counts)), counts), within], 1)
    return sparse_tensor(places, found.values, [len(counts), longest], dtype)


def sparse_tensor(places: np.ndarray, values: np.ndarray, shape: list[int], dtype: DType) -> Any:
    import gtape

    return gtape.SparseTensor(convert(places.astype(np.int64)), convert(values, dtype),
                              convert(np.array(shape, np.int64)))


def ragged(found: ExampleColumn, dtype: DType, splits: Any) -> Any:
    """A RaggedTensor of values of which each example has some."""
    import gtape

    ends = np.concatenate([[0], np.cumsum(np.maximum(found.counts, 0))])
    return gtape.RaggedTensor.from_row_splits(
        convert(found.values, dtype), convert(ends.astype(as_dtype(splits).np_dtype)))

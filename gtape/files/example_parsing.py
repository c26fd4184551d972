"""Serialized Examples and SequenceExamples as tensors: parse_example and its like, and the features
that they are told to find: FixedLenFeature and its like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.context import tracer_now
from gtape.core.convert import convert, host_array
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec, TensorShape
from gtape.core.tensor import Tensor
from gtape.files import example_columns as columns
from gtape.files import wire
from gtape.ops.arguments import as_strings, host_value
from gtape.ops.ragged.partition import within
from gtape.ops.ragged.ragged_tensor import RaggedTensor
from gtape.ops.sparse.tensor import SparseTensor
from gtape.trace.host_steps import step, untraceable


class FixedLenFeature(NamedTuple):
    """A feature of as many values as `shape` has elements: a dense tensor. `default_value` stands
    for one that is missing; without it that is an error."""

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature of any number of values: a SparseTensor."""

    dtype: Any


class FixedLenSequenceFeature(NamedTuple):
    """A feature of any number of rows of a `shape`: a dense tensor, in a batch filled up to the
    longest with `default_value`, or zeros. `allow_missing` must be True but for the steps of a
    SequenceExample: no values are no rows then."""

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
    `value_key` is the name of the feature where it is not the key in the dict of features."""

    dtype: Any
    value_key: str | None = None
    partitions: Any = ()
    row_splits_dtype: Any = dtypes.int32
    validate: bool = False


# The three lists of a Feature: FloatList, Int64List and BytesList.
_TYPES = ("float32", "int64", "string")


def value_dtype(name: str, feature: Any) -> DType:
    """The dtype of a feature. Raises InvalidArgumentError: an Example holds no such values."""
    dtype = as_dtype(feature.dtype)
    if dtype.name not in _TYPES:
        raise InvalidArgumentError(f"feature '{name}': an Example holds float32, int64 and string; "
                                   f"got {dtype!r}: parse it as one of these and tf.cast it")
    return dtype


def inner_shape(name: str, feature: FixedLenFeature | FixedLenSequenceFeature) -> tuple[int, ...]:
    """The shape of a FixedLenFeature, or of a row of a FixedLenSequenceFeature. Raises ValueError:
    a length is not known."""
    dims = TensorShape(feature.shape).dims
    if dims is None or any(n is None for n in dims):
        raise ValueError(f"feature '{name}': every length of the shape must be known; got "
                         f"{shown(feature)}: a FixedLenSequenceFeature or a VarLenFeature takes "
                         f"any number of values")
    return tuple(dims)  # type: ignore[arg-type]


def checked(features: dict[str, object], kinds: tuple[type, ...], steps: bool = False,
            ) -> dict[str, object]:
    """The features by name, in the order of the names; `steps` says that they are of the steps of
    SequenceExamples. Raises ValueError: there are none, or what stands for one is none of
    `kinds`."""
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
        # TensorFlow makes one tensor of several features here; tf.RaggedTensor does it as well.
        if isinstance(feature, RaggedFeature) and tuple(feature.partitions):
            raise ValueError(f"feature '{name}': a RaggedFeature is read without partitions; parse "
                             f"the lengths of the rows as a RaggedFeature of their own, and make "
                             f"tf.RaggedTensor.from_row_lengths of both")
    return {name: features[name] for name in sorted(features)}


_WHAT = "bytes as a SequenceExample"
_CONTEXT = (FixedLenFeature, VarLenFeature, RaggedFeature)
_STEPS = (FixedLenSequenceFeature, VarLenFeature, RaggedFeature)
_KINDS = (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, SparseFeature, RaggedFeature)


def parse_example(serialized: TensorLike, features: dict[str, object], example_names: object = None,
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
    return _parsed(examples, wanted, example_names, single=not examples.ndim)


def parse_single_example(serialized: TensorLike, features: dict[str, object],
                         example_names: object = None, name: str | None = None) -> dict[str, Any]:
    """The features of one serialized Example, a scalar, as tensors by name. Raises
    InvalidArgumentError, ValueError: as `parse_example`."""
    wanted = checked(features, _KINDS)
    example = as_strings(serialized, "parse_single_example")
    if example.ndim:
        raise ValueError(f"Input serialized must be a scalar; got {example.spec}. parse_example "
                         f"takes a vector")
    return _parsed(example, wanted, example_names, single=True)


def _parsed(serialized: Tensor, wanted: dict[str, Any], names: object, single: bool,
            ) -> dict[str, object]:
    if tracer_now() is None:
        parser = _parser(serialized._peek(), keys(wanted), names, single)
        return {name: parser.tensor(name, feature) for name, feature in wanted.items()}
    # The shapes of others depend on the examples, which a trace has not.
    if not all(isinstance(f, FixedLenFeature) for f in wanted.values()):
        raise untraceable("parse_example with features of any length")
    count = () if single else (serialized.spec.shape[0],)
    read = keys(wanted)

    def run(strings: np.ndarray, single: bool = single) -> list[object]:
        parser = _parser(strings, read, names, single)
        return [parser.fixed(name, feature) for name, feature in wanted.items()]

    specs = [Spec((*count, *inner_shape(n, f)), value_dtype(n, f)) for n, f in wanted.items()]
    tensors = step("parse_example", run, [serialized], specs,
                   rows=(lambda strings: run(strings, False)) if single else None)
    return dict(zip(wanted, tensors))


def _parser(strings: np.ndarray, read: set[str], names: object, single: bool) -> Parser:
    examples = strings.reshape(-1).tolist()
    held = columns.Each.of(examples, read) if single else columns.source(examples, read)
    return Parser(held, names, single)


def keys(wanted: dict[str, object]) -> set[str]:
    """The names of the features to be read."""
    names = set()
    for name, feature in wanted.items():
        if isinstance(feature, SparseFeature):
            names |= {feature.value_key, *_index_keys(feature)}
        else:
            names.add(getattr(feature, "value_key", None) or name)
    return names


def _index_keys(feature: SparseFeature) -> Sequence[str]:
    return [feature.index_key] if isinstance(feature.index_key, str) else feature.index_key


class Parser:
    """Tensors of what `examples` hold, without an axis of examples where it is a `single` one;
    messages call them by their `names`."""

    def __init__(self, examples: columns.Each | columns.Table, names: Any, single: bool) -> None:
        self._examples, self._single = examples, single
        self._names = None if names is None else host_value(
            as_strings(names, "example_names"), "example_names").reshape(-1).tolist()

    def _name(self, i: int) -> str:
        if self._names is None or i >= len(self._names):
            return f"example {i}"
        return self._names[i].decode("utf-8", "replace")

    def tensor(self, name: str, feature: object) -> Any:
        """The tensor of a feature."""
        dtype = value_dtype(name, feature)
        if isinstance(feature, FixedLenFeature):
            return convert(self.fixed(name, feature), dtype)
        if isinstance(feature, FixedLenSequenceFeature):
            return convert(self._rows(name, feature, dtype), dtype)
        if isinstance(feature, SparseFeature):
            return self._placed(name, feature, dtype)
        values = self._examples.column(getattr(feature, "value_key", None) or name, dtype)
        if isinstance(feature, RaggedFeature):
            if self._single:
                return convert(values.values, dtype)
            return ragged(values, dtype, feature.row_splits_dtype)
        return sparse(values, dtype, self._single)

    def fixed(self, name: str, feature: FixedLenFeature) -> np.ndarray:
        """The array of a FixedLenFeature. Raises InvalidArgumentError: it is missing and has no
        default, or has another number of values."""
        dtype, shape = value_dtype(name, feature), inner_shape(name, feature)
        size = math.prod(shape)
        # The way of `dataset.map(parse)`: one example, without the counts that a batch needs.
        if self._single and isinstance(self._examples, columns.Each):
            held = self._examples.examples[0].get(name)
            if held is not None and held.kind:
                values = columns.alone(name, dtype, held)
                if len(values) == size:
                    return values.reshape(shape)
        stored = self._examples.column(name, dtype)
        missing = stored.counts < 0
        odd = np.flatnonzero(~missing & (stored.counts != size))
        if len(odd):
            raise InvalidArgumentError(
                f"Name: {self._name(odd[0])}, Key: {name}, Index: {odd[0]}.  Number of "
                f"{dtype.name} values != expected.  Values size: {stored.counts[odd[0]]} but "
                f"output shape: {list(shape)}")
        rows = len(stored.counts)
        if not missing.any():
            whole = stored.values.reshape(rows, *shape)
        elif feature.default_value is None:
            raise InvalidArgumentError(
                f"Name: {self._name(int(missing.argmax()))}, Feature: {name} (data type: "
                f"{dtype.name}) is required but could not be found; give its FixedLenFeature a "
                f"default_value if it may be missing")
        else:
            whole = np.empty((rows, *shape), stored.values.dtype)
            whole[missing] = _default(name, feature, dtype, shape)
            whole[~missing] = stored.values.reshape(-1, *shape)
        return whole[0] if self._single else whole

    def _rows(self, name: str, feature: FixedLenSequenceFeature, dtype: DType) -> np.ndarray:
        """The array of a FixedLenSequenceFeature, filled up to the longest."""
        shape = inner_shape(name, feature)
        held, size = self._examples.column(name, dtype), math.prod(shape)
        counts = np.maximum(held.counts, 0)
        odd = np.flatnonzero(counts % size if size else counts)
        if len(odd):
            raise InvalidArgumentError(
                f"Name: {self._name(odd[0])}, Key: {name}, Index: {odd[0]}.  Number of "
                f"{dtype.name} values is not a multiple of stride length. Saw {counts[odd[0]]} "
                f"values but output shape is: {[None, *shape]}")
        rows = counts // max(size, 1)
        whole = filled(held.values.reshape(-1, *shape), rows, feature, name, dtype)
        return whole[0] if self._single else whole

    def _placed(self, name: str, feature: SparseFeature, dtype: DType) -> SparseTensor:
        indices = _index_keys(feature)
        sizes = np.atleast_1d(feature.size).tolist()
        held = self._examples.column(feature.value_key, dtype)
        places = [self._examples.column(key, dtypes.int64) for key in indices]
        counts = np.maximum(held.counts, 0)
        if any((np.maximum(c.counts, 0) != counts).any() for c in places) or (
                len(sizes) != len(indices)):
            raise InvalidArgumentError(f"feature '{name}': each value needs one place along each "
                                       f"axis; got other numbers of values in "
                                       f"{', '.join([*indices, feature.value_key])}")
        parts = [c.values for c in places]
        if any(((p < 0) | (p >= n)).any() for p, n in zip(parts, sizes)):
            raise InvalidArgumentError(f"feature '{name}': the places must lie in [0, size); size "
                                       f"is {sizes}")
        if not self._single:
            parts.insert(0, np.repeat(np.arange(len(counts)), counts))
            sizes.insert(0, len(counts))
        # lexsort takes the most important key last.
        order = np.lexsort(parts[::-1])
        return sparse_tensor(np.stack(parts, 1)[order].astype(np.int64), held.values[order], sizes,
                       dtype)


def _default(name: str, feature: FixedLenFeature, dtype: DType, shape: tuple[int, ...],
             ) -> np.ndarray:
    """The default of a feature in its shape; a scalar does for all of a row's elements."""
    value = host_array(feature.default_value, dtype)
    if value.size != math.prod(shape):
        raise InvalidArgumentError(f"feature '{name}': its default_value must be of the shape "
                                   f"{list(shape)}; got {shown(feature.default_value)}")
    return value.reshape(shape)


def filled(rows: np.ndarray, counts: np.ndarray, feature: FixedLenSequenceFeature, name: str,
           dtype: DType) -> np.ndarray:
    """Rows of examples that have `counts` of them each, filled up to the longest with a feature's
    default value."""
    longest = int(counts.max(initial=0))
    blank: Any = b"" if dtype is dtypes.string else 0
    if feature.default_value is not None:
        value = host_array(feature.default_value, dtype)
        blank = value.reshape(-1)[0] if value.size == 1 else value
    whole = np.empty((len(counts), longest, *rows.shape[1:]), rows.dtype)
    whole[...] = blank
    # A mask takes its values row by row, which is the order that they are in.
    whole[np.arange(longest) < counts[:, None]] = rows
    return whole


def sparse(held: columns.ExampleColumn, dtype: DType, single: bool) -> SparseTensor:
    """A SparseTensor [n, longest] of values of which each example has some; [length] of one."""
    counts = np.maximum(held.counts, 0)
    at, longest = within(counts), int(counts.max(initial=0))
    if single:
        return sparse_tensor(at[:, None], held.values, [longest], dtype)
    places = np.stack([np.repeat(np.arange(len(counts)), counts), at], 1)
    return sparse_tensor(places, held.values, [len(counts), longest], dtype)


def sparse_tensor(places: np.ndarray, values: np.ndarray, shape: list[int], dtype: DType,
                  ) -> SparseTensor:
    return SparseTensor(convert(places.astype(np.int64)), convert(values, dtype),
                        convert(np.array(shape, np.int64)))


def ragged(held: columns.ExampleColumn, dtype: DType, splits: object) -> RaggedTensor:
    """A RaggedTensor of values of which each example has some."""
    # -1, for a feature that is not there, counts as none.
    ends = np.concatenate([[0], np.cumsum(np.maximum(held.counts, 0))])
    return RaggedTensor.from_row_splits(
        convert(held.values, dtype), convert(ends.astype(as_dtype(splits).np_dtype)))


def parse_sequence_example(serialized: Sequence[bytes], context_features: object = None,
                           sequence_features: object = None, example_names: object = None,
                           name: str | None = None) -> tuple[dict, dict, dict]:
    """The features of serialized SequenceExamples [n]: of the contexts [n, …], of the steps
    [n, steps, …], and the numbers of steps [n] of the dense ones, each by name.

    Args:
        context_features: a dict of FixedLenFeature, VarLenFeature or RaggedFeature by name.
        sequence_features: a dict of FixedLenSequenceFeature, VarLenFeature or RaggedFeature. A
            dense one is filled up with zeros to the longest.

    Raises:
        InvalidArgumentError: bytes that are no SequenceExample; a feature that is missing, has
            values of another type, or another number of values in a step.
        ValueError: no features, or no vector of strings.
    """
    given = as_strings(serialized, "parse_sequence_example")
    if given.ndim != 1:
        raise ValueError(f"parse_sequence_example takes a vector of strings; got {given.spec}. "
                         f"parse_single_sequence_example takes a scalar")
    return _sequences(given, context_features, sequence_features, example_names, single=False)


def parse_single_sequence_example(serialized: bytes, context_features: object = None,
                                  sequence_features: object = None, example_name: object = None,
                                  name: str | None = None) -> tuple[dict, dict]:
    """The features of one serialized SequenceExample, a scalar: of its context, and of its steps
    [steps, …], each by name. Raises InvalidArgumentError, ValueError: as
    `parse_sequence_example`."""
    given = as_strings(serialized, "parse_single_sequence_example")
    if given.ndim:
        raise ValueError(f"parse_single_sequence_example takes a scalar of strings; got "
                         f"{given.spec}. parse_sequence_example takes a vector")
    return _sequences(given, context_features, sequence_features, example_name, single=True)[:2]


def _sequences(serialized: Tensor, context: Any, steps: Any, names: object, single: bool) -> Any:
    if not context and not steps:
        raise ValueError("Both `context_features` and `sequence_features` arguments are None, but "
                         "at least one should have values.")
    of_context = checked(context, _CONTEXT) if context else {}
    of_steps = checked(steps, _STEPS, steps=True) if steps else {}
    if tracer_now() is not None:
        raise untraceable("parse_sequence_example")
    examples = np.atleast_1d(np.asarray(serialized.numpy(), object)).tolist()
    parts = [_sequence_held(e, keys(of_context), keys(of_steps)) for e in examples]
    parser = Parser(columns.Each([c for c, _ in parts]), names, single)
    sequences = _Steps([s for _, s in parts], single)
    of_sequences = {name: sequences.tensor(name, feature) for name, feature in of_steps.items()}
    lengths = {name: convert(sequences.lengths(name).astype(np.int64))
               for name, feature in of_steps.items()
               if isinstance(feature, FixedLenSequenceFeature)}
    return {n: parser.tensor(n, f) for n, f in of_context.items()}, of_sequences, lengths


def _sequence_held(example: bytes, context: set[str], steps: set[str],
          ) -> tuple[dict[str, columns.Held], dict[str, list[columns.Held]]]:
    """Where the wanted features of the context and of the steps stand."""
    of_context: dict[str, columns.Held] = {}
    of_steps: dict[str, list[columns.Held]] = {}
    for number, kind, value in wire.fields(example, _WHAT):
        if kind != wire.DELIMITED:
            continue
        if number == 1:
            columns.of_features(value, context, of_context)
        elif number == 2:
            for inner, wired, part in wire.fields(value, _WHAT):
                if inner == 1 and wired == wire.DELIMITED:
                    name, content = columns.entry(part)
                    if name in steps:
                        of_steps[name] = [
                            columns.of_feature(f) for n, k, f in wire.fields(content, _WHAT)
                            if n == 1 and k == wire.DELIMITED]
    return of_context, of_steps


class _Steps:
    """Tensors of what the steps of examples hold."""

    def __init__(self, examples: list[dict[str, list[columns.Held]]], single: bool) -> None:
        self._examples, self._single = examples, single

    def lengths(self, name: str) -> np.ndarray:
        """The number of steps of each example."""
        return np.array([len(e.get(name, ())) for e in self._examples], np.int64)

    def tensor(self, name: str, feature: object) -> Any:
        """The tensor of a feature of the steps."""
        dtype = value_dtype(name, feature)
        key = getattr(feature, "value_key", None) or name
        held = columns.column(name, dtype, [h for e in self._examples for h in e.get(key, ())])
        if isinstance(feature, FixedLenSequenceFeature):
            return self._dense(name, feature, held, dtype)
        if isinstance(feature, RaggedFeature):
            return self._ragged(ragged(held, dtype, feature.row_splits_dtype), key, feature)
        if self._single:
            return sparse(held, dtype, single=False)
        return self._sparse(held, key, dtype)

    def _dense(self, name: str, feature: FixedLenSequenceFeature, held: columns.ExampleColumn,
               dtype: DType) -> Tensor:
        shape = inner_shape(name, feature)
        # Lists of steps that are there and empty are no error.
        missing = [i for i, e in enumerate(self._examples) if name not in e]
        if missing and not feature.allow_missing:
            raise InvalidArgumentError(
                f"Name: example {missing[0]}, Feature list '{name}' is required but could not be "
                f"found.  Did you mean to include it in allow_missing=True?")
        size = math.prod(shape)
        odd = np.flatnonzero(held.counts != size)
        if len(odd):
            raise InvalidArgumentError(
                f"Feature list: {name}, step {odd[0]} of all: Number of {dtype.name} values != "
                f"expected.  Values size: {max(held.counts[odd[0]], 0)} but output shape: "
                f"{list(shape)}")
        whole = filled(held.values.reshape(-1, *shape), self.lengths(name), feature, name, dtype)
        return convert(whole[0] if self._single else whole, dtype)

    def _ragged(self, rows: RaggedTensor, key: str, feature: RaggedFeature) -> RaggedTensor:
        if self._single:
            return rows
        splits = np.concatenate([[0], np.cumsum(self.lengths(key))])
        wanted = as_dtype(feature.row_splits_dtype).np_dtype
        return RaggedTensor.from_row_splits(rows, convert(splits.astype(wanted)))

    def _sparse(self, held: columns.ExampleColumn, key: str, dtype: DType) -> SparseTensor:
        """A SparseTensor [n, most steps, most values]."""
        lengths, counts = self.lengths(key), np.maximum(held.counts, 0)
        example = np.repeat(np.repeat(np.arange(len(lengths)), lengths), counts)
        places = np.stack([example, np.repeat(within(lengths), counts), within(counts)], 1)
        shape = [len(lengths), int(lengths.max(initial=0)), int(counts.max(initial=0))]
        return sparse_tensor(places, held.values, shape, dtype)

"""parse_sequence_example and parse_single_sequence_example: SequenceExamples as tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core.context import tracer_now
from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.files import wire
from gtape.files.example_columns import Each, Held, column, entry, of_feature, of_features
from gtape.files.example_features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    VarLenFeature,
    checked,
    inner_shape,
    value_dtype,
)
from gtape.files.example_parsing import Parser, filled, keys, ragged, sparse, sparse_tensor
from gtape.ops.arguments import as_strings
from gtape.trace.host_steps import untraceable

_WHAT = "bytes as a SequenceExample"
_CONTEXT = (FixedLenFeature, VarLenFeature, RaggedFeature)
_STEPS = (FixedLenSequenceFeature, VarLenFeature, RaggedFeature)


def parse_sequence_example(serialized: Any, context_features: Any = None,
                           sequence_features: Any = None, example_names: Any = None,
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
    return _parsed(given, context_features, sequence_features, example_names, single=False)


def parse_single_sequence_example(serialized: Any, context_features: Any = None,
                                  sequence_features: Any = None, example_name: Any = None,
                                  name: str | None = None) -> tuple[dict, dict]:
    """The features of one serialized SequenceExample, a scalar: of its context, and of its steps
    [steps, …], each by name.

    Raises:
        InvalidArgumentError, ValueError: as `parse_sequence_example`.
    """
    given = as_strings(serialized, "parse_single_sequence_example")
    if given.ndim:
        raise ValueError(f"parse_single_sequence_example takes a scalar of strings; got "
                         f"{given.spec}. parse_sequence_example takes a vector")
    return _parsed(given, context_features, sequence_features, example_name, single=True)[:2]


def _parsed(serialized: Any, context: Any, steps: Any, names: Any, single: bool) -> Any:
    if not context and not steps:
        raise ValueError("Both `context_features` and `sequence_features` arguments are None, but "
                         "at least one should have values.")
    of_context = checked(context, _CONTEXT) if context else {}
    of_steps = checked(steps, _STEPS, steps=True) if steps else {}
    if tracer_now() is not None:
        raise untraceable("parse_sequence_example")
    examples = np.atleast_1d(np.asarray(serialized.numpy(), object)).tolist()
    found = [_held(e, keys(of_context), keys(of_steps)) for e in examples]
    parser = Parser(Each([c for c, _ in found]), names, single)
    sequences = _Sequences([s for _, s in found], single)
    made = {name: sequences.tensor(name, feature) for name, feature in of_steps.items()}
    lengths = {name: convert(sequences.lengths(name).astype(np.int64))
               for name, feature in of_steps.items()
               if isinstance(feature, FixedLenSequenceFeature)}
    return {n: parser.tensor(n, f) for n, f in of_context.items()}, made, lengths


def _held(example: bytes, context: set[str], steps: set[str],
          ) -> tuple[dict[str, Held], dict[str, list[Held]]]:
    """Where the wanted features of the context and of the steps stand."""
    of_context: dict[str, Held] = {}
    of_steps: dict[str, list[Held]] = {}
    for number, kind, value in wire.fields(example, _WHAT):
        if kind != wire.DELIMITED:
            continue
        if number == 1:
            of_features(value, context, of_context)
        elif number == 2:
            for inner, wired, part in wire.fields(value, _WHAT):
                if inner == 1 and wired == wire.DELIMITED:
                    name, content = entry(part)
                    if name in steps:
                        of_steps[name] = [of_feature(f) for n, k, f in wire.fields(content, _WHAT)
                                          if n == 1 and k == wire.DELIMITED]
    return of_context, of_steps


class _Sequences:
    """Tensors of what the steps of examples hold."""

    def __init__(self, examples: list[dict[str, list[Held]]], single: bool) -> None:
        self._examples, self._single = examples, single

    def lengths(self, name: str) -> np.ndarray:
        """The number of steps of each example."""
        return np.array([len(e.get(name, ())) for e in self._examples], np.int64)

    def tensor(self, name: str, feature: Any) -> Any:
        """The tensor of a feature of the steps."""
        dtype = value_dtype(name, feature)
        key = getattr(feature, "value_key", None) or name
        found = column(name, dtype, [h for e in self._examples for h in e.get(key, ())])
        if isinstance(feature, FixedLenSequenceFeature):
            return self._dense(name, feature, found, dtype)
        if isinstance(feature, RaggedFeature):
            return self._ragged(ragged(found, dtype, feature.row_splits_dtype), key, feature)
        if self._single:
            return sparse(found, dtype, single=False)
        return self._sparse(found, key, dtype)

    def _dense(self, name: str, feature: Any, found: Any, dtype: DType) -> Any:
        shape = inner_shape(name, feature)
        missing = [i for i, e in enumerate(self._examples) if name not in e]
        if missing and not feature.allow_missing:
            raise InvalidArgumentError(
                f"Name: example {missing[0]}, Feature list '{name}' is required but could not be "
                f"found.  Did you mean to include it in allow_missing=True?")
        size = math.prod(shape)
        odd = np.flatnonzero(found.counts != size)
        if len(odd):
            raise InvalidArgumentError(
                f"Feature list: {name}, step {odd[0]} of all: Number of {dtype.name} values != "
                f"expected.  Values size: {max(found.counts[odd[0]], 0)} but output shape: "
                f"{list(shape)}")
        made = filled(found.values.reshape(-1, *shape), self.lengths(name), feature, name, dtype)
        return convert(made[0] if self._single else made, dtype)

    def _ragged(self, rows: Any, key: str, feature: RaggedFeature) -> Any:
        if self._single:
            return rows
        import gtape

        splits = np.concatenate([[0], np.cumsum(self.lengths(key))])
        wanted = as_dtype(feature.row_splits_dtype).np_dtype
        return gtape.RaggedTensor.from_row_splits(rows, convert(splits.astype(wanted)))

    def _sparse(self, found: Any, key: str, dtype: DType) -> Any:
        """A SparseTensor [n, most steps, most values]."""
        lengths, counts = self.lengths(key), np.maximum(found.counts, 0)
        example = np.repeat(np.repeat(np.arange(len(lengths)), lengths), counts)
        step = np.arange(len(counts)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        within = np.arange(len(found.values)) - np.repeat(np.cumsum(counts) - counts, counts)
        shape = [len(lengths), int(lengths.max(initial=0)), int(counts.max(initial=0))]
        return sparse_tensor(np.stack([example, np.repeat(step, counts), within], 1), found.values,
                             shape, dtype)

"""Sources: datasets of values that are there already."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterator as Elements
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import EagerTensor
from gtape.core.type_specs import TensorSpec
from gtape.data import elements
from gtape.data.arguments import flag, integer, number_dtype
from gtape.data.dataset import INFINITE_CARDINALITY, Dataset
from gtape.data.rows import Rows, column_of, progression
from gtape.data.stacking import row_spec, rows
from gtape.files.paths import local
from gtape.ops.arguments import as_strings, host_value


class OneElement(Dataset):
    """The dataset of one element."""

    def __init__(self, value: Any) -> None:
        self._element = elements.hosted(value)
        super().__init__(elements.spec_of(self._element))

    def _iterate(self) -> Elements[Any]:
        yield self._element

    def _cardinality(self) -> int:
        return 1


class Slices(Dataset):
    """The rows of tensors, along their first axis."""

    def __init__(self, value: Any) -> None:
        whole = _whole(value)
        leaves = [leaf for leaf in elements.flatten(whole) if leaf is not None]
        if not leaves:
            raise ValueError("from_tensor_slices: there must be at least one tensor")
        lengths = [_length(leaf) for leaf in leaves]
        for length in lengths:
            if length != lengths[0]:
                raise ValueError(
                    f"from_tensor_slices: Dimensions {lengths[0]} and {length} are not "
                    f"compatible: the first axes must be equally long; got {lengths}")
        self._whole, self._length = whole, lengths[0]
        self._arrays = [leaf._a for leaf in leaves] if all(
            type(leaf) is EagerTensor for leaf in elements.flatten(whole)) else None
        super().__init__(row_spec(elements.spec_of(whole), "from_tensor_slices"))

    def _iterate(self) -> Elements[Any]:
        found = self._rows()
        return rows(self._whole) if found is None else found.elements()

    def _cardinality(self) -> int:
        return self._length

    def _rows(self) -> Rows | None:
        if self._arrays is None:
            return None
        size = sum(a.nbytes // max(1, len(a)) for a in self._arrays)
        return Rows([(0, column_of(a)) for a in self._arrays], self._spec,
                    lambda: iter(_one(self._length)), size)


def _whole(value: Any) -> Any:
    """The element whose rows are wanted, in host memory; a memory map in it stays one."""
    return elements.hosted(value, _mapped)


def _mapped(value: Any) -> Any:
    if isinstance(value, np.memmap) and value.dtype.isnative:
        return elements.tensor(np.asarray(value))
    return convert(value)


def _length(leaf: Any) -> int:
    if isinstance(leaf, EagerTensor):
        if leaf.ndim:
            return len(leaf._a)
    elif hasattr(leaf, "_type_spec"):
        return int(leaf.shape[0])
    raise ValueError(f"from_tensor_slices takes tensors with a first axis: Unbatching a tensor is "
                     f"only supported for rank >= 1; got {leaf}")


class Range(Dataset):
    """The numbers of a Python `range`."""

    def __init__(self, args: Any, output_type: Any) -> None:
        numbers = [integer(arg, "range") for arg in args]
        if not 1 <= len(numbers) <= 3:
            raise ValueError(f"range takes one to three numbers; got {len(numbers)}")
        if len(numbers) == 3 and not numbers[2]:
            raise InvalidArgumentError("range: step must be a non-zero integer")
        self._range = range(*numbers)[:(1 << 63) - 1]  # len() tells no more
        super().__init__(TensorSpec([], number_dtype(output_type, "range: output_type")))

    def _iterate(self) -> Elements[Any]:
        return self._rows().elements()

    def _cardinality(self) -> int:
        return len(self._range)

    def _rows(self) -> Rows:
        made, dtype = progression(self._range.start, self._range.step), self._spec.dtype.np_dtype
        column = made if dtype == np.int64 else lambda pick: made(pick).astype(dtype)
        return Rows([(0, column)], self._spec, lambda: iter(_one(len(self._range))), 8)


def _one(length: int) -> list[tuple[range]]:
    """The chunks of so many rows in order."""
    return [(range(length),)] if length else []


class Counter(Dataset):
    """start, start + step, ... without end."""

    def __init__(self, start: Any, step: Any, dtype: Any) -> None:
        self._start, self._step = integer(start, "counter"), integer(step, "counter")
        super().__init__(TensorSpec([], number_dtype(dtype, "counter: dtype")))

    def _iterate(self) -> Elements[Any]:
        made, low = self._spec.dtype.np_dtype, -(1 << 63)
        return (elements.tensor(np.asarray((n - low) % (1 << 64) + low, np.int64).astype(made))
                for n in itertools.count(self._start, self._step))

    def _cardinality(self) -> int:
        return INFINITE_CARDINALITY


def listed(pattern: Any, shuffle: bool | None, seed: Any) -> Dataset:
    """The dataset of the files that match, found now."""
    given = host_value(as_strings(pattern, "list_files: file_pattern"), "list_files: file_pattern")
    patterns = [local(p) for p in given.reshape(-1)]
    names = sorted({os.fsencode(name) for p in patterns for name in glob.glob(p)})
    if not names:
        raise InvalidArgumentError(f"No files matched pattern: {', '.join(patterns)}")
    made = Slices(np.array(names, object))
    wanted = shuffle is None or flag(shuffle, "list_files: shuffle")
    return made.shuffle(len(names), seed=seed) if wanted else made

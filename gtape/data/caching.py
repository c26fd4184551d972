"""Caching: elements kept after the first pass, in memory or in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator as Elements
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.device import CPU
from gtape.core.errors import DataLossError, UnimplementedError
from gtape.core.tensor import EagerTensor
from gtape.core.type_specs import TensorSpec
from gtape.data import elements
from gtape.data.base import Dataset, Same
from gtape.files.paths import errors


class Cache(Same):
    """The elements, which the first whole pass keeps in memory."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__(dataset)
        self._kept: list[Any] | None = None

    def _iterate(self) -> Elements[Any]:
        return self._first() if self._kept is None else iter(self._kept)

    def _first(self) -> Elements[Any]:
        kept = []
        for element in self._inputs[0]._iterate():
            kept.append(element)
            yield element
        # Only here, after the last element: a pass that is given up half-way keeps nothing, and two
        # passes side by side do not mix.
        self._kept = kept


class FileCache(Same):
    """The elements, which the first whole pass writes to a file: a NumPy .npz of plain arrays. For
    every leaf it has the values of all elements one after the other, and the shapes."""

    def __init__(self, dataset: Dataset, path: str) -> None:
        super().__init__(dataset)
        self._path = path + ".npz"

    def _iterate(self) -> Elements[Any]:
        if os.path.exists(self._path):
            return self._read()
        return self._first()

    def _first(self) -> Elements[Any]:
        kept = []
        for element in self._inputs[0]._iterate():
            leaves = elements.flatten(element)
            # Sparse and ragged tensors would need a format of their own; `save` refuses them too.
            if not all(type(leaf) is EagerTensor for leaf in leaves):
                raise UnimplementedError(f"cache: only tensors can be kept in a file; the elements "
                                         f"are {self.element_spec}")
            kept.append(leaves)
            yield element
        with errors(self._path):
            self._write(_arrays(kept))

    def _write(self, arrays: dict[str, Any]) -> None:
        folder = os.path.dirname(self._path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        # Under another name until it is whole, so that nobody reads a part of it.
        part = f"{self._path}.{os.getpid()}.part"
        try:
            with open(part, "wb") as file:
                np.savez(file, **arrays)
            os.replace(part, self._path)
        finally:
            if os.path.exists(part):
                os.remove(part)

    def _read(self) -> Elements[object]:
        # The file says what is in it, the spec what must be: nothing in it decides of what kind a
        # leaf becomes.
        specs = nest.flatten(self.element_spec)
        pack = elements.packer(self.element_spec)
        from zipfile import BadZipFile  # NumPy brings it where a file is read

        try:
            # Without pickles a file from elsewhere can be wrong, but runs no code.
            with np.load(self._path, allow_pickle=False) as file:
                columns = [_column(file, i, spec) for i, spec in enumerate(specs)]
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise DataLossError(f"cache: {self._path} is damaged, or of another dataset "
                                f"({error}); remove it to have it written again") from error
        return (pack(leaves) for leaves in zip(*columns))


def _arrays(kept: list[list[EagerTensor]]) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for i, leaves in enumerate(zip(*kept)):
        values = [leaf._a for leaf in leaves]
        if len({v.ndim for v in values}) != 1:
            raise UnimplementedError("cache: in a file the tensors of a leaf must have one rank")
        shapes = np.array([v.shape for v in values], np.int64)
        arrays[f"shapes{i}"] = shapes.reshape(len(values), -1)
        if values[0].dtype == object:
            flat = [item for v in values for item in np.asarray(v).reshape(-1)]
            # Arrays of objects would have to be pickled: bytes and where they end are plain
            # numbers.
            arrays[f"lengths{i}"] = np.array([len(item) for item in flat], np.int64)
            arrays[f"values{i}"] = np.frombuffer(b"".join(flat), np.uint8)
        else:
            whole = np.concatenate([np.asarray(v).reshape(-1) for v in values])
            # As bytes: the dtypes that NumPy has no name for, such as bfloat16, are kept as well.
            arrays[f"values{i}"] = whole.view(np.uint8)
    return arrays


def _column(file: Any, i: int, spec: TensorSpec) -> list[EagerTensor]:
    """The tensors of a leaf."""
    shapes, values = file[f"shapes{i}"], file[f"values{i}"]
    if shapes.ndim != 2 or shapes.dtype != np.int64 or values.dtype != np.uint8:
        raise ValueError("unknown arrays")
    sizes = [int(np.prod(shape)) for shape in shapes.tolist()]
    if spec.dtype.name == "string":
        flat = _strings(values.tobytes(), file[f"lengths{i}"])
    else:
        dtype = np.dtype(spec.dtype.np_dtype)
        if len(values) % dtype.itemsize:
            raise ValueError(f"the values are no {dtype}")
        flat = values.view(dtype)
    if min(sizes, default=0) < 0 or sum(sizes) != len(flat):
        raise ValueError(f"{len(flat)} values for shapes of {sum(sizes)}")
    column, at = [], 0
    for shape, size in zip(shapes.tolist(), sizes):
        if not spec.shape.is_compatible_with(shape):
            raise ValueError(f"a tensor of shape {shape} where {spec.shape} is expected")
        column.append(EagerTensor(flat[at:at + size].reshape(shape), CPU.typed(spec.dtype)))
        at += size
    return column


def _strings(whole: bytes, lengths: np.ndarray) -> np.ndarray:
    if lengths.size and (lengths.min() < 0 or lengths.sum() != len(whole)):
        raise ValueError("the lengths of the strings contradict their bytes")
    ends = np.cumsum(lengths).tolist()
    return np.fromiter((whole[b - n:b] for b, n in zip(ends, lengths.tolist())), object, len(ends))

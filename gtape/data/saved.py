"""Saved: datasets written to folders, and read from them.

A folder has one file or more of records, a record an element, and `dataset.json`, which says what
the elements are and how many there are. It is written last: without it there is no dataset.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from collections.abc import Iterator as Elements
from pathlib import Path
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.atomic_files import make_folder, write_whole
from gtape.core.dtypes import as_dtype
from gtape.core.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from gtape.core.formatting import shown
from gtape.core.type_specs import NoneTensorSpec, TensorSpec, TypeSpec
from gtape.data import elements
from gtape.data.arguments import dataset_of, integer, specs_of
from gtape.data.base import Dataset, ReadyElements
from gtape.data.batching import DatasetSpec
from gtape.files import wire
from gtape.files.paths import errors, local
from gtape.files.records import TFRecordOptions, TFRecordWriter, records
from gtape.files.serialized import decoded, encoded
from gtape.ops.arguments import as_function

_ABOUT = "dataset.json"
_FORMAT = 1
#: `dataset.json` has no more bytes than this: a damaged one must not fill the memory.
_LONGEST = 1 << 24


def save(dataset: Any, path: object, compression: str | None = None,
         shard_func: Callable[..., object] | None = None) -> None:
    """Write the elements of a dataset to a folder: see `Dataset.save`."""
    folder = Path(local(path))
    none = isinstance(compression, str) and compression == "NONE"
    kind = TFRecordOptions(None if none else compression).compression_type
    if shard_func is not None:
        as_function(shard_func, "save: shard_func")
    about = {"format": _FORMAT, "spec": _described(dataset.element_spec), "compression": kind}
    with errors(str(folder)):
        make_folder(folder.absolute())
    counts: dict[int, int] = {}
    parts: dict[int, tuple[Path, TFRecordWriter]] = {}
    try:
        for element in dataset._iterate():
            shard = _shard(shard_func, element)
            if shard not in parts:
                # The process in the name: two that save to one folder do not write into one file.
                part = folder / f".{len(parts):05}.{os.getpid()}.part"
                parts[shard] = (part, TFRecordWriter(part, kind))
            parts[shard][1].write(_record(element))
            counts[shard] = counts.get(shard, 0) + 1
        names = _put(folder, parts)
    # BaseException: a KeyboardInterrupt must not leave parts behind either.
    except BaseException:
        for part, writer in parts.values():
            writer.close()
            with contextlib.suppress(OSError):
                part.unlink()
        raise
    about["shards"] = [[name, counts[shard]] for shard, name in names.items()]
    # The files of an earlier dataset go last: until the new dataset.json is there the old one
    # holds.
    before = _earlier(folder)
    with errors(str(folder)):
        write_whole(folder / _ABOUT, json.dumps(about, indent=1).encode())
    for name in before:
        # Of no use any more, but harmless: that one cannot be removed is no reason to fail.
        with contextlib.suppress(OSError):
            (folder / name).unlink()


def _earlier(folder: Path) -> list[str]:
    """The files of a dataset that was saved in the folder before."""
    try:
        return [name for name, _ in _about(str(folder))[0]]
    except (NotFoundError, DataLossError):
        return []


def _put(folder: Path, parts: dict[int, tuple[Path, TFRecordWriter]]) -> dict[int, str]:
    """Finish the files of the shards, and give them names that no earlier dataset there has."""
    token = os.urandom(4).hex()
    names = {}
    for number, shard in enumerate(sorted(parts)):
        part, writer = parts[shard]
        writer.close()
        names[shard] = f"{token}-{number:05}.tfrecord"
        os.replace(part, folder / names[shard])
    return names


def _shard(function: Callable[..., Any] | None, element: TensorLike) -> int:
    if function is None:
        return 0
    return integer(function(*elements.arguments(element)), "save: what shard_func gives")


def _record(element: TensorLike) -> bytes:
    return b"".join(wire.delimited(1, encoded(np.asarray(leaf._a), leaf.dtype))
                    for leaf in elements.flatten(element) if leaf is not None)


def load(path: object, element_spec: Any = None, compression: object = None,
         reader_func: Callable[[Any], Any] | None = None) -> Any:
    """The dataset that `save` wrote to a folder: see `Dataset.load`."""
    folder = local(path)
    if element_spec is not None:
        specs_of(element_spec, "load: element_spec")
    shards, kind, spec = _about(folder)
    if element_spec is not None and not _fits(spec, element_spec):
        raise InvalidArgumentError(f"load: element_spec is {shown(element_spec)}; the dataset in "
                                   f"'{folder}' has elements of {spec}")
    if reader_func is None:
        return _Loaded(folder, shards, kind, spec)
    read = as_function(reader_func, "load: reader_func")
    every = ReadyElements([_Loaded(folder, [s], kind, spec) for s in shards], DatasetSpec(spec))
    return dataset_of(read(every), "load: what reader_func returns")


def _fits(spec: object, wanted: TypeSpec) -> bool:
    mine, theirs = elements.flatten(spec), elements.flatten(wanted)
    return len(mine) == len(theirs) and all(
        type(a) is type(b) and (isinstance(a, NoneTensorSpec) or (
            a.dtype is b.dtype and b.shape.is_compatible_with(a.shape)))
        for a, b in zip(mine, theirs))


class _Loaded(Dataset):
    """The elements in the files of shards."""

    def __init__(self, folder: str, shards: list[tuple[str, int]], kind: str, spec: Any) -> None:
        self._folder, self._shards, self._kind = folder, shards, kind
        super().__init__(spec)

    def _iterate(self) -> Elements[Any]:
        specs = elements.flatten(self._spec)
        pack = elements.packer(self._spec)
        for name, count in self._shards:
            path = os.path.join(self._folder, name)
            number = -1
            for number, record in enumerate(records(path, self._kind)):
                yield pack(_leaves(record, specs, f"'{path}', element {number}"))
            if number + 1 != count:
                raise DataLossError(f"'{path}' has {number + 1} elements, where {count} were saved")

    def _cardinality(self) -> int:
        return sum(count for _, count in self._shards)


def _leaves(record: bytes, specs: list[Any], where: str) -> list[Any]:
    """The tensors of an element."""
    try:
        messages = [value for number, kind, value in wire.fields(record, "an element")
                    if number == 1 and kind == wire.DELIMITED]
        leaves: list[Any] = []
        at = iter(messages)
        for spec in specs:
            if isinstance(spec, NoneTensorSpec):
                leaves.append(None)
                continue
            array, _ = decoded(next(at), spec.dtype)
            if not spec.shape.is_compatible_with(array.shape):
                raise InvalidArgumentError(f"a tensor of the shape {array.shape}, where "
                                           f"{spec.shape} is expected")
            leaves.append(elements.tensor(np.asarray(array)))
        return leaves
    except (InvalidArgumentError, StopIteration) as error:
        raise DataLossError(f"{where} is damaged: {error or 'a tensor is missing'}") from None


def _described(spec: object) -> dict[str, object]:
    """A structure of specs in words of JSON."""
    if isinstance(spec, TensorSpec):
        dims = spec.shape.dims
        return {"tensor": [spec.dtype.name, None if dims is None else list(dims)]}
    if isinstance(spec, NoneTensorSpec):
        return {"none": 1}
    if isinstance(spec, tuple):
        return {"tuple": [_described(s) for s in spec]}
    if isinstance(spec, dict):
        if not all(type(key) is str for key in spec):
            raise UnimplementedError(f"save: dicts have keys of type str; got {spec}")
        return {"dict": {key: _described(spec[key]) for key in spec}}
    raise UnimplementedError(f"save: elements hold tensors in tuples and dicts; got {spec}. Write "
                             f"tf.sparse.to_dense(x) or x.to_tensor() in a map")


def _spec(described: Any) -> Any:
    """The structure of specs of words of JSON."""
    (kind, content), = described.items()
    if kind == "tensor":
        name, dims = content
        return TensorSpec(dims, as_dtype(name))
    if kind == "none":
        return NoneTensorSpec()
    if kind == "tuple":
        return tuple([_spec(c) for c in content])
    if kind == "dict":
        return {key: _spec(c) for key, c in content.items()}
    raise ValueError(f"a structure of the kind {kind!r:.40}")


def _about(folder: str) -> tuple[list[tuple[str, int]], str, object]:
    """The shards, the compression and the spec of the dataset in a folder."""
    path = os.path.join(folder, _ABOUT)
    if not os.path.exists(path):
        raise NotFoundError(f"load: no dataset was saved in '{folder}': there is no {_ABOUT}")
    try:
        with errors(path), open(path, "rb") as file:
            about = json.loads(file.read(_LONGEST))
        if about["format"] != _FORMAT:
            raise ValueError(f"the format {about['format']!r:.40}")
        shards = [(str(name), int(count)) for name, count in about["shards"]]
        # A dataset.json from elsewhere must not have files read that lie outside its folder.
        if any(os.path.basename(name) != name or count < 0 for name, count in shards):
            raise ValueError("a file outside the folder")
        kind = TFRecordOptions(about["compression"]).compression_type
        return shards, kind, _spec(about["spec"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataLossError(f"load: '{path}' is damaged: {error!r:.200}") from None

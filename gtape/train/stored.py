"""A checkpoint file: safetensors, with checksums and the states of Python objects in its header."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gtape.core import safetensors_files
from gtape.core.atomic_files import make_folder, write_whole
from gtape.core.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)
from gtape.core.formatting import shown
from gtape.core.safetensors_files import checksum

SUFFIX = ".safetensors"
#: One entry of the header's metadata holds everything, so that equal states give equal files.
_KEY = "gtape.checkpoint"
# Raised when files change so that versions before cannot read them.
_FORMAT = 1
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass
class Stored:
    """What a file holds: arrays and texts by name; the variables of each optimizer, in order."""

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    optimizers: dict[str, list[str]] = field(default_factory=dict)


def named(path: object) -> str:
    """A path as text, which must end in a name. Raises TypeError: it is neither text nor a path.
    InvalidArgumentError: it is empty, ends in a folder, or holds a zero byte."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise TypeError(f"the path of a checkpoint must be text or a pathlib.Path, such as "
                        f"'folder/ckpt'; got {shown(path)}")
    if os.path.basename(text) in ("", os.curdir, os.pardir) or "\0" in text:
        raise InvalidArgumentError(f"the path of a checkpoint must end in the name of a file, such "
                                   f"as 'folder/ckpt'; got {text!r}")
    return text


def with_suffix(path: object) -> Path:
    """The file of a checkpoint whose path may be given without its ending."""
    path = Path(named(path))
    return path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)


def _header(stored: Stored) -> str:
    checksums = {name: checksum(name, array) for name, array in stored.arrays.items()}
    states = {"states": stored.states, "optimizers": stored.optimizers}
    # As text within the header: the checksum is of these very characters.
    text = json.dumps(states, sort_keys=True)
    return json.dumps({"format": _FORMAT, "checksums": checksums, "python": text,
                       "python_checksum": zlib.crc32(text.encode())}, sort_keys=True)


def write(stored: Stored, path: Path) -> None:
    """Write a checkpoint, whole or not at all; missing folders are made. Raises UnimplementedError:
    the file format has no such dtype; PermissionDeniedError: the folder may not be written to;
    OSError: anything else that the system reports, such as a full disk, with the path."""
    # safetensors holds arrays row by row, and takes no strides.
    arrays = {name: np.asarray(array, order="C") for name, array in stored.arrays.items()}
    header = _header(Stored(arrays, stored.states, stored.optimizers))
    content = safetensors_files.serialized(arrays, {_KEY: header})
    with permitted(f"a checkpoint must go to a folder that can be written to; '{path.parent}' "
                    f"cannot"):
        make_folder(path.parent)
        write_whole(path, *content)


@contextlib.contextmanager
def permitted(what: str) -> Iterator[None]:
    """What the system does not permit in the block is a PermissionDeniedError that begins so."""
    try:
        yield
    except OSError as error:
        if error.errno in _DENIED:
            raise PermissionDeniedError(f"{what}: {error.strerror}") from error
        raise


def read(path: Path) -> Stored:
    """A checkpoint that `write` wrote, with every checksum verified. Raises NotFoundError: there is
    no such file; DataLossError: the file is damaged, cut short, or no checkpoint;
    PermissionDeniedError: it may not be read; OSError: anything else that the system reports, such
    as a disk that cannot be read."""
    with permitted(f"the checkpoint '{path}' cannot be read"):
        try:
            about, arrays = safetensors_files.read(path, "the checkpoint")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise NotFoundError(f"there is no checkpoint '{path}': {error.strerror}"
                                f"{_others(path)}") from error
    metadata = about.get(_KEY)
    if metadata is None:
        raise DataLossError(f"'{path}' is a safetensors file but no checkpoint of "
                            f"tf.train.Checkpoint")
    return _verified(path, arrays, metadata)


def _verified(path: Path, arrays: dict[str, np.ndarray], metadata: str) -> Stored:
    try:
        header = _typed(json.loads(metadata), dict)
        version = header["format"]
        if version != _FORMAT:
            raise DataLossError(f"the checkpoint '{path}' has format {version!r:.20}; this version "
                                f"of gtape reads format {_FORMAT}")
        checksums = _typed(header["checksums"], dict)
        text = _typed(header["python"], str)
        intact = zlib.crc32(text.encode()) == header["python_checksum"]
        python = _typed(json.loads(text), dict)
        states = {name: _typed(state, str) for name, state in _typed(python["states"],
                                                                     dict).items()}
        optimizers = {name: [_typed(variable, str) for variable in _typed(variables, list)]
                      for name, variables in _typed(python["optimizers"], dict).items()}
    # RecursionError: JSON that nests too deeply, which only a damaged or hostile file has.
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DataLossError(f"the header of the checkpoint '{path}' is damaged: "
                            f"{error!r}") from error
    wrong = sorted(name for name in arrays.keys() | checksums.keys()
                   if name not in arrays or checksums.get(name) != checksum(name, arrays[name]))
    if wrong or not intact:
        what = f"the values of {', '.join(wrong[:5])} are" if wrong else "the Python states are"
        raise DataLossError(f"the checkpoint '{path}' is damaged: {what} not what was written")
    return Stored(arrays, states, optimizers)


def _typed(value: object, kind: type) -> Any:
    if not isinstance(value, kind):
        # Cut, since a damaged header may hold anything, of any length.
        raise TypeError(f"{value!r:.40} in the place of a {kind.__name__}")
    return value


def _others(path: Path) -> str:
    try:
        files = sorted(p.name for p in path.parent.glob(f"*{SUFFIX}"))
    except OSError:
        files = []
    return f"; its folder holds {', '.join(files[-5:])}" if files else ""

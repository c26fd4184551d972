"""A checkpoint file: safetensors, with checksums and the states of Python objects in its header."""

from __future__ import annotations

import errno
import json
import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gtape.core.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
    UnimplementedError,
)
from gtape.core.files import write_whole
from gtape.core.text import shown

SUFFIX = ".safetensors"
#: One entry of the header's metadata holds everything, so that equal states give equal files.
_KEY = "gtape.checkpoint"
_FORMAT = 1
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass
class Stored:
    """What a file holds: arrays and texts by name; the variables of each optimizer, in order."""

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    optimizers: dict[str, list[str]] = field(default_factory=dict)


def named(path: Any) -> str:
    """A path as text, which must end in a name.

    Raises:
        TypeError: it is neither text nor a path.
        InvalidArgumentError: it is empty or ends in a folder.
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise TypeError(f"the path of a checkpoint must be text or a pathlib.Path, such as "
                        f"'folder/ckpt'; got {shown(path)}")
    if os.path.basename(text) in ("", os.curdir, os.pardir):
        raise InvalidArgumentError(f"the path of a checkpoint must end in the name of a file, such "
                                   f"as 'folder/ckpt'; got {text!r}")
    return text


def with_suffix(path: Any) -> Path:
    """The file of a checkpoint whose path may be given without its ending."""
    path = Path(named(path))
    return path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)


def require_safetensors() -> None:
    """Raise UnavailableError, with what to install, where safetensors is missing."""
    try:
        import safetensors  # noqa: F401
    except ImportError as error:
        raise UnavailableError('checkpoints are written by safetensors, which is not installed; '
                               'run: pip install "gtape[io]"') from error


def _checksum(name: str, array: np.ndarray) -> int:
    about = f"{name} {array.dtype.name} {array.shape}"
    return zlib.crc32(array.reshape(-1).view(np.uint8).data, zlib.crc32(about.encode()))


def _header(stored: Stored) -> str:
    checksums = {name: _checksum(name, array) for name, array in stored.arrays.items()}
    states = {"states": stored.states, "optimizers": stored.optimizers}
    text = json.dumps(states, sort_keys=True)
    return json.dumps({"format": _FORMAT, "checksums": checksums, "python": text,
                       "python_checksum": zlib.crc32(text.encode())}, sort_keys=True)


def write(stored: Stored, path: Path) -> None:
    """Write a checkpoint, whole or not at all; missing folders are made.

    Raises:
        UnavailableError: safetensors is not installed.
        UnimplementedError: the file format has no such dtype.
        PermissionDeniedError: the folder may not be written to.
        OSError: anything else that the system reports, such as a full disk, with the path.
    """
    require_safetensors()
    from safetensors import SafetensorError
    from safetensors.numpy import save

    arrays = {name: np.asarray(array, order="C") for name, array in stored.arrays.items()}
    try:
        content = save(arrays, metadata={_KEY: _header(Stored(arrays, stored.states,
                                                              stored.optimizers))})
    except (SafetensorError, TypeError, ValueError) as error:
        dtypes = sorted({array.dtype.name for array in arrays.values()})
        raise UnimplementedError(f"a checkpoint cannot hold one of the dtypes {', '.join(dtypes)}: "
                                 f"{error}") from error
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        if error.errno in _READ_ONLY:
            raise PermissionDeniedError(f"a checkpoint must go to a folder that can be written "
                                        f"to; '{path.parent}' cannot: {error.strerror}") from error
        raise


def read(path: Path) -> Stored:
    """A checkpoint that `write` wrote, with every checksum verified.

    Raises:
        UnavailableError: safetensors is not installed.
        NotFoundError: there is no such file.
        DataLossError: the file is damaged, cut short, or no checkpoint.
    """
    require_safetensors()
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise NotFoundError(f"there is no checkpoint '{path}'{_others(path)}")
    try:
        with safe_open(path, framework="np") as file:
            metadata = (file.metadata() or {}).get(_KEY)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise DataLossError(f"the checkpoint '{path}' is damaged or cut short: {error}") from error
    if metadata is None:
        raise DataLossError(f"'{path}' is a safetensors file but no checkpoint of "
                            f"tf.train.Checkpoint; keras weights are read by model.load_weights")
    return _verified(path, arrays, metadata)


def _verified(path: Path, arrays: dict[str, np.ndarray], metadata: str) -> Stored:
    try:
        header = json.loads(metadata)
        made, checksums, text = header["format"], header["checksums"], header["python"]
        intact = zlib.crc32(text.encode()) == header["python_checksum"]
        python = json.loads(text)
    except (KeyError, TypeError, ValueError) as error:
        raise DataLossError(f"the header of the checkpoint '{path}' is damaged: "
                            f"{error!r}") from error
    if made != _FORMAT:
        raise DataLossError(f"the checkpoint '{path}' has format {made}; this version of gtape "
                            f"reads format {_FORMAT}")
    wrong = sorted(name for name in arrays.keys() | checksums.keys()
                   if name not in arrays or checksums.get(name) != _checksum(name, arrays[name]))
    if wrong or not intact:
        what = f"the values of {', '.join(wrong[:5])} are" if wrong else "the Python states are"
        raise DataLossError(f"the checkpoint '{path}' is damaged: {what} not what was written")
    return Stored(arrays, python["states"], python["optimizers"])


def _others(path: Path) -> str:
    try:
        found = sorted(p.name for p in path.parent.glob(f"*{SUFFIX}"))
    except OSError:
        found = []
    return f"; its folder holds {', '.join(found[-5:])}" if found else ""

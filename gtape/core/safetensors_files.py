"""Tensors in safetensors files, with checksums, and errors that say what is wrong with a file.

The format is that of github.com/huggingface/safetensors, section "Format": eight bytes with the
length of a header, the header, which is JSON, and the values, one after another. It is written and
read here, and not by that package, because the package makes copies of all values, ends the process
where memory runs out, and calls each file missing that cannot be opened.
"""

from __future__ import annotations

import errno
import json
import math
import os
import stat
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gtape.core.errors import (
    DataLossError,
    InvalidArgumentError,
    UnavailableError,
    UnimplementedError,
)

_CODES = {"bool": "BOOL", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64",
          "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16",
          "bfloat16": "BF16", "float32": "F32", "float64": "F64", "complex64": "C64"}
_NAMES = {code: name for name, code in _CODES.items()}
_METADATA = "__metadata__"
#: The format's limit of the header's length.
_LONGEST = 100_000_000


def checksum(name: str, array: np.ndarray) -> int:
    """A number that tells whether a tensor is what was written, its name, dtype and shape too."""
    about = f"{name} {array.dtype.name} {array.shape}"
    return zlib.crc32(_bytes(array), zlib.crc32(about.encode()))


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def serialized(arrays: Mapping[str, np.ndarray],
               metadata: Mapping[str, str]) -> list[bytes | memoryview]:
    """The content of a file, in parts that hold no copy of the arrays, which are contiguous.

    Raises:
        UnimplementedError: the file format has no such dtype.
        InvalidArgumentError: a tensor has the name that metadata has.
    """
    wrong = sorted({array.dtype.name for array in arrays.values()} - _CODES.keys())
    if wrong:
        raise UnimplementedError(f"a safetensors file holds no {', '.join(wrong)}; it holds "
                                 f"{', '.join(_CODES)}")
    if _METADATA in arrays:
        raise InvalidArgumentError(f"a tensor in a safetensors file cannot be called '{_METADATA}'")
    header: dict[str, Any] = {_METADATA: dict(metadata)}
    # Values of the widest dtypes come first, so that each lies at a multiple of its size.
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    end = 0
    for name in names:
        begin, end = end, end + arrays[name].nbytes
        header[name] = {"dtype": _CODES[arrays[name].dtype.name], "shape": arrays[name].shape,
                        "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return [len(text).to_bytes(8, "little") + text, *(_bytes(arrays[name]) for name in names)]


def read(path: Path, what: str) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """The metadata of a file, and its arrays by name. Errors call it `what`: "the checkpoint".

    Raises:
        DataLossError: the file is damaged, cut short, or of another format.
        UnavailableError: it holds bfloat16, and ml-dtypes is not installed.
        OSError: it is missing, is no file, or cannot be read.
    """
    # Before it is opened: a pipe would be waited for.
    if not stat.S_ISREG(os.stat(path).st_mode) and not path.is_dir():
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    try:
        with open(path, "rb") as file:
            return _parsed(file)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DataLossError(f"{what} '{path}' is damaged or cut short: {error!r}") from error


def _parsed(file: BinaryIO) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    start = 8 + length
    if not length <= _LONGEST or start > size:
        raise ValueError(f"a header of {length} bytes in a file of {size}")
    header = json.loads(file.read(length).decode(), object_pairs_hook=_unique)
    metadata = header.pop(_METADATA, {}) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or any(type(v) is not str for v in metadata.values()):
        raise TypeError("a header that is none, or metadata that is no text")
    places = {name: _place(**about) for name, about in header.items()}
    end = 0
    for begin, following in sorted(place[2:] for place in places.values()):
        if begin != end:
            raise ValueError(f"values begin at {begin} instead of {end}")
        end = following
    if start + end != size:
        raise ValueError(f"{size} bytes instead of {start + end}")
    return metadata, {name: _values(file, start + begin, dtype, shape)
                      for name, (dtype, shape, begin, _) in places.items()}


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a name that is there twice")
    return entries


def _place(dtype: str, shape: list[int],
           data_offsets: list[int]) -> tuple[np.dtype, list[int], int, int]:
    """The dtype, the shape, and where the values begin and end."""
    begin, end = data_offsets
    if not all(type(n) is int and n >= 0 for n in (*shape, begin, end)):
        raise TypeError("a length that is none")
    known = _dtype(_NAMES[dtype])
    if math.prod(shape) * known.itemsize != end - begin:
        raise ValueError(f"{end - begin} bytes for {dtype} of the shape {shape!r:.60}")
    return known, shape, begin, end


def _dtype(name: str) -> np.dtype:
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError as error:
        raise UnavailableError("bfloat16 needs the package ml-dtypes: pip install "
                               "ml-dtypes") from error
    return np.dtype(ml_dtypes.bfloat16)


def _values(file: BinaryIO, begin: int, dtype: np.dtype, shape: list[int]) -> np.ndarray:
    array = np.empty(shape, dtype)
    file.seek(begin)
    if file.readinto(_bytes(array)) != array.nbytes:  # type: ignore[attr-defined]
        raise ValueError("the file became shorter")
    return array

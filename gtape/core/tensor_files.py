"""Tensors in safetensors files, with checksums, and errors that say what is wrong with a file."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gtape.core.errors import DataLossError, UnavailableError, UnimplementedError

#: How safetensors passes on what the system said: "... Input/output error (os error 5)".
_OF_SYSTEM = re.compile(r"\(os error (\d+)\)")


def require_safetensors() -> None:
    """Raise UnavailableError, with what to install, where safetensors is missing."""
    try:
        import safetensors  # noqa: F401
    except ImportError as error:
        raise UnavailableError('these files are written by safetensors, which is not installed; '
                               'run: pip install "gtape[io]"') from error


def checksum(name: str, array: np.ndarray) -> int:
    """A number that tells whether a tensor is what was written, its name, dtype and shape too."""
    about = f"{name} {array.dtype.name} {array.shape}"
    return zlib.crc32(array.reshape(-1).view(np.uint8).data, zlib.crc32(about.encode()))


def serialized(arrays: Mapping[str, np.ndarray], metadata: dict[str, str]) -> bytes:
    """The content of a file. The arrays are contiguous.

    Raises:
        UnavailableError: safetensors is not installed.
        UnimplementedError: the file format has no such dtype.
    """
    require_safetensors()
    from safetensors import SafetensorError
    from safetensors.numpy import save

    try:
        return save(dict(arrays), metadata=metadata)
    except (SafetensorError, TypeError, ValueError) as error:
        dtypes = sorted({array.dtype.name for array in arrays.values()})
        raise UnimplementedError(f"a safetensors file cannot hold one of the dtypes "
                                 f"{', '.join(dtypes)}: {error}") from error


def read(path: Path, what: str) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """The metadata of a file, and its arrays by name. Errors call it `what`: "the checkpoint".

    Raises:
        UnavailableError: safetensors is not installed.
        DataLossError: the file is damaged, cut short, or of another format.
        OSError: it is missing, is no file, or cannot be read.
    """
    require_safetensors()
    from safetensors import SafetensorError, safe_open

    _require_readable(path)
    with contextlib.suppress(ImportError):
        import ml_dtypes  # noqa: F401  (NumPy knows bfloat16 by it)
    try:
        # Not mapped into memory: a disk that fails then would end the process.
        with safe_open(path, framework="np", backend="pread") as file:
            return (file.metadata() or {},
                    {name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    except SafetensorError as error:
        if found := _OF_SYSTEM.search(str(error)):
            raise OSError(int(found[1]), os.strerror(int(found[1])), str(path)) from error
        raise DataLossError(f"{what} '{path}' is damaged or cut short: {error}") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise DataLossError(f"{what} '{path}' is damaged, or has a dtype or a shape that NumPy has "
                            f"not: {error}") from error


def _require_readable(path: Path) -> None:
    """Raise what the system says of a file; safetensors calls it missing, whatever is wrong."""
    if not stat.S_ISREG(os.stat(path).st_mode) and not path.is_dir():
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    with open(path, "rb"):
        pass

"""Paths as programs give them, and the errors of the system as those of TensorFlow's names."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Any

from gtape.core.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
)
from gtape.core.formatting import shown
from gtape.core.tensor import Readable, Tensor
from gtape.ops.arguments import host_value

# As TensorFlow's file systems translate the same numbers.
_CLASSES = {errno.ENOENT: NotFoundError, errno.EACCES: PermissionDeniedError,
            errno.EPERM: PermissionDeniedError, errno.EROFS: PermissionDeniedError,
            errno.EEXIST: AlreadyExistsError, errno.EISDIR: FailedPreconditionError,
            errno.ENOTDIR: FailedPreconditionError, errno.ENOTEMPTY: FailedPreconditionError,
            errno.EINVAL: InvalidArgumentError, errno.ENAMETOOLONG: InvalidArgumentError,
            errno.ENOSPC: ResourceExhaustedError, errno.EDQUOT: ResourceExhaustedError,
            errno.EMFILE: ResourceExhaustedError}


def local(path: Any) -> str:
    """A path of this machine's files: of a str, bytes, a path object or a scalar tensor. Raises
    TypeError: `path` is none of these; UnimplementedError: it names a place elsewhere, such as
    gs://bucket/file; InvalidArgumentError: it holds a NUL."""
    if isinstance(path, (Tensor, Readable)):
        array = host_value(path, "a path")
        if array.ndim or array.dtype != object:
            raise InvalidArgumentError(f"a path must be a scalar of strings; got {shown(path)}")
        path = array.item()
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise TypeError(f"a path must be a str, bytes, a path object or a scalar string tensor; "
                        f"got {shown(path)}") from None
    if "\0" in text:
        raise InvalidArgumentError(f"a path cannot hold a NUL; got {shown(text)}")
    scheme, mark, rest = text.partition("://")
    # A path may hold "://" without being an address: then what is before it is no scheme.
    if mark and scheme.replace("+", "").replace("-", "").isalnum():
        if scheme != "file":
            raise UnimplementedError(f"File system scheme '{scheme}' not implemented (file: "
                                     f"'{text}'): gtape reads and writes the files of this "
                                     f"machine; copy the file here first, or open it with fsspec")
        return rest
    return text


@contextlib.contextmanager
def errors(path: str) -> Iterator[None]:
    """Within the block an error of the system becomes the error that TensorFlow has for it."""
    try:
        yield
    except OSError as error:
        # Raised by Python itself, such as io.UnsupportedOperation: the system said nothing.
        if error.errno is None:
            raise
        kind = _CLASSES.get(error.errno, UnknownError)
        raise kind(f"{error.filename or path}; {error.strerror}") from error

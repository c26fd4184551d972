"""Whole files in string tensors: read_file, write_file, matching_files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.atomic_files import make_folder, write_whole
from gtape.core.convert import convert
from gtape.core.errors import FailedPreconditionError, InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.files.gfile import glob
from gtape.files.paths import errors, local
from gtape.trace.host_steps import step


def content(path: bytes) -> bytes:
    """The bytes of a file.

    Raises:
        NotFoundError, FailedPreconditionError, PermissionDeniedError: there is none, it is a
            folder, or it may not be read.
    """
    name = local(path)
    if Path(name).is_dir():
        raise FailedPreconditionError(f"{name}; Is a directory")
    with errors(name), open(name, "rb") as file:
        return file.read()


def _scalar(value: TensorLike, what: str) -> Tensor:
    scalar = convert(value)
    if scalar.dtype is not dtypes.string or scalar.spec.shape:
        raise InvalidArgumentError(f"{what} must be a scalar of strings; got {shown(value)}")
    return scalar


def _path(value: Any, what: str) -> Tensor:
    return _scalar(str(value) if isinstance(value, Path) else value, what)


def read_file(filename: object, name: str | None = None) -> Tensor:
    """The content of a file as a scalar of strings; in a traced function it is read at every call.

    Raises:
        NotFoundError: there is no such file.
        FailedPreconditionError: it is a folder.
    """
    return step("read_file", lambda path: [content(path.item())],
                [_path(filename, "read_file: filename")], [Spec((), dtypes.string)],
                has_side_effect=True)[0]


def write_file(filename: object, contents: TensorLike, name: str | None = None) -> None:
    """Write a scalar of strings to a file, whole or not at all, and make the folders around it.

    Raises:
        FailedPreconditionError: a folder is in its place.
        PermissionDeniedError: the folder around it cannot be written to.
    """
    def run(path: np.ndarray, value: np.ndarray) -> list[Any]:
        target = Path(local(path.item()))
        with errors(str(target)):
            make_folder(target.absolute().parent)
            write_whole(target, value.item())
        return []

    step("write_file", run, [_path(filename, "write_file: filename"),
                             _scalar(contents, "write_file: contents")], [], has_side_effect=True)


def matching_files(pattern: TensorLike, name: str | None = None) -> Tensor:
    """The paths that fit a pattern or one of several, in order, as a vector of strings."""
    def run(patterns: np.ndarray) -> list[Any]:
        paths = glob(patterns.reshape(-1).tolist())
        return [np.array(sorted({f.encode() for f in paths}), object)]

    return step("matching_files", run, [str(pattern) if isinstance(pattern, Path) else pattern],
                [dtypes.string], has_side_effect=True)[0]

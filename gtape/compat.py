"""gtape.compat: text and bytes as either, and names for classes of Python and NumPy numbers."""

from __future__ import annotations

import numbers
import os
from typing import Any

import numpy as np

from gtape._names import lacking as _lacking
from gtape.core.annotations import TensorLike
from gtape.core.formatting import shown

__all__ = ["as_bytes", "as_str", "as_str_any", "as_text", "bytes_or_text_types", "complex_types",
           "integral_types", "path_to_str", "real_types"]

bytes_or_text_types = (bytes, str)
# NumPy's scalars are named too, as in TensorFlow: the tuples are for isinstance.
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)
complex_types = (numbers.Complex, np.number)


def as_bytes(bytes_or_text: object, encoding: str = "utf-8") -> bytes:
    """A str as bytes; bytes and bytearrays as bytes. Raises TypeError: it is none of these."""
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    raise TypeError(f"as_bytes takes bytes or a str; got {shown(bytes_or_text)}")


def as_text(bytes_or_text: TensorLike, encoding: str = "utf-8") -> str:
    """Bytes as a str; a str as it is. Raises TypeError: it is neither; UnicodeDecodeError: the
    bytes are no text of this encoding."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"as_text takes bytes or a str; got {shown(bytes_or_text)}")


def as_str(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """`as_text`."""
    return as_text(bytes_or_text, encoding)


def as_str_any(value: TensorLike, encoding: str = "utf-8") -> str:
    """`as_text` of bytes, and str(value) of anything else."""
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path: object) -> Any:
    """The str of a path object; anything else as it is."""
    # fspath may give bytes.
    return as_str_any(os.fspath(path)) if hasattr(path, "__fspath__") else path


__getattr__ = _lacking("gtape.compat", __all__, ". gtape has the names of TensorFlow 2 only")

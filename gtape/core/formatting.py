"""How tensors and variables print, and what messages show of a value."""

from __future__ import annotations

import reprlib
import sys
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gtape.core.spec import TensorShape

_brief = reprlib.Repr()
_brief.maxlist = _brief.maxtuple = _brief.maxdict = _brief.maxset = _brief.maxfrozenset = 12
_brief.maxstring = _brief.maxother = _brief.maxlong = 80


def shown(value: object) -> str:
    """The beginning of a value's repr, for messages.

    A message must come about whatever the value: `repr` itself fails for lists that are nested too
    deep and for objects whose `__repr__` raises, and takes long for large ones.
    """
    return _brief.repr(value)[:80]


def say(line: str) -> None:
    """Print a line; characters that standard output cannot encode are escaped."""
    try:
        print(line)
    except UnicodeEncodeError:
        coding = sys.stdout.encoding
        print(line.encode(coding, "backslashreplace").decode(coding))


def _value_str(array: np.ndarray) -> str:
    if array.ndim:
        return str(array)
    value = array[()]
    return repr(value) if isinstance(value, bytes) else str(value)


def value_repr(array: np.ndarray) -> str:
    """The `numpy=` part of a repr: a scalar in full digits, an array on its own lines."""
    if not array.ndim:
        return repr(array.item() if array.dtype != object else array[()])
    shown = repr(array)
    return "\n" + shown if "\n" in shown else shown


def tensor_str(array: np.ndarray, shape: tuple[int, ...], dtype: str) -> str:
    value = _value_str(array)
    if "\n" in value:
        value = "\n" + value
    return f"tf.Tensor({value}, shape={tuple(shape)}, dtype={dtype})"


def tensor_repr(array: np.ndarray, shape: tuple[int, ...], dtype: str) -> str:
    return f"<tf.Tensor: shape={tuple(shape)}, dtype={dtype}, numpy={value_repr(array)}>"


def variable_repr(name: str, array: np.ndarray, shape: TensorShape, dtype: str) -> str:
    return (f"<tf.Variable '{name}' shape={shape} dtype={dtype}, "
            f"numpy={value_repr(array)}>")

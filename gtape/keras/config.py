"""Settings shared by all layers: the default dtype and the small number against division by 0."""

from __future__ import annotations

from typing import Any

from gtape.core.dtypes import as_dtype
from gtape.core.text import shown

_settings: dict[str, Any] = {"floatx": "float32", "epsilon": 1e-7}


def floatx() -> str:
    """The dtype of layers that are given none: 'float32' unless `set_floatx` changed it."""
    return _settings["floatx"]


def set_floatx(value: Any) -> None:
    """Make `value` the dtype of layers that are given none.

    Raises:
        ValueError: not a floating dtype.
    """
    dtype = as_dtype(value)
    if not dtype.is_floating:
        raise ValueError(f"set_floatx takes a floating dtype such as 'float32'; got {shown(value)}")
    _settings["floatx"] = dtype.name


def epsilon() -> float:
    """The small number that losses and layers keep away from 0 with: 1e-7."""
    return _settings["epsilon"]


def set_epsilon(value: float) -> None:
    """Change `epsilon()`."""
    _settings["epsilon"] = float(value)

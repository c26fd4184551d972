"""Offenders of each kind, which tests/hostile/hostile.py must report: `functions` names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hostile_callables import Method

import gtape as tf


def _slip(x: Any) -> Any:
    return [1, 2][x]


def _hang(size: Any) -> Any:
    while size == -1:
        pass
    return size


def _hoard(shape: Any) -> Any:
    return np.ones(int(shape)) if type(shape) is int and shape > 0 else shape


def _words(axis: Any) -> Any:
    return axis + 1


def _wrapped(axis: Any) -> Any:
    try:
        return axis.nowhere
    except AttributeError as error:
        raise tf.errors.UnknownError("something is wrong") from error


class _Spoiled(list[Any]):
    def put(self, value: Any) -> None:
        self.append(value)
        if not isinstance(value, int):
            raise ValueError("put takes an int")


def functions() -> dict[str, Callable[..., Any]]:
    """The offenders by name."""
    return {"planted slip": _slip, "planted hang": _hang, "planted hoard": _hoard,
            "planted words": _words, "planted wrapped": _wrapped,
            "planted spoiled": Method(_Spoiled, "put")}

"""Calls inside a converted function: the user's own functions are converted when called."""

from __future__ import annotations

import functools
import os
import sysconfig
from types import FunctionType, MethodType
from typing import Any

import numpy as np

import gtape as tf
from gtape.autograph.conditions import traced_tensor
from gtape.autograph.convert import convert

_PACKAGES = ("site-packages", "dist-packages")
_LIBRARIES = tuple(os.path.join(path, "") for path in (
    os.path.realpath(sysconfig.get_path("stdlib")),
    os.path.realpath(sysconfig.get_path("platstdlib")),
    os.path.dirname(os.path.realpath(tf.__file__)),
    os.path.dirname(os.path.realpath(np.__file__))))


@functools.lru_cache(maxsize=1024)
def _of_user(file: str) -> bool:
    """Whether code of this file belongs to the user's program."""
    if file.startswith("<frozen"):
        return False
    path = os.path.realpath(file)
    return not path.startswith(_LIBRARIES) and not any(p in path.split(os.sep) for p in _PACKAGES)


def _converted(function: FunctionType) -> FunctionType:
    if not _of_user(function.__code__.co_filename):
        return function
    return convert(function)


def callee(function: Any) -> Any:
    """What to call in place of `function`: itself, or its converted form."""
    kind = type(function)
    if kind is FunctionType:
        return _converted(function)
    if kind is MethodType:
        inner = function.__func__
        if type(inner) is not FunctionType:
            return function
        made = _converted(inner)
        return function if made is inner else MethodType(made, function.__self__)
    if isinstance(function, type):
        return _NUMBERS.get(function, function)
    call = next((vars(k)["__call__"] for k in kind.__mro__ if "__call__" in vars(k)), None)
    if type(call) is not FunctionType:
        return function
    made = _converted(call)
    return function if made is call else MethodType(made, function)


def _float(*args: Any) -> Any:
    found = traced_tensor(args[0]) if len(args) == 1 else None
    return float(*args) if found is None else tf.cast(found, tf.float32)


def _int(*args: Any, **kwargs: Any) -> Any:
    found = traced_tensor(args[0]) if len(args) == 1 and not kwargs else None
    return int(*args, **kwargs) if found is None else tf.cast(found, tf.int32)


_NUMBERS: dict[type, Any] = {float: _float, int: _int}

"""Failures: what an exception in a pipeline says: the element, the transformation, the line."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import Any

import gtape
from gtape.core import errors

_OWN = os.path.dirname(os.path.abspath(gtape.__file__)) + os.sep


def failed(error: Exception, what: str, number: int | None = None) -> Exception:
    """The error to raise in the place of `error`, which came of element `number` of a `what`.

    Errors of gtape keep their class. A ValueError or TypeError becomes InvalidArgumentError, which
    is both; a MemoryError ResourceExhaustedError; a NotImplementedError UnimplementedError; others
    UnknownError. What was said already further up stays as it is.
    """
    if getattr(error, "_placed", False):
        return error
    line = user_line(error)
    text = (f"{what}, element {number}" if number is not None else what) + (
        f", {line}" if line else "") + f": {_said(error)}"
    placed = _class(error)(text)
    # Outer transformations see that the element and line are said already: the innermost knows them
    # best.
    placed._placed = True  # type: ignore[attr-defined]
    return placed


class Placed:
    """A call that says of which element an error came."""

    __slots__ = ("_call", "_number", "_what")

    def __init__(self, call: Callable[[Any], Any], what: str) -> None:
        self._call, self._what = call, what
        self._number = -1

    def __call__(self, element: object) -> Any:
        self._number += 1
        try:
            return self._call(element)
        except Exception as error:
            raise failed(error, self._what, self._number) from error


def _said(error: Exception) -> str:
    if isinstance(error, errors.OpError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _class(error: Exception) -> type[Exception]:
    # Either of these would be taken for the end of the pass.
    if isinstance(error, (errors.OutOfRangeError, StopIteration)):
        return errors.InvalidArgumentError
    if isinstance(error, errors.OpError):
        return type(error)
    if isinstance(error, (ValueError, TypeError)):
        return errors.InvalidArgumentError
    if isinstance(error, MemoryError):
        return errors.ResourceExhaustedError
    if isinstance(error, NotImplementedError):
        return errors.UnimplementedError
    return errors.UnknownError


def user_line(error: Exception, last: bool = False) -> str:
    """The last line of the user's own code that the error passed; "" where there is none, or, with
    `last`, where it was not raised there."""
    frames = traceback.extract_tb(error.__traceback__)
    # Names in angle brackets are of code that was written at run time, such as AutoGraph's or the
    # packers'.
    own = [f for f in frames if not os.path.abspath(f.filename).startswith(_OWN)
           and f.filename[:1] != "<"]
    if not own or (last and own[-1] is not frames[-1]):
        return ""
    return f"{own[-1].filename}:{own[-1].lineno}"

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
    UnknownError. What was said already further up stays as it is."""
    if getattr(error, "_placed", False):
        return error
    line = user_line(error)
    said = str(error) if isinstance(error, errors.OpError) else f"{type(error).__name__}: {error}"
    text = (f"{what}, element {number}" if number is not None else what) + (
        f", {line}" if line else "") + f": {said}"
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


#: What becomes of other exceptions than gtape's own. The first would be taken for the end of the
#: pass, which gtape's OutOfRangeError says as well.
_BECOMES: tuple[tuple[tuple[type[Exception], ...], type[Exception]], ...] = (
    ((StopIteration, errors.OutOfRangeError, ValueError, TypeError), errors.InvalidArgumentError),
    ((MemoryError,), errors.ResourceExhaustedError),
    ((NotImplementedError,), errors.UnimplementedError))


def _class(error: Exception) -> type[Exception]:
    if isinstance(error, errors.OpError) and not isinstance(error, errors.OutOfRangeError):
        return type(error)
    return next((placed for kinds, placed in _BECOMES if isinstance(error, kinds)),
                errors.UnknownError)


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

"""Where in the user's program something happened: kept as (code object, instruction offset).

Reading the two costs 0.1 us; the line is looked up only when somebody asks.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import NamedTuple

_LIBRARIES = ("gtape", "numpy", "cupy", "keras", "optree")
# Programs of ours that stand where a user's would: messages name their lines.
_OUTSIDE = ("gtape.demo", "gtape.cli")


#: The namespaces of library modules met so far, by id; held here, so an id is never reused.
_library: dict[int, dict[str, object]] = {}


def is_library(space: dict[str, object]) -> bool:
    """Whether the globals of a frame are those of gtape, of what it runs on, or of Keras."""
    if id(space) in _library:
        return True
    package = str(space.get("__package__") or "")
    if package.partition(".")[0] not in _LIBRARIES or package.startswith(_OUTSIDE):
        return False
    _library[id(space)] = space
    return True


def user_frame(frame: FrameType) -> FrameType:
    """The nearest frame at or above `frame` that is no library's."""
    caller: FrameType | None = frame
    while caller is not None:
        space = caller.f_globals
        if id(space) not in _library and not is_library(space):
            return caller
        caller = caller.f_back
    return frame


def here() -> tuple[CodeType, int]:
    """The user's line that called into gtape."""
    frame = user_frame(sys._getframe(1))
    return frame.f_code, frame.f_lasti


def stack_level() -> int:
    """The `stacklevel` that makes a warning point at the user's line."""
    level, frame = 1, sys._getframe(1)
    target = user_frame(frame)
    while frame is not target and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level


class SourceLocation(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str

    @property
    def text(self) -> str:
        import linecache

        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def resolve(code: CodeType, lasti: int) -> SourceLocation:
    """The line of an instruction."""
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= lasti < end and number is not None:
            line = number
    return SourceLocation(code.co_filename, line, code.co_name)

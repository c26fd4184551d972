"""The text of the kernels that ship with gtape, each file with what it includes; and the lines of a
text that compilers complain about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from gtape.core.errors import KernelError

_INCLUDE = re.compile(r'^#include "([\w.]+)"$', re.MULTILINE)
#: Where the files lie in a checkout, which need not be installed.
_CHECKOUT = Path(__file__).resolve().parents[2] / "kernels"


@cache
def read_shipped(name: str) -> str:
    """The file `name` of `kernels/`, as it is. Raises KernelError: the folder is neither installed
    with gtape nor beside it."""
    return _folder().joinpath(name).read_text("utf-8")


def _folder() -> Traversable:
    try:
        return files("gtape._kernels")
    except ModuleNotFoundError as error:
        if _CHECKOUT.is_dir():
            return _CHECKOUT
        raise KernelError(f"programs and kernels need gtape's folder of kernels, as gtape._kernels "
                          f"or at {_CHECKOUT}: install gtape with pip, or copy `kernels` beside "
                          "`gtape`") from error


@cache
def expand_file(name: str) -> str:
    """The file `name` with the files it includes in their places, each once. `#line` directives
    keep compilers' messages pointing at the shipped files."""
    return expand(read_shipped(name), name)


def expand(text: str, name: str) -> str:
    """`text`, known to compilers as `name`, with its includes expanded."""
    return _expand(text, name, set())


def _expand(text: str, name: str, seen: set[str]) -> str:
    seen.add(name)
    parts = [f'#line 1 "{name}"\n']
    for number, line in enumerate(text.replace("#pragma once\n", "\n").splitlines(), 1):
        include = _INCLUDE.match(line)
        if include is None:
            parts.append(f"{line}\n")
        # An empty line in its place keeps the numbers of the lines that follow.
        elif include[1] in seen:
            parts.append("\n")
        else:
            parts.append(_expand(read_shipped(include[1]), include[1], seen))
            parts.append(f'#line {number + 1} "{name}"\n')
    return "".join(parts)


_DIRECTIVE = re.compile(r'^#line (\d+) "([^"]+)"$')
_ERROR = re.compile(r"^([^\s(][^(\n]*)\((\d+)\): (?:catastrophic )?error", re.MULTILINE)


def located(text: str, file: str) -> Iterator[tuple[str, int, str]]:
    """Each line of `text` with the file and number that `#line` directives give it; `file` is the
    name of what stands before the first."""
    number = 0
    for line in text.splitlines():
        directive = _DIRECTIVE.match(line)
        if directive:
            file, number = directive[2], int(directive[1]) - 1
        else:
            number += 1
            yield file, number, line


def excerpt(text: str, file: str, number: int, around: int = 2) -> str:
    """Line `number` of `file` with its neighbours; "" where `text` has no such line."""
    near = {n: line for f, n, line in located(text, file)
            if f == file and abs(n - number) <= around}
    if number not in near:
        return ""
    return "\n".join(f"{'>' if n == number else ' '} {n:4} | {line}"
                     for n, line in sorted(near.items()))


def complaint(text: str, log: str) -> str:
    """The place of the first error in NVRTC's `log`, shown in `text`; "" where it names none."""
    for error in _ERROR.finditer(log):
        shown = excerpt(text, error[1], int(error[2]))
        if shown:
            return f"{error[1]}:{error[2]}\n{shown}"
    return ""

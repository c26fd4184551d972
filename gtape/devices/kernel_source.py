"""The text of the kernels that ship with gtape, each file with what it includes."""

from __future__ import annotations

import re
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
    """The file `name` of `kernels/`, as it is.

    Raises:
        KernelError: the folder is neither installed with gtape nor beside it.
    """
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
    """The file `name` with the files it includes in their places, each once.

    `#line` directives keep compilers' messages pointing at the shipped files.
    """
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
        elif include[1] in seen:
            parts.append("\n")
        else:
            parts.append(_expand(read_shipped(include[1]), include[1], seen))
            parts.append(f'#line {number + 1} "{name}"\n')
    return "".join(parts)

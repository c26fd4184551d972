"""What a kernel consists of: its own text, and the functions and structs of its program that it
names, directly or through what it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

_NOT_CODE = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_TEMPLATE = re.compile(r"\btemplate\s*<[^{;()]*?>(?=\s*[\w_])")
_ATTRIBUTE = re.compile(r"\b(?:__launch_bounds__|alignas)\s*\((?:[^()]|\([^()]*\))*\)")
_STRUCT = re.compile(r"\b(?:struct|class|using|namespace)\s+(\w+)")
_FUNCTION = re.compile(r"\b(\w+)\s*(?:<[^()]*>)?\s*\(")
_WORD = re.compile(r"\b[A-Za-z_]\w*")


def reached(text: str, kernel: str) -> str:
    """The definitions of the program `text` that take part in the kernel of that name."""
    known = _definitions(text)
    names: dict[str, None] = {}
    waiting = [kernel]
    while waiting:
        name = waiting.pop()
        if name in known and name not in names:
            names[name] = None
            waiting += _WORD.findall(known[name])
    return "\n".join(known[name] for name in names)


@cache
def _definitions(text: str) -> dict[str, str]:
    """The definitions at the top level, by name; overloads and specialisations together."""
    definitions: dict[str, str] = {}
    for part in _parts(_NOT_CODE.sub("", text)):
        head = _ATTRIBUTE.sub("", _TEMPLATE.sub("", part.partition("{")[0]))
        name = _STRUCT.search(head) or _FUNCTION.search(head)
        if name:
            definitions[name[1]] = f"{definitions.get(name[1], '')}{part}\n"
    return definitions


def _parts(code: str) -> Iterator[str]:
    depth = start = 0
    for mark in re.finditer(r"[{};]", code):
        depth += {"{": 1, "}": -1, ";": 0}[mark[0]]
        if depth == 0:
            yield code[start: mark.end()]
            start = mark.end()

"""A random program as data. Its text, shapes and numbers all follow from it (`elaborate.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

#: How a tensor comes into a program.
ROLES = ("argument", "variable", "capture", "literal")


@dataclass(frozen=True)
class Given:
    """A tensor from outside."""

    name: str
    role: str
    shape: tuple[int, ...]
    dtype: str
    kind: str
    seed: int
    #: Integers from 0 below it, where it is not 0.
    limit: int = 0


@dataclass(frozen=True)
class Let:
    """`name = op(inputs)`; what the op leaves open is drawn from `seed`."""

    name: str
    op: str
    inputs: tuple[str, ...]
    seed: int


@dataclass(frozen=True)
class If:
    """`name` is `carried` after one of two blocks; `style` says how the conditional is written."""

    name: str
    style: str
    carried: str
    blocks: tuple[tuple[Line, ...], tuple[Line, ...]]
    seed: int


@dataclass(frozen=True)
class Loop:
    """`name` is `carried` after some runs of a block, which reads it as `name`."""

    name: str
    style: str
    carried: str
    block: tuple[Line, ...]
    seed: int


@dataclass(frozen=True)
class Assign:
    """A Variable is given a new value, made of `value`."""

    variable: str
    how: str
    value: str
    seed: int


Line: TypeAlias = Let | If | Loop | Assign


@dataclass(frozen=True)
class Program:
    """What is given, the lines, the names of what is returned, and the order of derivatives."""

    given: tuple[Given, ...]
    lines: tuple[Line, ...]
    returned: tuple[str, ...]
    order: int
    #: How fresh operands of ops are drawn.
    kind: str = "smooth"
    #: Whether the forward pass returns anything but its gradients.
    values: bool = True

    def without_line(self, at: int) -> Program:
        lines = self.lines[:at] + self.lines[at + 1:]
        gone = getattr(self.lines[at], "name", "")
        return replace(self, lines=lines, returned=tuple(r for r in self.returned if r != gone))


def walk(lines: tuple[Line, ...]) -> Iterator[Line]:
    """All lines, those in blocks too."""
    for line in lines:
        yield line
        for block in blocks(line):
            yield from walk(block)


def blocks(line: Line) -> tuple[tuple[Line, ...], ...]:
    """The blocks of a line."""
    if isinstance(line, If):
        return line.blocks
    return (line.block,) if isinstance(line, Loop) else ()


def rename(line: Line, old: str, new: str) -> Line:
    """A line that reads `new` where it read `old`."""
    def swap(name: str) -> str:
        return new if name == old else name

    if isinstance(line, Let):
        return replace(line, inputs=tuple(map(swap, line.inputs)))
    if isinstance(line, Assign):
        return replace(line, value=swap(line.value))
    if isinstance(line, Loop):
        block = tuple(rename(inner, old, new) for inner in line.block)
        return replace(line, carried=swap(line.carried), block=block)
    first, second = (tuple(rename(inner, old, new) for inner in b) for b in line.blocks)
    return replace(line, carried=swap(line.carried), blocks=(first, second))

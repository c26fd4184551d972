"""Homes: the parts of an array that is put together are made in their places there.

What stacks or joins arrays copies them, unless each is written where it belongs in the first place.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import NamedTuple

from gtape.compile.ir.nodes import (
    Elem,
    Hosted,
    IrModule,
    IrNode,
    LibraryCall,
    Reduce,
    StridedLayout,
    Value,
    View,
    dense,
)
from gtape.compile.schedule.fuse import FusionGroup


class Home(NamedTuple):
    """An array that is put together, and where in it a value lies."""

    whole: Value
    layout: StridedLayout

    def is_dense(self, value: Value) -> bool:
        """Whether the value's elements lie there as in an array of its own."""
        return all(n == 1 or s == d for n, s, d in zip(
            value.shape, self.layout.strides, dense(value.shape)))


class Access(NamedTuple):
    """An array that a loop reads or writes: which value, and its strides along the domain."""

    root: Value
    strides: tuple[int, ...]
    offset: int


def layout_of(value: Value, homes: Mapping[int, Home]) -> tuple[Value, tuple[int, ...], int]:
    """The value behind a value, and its strides and offset from the place of that one."""
    node = value.node
    if isinstance(node, View):
        return node.inputs[0], node.layout.strides, node.layout.offset
    home = homes.get(value.number)
    return value, dense(value.shape) if home is None else home.layout.strides, 0


def access(group: FusionGroup, value: Value, homes: Mapping[int, Home]) -> Access:
    """How a loop goes over a value."""
    root, strides, offset = layout_of(value, homes)
    along = [0] * len(group.domain or ())
    for n, p, s in zip(value.shape, group.place[value.number], strides):
        if p is not None and n != 1:
            along[p] = s
    return Access(root, tuple(along), offset)


def homes(module: IrModule, maker: Callable[[Value], FusionGroup | None], placed: Container[int],
          ) -> dict[int, Home]:
    """The homes of values by number; those `placed` already have none.

    Args:
        maker: the group that makes a value, if one does.
    """
    readers: dict[int, list[IrNode]] = {}
    for node in module.nodes:
        for value in node.inputs:
            readers.setdefault(value.number, []).append(node)
    needed = {v.number for v in module.needed()}
    found: dict[int, Home] = {}
    for node in module.nodes:
        if not isinstance(node, LibraryCall) or not node.parts or node.outputs[0].number in placed:
            continue
        for value, layout in zip(node.inputs, node.parts):
            home = Home(node.outputs[0], layout)
            if value.number in found or value.number in placed or not _made(maker(value)):
                continue
            others = [n for n in readers[value.number] if n is not node]
            if len(others) != len(readers[value.number]) - 1:
                continue
            # Loops find elements at any distance; others expect an array of its own.
            if home.is_dense(value) or (value.number not in needed and isinstance(
                    value.node, Elem) and all(isinstance(n, Elem | Reduce) for n in others)):
                found[value.number] = home
    return found


def _made(group: FusionGroup | None) -> bool:
    """Whether it writes where it is told to."""
    return group is not None and not any(isinstance(n, Hosted) or (
        isinstance(n, LibraryCall) and n.takes_place is not None) for n in group.nodes)

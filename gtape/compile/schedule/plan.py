"""MemoryPlan: in what order a program's kernels run, and where its values lie.

Arguments, results and states have memory of their own; what is made in between lies in one arena,
two values in the same place where the first is no longer needed when the second is made. A state's
new value is written straight into the state when nothing reads the old one afterwards, and nothing
that may fail comes afterwards. What stacks or joins arrays copies them, unless each is made in its
`Home` there in the first place.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gtape.compile.ir.nodes import (
    Elem,
    Hosted,
    InputNode,
    IrModule,
    IrNode,
    LibraryCall,
    Reduce,
    StridedLayout,
    Value,
    View,
    dense,
    v_root,
)
from gtape.compile.ir.rounding import rounded_values
from gtape.compile.schedule.fuse import Fuser, FusionGroup
from gtape.core.buffers import ZONE
from gtape.core.dtypes import as_dtype

if TYPE_CHECKING:
    from gtape.core.variable import Variable
    from gtape.ops.random.streams import StreamState

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
            # What is put in twice would have two homes.
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


#: Bytes at whose multiples values begin.
#: A cache line, and the widest vector: aligned loads never cross two lines.
ALIGNMENT = 64


class Place(NamedTuple):
    """Where a value lies: `role` "argument", "capture", "result", "state", "constant" with its
    number, or "arena" with its offset in bytes."""

    role: str
    at: int


class MemoryPlan:
    """The groups in order, and the places of all values by number.

    With `guarded` no two values of the arena share a place, and a guard zone lies before and behind
    each.
    """

    def __init__(self, module: IrModule, *, fused: bool = True, guarded: bool = False) -> None:
        self.module = module
        self.guarded = guarded
        self._fuser = self._fused(fused)
        self._urgent = self._fuser.urgent()
        self.constants: list[Any] = []
        self.states: list[Any] = []
        self.places: dict[int, Place] = {}
        self.in_place: dict[int, int] = {}
        #: The values of the arena, where it is guarded.
        self.between: list[Value] = []
        self._sources()
        self.rounded = rounded_values(module)
        #: States whose new value lies elsewhere at the end, and has to be copied: (state, value).
        self.copies: list[tuple[int, Value]] = []
        self._results()
        self._writes()
        self.groups = self._ordered()
        self.stored = self._stored()
        self.homes = homes(module, lambda v: self._fuser.of.get(v.number), self.places)
        self.arena = self._arena()

    def _fused(self, fused: bool) -> Fuser:
        fuser = Fuser(self.module, fused=fused)
        fuser.run()
        return fuser

    def _ordered(self) -> list[FusionGroup]:
        return self._fuser.ordered()

    # ------------------------------------------------------------------ given places

    def _sources(self) -> None:
        for node in self.module.nodes:
            if not isinstance(node, InputNode):
                continue
            number = node.outputs[0].number
            if node.role == "constant":
                self.places[number] = Place("constant", len(self.constants))
                self.constants.append(node.what)
            elif node.role == "state":
                self.places[number] = Place("state", self._state(node.what))
            else:
                self.places[number] = Place(node.role, node.what)

    def _state(self, state: Variable | StreamState) -> int:
        for i, known in enumerate(self.states):
            if known is state:
                return i
        self.states.append(state)
        return len(self.states) - 1

    def _results(self) -> None:
        #: The results that have memory of their own, and which one each result is.
        self.outputs: list[Value] = []
        self.result_of: list[int] = []
        for value in self.module.results:
            at = next((i for i, v in enumerate(self.outputs) if v is value), None)
            if at is None:
                at = len(self.outputs)
                self.outputs.append(value)
                self.places[v_root(value).number] = Place("result", at)
            self.result_of.append(at)

    def _writes(self) -> None:
        old = {n.what._k: n.outputs[0] for n in self.module.nodes
               if isinstance(n, InputNode) and n.role == "state"}
        for state, value in self.module.writes:
            at = self._state(state)
            if value.number in self.places or not self._direct(old.get(state._k), value):
                self.copies.append((at, value))
            else:
                self.places[value.number] = Place("state", at)

    def _direct(self, old: Value | None, value: Value) -> bool:
        """Whether the value can be made where the old one lies; then readers of the old one are
        made to run before."""
        maker = self._fuser.of[value.number]
        # It runs before what may fail, and a call that fails leaves all states as they were.
        if self._urgent >> maker.number & 1:
            return False
        if old is None:
            return True
        readers = [g for g in self._fuser.groups if old.number in g.reads and g is not maker]
        if any(g.after >> maker.number & 1 for g in readers):
            return False
        if old.number in maker.reads and not self._same_places(maker, old, value):
            return False
        before = 0
        for group in readers:
            before |= group.after | 1 << group.number
        self._fuser.precede(maker, before)
        if old.number in maker.reads:
            self.in_place[value.number] = old.number
        return True

    def _same_places(self, group: FusionGroup, old: Value, value: Value) -> bool:
        """Whether every element of the new value is made of the old one's at the same place."""
        if not group.is_loop:
            (node,) = group.nodes
            return isinstance(node, LibraryCall) and node.takes_place == old.number and sum(
                v_root(v) is old for v in node.inputs) == 1
        # A later pass over the row would read what an earlier one has written.
        if any(isinstance(n, Reduce) and group.kind(n) == "row" for n in group.nodes) or (
                not isinstance(value.node, Elem)) or (
                len(group.place[value.number]) != len(value.shape)):
            return False
        target = access(group, value, {})
        for node in group.nodes:
            for read in node.inputs:
                if v_root(read) is old and read is not old:
                    return False
                if read is old and access(group, read, {})[1:] != target[1:]:
                    return False
        return True

    # ------------------------------------------------------------------ memory

    def _stored(self) -> set[int]:
        """The values of kernels that something else reads."""
        stored = {v.number for v in self.module.needed()}
        for group in self.groups:
            inside = {o.number for n in group.nodes for o in n.outputs}
            stored |= {n for n in group.reads if n not in inside}
            if not group.is_loop:
                stored |= inside
        for value in self.module.needed():
            stored.add(v_root(value).number)
        for group in self.groups:
            for node in group.nodes:
                if isinstance(node, Reduce) and group.kind(node) != "row":
                    stored.add(node.outputs[0].number)
        return stored

    def _arena(self) -> int:
        """Offsets for what is made in between; the bytes needed."""
        made: dict[int, Value] = {}
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        end = len(self.groups)
        for position, group in enumerate(self.groups):
            for node in group.nodes:
                for out in node.outputs:
                    if out.number in self.stored and out.number not in self.places and (
                            self._lies(out)):
                        made[out.number] = out
                        first.setdefault(self._whole(out.number), position)
                        last[self._whole(out.number)] = position
            for number in group.reads:
                last[self._whole(number)] = position
        for _, value in self.copies:
            last[self._whole(v_root(value).number)] = end
        over = {} if self.guarded else self._over(made, last)
        apart = {n: (first[n], v) for n, v in made.items() if n not in self.homes | over}
        total = self._apart(apart) if self.guarded else self._assigned(apart, last)
        for number, start in over.items():
            self.places[number] = self.places[start]
        for value in reversed(made.values()):  # what is put together is made after its parts
            if value.number in self.homes:
                whole, layout = self.homes[value.number]
                at = layout.offset * numpy_dtype(value.dtype).itemsize
                self.places[value.number] = Place("arena", self.places[whole.number].at + at)
        return total

    def _lies(self, value: Value) -> bool:
        """Whether a value that is stored, and has no place yet, lies in the arena."""
        return True

    def _over(self, made: dict[int, Value], last: dict[int, int]) -> dict[int, int]:
        """The values that are made over one that nothing reads any more, with what was the first
        to lie there, which takes up memory as `last` then says."""
        found: dict[int, int] = {}
        for position, group in enumerate(self.groups):
            node = group.nodes[0]
            old = node.takes_place if isinstance(node, LibraryCall) else None
            # An input that is the old value too would be read while it is written over.
            if old not in made or old in self.homes or last[old] != position or sum(
                    v_root(v).number == old for v in node.inputs) > 1:
                continue
            (out,) = node.outputs
            if out.number in made and out.number not in self.homes:
                start = found[out.number] = found.get(old, old)
                last[start] = max(position, last.get(out.number, position))
        return found

    def _whole(self, number: int) -> int:
        """The value itself, or the one that it lies in."""
        while number in self.homes:
            number = self.homes[number].whole.number
        return number

    def _assigned(self, made: dict[int, tuple[int, Value]], last: dict[int, int]) -> int:
        """Best fit by lifetime, the largest values first."""
        taken: list[tuple[int, int, int, int]] = []  # offset, size, first, last
        total = 0
        # Small values fit into the gaps that large ones leave, and not the other way round.
        for number, (first, value) in sorted(made.items(), key=lambda kv: -kv[1][1].size):
            size = padded(nbytes(value))
            until = last.get(number, first)
            overlapping = sorted((t[0], t[1]) for t in taken if t[2] <= until and first <= t[3])
            offset = _gap(overlapping, size)
            taken.append((offset, size, first, until))
            self.places[number] = Place("arena", offset)
            total = max(total, offset + size)
        return total

    def _apart(self, made: dict[int, tuple[int, Value]]) -> int:
        """Places side by side, with guard zones between them; the bytes needed."""
        total = 0
        for number, (_, value) in made.items():
            self.places[number] = Place("arena", total + ZONE)
            self.between.append(value)
            total += ZONE + padded(nbytes(value))
        return total + ZONE if made else 0

    def layout(self, value: Value) -> tuple[Place, tuple[int, ...], int]:
        """Where a value's elements lie: the place, the strides and the offset in elements."""
        root, strides, offset = layout_of(value, self.homes)
        return self.places[root.number], strides, offset

    def is_home(self, whole: Value, value: Value) -> bool:
        """Whether a value is made where it lies in one that is put together."""
        home = self.homes.get(value.number)
        return home is not None and home.whole is whole


def _gap(taken: Sequence[tuple[int, int]], size: int) -> int:
    """The smallest gap that is large enough, or the end."""
    best, best_size, end = -1, 0, 0
    for offset, length in taken:
        room = offset - end
        if room >= size and (best < 0 or room < best_size):
            best, best_size = end, room
        end = max(end, offset + length)
    return end if best < 0 else best


def padded(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT


@cache
def numpy_dtype(name: str) -> np.dtype:
    """NumPy's dtype of the name of one of ours."""
    return np.dtype(as_dtype(name).as_numpy_dtype)


def nbytes(value: Value) -> int:
    return value.size * numpy_dtype(value.dtype).itemsize

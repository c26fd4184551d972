"""A kernel as C++: loops over rows, and passes over each row.

    for each row r of this part:
        offsets of the row in every array
        pass 0 over the row:  loads, formulas, sums along the row, stores
        formulas of the row's sums
        pass 1 over the row:  …

A pass ends where something needs a sum along the row. What later passes need of an earlier one is
kept in a buffer of one row if it was costly, and computed again if not. Loops carry no dependence
but sums, so compilers turn them into vector instructions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from gtape.compile.ir.nodes import Elem, IrNode, Reduce, Value, View, dense
from gtape.compile.schedule.fuse import FusionGroup
from gtape.compile.schedule.in_place_parts import Home
from gtape.opdef.printers.cuda import C_TYPES
from gtape.opdef.scalar_graph import topological

if TYPE_CHECKING:
    from gtape.compile.cpp.writer import RowWriter

#: The most parts that a kernel is cut into for threads.
PARTS = 16
#: Elements of one pass where the domain has one axis.
BLOCK = 1024
#: Rows whose columns are added one after another; sums of more rows are added up in double
#: precision.
ROWS = 256
#: Domains from this many elements on are shared among threads.
_SHARED = 1 << 15
#: Scalar ops that are cheaper to compute again than to keep.
_CHEAP = frozenset((
    "add", "subtract", "multiply", "negative", "square", "squared_difference", "abs", "maximum",
    "minimum", "where", "clip", "relu", "relu_gate", "zero", "sign", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "logical_not", "conj"))


class Access(NamedTuple):
    """An array that a kernel reads or writes: which value, and its strides along the domain."""

    root: Value
    strides: tuple[int, ...]
    offset: int


class KernelText(NamedTuple):
    """A kernel: its C++ with KERNEL for its name, the values of its pointers in order ("in" or
    "out"), the bytes of scratch, whether threads share it, and the text that finishes it."""

    body: str
    pointers: tuple[tuple[str, Value], ...]
    scratch: int
    shared: bool
    finish: str


def layout_of(value: Value, homes: Mapping[int, Home]) -> tuple[Value, tuple[int, ...], int]:
    """The value behind a value, and its strides and offset from the place of that one."""
    node = value.node
    if isinstance(node, View):
        return node.inputs[0], node.layout.strides, node.layout.offset
    home = homes.get(value.number)
    return value, dense(value.shape) if home is None else home.layout.strides, 0


class LoopKernel:
    """Writes the text of one group."""

    def __init__(self, group: FusionGroup, stored: set[int], in_place: dict[int, int],
                 rounded: frozenset[int], homes: Mapping[int, Home]) -> None:
        """`stored`: the values that others need; `in_place`: those that take the place of another
        value, by number; `rounded`: those of two bytes that are rounded before they are read;
        `homes`: those that lie in another value, by number."""
        self.group = group
        self.homes = homes
        #: Storing a value rounds it, so that only what is read here has to be rounded as well.
        self.rounded = rounded and rounded & {v_root(v).number
                                              for n in group.nodes for v in n.inputs}
        self.stored = stored
        self.in_place = in_place
        self.domain = group.domain or ()
        self.made = {n.outputs[0].number: n for n in group.nodes}
        self._pointers: list[tuple[str, Value]] = []
        self._places: dict[int, int] = {}
        self._axes()
        self._phases()
        self._kept()
        self.scratch = 0
        self.finish: list[str] = []

    # ------------------------------------------------------------------ the shape of the loops

    def _access(self, value: Value) -> Access:
        root, strides, offset = layout_of(value, self.homes)
        place = self.group.place[value.number]
        along = [0] * len(self.domain)
        for n, p, s in zip(value.shape, place, strides):
            if p is not None and n != 1:
                along[p] = s
        return Access(root, tuple(along), offset)

    def _axes(self) -> None:
        """Join axes that every array runs through like one; find rows."""
        rank = len(self.domain)
        split = self.group.split
        self.rows = split is not None and split < rank
        reads = [v for n in self.group.nodes for v in n.inputs if v.number not in self.made]
        every = reads + [n.outputs[0] for n in self.group.nodes
                         if n.outputs[0].number in self.stored or isinstance(n, Reduce)]
        strides = [self._access(v).strides for v in every]
        cut = split if self.rows else None
        self.joined: list[list[int]] = []
        for axis in range(rank):
            last = self.joined[-1] if self.joined else None
            if last is not None and axis != cut and all(
                    s[last[-1]] == s[axis] * self.domain[axis] for s in strides):
                last.append(axis)
            else:
                self.joined.append([axis])
        self.lengths = [math.prod(self.domain[a] for a in axes) for axes in self.joined]
        inner = sum(1 for axes in self.joined if axes[0] >= (split or 0)) if self.rows else min(
            1, len(self.joined))
        self.outer = len(self.joined) - inner
        self.flat = not self.rows and len(self.joined) == 1 and self.lengths[0] > BLOCK

    def _steps(self, access: Access) -> list[int]:
        """Strides along the joined axes."""
        return [access.strides[axes[-1]] for axes in self.joined]

    def _is_row(self, value: Value) -> bool:
        """Whether a value is the same all along a row."""
        if not self.rows:
            return not any(p is not None for p in self.group.place[value.number]) and bool(
                self.domain)
        split = self.group.split or 0
        return all(p is None or p < split for p in self.group.place[value.number])

    # ------------------------------------------------------------------ passes

    def _phases(self) -> None:
        self.phase: dict[int, int] = {}
        for node in self.group.nodes:
            last = max((self.phase.get(v_root(v).number, 0) for v in node.inputs), default=0)
            if isinstance(node, Reduce) and self.group.kind(node) == "row":
                last += 1
            self.phase[node.outputs[0].number] = last
        self.last = max(self.phase.values(), default=0)

    def _inner(self, value: Value) -> Value | None:
        """The value of this kernel behind `value`, or None."""
        root = v_root(value)
        return root if root.number in self.made else None

    def _kept(self) -> None:
        """The values that later passes find in a buffer."""
        self.kept: set[int] = set()
        for node in self.group.nodes:
            if isinstance(node, Reduce) and self._is_row(node.inputs[0]):
                continue
            at = self.phase[node.outputs[0].number]
            if isinstance(node, Reduce) and self.group.kind(node) == "row":
                at -= 1
            elif not isinstance(node, Reduce) and self._is_row(node.outputs[0]):
                continue
            for value in node.inputs:
                self._keep(value, at)

    def _keep(self, value: Value, at: int) -> None:
        inner = self._inner(value)
        if inner is None or self._is_row(inner) or self.phase[inner.number] >= at:
            return
        if inner.number in self.kept or inner.number in self.stored:
            return
        node = self.made[inner.number]
        if _costly(node) and self.phase[inner.number] < at:
            self.kept.add(inner.number)
            return
        for below in node.inputs:
            self._keep(below, at)

    # ------------------------------------------------------------------ text

    def text(self) -> KernelText:
        body = self._rows()
        head = ["static void KERNEL(void* given, int part, int parts) {",
                "    char* const* q = (char* const*)given;"]
        for i, (role, value) in enumerate(self._pointers):
            kind = C_TYPES[value.dtype]
            const = "const " if role == "in" else ""
            head.append(f"    {const}{kind}* __restrict__ p{i} = ({const}{kind}*)q[{i}];")
        lines = [*head, *("    " + line for line in body), "}"]
        size = math.prod(self.domain)
        scratch = str(len(self._pointers))
        return KernelText("\n".join(lines).replace("SCRATCH", scratch), tuple(self._pointers),
                          self.scratch, self._shares(size),
                          "\n".join(self.finish).replace("SCRATCH", scratch))

    def _shares(self, size: int) -> bool:
        count = -(-self.lengths[0] // BLOCK) if self.flat else math.prod(self.lengths[:self.outer])
        weight = sum(len(topological([n.body])) for n in self.group.nodes if isinstance(n, Elem))
        return count >= 4 and size * min(8, 1 + weight // 4) >= _SHARED

    def _pointer(self, role: str, value: Value) -> str:
        """The C++ pointer to a value; one that takes the place of another has its pointer."""
        key = self.in_place.get(value.number, value.number)
        at = self._places.get(key)
        if at is None:
            at = self._places[key] = len(self._pointers)
            self._pointers.append((role, value))
        elif role == "out":
            self._pointers[at] = (role, value)
        return f"p{at}"

    def _rows(self) -> list[str]:
        lines: list[str] = []
        if self.flat:
            count = -(-self.lengths[0] // BLOCK)
        else:
            count = math.prod(self.lengths[:self.outer])
        writer = self._row()
        single = count == 1 and not self.flat
        loop = ["    " + x for x in [*([] if single else self._decoded()), *writer.lines]]
        lines += writer.before
        if single:
            lines += ["{", *loop, "}"]
        else:
            lines.append(f"const long begin = {count}L * part / parts, "
                         f"end = {count}L * (part + 1) / parts;")
            lines += self._looped(writer, loop)
        return lines + writer.after

    @staticmethod
    def _looped(writer: RowWriter, loop: list[str]) -> list[str]:
        """The loop over rows; where columns are summed in blocks of rows, one over blocks."""
        if not writer.closing:
            return ["for (long r = begin; r < end; r++) {", *loop, "}"]
        inner = [*writer.opening, "for (long r = first; r < last; r++) {", *loop, "}",
                 *writer.closing]
        return [f"for (long first = begin; first < end; first += {ROWS}) {{",
                f"    const long last = end - first < {ROWS} ? end : first + {ROWS};",
                *("    " + line for line in inner), "}"]

    def _decoded(self) -> list[str]:
        """The outer indices of row r."""
        if self.flat:
            n = self.lengths[0]
            return [f"const long lo = r * {BLOCK};",
                    f"const long count = {n} - lo < {BLOCK} ? {n} - lo : {BLOCK};"]
        outer = self.lengths[:self.outer]
        if len(outer) <= 1:
            return ["const long i0 = r;"] if outer else []
        lines, step = [], 1
        for axis in reversed(range(len(outer))):
            index = "r" if step == 1 else f"r / {step}"
            lines.append(f"const long i{axis} = " + (
                f"{index};" if axis == 0 else f"{index} % {outer[axis]};"))
            step *= outer[axis]
        return lines

    def _row(self) -> RowWriter:
        """The statements for one row, before and after all rows, and around a block of rows."""
        from gtape.compile.cpp.writer import RowWriter

        writer = RowWriter(self)
        for phase in range(self.last + 1):
            writer.row_level(phase)
            writer.sweep(phase)
        writer.finish_row()
        return writer


def v_root(value: Value) -> Value:
    """The dense value behind a view."""
    return value.node.inputs[0] if isinstance(value.node, View) else value


def _costly(node: IrNode) -> bool:
    return isinstance(node, Elem) and any(
        n.op is not None and n.op.name not in _CHEAP for n in topological([node.body]))

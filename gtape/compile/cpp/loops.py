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
from typing import Any, NamedTuple

from gtape.compile.compile_cost import is_cheap
from gtape.compile.ir.nodes import Elem, Reduce, Value, dense, v_root
from gtape.compile.schedule.fuse import FusionGroup
from gtape.compile.schedule.plan import Access, Home, access
from gtape.core.modes import Modes
from gtape.opdef.cuda_text import C_TYPES, NARROW, CudaPrinter, Known, compute_dtype, rounded
from gtape.opdef.scalar_graph import topological

#: The most parts that a kernel is cut into for threads.
#: Scratch memory is laid out for all of them when the text is written, whatever the machine has.
PARTS = 16
#: Elements of one pass where the domain has one axis.
#: 4 KiB of float32: what passes keep of a block stays in the first-level cache.
BLOCK = 1024
#: Rows whose columns are added one after another; sums of more rows are added up in double
#: precision.
#: Rounding errors of sums in float32 grow with their length, and a block ends before they matter.
#: To begin the next costs one more pass over the columns in 256.
ROWS = 256
#: Domains from this many elements on are shared among threads.
#: Some microseconds of work, which is what it takes until another thread has begun.
_SHARED = 1 << 15
#: Rows from this many elements on are summed in parts, added up in double precision.
#: Vector instructions add up 8 or 16 sums side by side: in a row of this length 512 numbers each.
_LONG = 1 << 12
#: Columns up to which a part adds them up on the stack.
#: 1 KiB of float32, in the first-level cache; and memory on the stack cannot be anybody else's, as
#: compilers know, so that few columns stay in registers.
_NARROW = 256
#: Bytes of rows that a kernel keeps on the stack of its thread.
#: Other threads than the first have 512 KiB on some systems, macOS among them.
_STACK = 1 << 17
_IDENTITY = {"sum": "0", "prod": "1", "all": "1", "any": "0"}
#: The operator of a reduction, for clauses of OpenMP and for assignments.
_CLAUSE = {"sum": "+", "prod": "*", "max": "max", "min": "min", "all": "&", "any": "|"}


class KernelText(NamedTuple):
    """A kernel: its C++ with KERNEL for its name, the values of its pointers in order ("in" or
    "out"), the bytes of scratch, whether threads share it, and the text that finishes it."""

    body: str
    pointers: tuple[tuple[str, Value], ...]
    scratch: int
    shared: bool
    finish: str


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
        self.makers = {n.outputs[0].number: n for n in group.nodes}
        self._pointers: list[tuple[str, Value]] = []
        self._places: dict[int, int] = {}
        self._axes()
        self._phases()
        self._kept()
        self.scratch = 0
        self.finish: list[str] = []

    # ------------------------------------------------------------------ the shape of the loops

    def _access(self, value: Value) -> Access:
        return access(self.group, value, self.homes)

    def _axes(self) -> None:
        """Join axes that every array runs through like one; find rows."""
        rank = len(self.domain)
        split = self.group.split
        self.rows = split is not None and split < rank
        reads = [v for n in self.group.nodes for v in n.inputs if v.number not in self.makers]
        every = reads + [n.outputs[0] for n in self.group.nodes
                         if n.outputs[0].number in self.stored or isinstance(n, Reduce)]
        strides = [self._access(v).strides for v in every]
        cut = split if self.rows else None  # what is joined is all of the rows, or all along one
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
        # One long axis has no rows that threads could share: blocks of it take their place.
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
        return root if root.number in self.makers else None

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
        node = self.makers[inner.number]
        if isinstance(node, Elem) and not is_cheap(node.body) and self.phase[inner.number] < at:
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
        scratch = str(len(self._pointers))  # behind all pointers, whose number is known only now
        return KernelText("\n".join(lines).replace("SCRATCH", scratch), tuple(self._pointers),
                          self.scratch, self._shares(size),
                          "\n".join(self.finish).replace("SCRATCH", scratch))

    def _count(self) -> int:
        """The turns of the outermost loop, which threads share: rows, or blocks of one."""
        return -(-self.lengths[0] // BLOCK) if self.flat else math.prod(self.lengths[:self.outer])

    def _shares(self, size: int) -> bool:
        weight = sum(len(topological([n.body])) for n in self.group.nodes if isinstance(n, Elem))
        # Four turns at least, or threads would wait for the one that has the last. A formula of
        # many operations weighs as several elements, eight at most, since the loads are the same.
        return self._count() >= 4 and size * min(8, 1 + weight // 4) >= _SHARED

    def _pointer(self, role: str, value: Value) -> str:
        """The C++ pointer to a value; one that takes the place of another has its pointer."""
        key = self.in_place.get(value.number, value.number)
        at = self._places.get(key)
        if at is None:
            at = self._places[key] = len(self._pointers)
            self._pointers.append((role, value))
        elif role == "out":
            self._pointers[at] = (role, value)  # one pointer for both, and not to const
        return f"p{at}"

    def _rows(self) -> list[str]:
        lines: list[str] = []
        count = self._count()
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
        writer = RowWriter(self)
        for phase in range(self.last + 1):
            writer.row_level(phase)
            writer.sweep(phase)
        writer.lines += writer.row_stores
        return writer


class _Pass:
    """The statements of one pass: in the innermost loop, before and after each run of it, and
    after all runs. Stores come after all loads: what is stored may take the place of what is
    read."""

    def __init__(self) -> None:
        self.opening: list[str] = []
        self.body: list[str] = []
        self.stores: list[str] = []
        self.clauses: list[str] = []
        self.ending: list[str] = []
        self.closing: list[str] = []


class RowWriter:
    """The statements of one row, pass by pass."""

    def __init__(self, kernel: LoopKernel) -> None:
        self.k = kernel
        self.before: list[str] = []
        self.lines: list[str] = []
        self.after: list[str] = []
        #: Before and after each block of rows.
        self.opening: list[str] = []
        self.closing: list[str] = []
        #: Names of values that hold for the whole row.
        self.row_names: dict[int, str] = {}
        self._count = 0
        self._every = not Modes.excess_precision
        self._offsets: dict[Any, str] = {}
        self._buffers: dict[int, str] = {}
        #: The variables of parts of formulas: of the row, and of the present pass.
        self._row_known: Known = {}
        self._known: Known = {}
        #: The bytes of buffers on the stack.
        self._stack = 0
        #: Stores of values that hold for the whole row, which come after all loads as well.
        self.row_stores: list[str] = []

    # -------------------------------------------------------------- places

    def _offset(self, access: Access) -> str:
        """The row's first place in an array."""
        steps = self.k._steps(access)
        if self.k.flat:
            parts = ["lo"] if steps[0] == 1 else [f"lo * {steps[0]}"] if steps[0] else []
        else:
            parts = [f"i{i}" if s == 1 else f"i{i} * {s}"
                     for i, s in enumerate(steps[:self.k.outer]) if s]
            # A single row is no loop, and its indices have no names.
            if math.prod(self.k.lengths[:self.k.outer]) == 1:
                parts = []
        if access.offset:
            parts.append(str(access.offset))
        text = " + ".join(parts)
        if not text or text.isdigit() or text in ("lo", "i0"):
            return text
        if text not in self._offsets:
            name = self._offsets[text] = f"o{len(self._offsets)}"
            self.lines.append(f"const long {name} = {text};")
        return self._offsets[text]

    def _index(self, access: Access) -> str:
        steps = self.k._steps(access)[self.k.outer:]
        parts = [x for x in [self._offset(access)] if x]
        parts += [f"j{i}" if s == 1 else f"j{i} * {s}" for i, s in enumerate(steps) if s]
        return " + ".join(parts) or "0"

    def _linear(self) -> str:
        """The place of an element in a buffer of one row."""
        lengths = self.k.lengths[self.k.outer:]
        return " + ".join(f"j{i}" if s == 1 else f"j{i} * {s}"
                          for i, s in enumerate(dense(tuple(lengths)))) or "0"

    # -------------------------------------------------------------- row level

    def row_level(self, phase: int) -> None:
        """Formulas of one value for the row, ready before this pass."""
        for node in self.k.group.nodes:
            value = node.outputs[0]
            if self.k.phase[value.number] != phase or not self.k._is_row(value):
                continue
            if isinstance(node, Elem) and self.k.domain:
                self.row_names[value.number] = self._formula(node, self.lines, {})
            elif isinstance(node, Reduce) and self.k.group.kind(node) == "rows":
                self._rows_sum(node)
                continue
            elif isinstance(node, Reduce) and self.k.group.kind(node) != "row":
                continue
            if value.number in self.k.stored and value.number in self.row_names:
                self._store(value, self.row_names[value.number], self.row_stores)

    def _rows_sum(self, node: Reduce) -> None:
        """A reduction of numbers that are one for each row."""
        name = self._total(node)
        value = self._name(node.inputs[0], {}, self.lines, self.k.phase[node.outputs[0].number])
        self.lines.append(combined(node.how, name, value))

    def _store(self, value: Value, name: str, lines: list[str]) -> None:
        access = self.k._access(value)
        pointer = self.k._pointer("out", value)
        # Numbers of two bytes are assigned as floats, which is vectorised; see their C++ types.
        cast = "" if value.dtype in NARROW else f"({C_TYPES[value.dtype]})"
        lines.append(f"{pointer}[{self._index(access)}] = {cast}{name};")

    # -------------------------------------------------------------- passes

    def sweep(self, phase: int) -> None:
        """One pass over the row."""
        self._known = dict(self._row_known)
        statements = _Pass()
        body = statements.body
        names: dict[int, str] = {}
        for node in self.k.group.nodes:
            value = node.outputs[0]
            at = self.k.phase[value.number]
            if isinstance(node, Reduce):
                kind = self.k.group.kind(node)
                if kind == "rows" or (at - (kind == "row")) != phase:
                    continue
                element = self._name(node.inputs[0], names, body, phase)
                self._reduce(node, kind, element, statements)
                continue
            if at != phase or (self.k._is_row(value) and self.k.domain):
                continue
            if value.number not in self.k.stored and value.number not in self.k.kept:
                continue
            name = self._name(value, names, body, phase)
            if value.number in self.k.stored:
                self._store(value, name, statements.stores)
            if value.number in self.k.kept:
                body.append(f"{self._buffer(value)}[{self._linear()}] = {name};")
        if body or statements.stores:
            self._loop(statements)
        self.lines += statements.closing

    def _loop(self, statements: _Pass) -> None:
        """The loops over a row. Sums of float32 along a long one are taken in parts."""
        lengths = [str(n) for n in self.k.lengths[self.k.outer:]]
        if self.k.flat:
            lengths = ["count"]
        lines: list[str] = []
        ends: list[str] = []
        for i, n in enumerate(lengths[:-1]):
            lines.append("    " * i + f"for (long j{i} = 0; j{i} < {n}; j{i}++) {{")
            ends.insert(0, "    " * i + "}")
        pad, last, begin, end = "    " * len(ends), len(lengths) - 1, "0", ""
        if lengths:
            end = lengths[-1]
        if statements.opening and int(end) > BLOCK:
            lines += [f"{pad}for (long b = 0; b < {end}; b += {BLOCK}) {{",
                      f"{pad}    const long e = {end} - b < {BLOCK} ? {end} : b + {BLOCK};"]
            ends.insert(0, pad + "}")
            pad, begin, end = pad + "    ", "b", "e"
        lines += [pad + line for line in statements.opening]
        if end not in ("", "1"):  # one turn is no loop to vectorise
            lines.append(pad + " ".join(["#pragma omp simd",
                                         *(f"reduction({c})" for c in statements.clauses)]))
        lines.append(pad + (f"for (long j{last} = {begin}; j{last} < {end}; j{last}++) {{"
                            if end else "{"))
        lines += [pad + "    " + line for line in statements.body + statements.stores]
        lines += [pad + "}", *(pad + line for line in statements.ending), *ends]
        self.lines += lines

    def _buffer(self, value: Value) -> str:
        name = self._buffers.get(value.number)
        if name is None:
            name = self._buffers[value.number] = f"kept{len(self._buffers)}"
            count = BLOCK if self.k.flat else math.prod(self.k.lengths[self.k.outer:])
            kind = C_TYPES[compute_dtype(value.dtype)]
            self._stack += _padded(count * 8)  # room for the widest type
            if self._stack <= _STACK:
                self.before.append(f"alignas(64) {kind} {name}[{count}];")
            else:
                start, self.k.scratch = self.k.scratch, (
                    self.k.scratch + _padded(count * 8) * PARTS)
                self.before.append(
                    f"{kind}* const __restrict__ {name} = ({kind}*)(q[SCRATCH] + {start} + part * "
                    f"{_padded(count * 8)}L);")
        return name

    def _reduce(self, node: Reduce, kind: str, element: str, statements: _Pass) -> None:
        dtype = compute_dtype(node.outputs[0].dtype)
        if kind == "column":
            at = self._index(self.k._access(node.outputs[0]))
            statements.body.append(combined(node.how, f"{self._column(node)}[{at}]", element))
            return
        name = self._fresh("a")
        type_ = "int" if dtype == "bool" else C_TYPES[dtype]
        start = f"{type_} {name} = {identity(node.how, dtype)};"
        row = math.prod(self.k.lengths[self.k.outer:])
        if not self.k.flat and row > _LONG and node.how == "sum" and dtype == "float32":
            whole = self._fresh("w")
            self.lines.append(f"double {whole} = 0;")
            statements.opening.append(start)
            statements.ending.append(f"{whole} += {name};")
            statements.closing.append(f"const float {name} = (float){whole};")
        else:
            self.lines.append(start)
        if node.how in ("max", "min") and dtype.startswith("float"):
            nan = self._fresh("nan")
            self.lines.append(f"int {nan} = 0;")
            # Vectorised comparisons lose a nan among extremes; it is remembered beside them.
            statements.body.append(f"{nan} |= {element} != {element};")
            statements.clauses.append(f"|:{nan}")
            statements.closing.append(f"if ({nan}) {name} = not_a_number<{type_}>();")
        statements.body.append(combined(node.how, name, element, simd=True))
        statements.clauses.append(f"{_CLAUSE[node.how]}:{name}")
        if kind == "row":
            value = node.outputs[0]
            if value.number in self.k.rounded:
                whole, name = name, self._fresh("t")
                statements.closing.append(
                    f"const {C_TYPES[dtype]} {name} = {rounded(whole, value.dtype)};")
            self.row_names[value.number] = name
            # What holds for the whole row is stored after all its loads; see `row_level`.
            if value.number in self.k.stored and not self.k._is_row(value):
                self._store(value, name, statements.closing)
        else:
            statements.closing.append(combined(node.how, self._total(node), name))

    # -------------------------------------------------------------- what ends with the kernel

    def _column(self, node: Reduce) -> str:
        """The array in which a part adds up its columns, laid out like the result."""
        value = node.outputs[0]
        kind = C_TYPES[compute_dtype(value.dtype)]
        width = math.prod(self.k.domain[self.k.group.split or 0:])
        pointer = self.k._pointer("out", value)
        if node.how == "sum" and kind in ("float", "double") and (
                math.prod(self.k.lengths[:self.k.outer]) > ROWS):
            return self._column_in_blocks(value, pointer, kind, width)
        start, self.k.scratch = self.k.scratch, self.k.scratch + _padded(width * 8) * PARTS
        name = f"c{pointer[1:]}"
        self.before += [
            # One part alone adds up in the result itself, if that has the type of the sums.
            f"{kind}* {name} = parts == 1 && sizeof(*{pointer}) == sizeof({kind}) ? ({kind}*)"
            f"{pointer} : ({kind}*)(q[SCRATCH] + {start} + part * {_padded(width * 8)}L);",
            f"for (long j = 0; j < {width}; j++) {name}[j] = {identity(node.how, value.dtype)};"]
        total = combined(node.how, "t", f"(({kind}*)(q[SCRATCH] + {start} + s * "
                                         f"{_padded(width * 8)}L))[j]")
        self.k.finish.append(
            f"if (parts > 1 || sizeof({C_TYPES[value.dtype]}) != sizeof({kind})) "
            f"for (long j = 0; j < {width}; j++) {{ {kind} t = "
            f"{identity(node.how, value.dtype)}; for (int s = 0; s < parts; s++) {total} "
            f"(({C_TYPES[value.dtype]}*)q[{pointer[1:]}])[j] = ({C_TYPES[value.dtype]})t; }}")
        return name

    def _column_in_blocks(self, value: Value, pointer: str, kind: str, width: int) -> str:
        """The array in which a part adds up the columns of a block of rows. What comes of blocks
        is added up in double precision: rounding errors do not grow with the number of rows."""
        half = _padded(width * 8)
        # What lies on the stack is nobody else's: of narrow columns it stays in registers.
        stacked = width <= _NARROW
        each_part = half if stacked else 2 * half
        start, self.k.scratch = self.k.scratch, self.k.scratch + each_part * PARTS
        name, whole = f"c{pointer[1:]}", f"d{pointer[1:]}"
        each = f"for (long j = 0; j < {width}; j++)"
        self.before += [
            f"double* const __restrict__ {whole} = (double*)(q[SCRATCH] + {start} + part * "
            f"{each_part}L);",
            f"alignas(64) {kind} {name}[{width}];" if stacked else
            f"{kind}* const __restrict__ {name} = ({kind}*)((char*){whole} + {half});",
            f"{each} {whole}[j] = 0;"]
        self.opening.append(f"{each} {name}[j] = 0;")
        # No "omp simd": GCC 12 then leaves a part of a sum of 10 columns in memory, row by row.
        self.closing.append(f"{each} {whole}[j] += {name}[j];")
        self.k.finish.append(
            f"{each} {{ double t = 0; for (int s = 0; s < parts; s++) t += ((double*)(q[SCRATCH] "
            f"+ {start} + s * {each_part}L))[j]; (({C_TYPES[value.dtype]}*)q[{pointer[1:]}])[j] = "
            f"({C_TYPES[value.dtype]})t; }}")
        return name

    def _total(self, node: Reduce) -> str:
        """The variable in which a part adds up one number."""
        value = node.outputs[0]
        dtype = compute_dtype(value.dtype)
        wide = "double" if dtype == "float32" else "int" if dtype == "bool" else C_TYPES[dtype]
        pointer = self.k._pointer("out", value)
        start, self.k.scratch = self.k.scratch, self.k.scratch + 64 * PARTS
        name = self._fresh("s")
        self.before.append(f"{wide} {name} = {identity(node.how, dtype, wide)};")
        # Each part has a cache line of its own, which no other thread writes to meanwhile.
        self.after.append(f"*({wide}*)(q[SCRATCH] + {start} + part * 64) = {name};")
        each = combined(node.how, "t", f"*({wide}*)(q[SCRATCH] + {start} + s * 64)")
        self.k.finish.append(
            f"{{ {wide} t = {identity(node.how, dtype, wide)}; for (int s = 0; s < parts; s++) "
            f"{each} *({C_TYPES[value.dtype]}*)q[{pointer[1:]}] = ({C_TYPES[value.dtype]})t; }}")
        return name

    # -------------------------------------------------------------- values

    def _fresh(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _name(self, value: Value, names: dict[int, str], body: list[str], phase: int) -> str:
        """The C++ variable of a value in this pass. What it is made of comes first."""
        waiting = [value]
        while waiting:
            node = self._unwritten(waiting[-1], names, phase)
            below = None if node is None else next(
                (x for x in node.inputs if self._unwritten(x, names, phase) is not None), None)
            if below is not None:
                waiting.append(below)
                continue
            if node is not None:
                names[node.outputs[0].number] = self._formula(node, body, names, phase)
            waiting.pop()
        inner = self.k._inner(value)
        key = value.number if inner is None else inner.number
        if key in self.row_names:
            return self.row_names[key]
        if key in names:
            return names[key]
        return self._loaded(value, names, body) if inner is None else self._again(
            inner, names, body)

    def _unwritten(self, value: Value, names: dict[int, str], phase: int) -> Elem | None:
        """The formula that has to be written for a value, where there is none yet."""
        inner = self.k._inner(value)
        if inner is None or inner.number in self.row_names or inner.number in names:
            return None
        if self._stands(inner, phase):
            return None
        node = self.k.makers[inner.number]
        assert isinstance(node, Elem), node
        return node

    def _stands(self, inner: Value, phase: int) -> bool:
        """Whether an earlier pass left a value in memory."""
        key = inner.number
        return self.k.phase[key] < phase and not self.k._is_row(inner) and (
            key in self.k.kept or key in self.k.stored)

    def _again(self, inner: Value, names: dict[int, str], body: list[str]) -> str:
        """A value of an earlier pass, from where that left it."""
        dtype = C_TYPES[compute_dtype(inner.dtype)]
        source = f"{self._buffer(inner)}[{self._linear()}]" if inner.number in self.k.kept else (
            f"{self.k._pointer('out', inner)}[{self._index(self.k._access(inner))}]")
        name = names[inner.number] = self._fresh("t")
        body.append(f"const {dtype} {name} = ({dtype}){source};")
        return name

    def _loaded(self, value: Value, names: dict[int, str], body: list[str]) -> str:
        access = self.k._access(value)
        pointer = self.k._pointer("in", access.root)
        dtype = C_TYPES[compute_dtype(value.dtype)]
        steps = self.k._steps(access)
        name = self._fresh("x")
        if not any(steps):
            self.before.append(f"const {dtype} {name} = {_element(value, pointer, access.offset)};")
            self.row_names[value.number] = name
        elif not any(steps[self.k.outer:]):
            element = _element(value, pointer, self._index(access))
            self.lines.append(f"const {dtype} {name} = {element};")
            self.row_names[value.number] = name
        else:
            body.append(f"const {dtype} {name} = {_element(value, pointer, self._index(access))};")
            names[value.number] = name
        return name

    def _formula(self, node: Elem, body: list[str], names: dict[int, str], phase: int = -1) -> str:
        """The statements of a formula; the variable that holds its result."""
        variables = {name: self._name(v, names, body, self.k.phase[node.outputs[0].number]
                                      if phase < 0 else phase)
                     for name, v in zip(node.names, node.inputs)}
        dtypes = {name: v.dtype for name, v in zip(node.names, node.inputs)}
        out = node.outputs[0].dtype
        default = next(iter(dtypes.values()), out) if node.label.startswith("cast") else out
        known = self._row_known if body is self.lines else self._known
        printer = CudaPrinter([node.body], dtypes, variables, default, self._fresh("v") + "_",
                              known, every=self._every)
        body += printer.lines()
        (text,) = printer.results([out])
        name = self._fresh("t")
        text = f"({C_TYPES[compute_dtype(out)]})({text})"
        if node.outputs[0].number in self.k.rounded:
            text = rounded(text, out)
        body.append(f"const {C_TYPES[compute_dtype(out)]} {name} = {text};")
        return name


def _element(value: Value, pointer: str, index: int | str) -> str:
    """An element in the type that it is computed in. GCC leaves loops that load a bool and choose
    by it to scalar code, but not those that load a byte."""
    if value.dtype == "bool":
        return f"((const unsigned char*){pointer})[{index}] != 0"
    return f"({C_TYPES[compute_dtype(value.dtype)]}){pointer}[{index}]"


def _padded(count: int) -> int:
    return -(-count // 64) * 64


def combined(how: str, total: str, value: str, *, simd: bool = False) -> str:
    """The step of a reduction; extremes of anything with nan are nan. `simd`: as compilers know
    it, where a nan may be lost among extremes."""
    if how in ("max", "min"):
        better = f"{value} {'>' if how == 'max' else '<'} {total}"
        nan = "" if simd else f" || {value} != {value}"
        return f"{total} = {better}{nan} ? {value} : {total};"
    return f"{total} {_CLAUSE[how]}= {value};"


def identity(how: str, dtype: str, wide: str = "") -> str:
    if how in _IDENTITY:
        return _IDENTITY[how]
    kind = wide or C_TYPES[compute_dtype(dtype)]
    return f"lowest_of<{kind}>()" if how == "max" else f"highest_of<{kind}>()"

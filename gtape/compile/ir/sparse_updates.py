"""Rows of a table without another array as large as the table.

Sparse updates: w ± c Σ rows. The gradient of a gather is zero but for some rows. Where it only ends
up in w - c g, the rows are added to w itself; nothing else of w is touched.

Sparse reads: rows of a formula. What is computed of a table to read some of its rows is computed of
these rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from gtape.compile.ir.nodes import Elem, IrModule, IrNode, LibraryCall, Reduce, Value, View
from gtape.opdef.cuda_text import C_TYPES, NARROW, number
from gtape.opdef.scalar_graph import substitute


class _Chain(NamedTuple):
    """A scatter, the factors on its way, and the addition to `base` that it ends in."""

    scatter: LibraryCall
    factors: tuple[Any, ...]
    sign: int
    base: Value
    last: Elem


def sparse_updates(module: IrModule) -> IrModule:
    """`module` with such updates in place of their dense forms."""
    users = _users(module)
    needed = {v.number for v in module.needed()}
    replaced: dict[int, LibraryCall] = {}
    for node in module.nodes:
        if isinstance(node, LibraryCall) and node.name == "scatter":
            chain = _followed(node, users, needed)
            if chain is not None:
                replaced[id(chain.last)] = _update(chain)
    if not replaced:
        return module
    nodes = tuple(replaced.get(id(n), n) for n in module.nodes)
    return module._replace(nodes=nodes).live()


def _users(module: IrModule) -> dict[int, list[IrNode]]:
    """The nodes that read each value, by its number."""
    users: dict[int, list[IrNode]] = {}
    for node in module.nodes:
        for value in {v.number: v for v in node.inputs}.values():
            users.setdefault(value.number, []).append(node)
    return users


def _followed(scatter: LibraryCall, users: dict[int, list[IrNode]],
              needed: set[int]) -> _Chain | None:
    value = scatter.outputs[0]
    factors: list[Any] = []
    while True:
        users_of = users.get(value.number, [])
        # Another reader needs it dense: nothing would be saved.
        if len(users_of) != 1 or value.number in needed or not isinstance(users_of[0], Elem):
            return None
        node = users_of[0]
        # Rows say no more what a cast or broadcast array holds.
        if node.outputs[0].dtype != value.dtype or node.outputs[0].shape != value.shape:
            return None
        factor = _factor(node, value)
        if factor is None:
            break
        factors.append(factor)
        value = node.outputs[0]
    found = _sum(node, value)
    return None if found is None else _Chain(scatter, tuple(factors), found[0], found[1], node)


def _operands(node: Elem, names: Sequence[str]) -> tuple[str, list[Any]] | None:
    """The scalar op and the operands of a formula of one op: values, or numbers."""
    body = node.body
    if body.op is None or body.op.name not in names:
        return None
    made = []
    for arg in body.args:
        if arg.is_constant:
            made.append(arg.value)
        elif arg.is_input:
            made.append(node.inputs[node.names.index(arg.value)])
        else:
            return None
    return body.op.name, made


def _factor(node: Elem, value: Value) -> Any:
    """What a formula multiplies `value` with: a number, or a value of one element."""
    found = _operands(node, ("multiply",))
    if found is None:
        return None
    rest = [x for x in found[1] if x is not value]
    # A factor of many elements would have to be gathered first.
    if len(rest) != 1 or not (isinstance(rest[0], (int, float)) or rest[0].size == 1):
        return None
    return rest[0]


def _sum(node: Elem, value: Value) -> tuple[int, Value] | None:
    """The sign with which `value` is added to another, and that one."""
    found = _operands(node, ("add", "subtract"))
    if found is None:
        return None
    op, (a, b) = found
    base, sign = (a, -1 if op == "subtract" else 1) if b is value else (b, 1)
    if op == "subtract" and b is not value:  # in value - w every row of w changes
        return None
    # Rows are written into `base` where it lies: no view, no number.
    if not isinstance(base, Value) or base is value or base.shape != value.shape or isinstance(
            base.node, View):
        return None
    return sign, base


def _update(chain: _Chain) -> LibraryCall:
    x, indices = chain.scatter.inputs
    out = chain.last.outputs[0]
    kind = C_TYPES[out.dtype]
    rows, inner = out.shape[0], math.prod(out.shape[1:])
    scalars = [f for f in chain.factors if isinstance(f, Value)]
    numbers = [number(f, out.dtype) for f in chain.factors if not isinstance(f, Value)]

    def emit(program: Any, node: LibraryCall) -> str:
        base, values, where, *rest = [program.pointer(v) for v in node.inputs]
        target = program.pointer(node.outputs[0])
        scale = " * ".join([f"({kind}){chain.sign}", *numbers, *(f"*{p}" for p in rest)])
        copy = "" if base == target else (
            f"__builtin_memcpy({target}, {base}, sizeof({kind}) * {rows * inner}L); ")
        return (f"{{ {copy}scatter_rows({values}, {where}, {target}, {rows}, {inner}, "
                f"{indices.size}, {scale}, false); }}")

    key = (chain.sign, tuple(numbers))
    made = LibraryCall("scatter into", (chain.base, x, indices, *scalars), key, ("cpu_indexing.h",),
                       emit)
    made.takes_place = chain.base.number
    made.outputs = (out,)
    out.node = made
    return made


# ---------------------------------------------------------------- reads
def sparse_reads(module: IrModule) -> IrModule:
    """`module` with formulas of rows in place of rows of formulas, where nothing but other formulas
    needs the whole."""
    reads = _Reads(module)
    for node in module.nodes:
        reads.add(node)
    return module._replace(nodes=tuple(reads.nodes)).live()


def _is_gather(node: IrNode) -> bool:
    """Whether a node gives some rows of a table, one for each of a vector of indices."""
    return isinstance(node, LibraryCall) and node.name == "gather" and node.key == (0, False) and (
        len(node.inputs[1].shape) == 1)


class _Reads:
    """The nodes of a module, one after the other; `nodes` are those that stand for them."""

    def __init__(self, module: IrModule) -> None:
        self.nodes: list[IrNode] = []
        self._users = _users(module)
        self._needed = {v.number for v in module.needed()} | module.shared
        self._count = max((o.number for n in module.nodes for o in n.outputs), default=0)
        #: By the numbers of a table and of indices.
        self._known: dict[tuple[int, int], Value] = {}

    def add(self, node: IrNode) -> None:
        if _is_gather(node):
            table, indices = node.inputs
            # For as many indices as rows, computing all rows is no more work.
            if indices.size < table.shape[0] and self._is_formula(table):
                self._formula(table, node, node.outputs[0])
                return
        self.nodes.append(node)

    def _is_formula(self, table: Value) -> bool:
        """Whether a table is computed row by row, and need not be stored."""
        node = table.node
        return (isinstance(node, Elem) and table.number not in self._needed
                and table.dtype not in NARROW
                and all(isinstance(user, (Elem, Reduce)) or _is_gather(user)
                        for user in self._users.get(table.number, ()))
                and all(_in_rows(x, table) for x in node.inputs))

    def _formula(self, table: Value, gather: Any, out: Value) -> Value:
        """Make the rows `out` of a table that is computed."""
        old: Any = table.node
        inputs = [self._rows(x, gather) if x.shape == table.shape else x for x in old.inputs]
        names = [f"n{x.number}" for x in inputs]
        graph = old.body.graph
        renamed = {id(graph.input(a)): graph.input(b) for a, b in zip(old.names, names)}
        (body,) = substitute([old.body], renamed, graph)
        return self._made(Elem(old.name, body, names, inputs), out)

    def _rows(self, table: Value, gather: LibraryCall) -> Value:
        """The rows of a table that `gather` reads of another."""
        indices = gather.inputs[1]
        key = (table.number, indices.number)
        if key not in self._known:
            self._count += 1
            shape = (indices.size, *table.shape[1:])
            out = Value(shape, table.dtype, gather, self._count)
            self._known[key] = self._formula(table, gather, out) if self._is_formula(table) else (
                self._made(LibraryCall("gather", (table, indices), gather.key, gather.headers,
                                   gather.emit), out))
        return self._known[key]

    def _made(self, node: IrNode, out: Value) -> Value:
        node.outputs = (out,)
        out.node = node
        self.nodes.append(node)
        return out


def _in_rows(x: Value, table: Value) -> bool:
    """Whether rows of the table need the same rows of `x`, which lies there, or the same of it for
    every row."""
    if x.shape == table.shape:
        return not isinstance(x.node, View) and x.dtype in C_TYPES
    return len(x.shape) < len(table.shape) or x.shape[0] == 1

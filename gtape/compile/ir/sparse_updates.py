"""Sparse updates: w ± c Σ rows, without an array of zeros as large as w.

The gradient of a gather is zero but for some rows. Where it only ends up in w - c g, the rows are
added to w itself; nothing else of w is touched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from gtape.compile.ir.nodes import Elem, IrModule, IrNode, LibraryCall, Value, View
from gtape.opdef.printers.cuda import C_TYPES, number


class _Chain(NamedTuple):
    """A scatter, the factors on its way, and the addition to `base` that it ends in."""

    scatter: LibraryCall
    factors: tuple[Any, ...]
    sign: int
    base: Value
    last: Elem


def sparse_updates(module: IrModule) -> IrModule:
    """`module` with such updates in place of their dense forms."""
    users: dict[int, list[IrNode]] = {}
    for node in module.nodes:
        for value in {v.number: v for v in node.inputs}.values():
            users.setdefault(value.number, []).append(node)
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


def _followed(scatter: LibraryCall, users: dict[int, list[IrNode]],
              needed: set[int]) -> _Chain | None:
    value = scatter.outputs[0]
    factors: list[Any] = []
    while True:
        users_of = users.get(value.number, [])
        if len(users_of) != 1 or value.number in needed or not isinstance(users_of[0], Elem):
            return None
        node = users_of[0]
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
    if op == "subtract" and b is not value:
        return None
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

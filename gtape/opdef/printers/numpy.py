"""Scalar expressions as Python text over whole arrays, for NumPy and CuPy alike.

`tanh`'s backward prints as

    def backward(g, y):
        return g * (1 - y * y)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

from gtape.core.device import ArrayModule
from gtape.core.op import Function
from gtape.opdef.scalar_graph import Expr, Number, topological

if TYPE_CHECKING:
    from gtape.opdef.scalar_ops import ScalarOp


def number_text(value: Number) -> str:
    """A constant as Python text."""
    if isinstance(value, int):
        return repr(value)
    if isinstance(value, complex):
        return f"complex({number_text(value.real)}, {number_text(value.imag)})"
    if math.isinf(value):
        return "inf" if value > 0 else "(-inf)"
    return "nan" if math.isnan(value) else repr(float(value))


class Printer:
    """Prints expressions; `names` collects the functions the text calls."""

    def __init__(self, xp: ArrayModule) -> None:
        self.names: dict[str, Any] = {"inf": math.inf, "nan": math.nan}
        self._xp = xp

    def call(self, op: ScalarOp, args: Sequence[str]) -> str:
        """`op` applied to argument texts."""
        if op.infix is not None:
            return "(" + op.infix.format(*args) + ")"
        self.names[op.name] = op.on(self._xp)
        return f"{op.name}({', '.join(args)})"

    def lines(self, outputs: Sequence[Expr]) -> tuple[list[str], list[str]]:
        """Assignments for the nodes used more than once, and the text of each output."""
        order = topological(outputs)
        uses: dict[int, int] = {}
        for node in order:
            for arg in node.args:
                uses[id(arg)] = uses.get(id(arg), 0) + 1
        texts: dict[int, str] = {}
        assigned: list[str] = []
        for node in order:
            if node.op is None:
                texts[id(node)] = (node.value if node.is_input else number_text(node.value))
                continue
            text = self.call(node.op, [texts[id(a)] for a in node.args])
            # What is read once is written in its place: Python stores no name, and NumPy can reuse
            # the temporary.
            if uses.get(id(node), 0) > 1:
                name = f"t{len(assigned)}"
                assigned.append(f"{name} = {text}")
                text = name
            texts[id(node)] = text
        return assigned, [texts[id(o)] for o in outputs]


# To compile even five lines takes 0.05 ms, the time of fifty small ops.
@functools.lru_cache(maxsize=512)
def _code(source: str, name: str) -> CodeType:
    """Python's code of a source: the same text is printed again for every pass over a dataset."""
    return compile(source, f"<gtape {name}>", "exec")


def define(source: str, name: str, names: dict[str, Any]) -> Function:
    """The function `name` that `source`, printed by this package, defines."""
    space = dict(names)
    exec(_code(source, name), space)
    function = space[name]
    function.__source__ = source
    return function

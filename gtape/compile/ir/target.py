"""Target: what programs are printed as, which decides how far ops are taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gtape.compile.ir.nodes import Value
from gtape.compile.ir.rounding import exact
from gtape.core.modes import Modes
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.opdef.cuda_text import C_TYPES, NARROW, servable
from gtape.trace.graph import Node

if TYPE_CHECKING:
    from gtape.compile.ir.builder import Rule


class Target:
    """C++. Others differ in what they override."""

    #: Whether a product with a single row or column is a formula, which fuses with others.
    fuses_vectors = True
    #: Whether costly parts of formulas are values of their own, which other formulas find.
    shares_parts = False

    def spells(self, node: Node, inputs: Sequence[Value], spec: Spec) -> bool:
        """Whether there is text for the formula of an elementwise op."""
        op, dtypes = node.op, [v.dtype for v in inputs]
        if not servable([op.body()], dict(zip(op.params, dtypes))) or (
                spec.dtype.name.startswith("complex")):
            return False
        return Modes.excess_precision or exact(op.body(), [*dtypes, spec.dtype.name])

    def rule(self, op: Op, inputs: Sequence[Value]) -> Rule | None:
        """How an op is made of nodes."""
        return op.lower

    def opens(self, op: Op, inputs: Sequence[Value]) -> bool:
        """Whether an op of these values is what its definition gives. Array functions compute
        floats of two bytes in float32 and round once, and know what there is of no elements."""
        return all(v.dtype in C_TYPES and (
            op.literal or (v.size > 0 and v.dtype not in NARROW)) for v in inputs)


CPP = Target()

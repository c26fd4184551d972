"""Conditions that a program needs: where one does not hold, the call runs as Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.compile.ir.builder import Builder, lowers
from gtape.compile.ir.nodes import LibraryCall, Value
from gtape.compile.lowering.indexing import compact
from gtape.core.spec import Spec
from gtape.ops.control.branches import premise_


@lowers(premise_)
def _(b: Builder, x: list[Value], attrs: dict[str, Any], specs: Sequence[Spec]) -> Value:
    (held,) = x
    expected = "true" if attrs["expected"] else "false"

    def emit(program: Any, node: LibraryCall) -> str:
        return f"(*{program.pointer(node.inputs[0])} == {expected})"

    node = LibraryCall("premise", (compact(b, held),), (expected, attrs["why"]), (), emit,
                   checks=attrs["why"])
    # As a check that fails, but the call is then run by Python and is no error.
    node.premise = True
    b.library(node, ())
    return held

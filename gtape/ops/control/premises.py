"""Premises: what must hold in a call for its trace to serve it.

Of a choice one of whose branches cannot be traced, a trace has the other one, behind a premise. A
call for which it does not hold ends before any state has changed, and runs as Python.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gtape.core.context import paused, tracer_now
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import bool_
from gtape.core.errors import NotTraceableError, UntracedBranchError
from gtape.core.op import case
from gtape.core.tensor import Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import reshape_
from gtape.trace.graph import Graph, Node
from gtape.trace.host_callback import HostCallback


@primitive(nondifferentiable=True)
def premise_(xp: ArrayModule, held: Array, *, expected: bool, why: str) -> Array:
    """y = held, a condition that must be `expected`."""
    if bool(held) is not expected:
        raise UntracedBranchError(why)
    return held


premise_.infer(lambda held, **_: held)
premise_.has_side_effect = True
premise_.cases = [case(np.array(True), expected=True, why="x", dtypes=("bool",))]


def suppose(pred: Tensor, expected: bool, reason: NotTraceableError) -> None:
    """Let the present trace serve only the calls for which `pred` is `expected`.

    Raises:
        NotTraceableError: the `reason` given; there is no Python code to run for other calls.
    """
    if not tracer_now().outermost.replaceable:
        raise reason
    with paused():
        premise_(cast(reshape_(pred, shape=()), bool_), expected=expected, why=str(reason))


def check_premises(graph: Graph, replaceable: bool) -> None:
    """See to it that a call can run as Python where a premise does not hold.

    Raises:
        NotTraceableError: it cannot, or may have printed a line by then, or done something else
            that would be done again.
    """
    done = False
    for node in graph.nodes:
        steps = list(_steps(node))
        premises = [step for step in steps if step.op is premise_]
        deeds = any(step.has_side_effect for step in steps if step.op is not premise_)
        if premises and (done or not replaceable or deeds):
            raise NotTraceableError(premises[0].attrs[1])
        done = done or deeds


def _steps(node: Node) -> Iterator[Node]:
    """The node, or those of the graphs that it applies, which may be applied often."""
    parts = node.op.parts if isinstance(node.op, HostCallback) else ()
    if not parts:
        yield node
    for part in parts:
        for inner in part.nodes:
            yield from _steps(inner)


def has_premises(graph: Graph) -> bool:
    """Whether there are calls that the graph does not serve."""
    return any(step.op is premise_ for node in graph.nodes for step in _steps(node))

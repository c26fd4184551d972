"""The derivative of a scalar expression, as expressions: reverse mode over scalar ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gtape.opdef.scalar_graph import Expr, ScalarGraph, operators, substitute, topological

if TYPE_CHECKING:
    from gtape.opdef.scalar_ops import ScalarOp


def scalar_vjp(op: ScalarOp, g: Expr, y: Expr, args: Sequence[Expr], complex_: bool,
               ) -> list[Expr | None]:
    """The cotangent of each argument of `y = op(*args)`, given that of y.

    A missing pullback (None) means that the argument carries no gradient. For complex values the
    convention is TensorFlow's: a holomorphic op with derivative f' gives g * conj(f'), which
    is conj(pullback(conj(g))) because every pullback is linear in g.
    """
    holomorphic = complex_ and op.holomorphic
    conj = operators["conj"]
    graph = g.graph
    cotangent = graph.node(conj, (g,)) if holomorphic else g
    env: dict[str, Expr] = {"g": cotangent, "y": y, **dict(zip(op.params, args))}
    parts: list[Expr | None] = []
    for name in op.params:
        rule = op.rules.get(name)
        if rule is None:
            if not op.has_gradient:
                raise LookupError(f"gradient registry has no entry for: {op.tf_name}")
            parts.append(None)
            continue
        part = rule.fn(*(env[n] for n in rule.names))
        if not isinstance(part, Expr):
            part = graph.constant(part)
        parts.append(graph.node(conj, (part,)) if holomorphic else part)
    return parts


def derivative(output: Expr, cotangent: Expr, wrt: Sequence[Expr], complex_: bool,
               ) -> list[Expr | None]:
    """d(output)/d(each of wrt), pulled back from `cotangent`; None where nothing connects."""
    total: dict[int, Expr] = {id(output): cotangent}
    wanted = {id(w) for w in wrt}
    # Only what leads to a wanted input is pulled back: the rest would be dropped at the end, and
    # may have no gradient at all, which would be an error that nobody asked for.
    useful = set(wanted)
    order = topological([output])
    for node in order:
        if any(id(a) in useful for a in node.args):
            useful.add(id(node))
    for node in reversed(order):
        g = total.get(id(node))
        if g is None or node.op is None or id(node) not in useful:
            continue
        for arg, part in zip(node.args, scalar_vjp(node.op, g, node, node.args, complex_)):
            if part is None or id(arg) not in useful:
                continue
            old = total.get(id(arg))
            total[id(arg)] = part if old is None else graph_sum(old, part)
    return [total.get(id(w)) for w in wrt]


def graph_sum(a: Expr, b: Expr) -> Expr:
    return a.graph.node(operators["add"], (a, b))


def rename_output(parts: Sequence[Expr | None], output: Expr, name: str) -> list[Expr | None]:
    """Read `output` from the input `name` instead of computing it again."""
    graph = ScalarGraph()
    # The tape has the result anyway: exp's derivative reads y, and computes no second exp.
    replaced: dict[int, Expr] = {} if output.op is None else {id(output): graph.input(name)}
    return [None if part is None else substitute([part], replaced, graph)[0] for part in parts]


def inputs_read(parts: Sequence[Expr | None]) -> list[str]:
    """The names of the inputs that `parts` need, in the order of first use."""
    names: list[str] = []
    for node in topological([p for p in parts if p is not None]):
        if node.is_input and node.value not in names:
            names.append(node.value)
    return names


def expression_vjp(body: Expr, params: Sequence[str], wrt: Sequence[int], complex_: bool,
                   ) -> list[Expr | None]:
    """The cotangents of the inputs `wrt` of a formula; its own is called `g_` where an input is
    called `g`."""
    graph = body.graph
    cotangent = graph.input(unused_name("g", params))
    inputs = [graph.input(params[i]) for i in wrt]
    parts = derivative(body, cotangent, inputs, complex_)
    return rename_output(parts, body, unused_name("y", params))


def unused_name(name: str, params: Sequence[str]) -> str:
    """`name`, or one like it that no parameter has: derivatives have inputs called g and y too."""
    while name in params:
        name += "_"
    return name

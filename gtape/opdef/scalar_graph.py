"""Scalar expressions: what an elementwise op computes for one element, and its derivative.

An `Expr` is a scalar op applied to expressions, an input, or a constant. Nodes are shared: within a
`ScalarGraph` the same op on the same arguments is the same node, so derivatives of derivatives stay
small and common parts are computed once. Derivatives are reverse mode over scalar ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from gtape.core.op import Op
    from gtape.opdef.elementwise import ScalarOp


Number: TypeAlias = float | int | bool | complex
#: Python's operators on expressions: the scalar ops they mean, filled by `ops.elementwise.scalars`.
operators: dict[str, ScalarOp] = {}


class ScalarGraph:
    """Where nodes are made and shared."""

    __slots__ = ("_nodes",)

    def __init__(self) -> None:
        self._nodes: dict[tuple[object, ...], Expr] = {}

    def input(self, name: str) -> Expr:
        return self._shared(("input", name), None, (), name)

    def constant(self, value: Number) -> Expr:
        # So are 1, 1.0 and True, whose texts give different dtypes.
        # 0.0 and -0.0 are equal, and not the same number.
        shown = "" if value else str(value)
        return self._shared(("constant", type(value), value, shown), None, (), value)

    def node(self, op: ScalarOp, args: Sequence[Expr | Number]) -> Expr:
        """`op(*args)`, simplified."""
        operands = tuple(a if isinstance(a, Expr) else self.constant(a) for a in args)
        simpler = op.simplify(operands) if op.simplify is not None else None
        if simpler is not None:
            return simpler
        # Ids serve as keys because the graph keeps its nodes, and nodes their operands: none is
        # reused.
        return self._shared((op, *map(id, operands)), op, operands, None)

    def _shared(self, key: tuple[object, ...], op: Op | None, args: tuple[Expr, ...], value: Any,
                ) -> Expr:
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Expr(self, op, args, value)
        return node


class Expr:
    """A node: `op` is None for an input (`value` its name) or a constant (its number)."""

    __slots__ = ("args", "graph", "op", "value")

    def __init__(self, graph: ScalarGraph, op: Any, args: tuple[Expr, ...], value: Any) -> None:
        self.graph = graph
        self.op = op
        self.args = args
        self.value = value

    @property
    def is_constant(self) -> bool:
        return self.op is None and not isinstance(self.value, str)

    @property
    def is_input(self) -> bool:
        return self.op is None and isinstance(self.value, str)

    def is_number(self, number: float) -> bool:
        return self.is_constant and self.value == number

    def __repr__(self) -> str:
        if self.op is None:
            return str(self.value)
        return f"{self.op.name}({', '.join(map(repr, self.args))})"


def _binary(name: str, swapped: bool = False) -> Callable[[Expr, Expr | Number], Expr]:
    def operator(self: Expr, other: Expr | Number) -> Expr:
        args = (other, self) if swapped else (self, other)
        return self.graph.node(operators[name], args)

    return operator


def _unary(name: str) -> Callable[[Expr], Expr]:
    return lambda self: self.graph.node(operators[name], (self,))


for _method, _op in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"),
                         ("truediv", "divide"), ("pow", "pow")):
    setattr(Expr, f"__{_method}__", _binary(_op))
    setattr(Expr, f"__r{_method}__", _binary(_op, swapped=True))
for _method, _op in (("lt", "less"), ("le", "less_equal"), ("gt", "greater"),
                         ("ge", "greater_equal"), ("and", "logical_and"), ("or", "logical_or")):
    setattr(Expr, f"__{_method}__", _binary(_op))
for _method, _op in (("neg", "negative"), ("invert", "logical_not")):
    setattr(Expr, f"__{_method}__", _unary(_op))


def is_expr(args: Sequence[object]) -> bool:
    return any(type(a) is Expr for a in args)


def topological(outputs: Sequence[Expr]) -> list[Expr]:
    """The nodes that `outputs` need, each after its arguments."""
    if len(outputs) == 1 and all(a.op is None for a in outputs[0].args):  # most formulas
        return [*dict.fromkeys(outputs[0].args), outputs[0]]
    # A stack of its own: what the compiler fuses is deeper than Python may recurse.
    order: list[Expr] = []
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(o, False) for o in reversed(outputs)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((a, False) for a in reversed(node.args) if id(a) not in seen)
    return order


def substitute(outputs: Sequence[Expr], replaced: dict[int, Expr], graph: ScalarGraph,
               ) -> list[Expr]:
    """`outputs` rebuilt in `graph` with some nodes (by id) replaced."""
    rebuilt = dict(replaced)
    for node in topological(outputs):
        if id(node) in rebuilt:
            continue
        if node.is_input:
            rebuilt[id(node)] = graph.input(node.value)
        elif node.is_constant:
            rebuilt[id(node)] = graph.constant(node.value)
        else:
            rebuilt[id(node)] = graph.node(node.op, [rebuilt[id(a)] for a in node.args])
    return [rebuilt[id(o)] for o in outputs]


def scalar_vjp(op: ScalarOp, g: Expr, y: Expr, args: Sequence[Expr], complex_: bool,
               ) -> list[Expr | None]:
    """The cotangent of each argument of `y = op(*args)`, given that of y.

    A missing pullback (None) means that the argument carries no gradient. For complex values the
    convention is TensorFlow's: a holomorphic op with derivative f' gives g * conj(f'), which
    is conj(pullback(conj(g))) because every pullback is linear in g.
    """
    holomorphic = complex_ and op.holomorphic
    # By name, since scalar ops are declared above this module.
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

"""Which values of float16 and bfloat16 are rounded where they are made.

Formulas compute these types in float32. A value that anything looks into is a number of its own
type, the same for all that read it: one that is stored or given out, cast, compared, reduced, or
read more than once. Only what one formula takes from another on the way through a chain of
arithmetic keeps the digits of float32, as in XLA and inductor. Without excess precision
(`gtape.core.modes`) every step is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gtape.compile.ir.nodes import (
    Elem,
    Hosted,
    IrModule,
    IrNode,
    LibraryCall,
    Reduce,
    StridedLayout,
    Value,
    View,
    dense,
    v_root,
)
from gtape.core.modes import Modes
from gtape.opdef.cuda_text import NARROW, looked_at
from gtape.opdef.scalar_graph import Expr, topological

#: Scalar ops whose C++ in float32, rounded, has the bits of NumPy's function: one operation that
#: IEEE 754 rounds correctly, or none that rounds.
_EXACT = frozenset((
    "add", "subtract", "multiply", "divide", "negative", "square", "reciprocal", "sqrt", "abs",
    "maximum", "minimum", "relu", "relu6", "relu_gate", "relu6_gate", "clip", "where", "zero",
    "floor", "ceil", "rint", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "is_nan", "is_inf", "is_finite", "logical_and", "logical_or", "logical_xor",
    "logical_not"))


def exact(body: Expr, dtypes: Sequence[str]) -> bool:
    """Whether the steps of an op's formula, each rounded, have the bits of NumPy's. Of a bfloat16
    array and a Python number NumPy makes float32, which is not rounded."""
    narrow = [d for d in dtypes if d in NARROW]
    order = topological([body])
    return not narrow or (all(n.op is None or n.op.name in _EXACT for n in order) and not (
        "bfloat16" in narrow and any(n.is_constant for n in order)))


def rounded_values(module: IrModule) -> frozenset[int]:
    """The numbers of the values that are rounded before anything reads them."""
    made = [v for node in module.nodes if isinstance(node, Elem) or _is_sum(node)
            for v in node.outputs if v.dtype in NARROW]
    if not made or not Modes.excess_precision:
        return frozenset(v.number for v in made)
    twin = _twins(module)
    found = {twin(n) for n in module.shared | _read(module)}
    return frozenset(v.number for v in made if twin(v.number) in found or _changes(v))


def _changes(value: Value) -> bool:
    """Whether a value has its type from here on: from a cast, or from a sum in float32."""
    node = value.node
    return _is_sum(node) or any(v.dtype not in (value.dtype, "bool") for v in node.inputs)


def _is_sum(node: IrNode) -> bool:
    """Whether a node adds up in float32; extremes are among the numbers that were given."""
    return isinstance(node, Reduce) and node.how in ("sum", "prod")


def _read(module: IrModule) -> set[int]:
    """The values that something looks into, or that are read more than once."""
    found: set[int] = set()
    once: set[int] = set()

    def reads(values: Sequence[Value]) -> None:
        numbers = {v_root(v).number for v in values}
        found.update(numbers & once)
        once.update(numbers)

    for node in module.nodes:
        if not isinstance(node, View):
            reads(node.inputs)
            found |= {v_root(v).number for v in _looks(node)}
    reads(module.needed())
    return found


def _looks(node: IrNode) -> Sequence[Value]:
    """The inputs that a node looks into. Those of other nodes than these are stored."""
    if isinstance(node, Reduce):
        return node.inputs
    if not isinstance(node, Elem):
        return ()
    names, dtype = looked_at(node.body), node.outputs[0].dtype
    return [v for name, v in zip(node.names, node.inputs) if name in names or v.dtype != dtype]


# ---------------------------------------------------------------------- values computed twice

def _twins(module: IrModule) -> Callable[[int], int]:
    """Gives for a value's number that of the first that is computed in the same way: what is
    computed again (`Builder.optimization_barrier`) is rounded where it was before."""
    first: dict[int, int] = {}
    if not any(isinstance(node, View) and node.remat_stage for node in module.nodes):
        return lambda number: number  # most programs compute nothing twice
    known: dict[Any, int] = {}

    def twin(number: int) -> int:
        return first.get(number, number)

    for node in module.nodes:
        for i, out in enumerate(node.outputs):
            if isinstance(node, View) and out.shape == node.inputs[0].shape and (
                    node.layout == StridedLayout(dense(out.shape))):
                first[out.number] = twin(node.inputs[0].number)
                continue
            form = _form(node, twin)
            if form is not None:
                first[out.number] = known.setdefault((form, i, out.shape, out.dtype), out.number)
    return twin


def _form(node: IrNode, twin: Callable[[int], int]) -> Any:
    """What a node computes, of what; None for sources and for what cannot be compared."""
    inputs = tuple(twin(v.number) for v in node.inputs)
    if isinstance(node, Elem):
        return "elem", ops_of(node, inputs)
    if isinstance(node, Reduce):
        return "reduce", inputs, node.how, node.axes
    if isinstance(node, View):
        return "view", inputs, node.layout
    if isinstance(node, LibraryCall):
        return "library", inputs, node.name, node.key
    if isinstance(node, Hosted):
        return "hosted", inputs, id(node.op), repr(node.attrs)  # attributes of users need no hash
    return (type(node).__name__, inputs) if inputs else None


def ops_of(node: Elem, inputs: Sequence[object]) -> tuple[object, ...]:
    """A formula without the names of its inputs."""
    named = dict(zip(node.names, inputs))
    places: dict[int, int] = {}
    made: list[Any] = []
    for part in topological([node.body]):
        places[id(part)] = len(made)
        if part.op is not None:
            made.append((part.op.name, *(places[id(a)] for a in part.args)))
        else:
            made.append(("input", named[part.value]) if part.is_input else repr(part.value))
    return tuple(made)

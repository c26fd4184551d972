"""Graph: a traced function. Calling it applies its nodes again: eagerly, on a tape, in a trace."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from gtape.core.tensor import Tensor
from gtape.trace.symbolic_tensor import SymbolicTensor


# Compared by identity: two applications of one op to the same inputs are two nodes.
@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One application of an op."""

    op: Any
    inputs: tuple[Tensor, ...]
    attrs: tuple[Any, ...]
    outputs: tuple[SymbolicTensor, ...]

    @property
    def has_side_effect(self) -> bool:
        """Whether it does something besides making its outputs: it is never left out."""
        return self.op.has_side_effect

    @property
    def stays(self) -> bool:
        """Whether it is kept where nobody reads what it makes: it does something else, or may raise
        for the values that it reads."""
        # An error is part of what eager code does.
        return self.has_side_effect or self.op.may_refuse(self.inputs)


class _HasValues(Protocol):
    """A node of any graph: values in, values out."""

    @property
    def inputs(self) -> Sequence[Any]: ...
    @property
    def outputs(self) -> Sequence[Any]: ...


_N = TypeVar("_N", bound=_HasValues)


def live_nodes(nodes: Sequence[_N], outputs: Iterable[object], *,
               stays: Callable[[_N], bool] = lambda node: False,
               key: Callable[[Any], int] = id, known: Container[int] = (),
               ) -> tuple[tuple[_N, ...], set[int]]:
    """Dead-code elimination: the nodes that `outputs` need, in their order, and the keys of all
    values that these nodes and the outputs read.

    Args:
        stays: whether a node is kept though nothing reads what it makes.
        key: tells values apart.
        known: keys of values that are there already: nothing need make them.
    """
    # One pass from the end is enough: whoever reads a value stands behind the node that makes it.
    needed = set(map(key, outputs))
    live = []
    for node in reversed(nodes):
        keys = map(key, node.outputs)
        if stays(node) or any(k in needed and k not in known for k in keys):
            live.append(node)
            needed.update(map(key, node.inputs))
    return tuple(reversed(live)), needed


@dataclass(frozen=True, eq=False, slots=True)
class Graph:
    """Inputs, nodes in order, outputs. Eager tensors among the nodes' inputs are constants."""

    inputs: tuple[SymbolicTensor, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Tensor, ...]

    def __call__(self, *args: Tensor) -> tuple[Tensor, ...]:
        env: dict[int, Tensor] = {id(v): a for v, a in zip(self.inputs, args)}
        for node in self.nodes:
            # What no node made is a constant, and stands for itself.
            results = node.op.reapply([env.get(id(v), v) for v in node.inputs], node.attrs)
            env.update({id(v): o for v, o in zip(node.outputs, results)})
        return tuple(env.get(id(v), v) for v in self.outputs)

    @property
    def tensors(self) -> list[Tensor]:
        """Every tensor in it, some more than once: constants too."""
        between = (t for node in self.nodes for t in (*node.inputs, *node.outputs))
        return [*self.inputs, *between, *self.outputs]

    def live(self) -> Graph:
        """The same graph without the nodes that neither an output needs nor do anything else."""
        nodes, _ = live_nodes(self.nodes, self.outputs, stays=lambda node: node.stays)
        return Graph(self.inputs, nodes, self.outputs)

    def needed(self) -> Graph:
        """The same graph without the nodes that no output needs, whatever else they do."""
        return Graph(self.inputs, live_nodes(self.nodes, self.outputs)[0], self.outputs)

    def __str__(self) -> str:
        names = {id(v): f"%{i}" for i, v in enumerate(self.inputs)}
        lines = [f"inputs {', '.join(f'{names[id(v)]}: {v.spec}' for v in self.inputs)}"]
        for node in self.nodes:
            for value in node.outputs:
                names[id(value)] = f"%{len(names)}"
            outs = ", ".join(f"{names[id(v)]}: {v.spec}" for v in node.outputs)
            ins = ", ".join(names.get(id(v), "constant") for v in node.inputs)
            lines.append(f"{outs} = {node.op.name}({ins}) {node.attrs or ''}".rstrip())
        lines.append(f"outputs {', '.join(names.get(id(v), 'constant') for v in self.outputs)}")
        return "\n".join(lines)

"""Graph: a traced function. Calling it applies its nodes again: eagerly, on a tape, in a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtape.core.device import ArrayType
from gtape.core.errors import InternalError, OperatorNotAllowedInGraphError
from gtape.core.placement import current_device
from gtape.core.shape import TensorShape
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor


class SymbolicTensor(Tensor):
    """A value of a trace: its spec is known, its array is not."""

    __slots__ = ("__weakref__", "_k", "_spec", "_t", "_tracer")

    def __init__(self, spec: Spec, array_type: ArrayType, tracer: Tracer) -> None:
        self._spec = spec
        self._t = array_type
        self._tracer = tracer
        self._k = 0

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._spec.shape)

    @property
    def spec(self) -> Spec:
        return self._spec

    def _filled_(self, value: int) -> EagerTensor:
        made = self._t.xp.full(self._spec.shape, value, dtype=self.dtype.np_dtype)
        return EagerTensor(made, self._t)

    def _exit(self, how: str) -> np.ndarray:
        if how == ".numpy()":
            raise AttributeError("a traced tensor has no .numpy(): it has no value yet")
        raise OperatorNotAllowedInGraphError(
            f"{how} needs the value of {self._spec}, which is not known while tracing. Use tf.cond "
            f"or tf.where for a choice, tf.while_loop for a loop, tf.cast for a conversion")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise NotImplementedError(
            f"NumPy cannot use the traced tensor {self._spec}; use the tf function of that name")

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self._spec.shape}, dtype={self.dtype.name}, traced>"


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One application of an op."""

    op: Any
    inputs: tuple[Tensor, ...]
    attrs: tuple[Any, ...]
    outputs: tuple[SymbolicTensor, ...]


class Tracer:
    """Collects nodes while a function runs on symbols."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def symbol(self, spec: Spec) -> SymbolicTensor:
        return SymbolicTensor(spec, current_device().typed(spec.dtype), self)

    def emit(self, op: Any, inputs: tuple[Tensor, ...], attrs: tuple[Any, ...],
             specs: list[Spec]) -> tuple[SymbolicTensor, ...]:
        """Add a node and give its results."""
        device = next(t for t in inputs if isinstance(t, SymbolicTensor))._t.device
        outputs = tuple(SymbolicTensor(s, device.typed(s.dtype), self) for s in specs)
        self.nodes.append(Node(op, inputs, attrs, outputs))
        return outputs


@dataclass(frozen=True, eq=False, slots=True)
class Graph:
    """Inputs, nodes in order, outputs. Eager tensors among the nodes' inputs are constants."""

    inputs: tuple[SymbolicTensor, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Tensor, ...]

    def __call__(self, *args: Tensor) -> tuple[Tensor, ...]:
        env: dict[int, Tensor] = {id(v): a for v, a in zip(self.inputs, args)}
        for node in self.nodes:
            made = node.op.reapply([env.get(id(v), v) for v in node.inputs], node.attrs)
            env.update({id(v): o for v, o in zip(node.outputs, made)})
        return tuple(env.get(id(v), v) for v in self.outputs)

    def live(self) -> Graph:
        """The same graph without the nodes that no output needs."""
        needed = {id(v) for v in self.outputs}
        kept = []
        for node in reversed(self.nodes):
            if any(id(o) in needed for o in node.outputs):
                kept.append(node)
                needed |= {id(v) for v in node.inputs}
        return Graph(self.inputs, tuple(reversed(kept)), self.outputs)

    def check(self) -> None:
        """Infer every node again and compare; every value is made once, before it is read.

        Raises:
            InternalError: the graph contradicts itself.
        """
        made = {id(v) for v in self.inputs}
        for node in self.nodes:
            for value in node.inputs:
                if isinstance(value, SymbolicTensor) and id(value) not in made:
                    raise InternalError(f"{node.op.name} reads a value before it is made")
            for value in node.outputs:
                if id(value) in made:
                    raise InternalError(f"{node.op.name} makes a value that is there already")
                made.add(id(value))
            again = trace(lambda *xs, node=node: node.op.reapply(_refill(node, xs), node.attrs),
                          [v.spec for v in node.inputs if isinstance(v, SymbolicTensor)],
                          checked=False)
            if [v.spec for v in again.outputs] != [v.spec for v in node.outputs]:
                raise InternalError(f"{node.op.name} infers other specs the second time")

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


def _refill(node: Node, symbols: Sequence[Tensor]) -> list[Tensor]:
    fresh = iter(symbols)
    return [next(fresh) if isinstance(v, SymbolicTensor) else v for v in node.inputs]


def trace(fn: Callable[..., Any], specs: Sequence[Spec], *, checked: bool = True) -> Graph:
    """The graph of `fn` on symbols of `specs`; `fn` returns a tensor or a tuple of tensors."""
    tracer = Tracer()
    inputs = tuple(tracer.symbol(s) for s in specs)
    made = fn(*inputs)
    outputs = tuple(made) if isinstance(made, (tuple, list)) else (made,)
    graph = Graph(inputs, tuple(tracer.nodes), outputs)
    return graph.live() if checked else graph

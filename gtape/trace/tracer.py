"""Tracer: collects nodes while a Python function runs on symbols, and knows the state it touches.

State outlives a call: a Variable, the position of a random stream. Reading one during a trace gives
the symbol of its present value; writing one makes another tensor its present value. At every call
of the traced function the values at the start come from the states, and those at the end go back to
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core.context import init_scope, tracer_now, tracing
from gtape.core.device import ArrayType, current_device
from gtape.core.errors import InternalError
from gtape.core.formatting import shown
from gtape.core.installed import installed
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, StateRef, Tensor
from gtape.core.variable import Variable
from gtape.trace.graph import Graph, Node
from gtape.trace.symbolic_tensor import SymbolicTensor


class StateUse:
    """A state in a trace: the symbol of its value at the start, and its present value."""

    __slots__ = ("present", "ref", "start")

    def __init__(self, ref: StateRef, start: Tensor) -> None:
        self.ref = ref
        self.start = start
        self.present: Tensor = start

    @property
    def written(self) -> bool:
        return self.present is not self.start


class Tracer:
    """Collects nodes while a function runs on symbols.

    `outer` is the trace around it: values of that one become captures, which the traced function
    takes as further inputs. With `own_states`, states are not captured but used as by a trace
    without another around it: the traced function reads and writes them wherever it is applied.
    """

    def __init__(self, outer: Tracer | None = None, *, own_states: bool = False) -> None:
        self.nodes: list[Node] = []
        self.outer = outer
        self.own_states = own_states or outer is None
        #: By id: the outer tensor and the symbol that stands for it here.
        self.captures: dict[int, tuple[Tensor, SymbolicTensor]] = {}
        #: By the key of the state.
        self.states: dict[int, StateUse] = {}
        #: Variables that the function created.
        self.created: list[Any] = []
        #: None, or why no Variable may be created now.
        self.no_creation: str | None = None
        self.finished = False
        #: Whether a call that the trace does not serve runs the Python code.
        self.replaceable = False
        #: What is traced, by which a function knows that it calls itself.
        self.origin: Any = None
        #: Traces of other functions that are of use only here, because they captured values.
        self.inlined: dict[Any, Any] = {}

    # ------------------------------------------------------------------ nodes

    def symbol(self, spec: Spec, array_type: ArrayType | None = None) -> SymbolicTensor:
        return SymbolicTensor(spec, array_type or current_device().typed(spec.dtype), self)

    def emit(self, op: Op, inputs: Sequence[Tensor], attrs: tuple[Any, ...],
             specs: Sequence[Spec], types: Sequence[ArrayType] | None = None,
             ) -> tuple[SymbolicTensor, ...]:
        """Add a node and give its results."""
        operands = tuple(self.local(t) for t in inputs)
        if types is None:
            device = next((t._t.device for t in operands), None) or current_device()
            types = [device.typed(s.dtype) for s in specs]
        outputs = tuple(SymbolicTensor(s, t, self) for s, t in zip(specs, types))
        self.nodes.append(Node(op, operands, attrs, outputs))
        return outputs

    def local(self, tensor: Tensor) -> Tensor:
        """`tensor` as a value of this trace.

        Raises:
            TypeError: it belongs to a trace that has ended.
        """
        if type(tensor) is not SymbolicTensor or tensor._tracer is self:
            return tensor
        # By id, as tensors have no hash; the entry keeps the tensor, so the id is not used again.
        capture = self.captures.get(id(tensor))
        if capture is None:
            if not self._around(tensor._tracer):
                raise TypeError(
                    f"{tensor!r} is out of scope: it belongs to a function that was traced before "
                    f"or elsewhere, and has no value here. Return it from that function, or keep "
                    f"it in a tf.Variable")
            assert self.outer is not None
            # Through every trace in between, each of which hands it on as a capture of its own.
            outer = self.outer.local(tensor)
            inner = SymbolicTensor(tensor._spec, tensor._t, self)
            inner._shown = tensor._shown
            capture = self.captures[id(tensor)] = (outer, inner)
        return capture[1]

    @property
    def outermost(self) -> Tracer:
        """The trace that all others are part of."""
        return self if self.outer is None else self.outer.outermost

    def _around(self, other: Tracer) -> bool:
        tracer = self.outer
        while tracer is not None and tracer is not other:
            tracer = tracer.outer
        return tracer is not None

    def filled(self, spec: Spec, array_type: ArrayType, value: int) -> Tensor:
        """A tensor of one number, which takes no memory while it is a symbol."""
        one = EagerTensor(np.asarray(value, spec.dtype.np_dtype)[()], array_type)
        # Other devices have no scalars: an array without axes there.
        if not array_type.device.is_host:
            one = EagerTensor(array_type.xp.asarray(value, spec.dtype.np_dtype), array_type)
        if not spec.shape:
            return one
        # Not always its own: a body asks for zeros like a value around it.
        tracer = tracer_now() or self
        return tracer.emit(installed.broadcast_to, (one,), (spec.shape,), [spec], [array_type])[0]

    # ------------------------------------------------------------------ state

    def use(self, state: StateRef) -> StateUse:
        """The state in this trace."""
        use = self.states.get(state._k)
        if use is None:
            if self.outer is None:
                # Outside of this trace, whose own reading would come back here.
                with init_scope():
                    value: Tensor = state._initial_()
            else:
                value = self.outer.use(state).present
            start = self.symbol(value.spec, value._t) if self.own_states else self.local(value)
            use = self.states[state._k] = StateUse(state, start)
        return use

    def read(self, state: StateRef) -> Tensor:
        return self.use(state).present

    def write(self, state: StateRef, value: Tensor) -> None:
        self.use(state).present = self.local(value)

    def creating(self, variable: Variable) -> None:
        """A Variable is being created during this trace, and during those around it.

        Raises:
            ValueError: now none may be.
        """
        tracers = [self]
        while tracers[-1].outer is not None:
            tracers.append(tracers[-1].outer)
        # All are asked before one is told: a refusal leaves them as they were.
        for tracer in tracers:
            if tracer.no_creation is not None:
                raise ValueError(tracer.no_creation)
        for tracer in tracers:
            tracer.created.append(variable)

    def lifted(self, value: float | Callable[..., object] | Tensor) -> Any:
        """`value`, computed now if it is a symbol.

        Raises:
            ValueError: it depends on an argument, on a Variable, or on a loop's values.
        """
        if type(value) is not SymbolicTensor:
            return value
        # What it needs of the trace is run once, now, outside of it: a glorot-uniform value, for
        # instance.
        graph = Graph((), tuple(self.nodes), (value,)).needed()
        known = {id(o) for node in graph.nodes for o in node.outputs}
        needed = [value, *(t for node in graph.nodes for t in node.inputs)]
        if any(type(t) is SymbolicTensor and id(t) not in known for t in needed):
            raise ValueError(
                f"the initial value {shown(value)} of a Variable depends on the arguments of the "
                f"function that creates it, and they change from call to call. Create the "
                f"Variable outside the function, or give a function of no arguments")
        with init_scope():
            return graph()[0]

    # ------------------------------------------------------------------ running

    def run(self, fn: Callable[..., Any], *args: Any) -> Any:
        """`fn(*args)` as part of this trace."""
        token = tracing.set(self)  # a context variable: other threads stay eager
        try:
            return fn(*args)
        finally:
            tracing.reset(token)


def trace(fn: Callable[..., Any], specs: Sequence[Spec], *, checked: bool = True) -> Graph:
    """The graph of `fn` on symbols of `specs`; `fn` returns a tensor or a tuple of tensors.

    What `fn` captures of a trace around it are further inputs, found by id in no particular place:
    use a Tracer where they matter.
    """
    tracer = Tracer(tracer_now())
    inputs = tuple(tracer.symbol(s) for s in specs)
    results = tracer.run(fn, *inputs)
    outputs = tuple(results) if isinstance(results, (tuple, list)) else (results,)
    captured = tuple(symbol for _, symbol in tracer.captures.values())
    graph = Graph((*inputs, *captured), tuple(tracer.nodes), outputs)
    return graph.live() if checked else graph  # `check` compares outputs alone


def check(graph: Graph) -> None:
    """Infer every node again and compare; every value is made once, before it is read.

    Raises:
        InternalError: the graph contradicts itself.
    """
    known = {id(v) for v in graph.inputs}
    for node in graph.nodes:
        for value in node.inputs:
            if isinstance(value, SymbolicTensor) and id(value) not in known:
                raise InternalError(f"{node.op.name} reads a value before it is made")
        for value in node.outputs:
            if id(value) in known:
                raise InternalError(f"{node.op.name} makes a value that is there already")
            known.add(id(value))
        if not any(isinstance(v, SymbolicTensor) for v in node.inputs):
            continue
        again = trace(lambda *xs, node=node: node.op.reapply(_refill(node, xs), node.attrs),
                      [v.spec for v in node.inputs if isinstance(v, SymbolicTensor)],
                      checked=False)
        if [v.spec for v in again.outputs] != [v.spec for v in node.outputs]:
            raise InternalError(f"{node.op.name} infers other specs the second time")


def _refill(node: Node, symbols: Sequence[Tensor]) -> list[Tensor]:
    fresh = iter(symbols)
    return [next(fresh) if isinstance(v, SymbolicTensor) else v for v in node.inputs]

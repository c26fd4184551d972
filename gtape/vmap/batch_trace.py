"""BatchTracer: a function of one element applied to many at once.

A BatchTracer is a trace whose values are one element's; behind every value stands a tensor with the
values of all elements along a new first axis. An op on such values is applied to the tensors
behind them at once, by the batching rule of the op (`Op.batch`), as ordinary operations: they
run, are recorded by tapes, or become nodes of the trace around, as any others. What depends on no
element is computed once and stays as it is.

Values that are one-hot, such as the cotangents of a Jacobian, are kept as diagonals while ops allow
it: of the whole only the elements that are not zero are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.context import Recorder, active, recorders, tracer_now, tracing
from gtape.core.convert import convert
from gtape.core.device import ArrayType
from gtape.core.errors import InternalError, NotTraceableError, OperatorNotAllowedInGraphError
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.op import Op
from gtape.core.recording import record_general
from gtape.core.spec import Spec
from gtape.core.symbolic_dim import require_known
from gtape.core.tensor import Tensor
from gtape.opdef.composite import Composite
from gtape.opdef.elementwise import Elementwise
from gtape.ops.indexing.getitem import getitem_
from gtape.ops.reductions.reductions import reduce_sum_
from gtape.ops.shape.packing import stack_, unstack_
from gtape.trace.custom_op import CustomStep, apply_custom
from gtape.trace.graph import Graph, Node
from gtape.trace.host_steps import HostCallback
from gtape.trace.symbolic_tensor import SymbolicTensor
from gtape.trace.tracer import StateUse, Tracer
from gtape.vmap import rules  # noqa: F401  (attaches the rules to the ops)
from gtape.vmap.operand import Attrs, Operand, batches, elementwise_diagonal


class _Outside(Recorder):
    """Stands for the recorders around a batch: they see what is done with tensors of their own.

    What is done with values of the batch they see as what it is made of.
    """

    __slots__ = ("_batch", "_recorders")

    def __init__(self, batch: BatchTracer, around: tuple[Recorder, ...]) -> None:
        self._batch, self._recorders = batch, around

    def observe(self, op: Op, inputs: tuple[Any, ...], outputs: tuple[Tensor, ...],
                context: object) -> None:
        # What the batch itself emits is recorded when it is applied to all elements.
        if self._recorders and outputs and outputs[0] is not self._batch.emitted:
            token = recorders.set(self._recorders)
            try:
                record_general(op, inputs, outputs, context)
            finally:
                recorders.reset(token)

    def _on_read(self, state: object, value: Tensor) -> None:
        for recorder in self._recorders:
            recorder._on_read(state, value)


class BatchTracer(Tracer):
    """The trace of a function of one of `size` elements; `results` gives those for all.

    Ops are noted while the function runs, and only those that matter are applied to all elements.
    `lead`: so many axes of an element would better come before that of the elements in memory.
    """

    def __init__(self, size: int, lead: int = 0) -> None:
        super().__init__(tracer_now())
        self.size = size
        self.lead = lead
        self._observers = active()
        self._outside = (_Outside(self, self._observers),)
        #: By id, with the symbols of one element: what stands behind them.
        self._operands: dict[int, Operand] = {}
        self._entered: list[SymbolicTensor] = []
        #: The first of the results that `emit` gave last: they are recorded already.
        self.emitted: Any = None

    # ------------------------------------------------------------------ elements

    def enter(self, whole: Tensor | Operand) -> SymbolicTensor:
        """The value of one element, for a tensor with those of all along its first axis."""
        operand = whole if isinstance(whole, Operand) else Operand.of(whole)
        symbol = SymbolicTensor(operand.spec, operand.array_type, self)
        self._operands[id(symbol)] = operand
        self._entered.append(symbol)
        return symbol

    def run(self, fn: Callable[..., object], *args: object) -> Any:
        """`fn(*args)`, where values of the batch stand for all elements."""
        token = recorders.set(self._outside)
        try:
            return super().run(fn, *args)
        finally:
            recorders.reset(token)

    def results(self, values: Sequence[Tensor], axis: int = 0) -> list[Tensor]:
        """The tensors with the values of all elements along `axis`, and the end of the batch."""
        self.finished = True
        # Noted first and applied now: what leads to no result would cost `size` times what it does
        # for one element.
        needed = Graph((), tuple(self.nodes), tuple(values)).live().nodes
        self.nodes.clear()
        self._around_it(lambda: self._apply(needed, values))
        operands = [self._operands.get(id(v)) or Operand(self.local(v), self.size, False)
                    for v in values]
        return [x.along(axis) for x in operands]

    def _apply(self, nodes: Sequence[Node], values: Sequence[Tensor]) -> None:
        """Find the operands of the nodes' results; each is forgotten when nothing needs it."""
        operands, size = self._operands, self.size
        # The node that reads a value last; behind it the value of all elements, which may be large,
        # is let go.
        last = {id(x): node for node in nodes for x in node.inputs}
        kept = {id(v) for v in values}
        for node in nodes:
            results = apply_to_all(node.op, [operands.get(id(x)) or Operand(x, size, False)
                                             for x in node.inputs], node.attrs, node.outputs)
            for value, result in zip(node.outputs, results, strict=True):
                operand = result if isinstance(result, Operand) else Operand.of(result)
                # A rule that gives other shapes is found here, with its name, and not as wrong
                # numbers.
                if operand.shape != value._spec.shape or operand.size != size:
                    raise InternalError(f"the batching rule of {node.op.name} makes {size} times "
                                        f"{operand.spec}, not {value._spec}")
                if operand.diagonal is None:
                    operand.lead = min(self.lead, len(operand.shape))
                operands[id(value)] = operand
            for x in node.inputs:
                if last[id(x)] is node and id(x) not in kept:
                    operands.pop(id(x), None)

    def _own(self, value: Tensor) -> bool:
        return type(value) is SymbolicTensor and value._tracer is self

    # ------------------------------------------------------------------ what a trace does

    def emit(self, op: Any, inputs: Sequence[Tensor], attrs: tuple[object, ...],
             specs: Sequence[Spec], types: Sequence[ArrayType] | None = None) -> tuple[Any, ...]:
        """The results of an op: values of the batch if one of the inputs is."""
        own = next((x for x in inputs if self._own(x)), None)
        operands = tuple([self.local(x) for x in inputs])
        if own is None:
            results = tuple(self._around_it(lambda: op.reapply(operands, attrs)))
        # Its ops have rules of their own; one for the whole would say the same once more.
        elif isinstance(op, Composite):
            results = self._opened(op, inputs, attrs)
        else:
            if types is None:
                types = [own._t.device.typed(s.dtype) for s in specs]
            results = tuple([SymbolicTensor(s, t, self) for s, t in zip(specs, types)])
            self.nodes.append(Node(op, operands, attrs, results))
        self.emitted = results[0] if results else None
        return results

    def _opened(self, op: Composite, inputs: Sequence[Any], attrs: tuple[object, ...],
                ) -> tuple[Any, ...]:
        """A composite by its definition."""
        token = recorders.set(self._outside)
        try:
            results = op.definition(*inputs, **dict(zip(op.attr_names, attrs)))
        finally:
            recorders.reset(token)
        return tuple(results) if len(op.outputs) > 1 else (results,)

    def _around_it(self, fn: Callable[[], object]) -> Any:
        """`fn()` as if called around the batch."""
        traced, recorded = tracing.set(self.outer), recorders.set(self._observers)
        try:
            return fn()
        finally:
            recorders.reset(recorded)
            tracing.reset(traced)

    def local(self, tensor: Tensor) -> Tensor:
        """`tensor`, which may belong to the batch, or to a trace around it. Raises TypeError: it
        belongs to a trace that has ended."""
        if type(tensor) is not SymbolicTensor or tensor._tracer is self or self.outer is None:
            return tensor
        return self.outer.local(tensor)

    # ------------------------------------------------------------------ state

    def use(self, state: Any) -> StateUse:
        if self.outer is not None:
            return self.outer.use(state)
        # Not kept, since nothing here writes.
        return StateUse(state, self._around_it(state._initial_))

    def write(self, state: object, value: Tensor) -> None:
        raise NotTraceableError("state that changes with every element, such as a Variable that is "
                                "assigned or a stream of random numbers, has no value for all "
                                "elements at once")

    def creating(self, variable: object) -> None:
        raise NotTraceableError("a Variable cannot be created for every element at once")


def apply_to_all(op: Any, operands: Sequence[Operand], attrs: tuple[object, ...],
                 outputs: Sequence[Tensor]) -> Sequence[Tensor | Operand]:
    """The results of `op` for all elements; `outputs` are of the types of those for one."""
    if isinstance(op, Elementwise):
        return [_elementwise(op, operands)]
    if op.batch is not None:
        results = op.batch(op, operands, dict(zip(op.attr_names, attrs)))
        if results is not None:
            return [results] if isinstance(results, (Tensor, Operand)) else results
    return one_by_one(op, operands, attrs, outputs)


def _elementwise(op: Elementwise, operands: Sequence[Operand]) -> Tensor | Operand:
    """Broadcasting does it: axes of length 1 go between the first axis and those of an element."""
    diagonal = elementwise_diagonal(op, operands)
    if diagonal is not None:
        return diagonal
    rank = max(len(x.shape) for x in operands)
    return op.apply([x.aligned(rank) for x in operands])


def one_by_one(op: Any, operands: Sequence[Operand], attrs: tuple[object, ...],
               outputs: Sequence[Tensor]) -> Sequence[Tensor]:
    """The op applied to one element after another, as one step of the trace around; at once where
    it says how."""
    size = operands[0].size

    def each(*values: Tensor) -> Sequence[Tensor]:
        columns = [unstack_(v, axis=0) if x.batched else (v,) * size
                   for v, x in zip(values, operands)]
        rows = [op.reapply(list(row), attrs) for row in zip(*columns)]
        return [stack_(*column, axis=0) for column in zip(*rows)]

    specs = [o.spec.reshaped((size, *o.spec.shape)) for o in outputs]
    run: Callable[..., Sequence[Tensor]] = each
    parts: Sequence[Any] = ()
    if isinstance(op, HostCallback):
        parts = op.parts
        # `rows` wants an axis more of all.
        if op.rows is not None and all(x.batched for x in operands):
            run = op.rows
    step = HostCallback(f"{op.name} of each element", run, specs, [o._t for o in outputs],
                        has_side_effect=op.has_side_effect, refuses=op.refuses,
                        differentiable=not op.nondifferentiable, parts=parts)
    return step(*[x.tensor for x in operands])


@batches(CustomStep)
def _custom_gradient(op: Any, xs: Sequence[Operand], attrs: Attrs) -> Any:
    """The outputs for all elements, whose backward is that of one element in a batch."""
    count, end = attrs["count"], attrs["count"] + attrs["size"]
    arguments, captured = xs[:count], xs[end:]

    def pull(upstream: Sequence[Tensor]) -> list[object]:
        batch = BatchTracer(xs[0].size)
        seeds = [batch.enter(u) for u in upstream]
        values = [batch.enter(x) if x.batched else x.tensor for x in captured]
        parts = batch.run(lambda: [_dense(p) for p in op.pulled(seeds, values)])
        results = iter(batch.results([p for p in parts if p is not None]))
        return [None if p is None else _of(x, next(results)) for x, p in zip(arguments, parts)]

    return apply_custom(op.tf_name, [x.tensor for x in arguments],
                        [x.full() for x in xs[count:end]], pull)


def _dense(part: TensorLike) -> Any:
    return part.to_dense() if isinstance(part, IndexedSlices) else part


def _of(argument: Operand, part: Tensor) -> Tensor:
    """The gradient of an argument: one that all elements share gets the sum of theirs."""
    return part if argument.batched else reduce_sum_(part, axis=(0,))


# ---------------------------------------------------------------- functions of one element
#: What a function says that needs the numbers of an element, or draws other ones for each.
NEEDS_ELEMENTS = (NotTraceableError, OperatorNotAllowedInGraphError, NotImplementedError,
                  AttributeError)  # NumPy's functions and `.numpy()` of a symbol raise the last two


def batch_of(fn: Callable[[Any], Any], elems: TensorLike, leaves: Sequence[Tensor], count: int,
             ) -> tuple[BatchTracer, list[Tensor], Any]:
    """A batch of the elements of `elems`, whose tensors are `leaves`, with fn's results: flat, and
    as they are. Raises NEEDS_ELEMENTS: `fn` cannot be applied to all elements at once."""
    (size,) = require_known((count,))
    batch = BatchTracer(size)
    # One row beside many is broadcast, as TensorFlow's vectorized_map does.
    elements = [getitem_(x, key=(0,)) if x.spec.shape[0] == 1 != size else batch.enter(x)
                for x in leaves]
    results = batch.run(fn, nest.pack_sequence_as(elems, elements))
    return batch, batch.run(lambda: [_tensor(leaf) for leaf in nest.flatten(results)]), results


def _tensor(leaf: TensorLike) -> Tensor:
    return convert(leaf.to_dense() if hasattr(leaf, "to_dense") else leaf)

"""A function with its own backward as an op: what a tape records of it, and its node in a trace,
where the backward is traced too, and found again when a tape looks on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gtape.autodiff.backward import Grads, add_to, on_arrays
from gtape.core.context import active, paused, tracer_now
from gtape.core.convert import convert
from gtape.core.device import ArrayType
from gtape.core.errors import NotTraceableError
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.installed import installed
from gtape.core.op import Op
from gtape.core.recording import PAYLOAD, record_general
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor
from gtape.trace.graph import Graph
from gtape.trace.tracer import Tracer

Pull = Callable[[list[Tensor]], list[Any]]


class CustomPayload(NamedTuple):
    """What a record of a custom gradient keeps: who pulls back, which inputs are wanted, their
    keys, and the spec and type of every result."""

    pull: Pull
    wanted: list[int]
    keys: tuple[int, ...]
    results: tuple[tuple[Spec, ArrayType], ...]


class CustomOp(Op):
    """One application of a user's function with its own backward."""

    holomorphic = False  # a user's backward gets the cotangent as it is, not conjugated

    def __init__(self, name: str, pull: Pull) -> None:
        super().__init__(name, ("args",), "A function with a custom gradient.", name)
        self._pull = pull

    def record(self, mask: int, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
               attrs: tuple[object, ...]) -> Any:
        if not any(o._t.differentiable for o in outputs):
            return None
        wanted = [i for i in range(len(inputs)) if mask >> i & 1]
        keys = tuple(inputs[i]._k for i in wanted)
        results = tuple((o.spec, o._t) for o in outputs)
        return _backward, keys[0] if len(keys) == 1 else keys, CustomPayload(
            self._pull, wanted, keys, results)


def _tensors(grads: Grads, g: object, record: Any) -> None:
    kept = CustomPayload(*record[PAYLOAD:])
    upstream = g if type(g) is list else [g]
    # A user's backward takes a tensor for every result: zeros for those that nothing read, as in
    # TensorFlow.
    filled = [_zeros(spec, t) if u is None else u for u, (spec, t) in zip(upstream, kept.results)]
    parts = kept.pull(filled)
    for i, key in zip(kept.wanted, kept.keys):
        if parts[i] is not None:
            add_to(grads, key, parts[i])


def _zeros(spec: Spec, array_type: Any) -> EagerTensor:
    return EagerTensor(array_type.xp.zeros(spec.shape, spec.dtype.np_dtype), array_type)


_backward = on_arrays(_tensors)


class CustomStep(Op):
    """An application of a function with its own backward, as a node of a trace.

    Inputs: the `count` arguments, the outputs of the function, then what its backward reads of the
    trace. Results: the outputs as new tensors.
    """

    holomorphic = False
    attr_names = ("count", "size")

    def __init__(self, name: str, pull: Pull, outputs: Sequence[Tensor]) -> None:
        super().__init__("custom_step", ("args",), "A function with a custom gradient.", name)
        self._error: Exception | None = None
        self._parts: list[Any] = []
        self.graph = Graph((), (), ())
        #: What the backward reads of the trace around it.
        self.captured: list[Tensor] = []
        tracer = Tracer(tracer_now())
        upstream = [tracer.symbol(o.spec, o._t) for o in outputs]
        with paused():
            try:
                self._trace(tracer, upstream, pull)
            except (NotTraceableError, RecursionError):
                raise
            except Exception as error:
                # What is wrong with a backward matters to those who ask for a gradient.
                self._error = error
            finally:
                # Also after an error: its symbols are of no use to anybody.
                tracer.finished = True

    def _trace(self, tracer: Tracer, upstream: list[Any], pull: Pull) -> None:
        """Trace the backward; `_parts` gets the place of every part among the results."""
        results: list[Tensor] = []

        def place(part: Tensor) -> Any:
            results.append(tracer.local(part))
            return len(results) - 1

        for part in tracer.run(pull, upstream):
            if isinstance(part, IndexedSlices):
                self._parts.append((place(part.values), place(part.indices), part.dense_shape))
            else:
                self._parts.append(None if part is None else place(convert(part)))
        # The trace is applied whenever a gradient is asked for, or never, and has no place among
        # the steps of the function where the assignment could be.
        if any(use.written for use in tracer.states.values()):
            raise NotTraceableError(f"the grad_fn of {self.tf_name} assigns to a Variable, which "
                                    f"cannot be traced apart from the function")
        self.captured = [outer for outer, _ in tracer.captures.values()]
        inner = [symbol for _, symbol in tracer.captures.values()]
        self.graph = Graph((*upstream, *inner), tuple(tracer.nodes), tuple(results)).live()

    def pulled(self, upstream: Sequence[Tensor], captured: Sequence[Tensor],
               ) -> list[IndexedSlices | Tensor | None]:
        """The parts of the arguments."""
        if self._error is not None:
            raise self._error
        parts = self.graph(*upstream, *captured)
        return [IndexedSlices(parts[at[0]], parts[at[1]], at[2]) if type(at) is tuple else
                None if at is None else parts[at] for at in self._parts]

    def reapply(self, inputs: Sequence[Tensor], attrs: tuple[Any, ...]) -> tuple[Tensor, ...]:
        count, size = attrs
        outputs, captured = inputs[count: count + size], list(inputs[count + size:])
        tracer = tracer_now()
        if tracer is None:
            results = tuple(fresh_copies(outputs))
        else:
            results = tracer.emit(self, inputs, attrs, [o.spec for o in outputs],
                                  [o._t for o in outputs])
        op = CustomOp(self.tf_name, lambda upstream: self.pulled(upstream, captured))
        record_general(op, tuple(inputs[:count]), results, ())
        return results


def fresh_copies(tensors: Sequence[Tensor]) -> list[Tensor]:
    """New tensors with the same values, of which nothing is recorded."""
    with paused():
        return [installed.identity(t) for t in tensors]


def apply_custom(name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], pull: Pull,
                 ) -> list[Tensor]:
    """`outputs` as new tensors, in a trace new symbols, whose backward is `pull`."""
    tracer = tracer_now()
    if tracer is None:
        results = tuple(fresh_copies(outputs))
    else:
        values = [tracer.local(x) for x in inputs]
        op = CustomStep(name, pull, outputs)
        results = tracer.emit(op, (*values, *outputs, *op.captured), (len(inputs), len(outputs)),
                              [o.spec for o in outputs], [o._t for o in outputs])
    if active():
        record_general(CustomOp(name, pull), tuple(inputs), results, ())
    return list(results)

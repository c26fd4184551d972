"""Custom gradients in traces: the backward is traced too, and found again when a tape looks on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gtape.autodiff.custom_gradient import CustomOp, fresh_copies
from gtape.core.context import paused, tracer_now
from gtape.core.convert import convert
from gtape.core.errors import NotTraceableError
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.op import Op
from gtape.core.recording import record_general
from gtape.core.tensor import Tensor
from gtape.trace.graph import Graph
from gtape.trace.tracer import Tracer

Pull = Callable[[list[Tensor]], list[Any]]


class CustomStep(Op):
    """An application of a function with its own backward, as a node of a trace.

    Inputs: the `count` arguments, the outputs of the function, then what its backward reads of the
    trace. Results: the outputs as new tensors.
    """

    nondifferentiable = False
    has_gradient = True
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
                tracer.finished = True

    def _trace(self, tracer: Tracer, upstream: list[Any], pull: Pull) -> None:
        """Trace the backward; `_parts` gets the place of every part among the results."""
        results: list[Tensor] = []

        def place(part: Any) -> Any:
            results.append(tracer.local(part))
            return len(results) - 1

        for part in tracer.run(pull, upstream):
            if isinstance(part, IndexedSlices):
                self._parts.append((place(part.values), place(part.indices), part.dense_shape))
            else:
                self._parts.append(None if part is None else place(convert(part)))
        if any(use.written for use in tracer.states.values()):
            raise NotTraceableError(f"the grad_fn of {self.tf_name} assigns to a Variable, which "
                                    f"cannot be traced apart from the function")
        self.captured = [outer for outer, _ in tracer.captures.values()]
        inner = [symbol for _, symbol in tracer.captures.values()]
        self.graph = Graph((*upstream, *inner), tuple(tracer.nodes), tuple(results)).live()

    def pulled(self, upstream: Sequence[Tensor], captured: Sequence[Tensor]) -> list[Any]:
        """The parts of the arguments."""
        if self._error is not None:
            raise self._error
        made = self.graph(*upstream, *captured)
        return [IndexedSlices(made[at[0]], made[at[1]], at[2]) if type(at) is tuple else
                None if at is None else made[at] for at in self._parts]

    def reapply(self, inputs: Sequence[Tensor], attrs: tuple[Any, ...]) -> tuple[Tensor, ...]:
        count, size = attrs
        outputs, captured = inputs[count: count + size], list(inputs[count + size:])
        tracer = tracer_now()
        if tracer is None:
            made = tuple(fresh_copies(outputs))
        else:
            made = tracer.emit(self, inputs, attrs, [o.spec for o in outputs],
                               [o._t for o in outputs])
        op = CustomOp(self.tf_name, lambda upstream: self.pulled(upstream, captured))
        record_general(op, tuple(inputs[:count]), made, ())
        return made


def stepped(name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], pull: Pull,
            ) -> list[Tensor]:
    """The outputs as new symbols of the trace; see `custom_gradient.run_custom`."""
    tracer = tracer_now()
    values = [tracer.local(x) for x in inputs]
    op = CustomStep(name, pull, outputs)
    made = tracer.emit(op, (*values, *outputs, *op.captured), (len(inputs), len(outputs)),
                       [o.spec for o in outputs], [o._t for o in outputs])
    record_general(CustomOp(name, pull), tuple(inputs), made, ())
    return list(made)

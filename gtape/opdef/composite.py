"""Composites: functions written in gtape ops, which are their own meaning.

Without a rule a composite is transparent: its ops are recorded one by one. With a rule it is one
record: the body runs unrecorded, and the rule pulls back. A rule answers for the first result
only. When a cotangent arrives at another (a saved value, at second order), the definition is
differentiated instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.autodiff.backward import Cotangent, Grads, add_to, on_arrays
from gtape.autodiff.tape import GradientTape
from gtape.core.context import active, paused
from gtape.core.op import Attrs, Function, Op, keyword_names, positional_names
from gtape.core.recording import OP, Recorded, RecordTuple, record_general, trace_or_none
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor, note_origin
from gtape.opdef.primitive import ATTRS, GROUPS, RuleGroup, VjpRules, _pull, run_rules
from gtape.trace.tracer import trace

#: Where a record keeps the inputs too, behind what `primitive` keeps: with several results the
#: definition may have to be differentiated.
_INPUTS = GROUPS + 1


class Composite(Op):
    """A named definition. `saves` names results after the first that only the rule needs."""

    linear: tuple[str, ...] = ()

    def __init__(self, fn: Function, saves: str = "", tf_name: str | None = None) -> None:
        super().__init__(fn.__name__, positional_names(fn), fn.__doc__ or "", tf_name)
        self.attr_names = keyword_names(fn)
        self.defaults = dict(fn.__kwdefaults__ or {})
        self.outputs = ("y", *saves.split())
        self._fn = fn
        self.vjp_rules = VjpRules(self)
        self.vjp = self.vjp_rules.declare

    def definition(self, *inputs: Tensor, **attrs: object) -> Any:
        """The body, transparent: every op of it is recorded."""
        return self._fn(*inputs, **(self.defaults | attrs))

    def __call__(self, *inputs: Tensor, **attrs: object) -> Any:
        full = self.defaults | attrs
        if not self.vjp_rules.any or (not active() and all(
                type(x) is EagerTensor for x in inputs)):
            return self._transparent(inputs, full)[0]
        return self.run(inputs, tuple(full[n] for n in self.attr_names))[0]

    def results(self, *inputs: Tensor, **attrs: object) -> tuple[Tensor, ...]:
        """All results, the saved ones too, of a composite without a rule."""
        return self._transparent(inputs, self.defaults | attrs)

    def _transparent(self, inputs: tuple[Tensor, ...], attrs: dict[str, object],
                     ) -> tuple[Tensor, ...]:
        """All results; what records sees the ops of the body."""
        if self._kernel is not None and not active():
            computed = self._computed(inputs, attrs)
            if computed is not None:
                return computed
        results = self._fn(*inputs, **attrs)
        return results if len(self.outputs) > 1 else (results,)

    def run(self, inputs: tuple[Tensor, ...], attrs: Attrs) -> tuple[Tensor, ...]:
        """One node or one record, whatever the body does."""
        named = dict(zip(self.attr_names, attrs))
        outputs = trace_or_none(self, inputs, attrs, lambda: self._infer(inputs, named))
        if outputs is None:
            outputs = None if self._kernel is None else self._computed(inputs, named)
        if outputs is None:
            with paused():
                results = self._fn(*inputs, **named)
            outputs = tuple(results) if len(self.outputs) > 1 else (results,)
            # A body may return what it was given, as roll does by 0 places. The record must lead
            # from one tensor to another, or a cotangent would be added to itself.
            given = {id(x) for x in inputs}
            outputs = tuple([EagerTensor(y._a, y._t) if id(y) in given and type(y) is EagerTensor
                             else y for y in outputs])
        record_general(self, inputs, outputs, attrs)
        return outputs

    def _computed(self, inputs: tuple[Tensor, ...], attrs: dict[str, object],
                  ) -> tuple[Tensor, ...] | None:
        """All results by kernels; None where there are none for these inputs."""
        device = inputs[0]._t.device
        gpu = device.executor
        if gpu is None or not all(type(x) is EagerTensor and x._t.device is device
                                  for x in inputs):
            return None
        assert self._kernel is not None
        with device.scope():
            results = self._kernel(gpu, *[x._a for x in inputs], **attrs)
        if results is None:
            return None
        arrays = results if type(results) is tuple else (results,)
        return tuple([note_origin(EagerTensor(a, device.type_of(a.dtype))) for a in arrays])

    def reapply(self, inputs: Sequence[Tensor], attrs: Attrs) -> tuple[Tensor, ...]:
        if not self.vjp_rules.any:
            return self._transparent(tuple(inputs), dict(zip(self.attr_names, attrs)))
        return self.run(tuple(inputs), attrs)

    def _infer(self, inputs: tuple[Tensor, ...], attrs: dict[str, object]) -> list[Spec]:
        with paused():
            graph = trace(lambda *xs: self._fn(*xs, **attrs), [x.spec for x in inputs])
        return [o.spec for o in graph.outputs]

    def record(self, mask: int, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
               attrs: Attrs) -> Recorded | None:
        recipe = self.vjp_rules.recipe(mask, inputs, outputs)
        recorded = self.vjp_rules.record(recipe, inputs, outputs, attrs, [x.spec for x in inputs])
        if recorded is None or len(outputs) == 1:
            return recorded
        _, keys, payload = recorded
        return _run_composite, keys, (*payload, inputs)


def _by_definition(grads: Grads, gs: list[Tensor | None], record: RecordTuple) -> None:
    """Differentiate the body: a cotangent arrived that the rule does not answer for."""
    op, attrs, inputs = record[OP], record[ATTRS], record[_INPUTS]
    groups = [RuleGroup(*group) for group in record[GROUPS]]
    positions = [i for group in groups for i in group.positions]
    with GradientTape() as tape:
        sources = [inputs[i] for i in positions]
        tape.watch(sources)
        results = op.definition(*inputs, **dict(zip(op.attr_names, attrs)))
    pairs = [(y, g) for y, g in zip(results, gs) if g is not None]
    parts = tape.gradient([y for y, _ in pairs], sources, [g for _, g in pairs])
    keys = [k for group in groups for k in group.keys]
    for key, part in zip(keys, parts):
        if part is not None:
            add_to(grads, key, part)


_by_definition_arrays = on_arrays(_by_definition)


def _composite_tensors(grads: Grads, g: Cotangent, record: RecordTuple) -> None:
    if all(part is None for part in g[1:]):
        _pull(grads, g, record)
    else:
        _by_definition(grads, g, record)


def _run_composite(grads: Grads, g: Cotangent, record: RecordTuple) -> None:
    if all(part is None for part in g[1:]):
        run_rules(grads, g, record)
    else:
        _by_definition_arrays(grads, g, record)


_run_composite.tensors = _composite_tensors  # type: ignore[attr-defined]


def composite(fn: Function | None = None, *, saves: str = "",
              tf_name: str | None = None) -> Any:
    """Declare a composite; usable bare or with options."""
    def declare(function: Function) -> Composite:
        op = Composite(function, saves, tf_name)
        op.declare()
        return op

    return declare if fn is None else declare(fn)

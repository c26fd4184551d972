"""The backward of ops with declared rules: what a record keeps, and how it is pulled back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gtape.autodiff.backward import Cotangent, Grads, add_to, on_arrays
from gtape.autodiff.user_gradients import AppliedOp, lookup, missing_gradient, scatter
from gtape.core.device import add_arrays
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.installed import installed
from gtape.core.op import Attrs, Function, Rule
from gtape.core.recording import INPUT_KEYS, OP, PAYLOAD, Recorded, RecordTuple
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor, wrap

if TYPE_CHECKING:
    from gtape.opdef.composite import Composite
    from gtape.opdef.primitive import Primitive

#: Where a record of `VjpRules.record` keeps its payload: places in the tuple and no object's
#: attributes, for an object would have to be made by every step.
ATTRS, IS_COMPLEX, GROUPS = PAYLOAD, PAYLOAD + 1, PAYLOAD + 2


class RuleGroup(NamedTuple):
    """The wanted inputs that one rule answers for; in a record it is a bare tuple."""

    rule: Rule
    positions: tuple[int, ...]
    keys: tuple[int, ...]
    #: What the rule reads.
    kept: tuple[Any, ...]


class VjpRecipe:
    """What is the same for all records of an op with given input types and wanted inputs."""

    __slots__ = ("complex_", "groups", "wrt")

    def __init__(self, groups: list[tuple[Rule, tuple[int, ...]]], wrt: list[int],
                 complex_: bool) -> None:
        self.groups = groups
        self.wrt = wrt
        self.complex_ = complex_


class VjpRules:
    """The rules of one op, by input."""

    def __init__(self, op: Primitive | Composite) -> None:
        self.op = op
        self._rules: dict[str, Rule] = {}
        self._missing: Function | None = None

    @property
    def any(self) -> bool:
        return bool(self._rules)

    def declare(self, *wrt: str, **rules: Function) -> Callable[[Function], Function]:
        """Declare a rule for each input, `vjp(x=lambda g, y: g * y)`, or by a decorator one for
        several, `@op.vjp("a", "b")`, which gives one part for each; see `core.op.Rule`."""
        def add(fn: Function, wrt: tuple[str, ...] = wrt) -> Function:
            self.op.has_gradient = True
            self._rules |= dict.fromkeys(wrt, Rule(fn, self.op, wrt, self.op.attr_names))
            return fn

        for name, fn in rules.items():
            add(fn, (name,))
        return add

    def rule_of(self, position: int) -> Rule | None:
        params = self.op.params
        name = params[position] if position < len(params) else params[-1]
        return self._rules.get(name)

    def recipe(self, mask: int, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
               ) -> VjpRecipe:
        """What to do for the inputs in the bit mask `mask`."""
        differentiable = not self.op.nondifferentiable and any(
            o._t.differentiable for o in outputs)
        wrt = [i for i in range(len(inputs)) if mask >> i & 1 and inputs[i]._t.differentiable]
        # One call for each rule and not for each input: a rule of several inputs shares its work.
        groups: dict[Rule, list[int]] = {}
        for i in wrt if differentiable else ():
            rule = self.rule_of(i)
            if rule is not None:
                groups.setdefault(rule, []).append(i)
        complex_ = bool(outputs) and self.op.holomorphic and outputs[0]._t.dtype.is_complex
        return VjpRecipe([(rule, tuple(at)) for rule, at in groups.items()],
                         wrt if differentiable else [], complex_)

    def record(self, recipe: VjpRecipe, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
               attrs: Attrs, specs: Sequence[Spec]) -> Recorded | None:
        """(backward, input keys, payload), or None when no gradient flows.

        The payload is (attributes, complex?, groups), a group laid out as a `RuleGroup`.
        """
        if not recipe.groups:
            # Recorded all the same: the error is for who asks for the gradient, and a user may have
            # registered one.
            if recipe.wrt and not self._rules:
                return self._unregistered(recipe.wrt, inputs, outputs, attrs)
            return None
        groups = [(rule, at, tuple([inputs[i]._k for i in at]), rule.keep(inputs, outputs, specs))
                  for rule, at in recipe.groups]
        keys = groups[0][2] if len(groups) == 1 else tuple([k for g in groups for k in g[2]])
        return run_rules, keys[0] if len(keys) == 1 else keys, (attrs, recipe.complex_, groups)

    def _unregistered(self, wrt: list[int], inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
                      attrs: Attrs) -> Recorded:
        keys = tuple(inputs[i]._k for i in wrt)
        in_keys = keys[0] if len(keys) == 1 else keys
        if lookup(self.op) is None:
            if self._missing is None:
                self._missing = missing_gradient(self.op)
            return self._missing, in_keys, ()
        return _registered, in_keys, (attrs, list(inputs), list(outputs))


def _call(rule: Rule, positions: Sequence[int], cotangent: Cotangent, kept: tuple[object, ...],
          attrs: Attrs) -> list[Cotangent]:
    """The parts of the wanted positions, in order."""
    chosen = {n: attrs[i] for n, i in rule.attrs}
    if rule.variadic:
        parts = rule.fn(cotangent, kept, **chosen)
        return [parts[i] for i in positions]
    answer = rule.fn(cotangent, *kept, **chosen)
    if len(rule.wrt) == 1:
        return [answer]
    params = rule.op.params
    return [answer[rule.wrt.index(params[i])] for i in positions]


def _conj(value: Cotangent) -> Cotangent:
    if isinstance(value, (list, tuple)):
        return [_conj(v) for v in value]
    if value is None or not value.dtype.is_complex:
        return value
    if isinstance(value, IndexedSlices):
        return value._with(installed.conj(value.values))
    return installed.conj(value)


def _pull(grads: Grads, g: Cotangent, record: RecordTuple) -> None:
    """The tensor form: the rules applied to tensors."""
    attrs, complex_, groups = record[ATTRS], record[IS_COMPLEX], record[GROUPS]
    gs = g if type(g) is list else [g]
    if complex_:
        gs = _conj(gs)
    for rule, positions, keys, kept in groups:
        if rule.takes_all:
            cotangent: Cotangent = gs
        else:
            cotangent = gs[0]
            if cotangent is None:
                continue
        parts = _call(rule, positions, cotangent, kept, attrs)
        for key, part in zip(keys, _conj(parts) if complex_ else parts):
            if part is not None:
                add_to(grads, key, part)


_through_tensors = on_arrays(_pull)


def run_rules(grads: Grads, g: Cotangent, record: RecordTuple) -> None:
    """The array form of `_pull`."""
    # The rare cases go through tensors; what follows is the one step of most records, without a
    # dictionary between.
    if record[IS_COMPLEX] or type(g) is list or type(g) is IndexedSlices:
        _through_tensors(grads, g, record)
        return
    cotangent = wrap(g)
    attrs = record[ATTRS]
    for rule, positions, keys, kept in record[GROUPS]:
        parts = _call(rule, positions, [cotangent] if rule.takes_all else cotangent, kept, attrs)
        for key, part in zip(keys, parts):
            if part is not None:
                array = part._a if type(part) is EagerTensor else part
                grads[key] = add_arrays(grads[key], array) if key in grads else array


run_rules.tensors = _pull  # type: ignore[attr-defined]


def _apply_registered(grads: Grads, g: Cotangent, record: RecordTuple) -> None:
    attrs, inputs, outputs = record[PAYLOAD:]
    op = record[OP]
    applied = AppliedOp(op.tf_name, inputs, outputs, dict(zip(op.attr_names, attrs)))
    function = lookup(op)
    assert function is not None
    parts = function(applied, *(g if type(g) is list else [g]))
    scatter(grads, record[INPUT_KEYS], inputs,
            parts if isinstance(parts, (list, tuple)) else [parts])


_registered = on_arrays(_apply_registered)

"""Primitives: array functions with declared shapes and backward rules.

    @primitive(linear="x")
    def reduce_sum(xp, x, *, axis, keepdims):
        return xp.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)

    reduce_sum.infer(lambda x, *, axis, keepdims: x.reshaped(reduced(x.shape, axis, keepdims)))
    reduce_sum.vjp(x=lambda g, x_spec, *, axis: broadcast_in_dim(g, shape=x_spec.shape, axis=axis))

The function serves NumPy and CuPy; positional parameters after `xp` are tensors, keyword-only ones
are attributes, which must be hashable. Rules are written in gtape ops, so they work at every order.
A rule of several lines, or for several inputs, is a function decorated with `op.infer` or
`op.vjp("a", "b")`. A primitive of many tensors takes `*values`; its rule gets and returns a
sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gtape.autodiff.backward import (
    AppliedOp,
    Cotangent,
    Grads,
    add_to,
    lookup,
    missing_gradient,
    on_arrays,
    scatter,
)
from gtape.core.context import active, tracer_now
from gtape.core.device import (
    Array,
    ArrayModule,
    ArrayType,
    Device,
    add_arrays,
    current_device,
    ignore,
    ignored_context,
    others,
    restore,
)
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.installed import installed
from gtape.core.op import (
    VARARGS,
    Attrs,
    Function,
    Op,
    Rule,
    keyword_names,
    positional_names,
    variadic_name,
)
from gtape.core.recording import (
    INPUT_KEYS,
    OP,
    PAYLOAD,
    Recorded,
    RecordTuple,
    record_general,
    same_device,
    trace_or_none,
)
from gtape.core.spec import Spec, check_size, exhausted, outgrows
from gtape.core.tensor import EagerTensor, Tensor, note_origin, wrap

if TYPE_CHECKING:
    from gtape.opdef.composite import Composite


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


# Some hundred bytes for each set of shapes and attributes. A program has dozens; one whose shapes
# never repeat would keep them all. Emptied at once: to know the oldest would cost every hit.
_LIMIT = 4096


class Shaped:
    """What an op does for inputs of given types and shapes: checked once, then reused."""

    __slots__ = ("attrs", "device", "grows", "inputs", "plain", "recipes", "specs", "types",
                 "values")

    def __init__(self, specs: tuple[Spec, ...], types: tuple[ArrayType, ...], device: Device,
                 attrs: dict[str, object], inputs: tuple[Spec, ...]) -> None:
        self.specs = specs
        self.types = types
        self.inputs = inputs
        self.values = tuple(attrs.values())
        #: The recipes of `Pullbacks`, by the mask of wanted inputs.
        self.recipes: dict[int, VjpRecipe] = {}
        self.device = device
        #: Whether results are much larger than inputs; a trace does not compute such.
        self.grows = outgrows(specs, inputs)
        #: Nothing is to be looked after but the array function.
        self.plain = device.is_host and not self.grows
        self.attrs = attrs


class Primitive(Op):
    """An array function with rules. Call it with tensors, and attributes as keywords."""

    def __init__(self, fn: Function, *, linear: str = "", outputs: str = "y",
                 tf_name: str | None = None, holomorphic: bool = True,
                 nondifferentiable: bool = False) -> None:
        self.variadic = bool(fn.__code__.co_flags & VARARGS)
        params = (variadic_name(fn),) if self.variadic else positional_names(fn)[1:]
        super().__init__(fn.__name__, params, fn.__doc__ or "", tf_name)
        self.attr_names = keyword_names(fn)
        self.defaults = dict(fn.__kwdefaults__ or {})
        self.outputs = tuple(outputs.split())
        self.linear = tuple(linear.split())
        self.holomorphic = holomorphic
        self.nondifferentiable = nondifferentiable
        self.has_gradient = nondifferentiable  # until a rule is declared
        self._fn = fn
        self._infer: Function | None = None
        self._shaped: dict[tuple[object, ...], Shaped] = {}
        self.vjp_rules = VjpRules(self)
        self.vjp = self.vjp_rules.declare

    # -------------------------------------------------------------- declaration

    def infer(self, fn: Function) -> Function:
        """Declare: specs and attributes -> the spec(s) of the result; raises in words."""
        self._infer = fn
        return fn

    def defined(self, fn: Function) -> Function:
        """Declare: the op written in other ops. It is what the op means; the array function is
        a faster way to the same numbers.

        Raises:
            TypeError: at import, when its parameters are not those of the op.
        """
        names = (variadic_name(fn),) if self.variadic else positional_names(fn)
        if names != self.params or keyword_names(fn) != self.attr_names:
            raise TypeError(f"the definition of {self.name} takes {', '.join(self.params)} and, by "
                            f"keyword, {', '.join(self.attr_names) or 'nothing'}")
        self.definition = fn
        return fn

    # -------------------------------------------------------------- application

    def __call__(self, *inputs: Tensor, **attrs: object) -> Any:
        if tuple(attrs) == self.attr_names:
            values = tuple(attrs.values())
        else:
            full = self.defaults | attrs
            values = tuple([full[n] for n in self.attr_names])
        results = self.run(inputs, values)
        return results[0] if self.single else results

    @property
    def single(self) -> bool:
        """Whether a call gives the one result, not a tuple of results."""
        return len(self.outputs) == 1 and not self.many

    #: Whether the number of results depends on the attributes (unstack, split).
    many = False

    def run(self, inputs: tuple[Tensor, ...], attrs: Attrs) -> tuple[Tensor, ...]:
        """Check, compute, record."""
        eager = True
        # What the op checks, and finds out about its results, depends on types, shapes and
        # attributes alone. So it is worked out once for each, and found by them.
        key: list[object] = [attrs]
        for x in inputs:
            key.append(x._t)
            if type(x) is EagerTensor:
                key.append(x._a.shape)
            else:
                key.append(x.spec.shape)
                eager = False
        shaped = self._shaped_for(tuple(key), inputs, attrs)
        # The common case by itself: no device to enter, no line to remember, nothing to leave to
        # calls.
        if eager and shaped.plain and not others:
            arrays = [x._a for x in inputs]
            try:
                computed = ignored_context.run(self._fn, np, *arrays, **shaped.attrs)
            except RuntimeError:
                computed = ignored_context.call(self._fn, np, *arrays, **shaped.attrs)
            except MemoryError as error:
                raise exhausted(self.name.rstrip("_"), shaped.specs, error) from error
            outputs: tuple[Tensor, ...] = self._wrapped(computed, shaped)
        elif eager:
            tracer = tracer_now() if shaped.grows else None
            outputs = self._on_device(inputs, shaped) if tracer is None else tracer.emit(
                self, inputs, attrs, shaped.specs, shaped.types)
        else:
            emitted = trace_or_none(self, inputs, attrs, lambda: list(shaped.specs))
            outputs = self._on_device(inputs, shaped) if emitted is None else emitted
        if active():
            record_general(self, inputs, outputs, shaped)
        return outputs

    def reapply(self, inputs: Sequence[Tensor], attrs: Attrs) -> tuple[Tensor, ...]:
        return self.run(tuple(inputs), attrs)

    def _shaped_for(self, key: tuple[object, ...], inputs: tuple[Tensor, ...],
                    attrs: Attrs) -> Shaped:
        """The specs and types of the results for these inputs, from the cache if possible."""
        try:
            shaped = self._shaped.get(key)
        except TypeError:
            raise InvalidArgumentError(
                f"{self.name}: the attributes must be hashable; got {shown(attrs)}") from None
        if shaped is None:
            shaped = self._check(inputs, attrs)
            if len(self._shaped) >= _LIMIT:
                self._shaped.clear()
            self._shaped[key] = shaped
        return shaped

    @staticmethod
    def _wrapped(arrays: Array, shaped: Shaped) -> tuple[EagerTensor, ...]:
        """The arrays that the function gave, one or a sequence, as tensors."""
        types = shaped.types
        if type(arrays) is tuple or type(arrays) is list:
            return tuple([EagerTensor(boxed(a), t) for a, t in zip(arrays, types)])
        return (EagerTensor(arrays if type(arrays) is not bytes else boxed(arrays), types[0]),)

    def _check(self, inputs: tuple[Tensor, ...], attrs: Attrs) -> Shaped:
        if inputs:
            same_device(self.name, inputs)
        specs = self.result_specs([x.spec for x in inputs], attrs)
        for spec in specs:
            check_size(self.name.rstrip("_"), spec)
        if not inputs:
            device = current_device()
        else:
            device = inputs[0]._t.device
        return Shaped(specs, tuple(device.typed(s.dtype) for s in specs), device,
                      dict(zip(self.attr_names, attrs)), tuple([x.spec for x in inputs]))

    def result_specs(self, specs: Sequence[Spec], attrs: Attrs) -> tuple[Spec, ...]:
        """The specs of the results.

        Raises:
            InvalidArgumentError: the inputs do not fit.
        """
        assert self._infer is not None, f"{self.name} declares no infer"
        results = self._infer(*specs, **dict(zip(self.attr_names, attrs)))
        return (results,) if isinstance(results, Spec) else tuple(results)

    def _on_device(self, inputs: tuple[Tensor, ...], shaped: Shaped) -> tuple[EagerTensor, ...]:
        """The array function where a device other than the host may have to be entered first."""
        arrays = [x._a for x in inputs]
        device, results = shaped.device, None
        kernel = None if device.executor is None else self._kernel
        # The only device: nothing has to be entered, and kernels know nothing of NumPy's error
        # state.
        if kernel is not None and device.alone:
            try:
                results = kernel(device.executor, *arrays, **shaped.attrs)
                if results is not None:
                    return self._wrapped(results, shaped)
                kernel = None
            except MemoryError:
                # Tried again below, where what fails is reported.
                pass
        state = ignore()
        try:
            with device.scope():
                if kernel is not None:
                    results = kernel(device.executor, *arrays, **shaped.attrs)
                if results is None:
                    results = self._fn(device.xp, *arrays, **shaped.attrs)
        except MemoryError as error:
            raise exhausted(self.name.rstrip("_"), shaped.specs, error) from error
        finally:
            restore(state)
        return tuple([note_origin(x) for x in self._wrapped(results, shaped)])

    def value(self, xp: ArrayModule, *arrays: Array, **attrs: object) -> Array:
        """The bare array function, for other array functions to build on."""
        return self._fn(xp, *arrays, **(self.defaults | attrs))

    def record(self, mask: int, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
               context: Shaped) -> Recorded | None:
        """The (backward, input keys, payload) of a record; `context` is what `run` found."""
        recipe = context.recipes.get(mask)
        if recipe is None:
            recipe = context.recipes[mask] = self.vjp_rules.recipe(mask, inputs, outputs)
        return self.vjp_rules.record(recipe, inputs, outputs, context.values, context.inputs)


def boxed(value: Array) -> Array:
    """`value` as an array: NumPy hands out one string of an array as bare bytes."""
    return np.array(value, object) if type(value) is bytes else value


def primitive(fn: Function | None = None, **options: Any) -> Any:
    """Declare a primitive; usable bare or with the options of `Primitive`."""
    def declare(function: Function) -> Primitive:
        op = Primitive(function, **options)
        op.declare()
        return op

    return declare if fn is None else declare(fn)

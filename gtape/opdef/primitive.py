"""Primitives: array functions with declared shapes and backward rules.

    @primitive(linear="x")
    def reduce_sum(xp, x, *, axis, keepdims):
        return xp.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)

    @reduce_sum.infer
    def _(x, *, axis, keepdims):
        return Spec(reduced(x.shape, axis, keepdims), x.dtype)

    @reduce_sum.vjp("x")
    def _(g, x: Spec, *, axis, keepdims):
        return broadcast_to(reshape(g, …), shape=x.shape)

The function serves NumPy and CuPy; positional parameters after `xp` are tensors, keyword-only ones
are attributes, which must be hashable. Rules are written in gtape ops, so they work at every order.
A primitive of many tensors takes `*values`; its rule gets and returns a sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core.context import active, tracer_now
from gtape.core.device import Array, ArrayModule, ArrayType, Device, others
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.fp_errors import ignore, ignored_context, restore
from gtape.core.op import Attrs, Function, Op, Rule, keyword_names, positional_names, variadic_name
from gtape.core.recording import Recorded, record_general, trace_or_none
from gtape.core.size_limits import check_size, exhausted, outgrows
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor, noted
from gtape.opdef.dtype_rules import same_device
from gtape.opdef.vjp_rules import VjpRecipe, VjpRules

_LIMIT = 4096
_VARARGS = 4


class Shaped:
    """What an op does for inputs of given types and shapes: checked once, then reused."""

    __slots__ = ("attrs", "device", "grows", "inputs", "plain", "recipes", "specs", "types",
                 "values")

    def __init__(self, specs: tuple[Spec, ...], types: tuple[ArrayType, ...], device: Device,
                 attrs: dict[str, Any], inputs: tuple[Spec, ...]) -> None:
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

    nondifferentiable = False

    def __init__(self, fn: Function, *, linear: str = "", outputs: str = "y",
                 tf_name: str | None = None, holomorphic: bool = True,
                 nondifferentiable: bool = False) -> None:
        self.variadic = bool(fn.__code__.co_flags & _VARARGS)
        params = (variadic_name(fn),) if self.variadic else positional_names(fn)[1:]
        super().__init__(fn.__name__, params, fn.__doc__ or "", tf_name)
        self.attr_names = keyword_names(fn)
        self.defaults = dict(fn.__kwdefaults__ or {})
        self.outputs = tuple(outputs.split())
        self.linear = tuple(linear.split())
        self.holomorphic = holomorphic
        self.nondifferentiable = nondifferentiable
        self._fn = fn
        self._infer: Function | None = None
        self._shaped: dict[tuple[object, ...], Shaped] = {}
        self.vjp_rules = VjpRules(self)

    # -------------------------------------------------------------- declaration

    def infer(self, fn: Function) -> Function:
        """Decorator: specs and attributes -> the spec(s) of the result; raises in words."""
        self._infer = fn
        return fn

    def defined(self, fn: Function) -> Function:
        """Decorator: the op written in other ops. It is what the op means; the array function is
        a faster way to the same numbers.

        Raises:
            TypeError: at import, when its parameters are not those of the op.
        """
        if positional_names(fn) != self.params or keyword_names(fn) != self.attr_names:
            raise TypeError(f"the definition of {self.name} takes {', '.join(self.params)} and, by "
                            f"keyword, {', '.join(self.attr_names) or 'nothing'}")
        self.definition = fn
        return fn

    def vjp(self, *wrt: str) -> Callable[[Function], Function]:
        """Decorator: the backward rule for the inputs named; see `core.op.Rule`."""
        def declare(fn: Function) -> Function:
            self.vjp_rules.add(Rule(fn, self, wrt, self.attr_names))
            return fn

        return declare

    @property
    def has_gradient(self) -> bool:
        return self.nondifferentiable or self.vjp_rules.any

    # -------------------------------------------------------------- application

    def __call__(self, *inputs: Tensor, **attrs: Any) -> Any:
        if tuple(attrs) == self.attr_names:
            values = tuple(attrs.values())
        else:
            full = self.defaults | attrs
            values = tuple([full[n] for n in self.attr_names])
        made = self.run(inputs, values)
        return made[0] if self.single else made

    @property
    def single(self) -> bool:
        """Whether a call gives the one result, not a tuple of results."""
        return len(self.outputs) == 1 and not self.many

    #: Whether the number of results depends on the attributes (unstack, split).
    many = False

    def run(self, inputs: tuple[Tensor, ...], attrs: Attrs) -> tuple[Tensor, ...]:
        """Check, compute, record."""
        eager = True
        key: list[object] = [attrs]
        for x in inputs:
            key.append(x._t)
            if type(x) is EagerTensor:
                key.append(x._a.shape)
            else:
                key.append(x.spec.shape)
                eager = False
        shaped = self._shaped_for(tuple(key), inputs, attrs)
        if eager and shaped.plain and not others:
            arrays = [x._a for x in inputs]  # type: ignore[attr-defined]
            try:
                made = ignored_context.run(self._fn, np, *arrays, **shaped.attrs)
            except RuntimeError:
                made = ignored_context.call(self._fn, np, *arrays, **shaped.attrs)
            except MemoryError as error:
                raise exhausted(self.name.rstrip("_"), shaped.specs, error) from error
            outputs: tuple[Tensor, ...] = self._wrapped(made, shaped)
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
            found = self._shaped.get(key)
        except TypeError:
            raise InvalidArgumentError(
                f"{self.name}: the attributes must be hashable; got {shown(attrs)}") from None
        if found is None:
            found = self._check(inputs, attrs)
            if len(self._shaped) >= _LIMIT:
                self._shaped.clear()
            self._shaped[key] = found
        return found

    @staticmethod
    def _wrapped(made: Array, shaped: Shaped) -> tuple[EagerTensor, ...]:
        """The arrays that the function gave, one or a sequence, as tensors."""
        types = shaped.types
        if type(made) is tuple or type(made) is list:
            return tuple([EagerTensor(_boxed(a), t) for a, t in zip(made, types)])
        return (EagerTensor(made if type(made) is not bytes else _boxed(made), types[0]),)

    def _check(self, inputs: tuple[Tensor, ...], attrs: Attrs) -> Shaped:
        if inputs:
            same_device(self.name, inputs)
        specs = self.result_specs([x.spec for x in inputs], attrs)
        for spec in specs:
            check_size(self.name.rstrip("_"), spec)
        if not inputs:
            from gtape.core.placement import current_device

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
        made = self._infer(*specs, **dict(zip(self.attr_names, attrs)))
        return (made,) if isinstance(made, Spec) else tuple(made)

    def _on_device(self, inputs: tuple[Tensor, ...], shaped: Shaped) -> tuple[EagerTensor, ...]:
        """The array function where a device other than the host may have to be entered first."""
        arrays = [x._a for x in inputs]
        device, made = shaped.device, None
        kernel = None if device.executor is None else self._kernel
        if kernel is not None and device.alone:
            try:
                made = kernel(device.executor, *arrays, **shaped.attrs)
                if made is not None:
                    return self._wrapped(made, shaped)
                kernel = None
            except MemoryError:
                # Tried again below, where what fails is reported.
                pass
        state = ignore()
        try:
            with device.scope():
                if kernel is not None:
                    made = kernel(device.executor, *arrays, **shaped.attrs)
                if made is None:
                    made = self._fn(device.xp, *arrays, **shaped.attrs)
        except MemoryError as error:
            raise exhausted(self.name.rstrip("_"), shaped.specs, error) from error
        finally:
            restore(state)
        return tuple([noted(x) for x in self._wrapped(made, shaped)])

    def value(self, xp: ArrayModule, *arrays: Array, **attrs: Any) -> Array:
        """The bare array function, for other array functions to build on."""
        return self._fn(xp, *arrays, **(self.defaults | attrs))

    def record(self, mask: int, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
               context: Shaped) -> Recorded | None:
        """The (backward, input keys, payload) of a record; `context` is what `run` found."""
        recipe = context.recipes.get(mask)
        if recipe is None:
            recipe = context.recipes[mask] = self.vjp_rules.recipe(mask, inputs, outputs)
        return self.vjp_rules.record(recipe, inputs, outputs, context.values, context.inputs)


def _boxed(made: Array) -> Array:
    """`made` as an array: NumPy hands out one string of an array as bare bytes."""
    return np.array(made, object) if type(made) is bytes else made


def primitive(fn: Function | None = None, **options: Any) -> Any:
    """Declare a primitive; usable bare or with the options of `Primitive`."""
    def declare(function: Function) -> Primitive:
        made = Primitive(function, **options)
        made.declare()
        return made

    return declare if fn is None else declare(fn)

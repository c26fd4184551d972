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
sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.core.context import active, tracer_now
from gtape.core.device import Array, ArrayModule, ArrayType, Device, others
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.fp_errors import ignore, ignored_context, restore
from gtape.core.op import (
    VARARGS,
    Attrs,
    Function,
    Op,
    keyword_names,
    positional_names,
    variadic_name,
)
from gtape.core.placement import current_device
from gtape.core.recording import Recorded, record_general, trace_or_none
from gtape.core.size_limits import check_size, exhausted, outgrows
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor, note_origin
from gtape.opdef.dtype_rules import same_device
from gtape.opdef.vjp_rules import VjpRecipe, VjpRules

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

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

from gtape.core.apply import emit_or_none
from gtape.core.device import ArrayType
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import Op, Rule, keyword_names, positional_names, variadic_name
from gtape.core.quiet import hush, unhush
from gtape.core.recording import record_general
from gtape.core.spec import Spec
from gtape.core.state import active
from gtape.core.tensor import EagerTensor, Tensor, noted
from gtape.kinds.rules import Pullbacks
from gtape.kinds.typing_rules import same_device

_LIMIT = 4096
_VARARGS = 4


class Shaped:
    """What an op does for inputs of given types and shapes: checked once, then reused."""

    __slots__ = ("specs", "types")

    def __init__(self, specs: tuple[Spec, ...], types: tuple[ArrayType, ...]) -> None:
        self.specs = specs
        self.types = types


class Primitive(Op):
    """An array function with rules. Call it with tensors, and attributes as keywords."""

    nondifferentiable = False

    def __init__(self, fn: Callable[..., Any], *, linear: str = "", outputs: str = "y",
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
        self._infer: Callable[..., Any] | None = None
        self._shaped: dict[Any, Shaped] = {}
        self.pullbacks = Pullbacks(self)

    # -------------------------------------------------------------- declaration

    def infer(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: specs and attributes -> the spec(s) of the result; raises in words."""
        self._infer = fn
        return fn

    def vjp(self, *wrt: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorator: the backward rule for the inputs named; see `core.op.Rule`."""
        def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.pullbacks.add(Rule(fn, self, wrt, self.attr_names))
            return fn

        return declare

    @property
    def has_gradient(self) -> bool:
        return self.nondifferentiable or self.pullbacks.any

    # -------------------------------------------------------------- application

    def __call__(self, *inputs: Tensor, **attrs: Any) -> Any:
        made = self.run(inputs, tuple(
            attrs[n] if n in attrs else self.defaults[n] for n in self.attr_names))
        return made[0] if len(self.outputs) == 1 and not self.many else made

    #: Whether the number of results depends on the attributes (unstack, split).
    many = False

    def run(self, inputs: tuple[Tensor, ...], attrs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Check, compute, record."""
        shaped = self.shaped(inputs, attrs)
        emitted = emit_or_none(self, inputs, attrs, lambda: list(shaped.specs))
        outputs = self._eager(inputs, attrs, shaped) if emitted is None else emitted
        if active():
            record_general(self, inputs, outputs, attrs)
        return outputs

    def reapply(self, inputs: Sequence[Tensor], attrs: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.run(tuple(inputs), attrs)

    def shaped(self, inputs: tuple[Tensor, ...], attrs: tuple[Any, ...]) -> Shaped:
        """The specs and types of the results for these inputs, from the cache if possible."""
        key = (attrs, *[(x._t, x._a.shape) if type(x) is EagerTensor else (x._t, x.spec.shape)
                        for x in inputs])
        try:
            found = self._shaped.get(key)
        except TypeError:
            raise InvalidArgumentError(
                f"{self.name}: the attributes must be hashable; got {attrs!r:.120}") from None
        if found is None:
            found = self._check(inputs, attrs)
            if len(self._shaped) >= _LIMIT:
                self._shaped.clear()
            self._shaped[key] = found
        return found

    def _check(self, inputs: tuple[Tensor, ...], attrs: tuple[Any, ...]) -> Shaped:
        if inputs:
            same_device(self.name, inputs)
        specs = self.result_specs([x.spec for x in inputs], attrs)
        if not inputs:
            from gtape.core.placement import current_device

            device = current_device()
        else:
            device = inputs[0]._t.device
        return Shaped(specs, tuple(device.typed(s.dtype) for s in specs))

    def result_specs(self, specs: Sequence[Spec], attrs: tuple[Any, ...]) -> tuple[Spec, ...]:
        """The specs of the results.

        Raises:
            InvalidArgumentError: the inputs do not fit.
        """
        assert self._infer is not None, f"{self.name} declares no infer"
        made = self._infer(*specs, **dict(zip(self.attr_names, attrs)))
        return (made,) if isinstance(made, Spec) else tuple(made)

    def _eager(self, inputs: tuple[Tensor, ...], attrs: tuple[Any, ...], shaped: Shaped,
               ) -> tuple[EagerTensor, ...]:
        types = shaped.types
        device = inputs[0]._t.device if inputs else types[0].device
        if device.is_host:
            made = self._computed(device.xp, inputs, attrs)
        else:
            with device.scope():
                made = self._computed(device.xp, inputs, attrs)
        arrays = made if type(made) in (tuple, list) else (made,)
        return tuple([noted(EagerTensor(a, t)) for a, t in zip(arrays, types)])

    def _computed(self, xp: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        state = hush()
        try:
            return self._fn(xp, *[x._a for x in inputs], **dict(zip(self.attr_names, attrs)))
        finally:
            unhush(state)

    def value(self, xp: Any, *arrays: Any, **attrs: Any) -> Any:
        """The bare array function, for other array functions to build on."""
        return self._fn(xp, *arrays, **(self.defaults | attrs))

    def record(self, mask: int, inputs: tuple[Any, ...], outputs: tuple[Any, ...],
               attrs: tuple[Any, ...]) -> Any:
        return self.pullbacks.record(mask, inputs, outputs, attrs)


def primitive(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Declare a primitive; usable bare or with the options of `Primitive`."""
    def declare(function: Callable[..., Any]) -> Primitive:
        made = Primitive(function, **options)
        made.declare()
        return made

    return declare if fn is None else declare(fn)

"""`optimizer.apply`, called eagerly again and again, runs as one program.

Keras' own `apply` is traced, the user's `update_step` in it. An optimizer is Python code, so the
trace is used only where it cannot differ:

* The first calls go Keras' way, with its checks and errors. A trace is made once two of them
  changed no attribute of the optimizer.
* What is asked for has a key: the variables, which gradients there are, dtypes, shapes, devices.
* A change of an attribute (of the optimizer, its schedules, inner optimizers) forgets the traces.
* Tapes that record, traces around, `run_functions_eagerly`, `run_eagerly`, stateless scopes, a
  learning rate that is a Python function, and whatever cannot be traced: Keras' way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from operator import attrgetter, is_
from types import ModuleType
from typing import Any

from gtape.compile.function import Mode
from gtape.compile.gradual import Gradual, traced_once
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.placement import _scoped
from gtape.core.state import active, tracer_now
from gtape.core.tensor import EagerTensor
from gtape.ops.selection import where

_eagerly: ContextVar[bool] = ContextVar("gtape.engine.eagerly", default=False)
is_own_way = _eagerly.get

#: Calls that change nothing in Python, before a trace is made.
_QUIET = 2
#: Traces made for one optimizer: one that asks for more of them changes too often.
_MOST = 8
#: The attribute that holds what is known of an optimizer's calls.
_UPDATES = "_updates_of_the_engine"
#: Keras' own memory of names in an optimizer, which says nothing that could change.
_CACHE = "_exclude_from_weight_decay_cache"

_Apply = Callable[[Any, Any, Any], None]
_scope, _constraint = _scoped.get, attrgetter("constraint")


@contextmanager
def own_way() -> Iterator[None]:
    """Keras runs as it is, with nothing compiled behind the scenes: `run_eagerly`."""
    token = _eagerly.set(True)
    try:
        yield
    finally:
        _eagerly.reset(token)


def amend_optimizer(module: ModuleType) -> None:
    """Let `apply` of the module's optimizer run as a program."""
    from keras.src.backend.common.stateless_scope import in_stateless_scope

    cls = next(c for c in vars(module).values() if isinstance(c, type)
               and c.__module__ == module.__name__ and "apply" in vars(c))
    plain = vars(cls)["apply"]

    @functools.wraps(plain)
    def apply(self: Any, grads: Any, trainable_variables: Any = None) -> None:
        if active() or tracer_now() is not None or Mode.eager or is_own_way() or (
                in_stateless_scope()):
            return plain(self, grads, trainable_variables)
        updates = self.__dict__.get(_UPDATES)
        if updates is None:  # put past `__setattr__`, which tracks what is state
            updates = self.__dict__[_UPDATES] = _Updates()
        return updates.apply(plain, self, grads, trainable_variables)

    setattr(cls, "apply", apply)  # noqa: B010  (mypy knows no attribute of `type`)


def amend_loss_scale(module: ModuleType) -> None:
    """`amend_optimizer`; and in a trace, gradients that are not finite choose between values that
    are both computed, so that nobody waits for the answer."""
    amend_optimizer(module)
    module.ops = _Choosing(module.ops)  # type: ignore[attr-defined]


class _Choosing:
    """Keras' ops, where `cond` of functions that assign is a choice between what they assign."""

    def __init__(self, ops: Any) -> None:
        self._ops = ops

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ops, name)

    def cond(self, pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
        tracer = tracer_now()
        if tracer is None:
            return self._ops.cond(pred, true_fn, false_fn)
        before = {key: use.present for key, use in tracer.cells.items()}
        true_fn()
        assigned = {key: use.present for key, use in tracer.cells.items()}
        for key, use in tracer.cells.items():
            use.present = before.get(key, use.start)
        false_fn()
        for key, use in tracer.cells.items():
            other = use.present
            if assigned.get(key, other) is not other:
                use.present = where(pred, assigned[key], other)
        return None


class _Updates:
    """What is known of the calls of one optimizer."""

    __slots__ = ("known", "seen", "traces")

    def __init__(self) -> None:
        self.known: dict[Any, _Update] = {}
        self.seen: _Settings | None = None
        self.traces = 0

    def apply(self, plain: _Apply, optimizer: Any, grads: Any, given: Any) -> None:
        variables = optimizer._trainable_variables if given is None else given
        asked = _asked(plain, grads, variables, given is None)
        if asked is None:
            plain(optimizer, grads, given)
            return
        key, tensors = asked
        if self.seen is not None and not self.seen.hold():
            self._changed(optimizer)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = _Update(grads, variables)
        program = found.program
        if program is not None:
            if found.partial:
                optimizer._filter_empty_gradients(grads, variables)  # for its warning
            program.run(*tensors)
        elif found.quiet == _QUIET:
            found.quiet += 1
            program = found.program = self._trace(found, plain, optimizer, tensors, given)
            if program is None:
                plain(optimizer, grads, given)
            else:
                program.run(*tensors)
        elif found.quiet > _QUIET:
            plain(optimizer, grads, given)
        else:
            before = _Settings(optimizer)
            with own_way():  # of the optimizers inside too: they will be part of this trace
                plain(optimizer, grads, given)
            found.quiet = found.quiet + 1 if before == _Settings(optimizer) else 0

    def _changed(self, optimizer: Any) -> None:
        """An attribute is another object: nothing traced is of use, unless it is the same value."""
        seen, self.seen = self.seen, _Settings(optimizer)
        if seen != self.seen:
            self.known.clear()
            self.seen = None

    def _trace(self, update: _Update, plain: _Apply, optimizer: Any, tensors: Sequence[Any],
               given: Any) -> Gradual | None:
        """What runs an update, where it can be traced."""
        before = _Settings(optimizer)
        if self.traces == _MOST or before.call_python():
            return None
        self.traces += 1
        made = traced_once(lambda *ts: plain(optimizer, update.gradients(ts), given), tensors)
        if made is None or before != _Settings(optimizer):
            return None
        self.seen = before
        return Gradual(made)


def _asked(plain: _Apply, grads: Any, variables: Any, own: bool) -> tuple[Any, list[Any]] | None:
    """The key of a call and its tensors; None where there is something else among them."""
    if type(grads) not in (list, tuple) or not isinstance(variables, (list, tuple)):
        return None
    parts: list[Any] = [plain, own, _scope(), *map(id, variables)]
    tensors: list[Any] = []
    for g in grads:
        kind = type(g)
        if kind is EagerTensor:
            parts += (g._t, g._a.shape)
            tensors.append(g)
        elif g is None:
            parts.append(None)
        elif kind is IndexedSlices and type(g.values) is type(g.indices) is EagerTensor:
            parts += (kind, g._shape)
            for tensor in (g.values, g.indices):
                parts += (tensor._t, tensor._a.shape)
                tensors.append(tensor)
        else:
            return None
    try:
        parts += map(id, map(_constraint, variables))
    except AttributeError:
        return None
    return tuple(parts), tensors


class _Update:
    """One way in which an optimizer is called.

    `quiet`: how many calls one after another changed no attribute; more than _QUIET: a trace was
    tried. `partial`: whether gradients are missing.
    """

    __slots__ = ("_held", "_kinds", "partial", "program", "quiet")

    def __init__(self, grads: Sequence[Any], variables: Sequence[Any]) -> None:
        # Their ids are in the key.
        self._held = (*variables, *map(_constraint, variables))
        self._kinds = [None if g is None else g.dense_shape if type(g) is IndexedSlices else ...
                       for g in grads]
        self.partial = any(g is None for g in grads)
        self.quiet = 0
        self.program: Gradual | None = None

    def gradients(self, tensors: Sequence[Any]) -> list[Any]:
        """The gradients, of their tensors."""
        fresh = iter(tensors)
        return [kind if kind is None else next(fresh) if kind is ... else
                IndexedSlices(next(fresh), next(fresh), kind) for kind in self._kinds]


class _Settings:
    """The attributes that an optimizer, its schedules and inner optimizers have."""

    __slots__ = ("_named", "_spaces")

    def __init__(self, optimizer: Any) -> None:
        self._spaces = [(space, tuple(space.values())) for space in _spaces(optimizer, {})]
        self._named = [
            (id(space), name, value, len(value) if isinstance(value, (list, dict, set)) else 0)
            for space, _ in self._spaces for name, value in space.items() if name != _CACHE]

    def hold(self) -> bool:
        """Whether the attributes are the same objects still."""
        for space, values in self._spaces:
            if len(space) != len(values) or not all(map(is_, space.values(), values)):
                return False
        return True

    def call_python(self) -> bool:
        """Whether a learning rate is a function of the user's, which a trace would ask once."""
        rates = [space.get("_learning_rate") for space, _ in self._spaces]
        return any(callable(rate) and not isinstance(rate, _holders()) for rate in rates)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, _Settings) and len(self._named) == len(other._named)
                and all(a == b and n == m and _alike(v, w) and i == j
                        for (a, n, v, i), (b, m, w, j) in zip(self._named, other._named)))

    __hash__ = None  # type: ignore[assignment]


def _alike(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and type(a) in (int, float, str) and a == b)


def _spaces(owner: Any, found: dict[int, Any]) -> Iterator[dict[str, Any]]:
    """The attributes of an optimizer, and of those and of the schedules that it holds."""
    space = owner.__dict__
    if id(space) in found:
        return
    found[id(space)] = space
    yield space
    for value in tuple(space.values()):
        parts = value.values() if isinstance(value, dict) else (
            value if isinstance(value, (list, tuple)) else (value,))
        for part in parts:
            if isinstance(part, _holders()):
                yield from _spaces(part, found)


@functools.cache
def _holders() -> tuple[type, ...]:
    from keras.src.optimizers.base_optimizer import BaseOptimizer
    from keras.src.optimizers.schedules.learning_rate_schedule import LearningRateSchedule

    return BaseOptimizer, LearningRateSchedule

"""`optimizer.apply`, called eagerly again and again, runs as one program.

Keras' own `apply` is traced, the user's `update_step` in it, where that cannot differ: see
`compile.repeated`. Tapes that record, traces around, `run_functions_eagerly`, `run_eagerly`,
stateless scopes and a learning rate that is a Python function keep Keras' way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gtape.compile.frontend.repeated_calls import AttributeWatch, RepeatedCalls
from gtape.compile.frontend.signature import Arguments
from gtape.core.context import active, tracer_now
from gtape.core.errors import NotTraceableError
from gtape.core.modes import Modes
from gtape.engine.amendments import instead

if TYPE_CHECKING:
    from gtape.core.annotations import TensorLike

_eagerly: ContextVar[bool] = ContextVar("gtape.engine.eagerly", default=False)

#: The attribute that holds what is known of an optimizer's calls.
_UPDATES = "_updates_of_the_engine"


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

    @instead(cls, "apply")
    def apply(self: Any, grads: TensorLike, trainable_variables: Any = None) -> None:
        variables = self._trainable_variables if trainable_variables is None else (
            trainable_variables)
        if (active() or tracer_now() is not None or Modes.eager_functions or _eagerly.get()
                or in_stateless_scope() or not isinstance(grads, (list, tuple))
                or not isinstance(variables, (list, tuple))):
            return plain(self, grads, trainable_variables)
        updates = self.__dict__.get(_UPDATES)
        if updates is None:  # put past `__setattr__`, which tracks what is state
            updates = self.__dict__[_UPDATES] = RepeatedCalls(
                functools.partial(AttributeWatch, self, _followed()))
        arguments = Arguments(tuple(grads), {})
        alike = updates.find(arguments, [
            plain, trainable_variables is None, *variables,
            *[getattr(v, "constraint", None) for v in variables]])
        if alike.program is None:
            return updates.run(alike, arguments, functools.partial(
                _update, plain, self, trainable_variables))
        if type(None) in arguments.pattern:
            self._filter_empty_gradients(grads, variables)  # for its warning
        return alike.program.run(*arguments.tensors)


def _update(plain: Callable[..., object], optimizer: Any, variables: TensorLike, *grads: Any,
            ) -> None:
    """Keras' `apply`. Optimizers inside run as they are too: they are part of this trace."""
    rates = AttributeWatch(optimizer, _followed()).named("_learning_rate") if tracer_now() else ()
    if any(callable(rate) and not isinstance(rate, _followed()) for rate in rates):
        raise NotTraceableError("a learning rate that is a Python function is asked in every step")
    with own_way():
        plain(optimizer, list(grads), variables)


@functools.cache
def _followed() -> tuple[type, ...]:
    """The classes whose attributes an update reads."""
    from keras.src.optimizers.base_optimizer import BaseOptimizer
    from keras.src.optimizers.schedules.learning_rate_schedule import LearningRateSchedule

    return BaseOptimizer, LearningRateSchedule

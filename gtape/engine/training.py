"""`fit`, `evaluate`, `predict` and `optimizer.apply`: one compiled program a step.

Keras' own way asks for the next batch inside a traced function, through optional values and a loop
for `steps_per_execution`. Here the batch is taken first and its tensors are the arguments of the
step's program, which gtape calls in microseconds; `steps_per_execution` calls it that often.

Of optimizers Keras' own `apply` is traced, the user's `update_step` in it, where that cannot
differ: see `compile.frontend.repeated_calls`. Tapes that record, traces around,
`run_functions_eagerly`, `run_eagerly`, stateless scopes and a learning rate that is a Python
function keep Keras' way.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from time import perf_counter
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gtape.autograph.convert import callee
from gtape.compile.frontend.function import Function
from gtape.compile.frontend.repeated_calls import AttributeWatch, RepeatedCalls
from gtape.compile.frontend.signature import Arguments
from gtape.core import nest
from gtape.core.context import active, tracer_now
from gtape.core.errors import NotTraceableError
from gtape.core.modes import Modes
from gtape.core.tensor import EagerTensor, Tensor
from gtape.data import INFINITE_CARDINALITY
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


#: Waiting no longer than this is not worth a line.
_NOTABLE_SECONDS = 0.5


def amend_trainer(module: ModuleType) -> None:
    """Let the trainer's functions take a batch, then run one program on it."""
    trainer = module.TensorFlowTrainer

    def joined(*parts: Tensor) -> Any:
        return parts[0] if len(parts) == 1 else module.concat(list(parts))

    @instead(trainer, "_make_function")
    def make_function(self: Any, step_function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        step = _step(self, step_function)
        return lambda iterator: _executed(step, iterator, self.steps_per_execution)

    @instead(trainer, "make_predict_function")
    def make_predict_function(self: Any, force: bool = False) -> Any:
        if self.predict_function is None or force:
            step = _step(self, self.predict_step)
            self.predict_function = lambda batches: nest.map_structure(
                joined, *[step(batch) for batch in batches])
        return self.predict_function

    plain = module.TFEpochIterator.__init__

    @instead(module.TFEpochIterator, "__init__")
    def init(self: Any, *args: object, **kwargs: object) -> None:
        plain(self, *args, **kwargs)
        dataset = self._distributed_dataset
        if self.steps_per_epoch is None and int(dataset.cardinality()) == INFINITE_CARDINALITY:
            raise ValueError("the dataset repeats without end, so an epoch of it has none: give "
                             "steps_per_epoch to fit, validation_steps for validation_data, steps "
                             "to evaluate and predict, or repeat it a number of times")


def amend_operation(module: ModuleType) -> None:
    """Convert what users write in `call`, as tf.function converts what it is given."""
    plain = module.Operation.__call__
    # Keras adds a layer's arguments to the text of every error. This one is told in one line.
    NotTraceableError._keras_call_info_injected = True  # type: ignore[attr-defined]

    @instead(module.Operation, "__call__")
    def call(self: Any, *args: Any, **kwargs: object) -> Any:
        if tracer_now() is not None and "call" not in vars(self):
            own = self.call
            made = callee(own)
            if made is not own:
                # Its own attribute only while it runs: `call` stays what the user wrote.
                object.__setattr__(self, "call", made)
                try:
                    return plain(self, *args, **kwargs)
                finally:
                    object.__delattr__(self, "call")
        return plain(self, *args, **kwargs)


def amend_logs(module: ModuleType) -> None:
    """Read what a step gives to callbacks at once."""
    plain = module.pythonify_logs

    @instead(module, "pythonify_logs")
    def pythonify_logs(logs: Any) -> Any:
        if logs and not all(type(v) is EagerTensor and not v._a.ndim for v in logs.values()):
            return plain(logs)
        return {name: float(logs[name]._a) for name in sorted(logs)} if logs else {}


def _executed(step: Callable[[Any], Any], iterator: Iterator[object], steps: int) -> Any:
    """The results of the last of `steps` batches; fewer where the data ends.

    Raises:
        StopIteration: there is no batch left.
    """
    outputs = step(next(iterator))
    for batch in islice(iterator, steps - 1):
        outputs = step(batch)
    return outputs


def _step(trainer: Any, step_function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`step_function` of a batch, as a program for every kind of batch."""
    without_optionals = trainer._autoconvert_optionals
    if trainer.run_eagerly:
        return own_way()(without_optionals(step_function))
    return Function(without_optionals(callee(step_function)), autograph=False,
                    reduce_retracing=True, gradual=lambda: _timed(trainer))


@contextmanager
def _timed(trainer: object) -> Iterator[None]:
    """Say how long a step waited for its compiler, where `fit` shows its progress."""
    params = getattr(getattr(trainer, "history", None), "params", None) or {}
    start = perf_counter()
    yield
    seconds = perf_counter() - start
    if params.get("verbose") and seconds >= _NOTABLE_SECONDS:
        sys.stdout.write(f"waited {seconds:.1f} s for the step to be compiled\n")

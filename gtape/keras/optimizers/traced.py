"""An optimizer's update as graph nodes: the same rules, variable by variable, elementwise.

Nothing is laid out flat here: a compiler sees one elementwise formula for each variable, and
fuses them as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.device import CPU, Device
from gtape.core.dtypes import of_numpy
from gtape.core.errors import InvalidArgumentError
from gtape.core.spec import Spec
from gtape.core.state import init_scope, paused, tracer_now
from gtape.core.tensor import Tensor
from gtape.keras.optimizers import clipping
from gtape.keras.optimizers.traced_arrays import NeedsNumber, TracedArray, TracedReal, xp
from gtape.keras.variables import HostNumber
from gtape.kinds.hosted import HostedOp
from gtape.ops.casting import cast
from gtape.ops.more_reductions import reduce_all
from gtape.ops.scalars import logical_and, where
from gtape.ops.transfer import move


def only_if(condition: Tensor, change: Callable[[], Any]) -> None:
    """`change()`, of whose writes to state only those remain for which the condition holds."""
    tracer = tracer_now()
    before = {key: use.present for key, use in tracer.cells.items()}
    change()
    for key, use in tracer.cells.items():
        old = before.get(key, use.start)
        if use.present is not old:
            at_home = condition if use.start._t.device is condition._t.device else move(
                condition, use.start._t.device)
            tracer.write(use.cell, where(at_home, use.present, old))


def _dense(gradient: Any, state: Any) -> Tensor:
    """A gradient as a tensor of its variable's shape and dtype.

    Raises:
        InvalidArgumentError: another shape or device than the variable's.
    """
    like = state._value
    made = gradient.to_dense() if hasattr(gradient, "to_dense") else convert(
        gradient, None, like._t.device)
    if made.spec.shape != like.spec.shape:
        raise InvalidArgumentError(
            f"the gradient for the variable '{state._name}' must have its shape "
            f"{like.spec.shape}; got {made.spec.shape}")
    if made._t.device is not like._t.device:
        raise InvalidArgumentError(
            f"the gradient for the variable '{state._name}' must live on "
            f"{like._t.device.name}; got one on {made.device}")
    return made if made.dtype is like.dtype else cast(made, like.dtype)


def update(optimizer: Any, gradients: Sequence[Any], states: Sequence[Any]) -> None:
    """What `Optimizer.apply` does to variables and slots, as part of the trace."""
    with paused():
        with init_scope():
            plan, _ = optimizer._plan(list(states))
        given = [TracedArray(_dense(g, s)) for g, s in zip(gradients, states)]
        settings = optimizer._settings
        scale = settings.loss_scale_factor
        if scale is not None:
            given = [g / g.dtype.type(scale) for g in given]
        step: Any = TracedArray(optimizer._iterations._state._value) + 1  # type: ignore[operator]
        count = settings.gradient_accumulation_steps
    if not count:
        _Update(optimizer, plan, step).run(given, states)
        return
    with paused():
        due = xp.equal(step % count, 0)
        means = _accumulated(optimizer, plan, given, due, count)
    updates = (step - 1) // count + 1
    only_if(due.tensor, lambda: _Update(optimizer, plan, updates).run(means, states))


def _accumulated(optimizer: Any, plan: Any, gradients: list[TracedArray], due: TracedArray,
                 count: int) -> list[TracedArray]:
    """The mean gradients, if an update is `due`; the sums are kept until then."""
    slot = len(optimizer.slots)
    made = list(gradients)
    for group, places in plan:
        for at, i in places.items():
            cell = group.cell(slot, at)
            total: Any = TracedArray(cell._value) + gradients[i]  # type: ignore[operator]
            made[i] = (total / count).astype(total.dtype)
            here = TracedArray(_on(due.tensor, group.type.device))
            cell._value = xp.where(here, 0, total).tensor
    return made


def _on(tensor: Tensor, device: Device) -> Tensor:
    return tensor if tensor._t.device is device else move(tensor, device)


def scaled_update(optimizer: Any, pairs: Sequence[tuple[Any, Any]]) -> None:
    """What `LossScaleOptimizer.apply` does besides counting, as part of the trace."""
    with paused():
        scale: Any = TracedArray(optimizer._scale._state._value)
        made, finite = [], convert(True, None, CPU)
        for gradient, variable in pairs:
            state = variable._resource_()
            g: Any = TracedArray(_dense(gradient, state))
            divided = g / _placed(scale.astype(g.dtype), g.tensor._t.device)
            made.append(divided.tensor)
            # A float16 that overflowed is looked at itself: float32 would bring it back.
            for seen in (g, divided) if g.dtype.itemsize == 2 else (divided,):
                finite = logical_and(finite, _on(reduce_all(xp.isfinite(seen).tensor), CPU))
        good: Any = TracedArray(optimizer._good._state._value) + 1  # type: ignore[operator]
        grows = xp.where(TracedArray(finite), good >= optimizer.dynamic_growth_steps, False)
        halved = xp.where(TracedArray(finite), scale, scale / 2)
        optimizer._scale._state._value = xp.where(grows, scale * 2, halved).tensor
        optimizer._good._state._value = xp.where(
            TracedArray(finite) & ~grows, good, 0).tensor  # type: ignore[operator]
    only_if(finite, lambda: optimizer.inner_optimizer.apply(made, [v for _, v in pairs]))


class _Update:
    """One update: the numbers that all its variables share, and the rule applied to each."""

    def __init__(self, optimizer: Any, plan: Any, step: Any) -> None:
        self.optimizer, self.plan, self.step = optimizer, plan, step
        self._known: dict[Any, tuple[Any, Any]] = {}

    def run(self, gradients: list[TracedArray], states: Sequence[Any]) -> None:
        with paused():
            made = _limited(self.optimizer._settings, gradients)
            self._rate = _rate(self.optimizer)
            results = [(group.states[at], self._one(group, at, made[i]))
                       for group, places in self.plan for at, i in places.items()]
        for state, value in results:
            state._store_(value.tensor)
        if self.optimizer._settings.use_ema:
            self._average()

    def _one(self, group: Any, at: int, gradient: TracedArray) -> TracedArray:
        """The new value of a variable; its slots are written."""
        optimizer, state = self.optimizer, group.states[at]
        k, rate = self._numbers(group.type)
        w: Any = TracedArray(state._value)
        if group.decayed:
            decay = w.dtype.type(optimizer._settings.weight_decay)
            w = w - w * (decay * rate)
        cells = [group.cell(i, at) for i in range(len(optimizer.slots))]
        slots = [TracedArray(cell._value) for cell in cells]
        optimizer.facing(state)
        descent = optimizer.step(k, xp, w, gradient, *slots)
        for cell, slot in zip(cells, slots):
            cell._value = slot.tensor
        return (w - descent).astype(w.dtype)

    def _numbers(self, array_type: Any) -> tuple[Any, TracedArray]:
        """What `constants` gives, and the learning rate, in a dtype and on a device."""
        found = self._known.get(array_type)
        if found is None:
            real = TracedReal(array_type.dtype.as_numpy_dtype)
            rate = real(self._rate)
            try:
                k = self.optimizer.constants(real, rate, self.step)
            except NeedsNumber:
                k = _hosted_constants(self.optimizer, real.type, rate, self.step)
            found = self._known[array_type] = (_placed(k, array_type.device),
                                               _placed(rate, array_type.device))
        return found

    def _average(self) -> None:
        optimizer, step = self.optimizer, self.step
        settings = optimizer._settings
        slot = len(optimizer.slots) + len(optimizer._extra) - 1
        frequency = settings.ema_overwrite_frequency
        for group, _ in self.plan:
            with paused():
                share = xp.where(step > 1, group.type.dtype.as_numpy_dtype(settings.ema_momentum),
                                 group.type.dtype.as_numpy_dtype(0))
                share = _placed(share, group.type.device)
                averages = []
                for at, state in enumerate(group.states):
                    cell = group.cell(slot, at)
                    average: Any = TracedArray(cell._value) * share
                    average = average + (1 - share) * TracedArray(state._value)
                    cell._value = average.tensor
                    averages.append(average)
            if frequency:
                def overwrite(group: Any = group, averages: Any = averages) -> None:
                    for state, average in zip(group.states, averages):
                        state._store_(average.tensor)

                only_if(xp.equal(step % frequency, 0).tensor, overwrite)


def _rate(optimizer: Any) -> TracedArray:
    """The learning rate of this step, float32."""
    rate = optimizer._rate
    if isinstance(rate, HostNumber):
        return TracedArray(rate._state._value)
    return TracedArray(_on(convert(optimizer.learning_rate), CPU)).astype(np.float32)


def _placed(numbers: Any, device: Device) -> Any:
    """Numbers where the variables are."""
    if isinstance(numbers, tuple):
        return tuple(_placed(n, device) for n in numbers)
    if not isinstance(numbers, TracedArray):
        return numbers
    return TracedArray(_on(numbers.tensor, device))


def _hosted_constants(optimizer: Any, real: Any, rate: TracedArray, step: TracedArray) -> Any:
    """`constants` by Python at every call, for a rule that computes with numbers."""
    array_type = CPU.type_of(np.dtype(real))
    like = optimizer.constants(real, real(1), 1)
    single = not isinstance(like, tuple)

    def run(rate: Tensor, step: Tensor) -> list[Tensor]:
        made = optimizer.constants(real, rate._array_()[()], int(step._array_()))
        return [convert(real(n)) for n in ((made,) if single else made)]

    count = 1 if single else len(like)
    op = HostedOp("optimizer_constants", run, [Spec((), array_type.dtype)] * count,
                  [array_type] * count, differentiable=False)
    made = tuple(TracedArray(t) for t in op(rate.tensor, step.tensor))
    return made[0] if single else made


def _limited(settings: Any, gradients: list[TracedArray]) -> list[TracedArray]:
    """The gradients within the limit that was set."""
    if settings.clipnorm is not None:
        return [clipping.clipped_by_norm(xp, g, settings.clipnorm) for g in gradients]
    if settings.clipvalue is not None:
        return [clipping.clipped_by_value(xp, g, settings.clipvalue) for g in gradients]
    if settings.global_clipnorm is None:
        return gradients
    limit = settings.global_clipnorm
    total = sum(_placed(clipping.square_sum(xp, g), CPU).astype(np.float64) for g in gradients)
    norm = xp.sqrt(total)
    scale = xp.where(xp.isfinite(norm), limit / xp.maximum(norm, limit), np.float64("nan"))
    return [g * _placed(scale.astype(g.dtype), g.tensor._t.device) for g in gradients]


def of_numbers(formula: Callable[[TracedArray, Any], TracedArray], step: Tensor) -> Tensor:
    """A schedule's formula of a traced step, computed in float64: a float32 scalar."""
    at = TracedArray(cast(step, of_numpy(np.dtype(np.float64))))
    made = formula(at, xp)
    if not isinstance(made, TracedArray):
        return convert(np.float32(made), None, CPU)
    return made.astype(np.float32).tensor

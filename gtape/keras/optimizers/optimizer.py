"""Optimizer: what all update rules share: state, learning rate, clipping, decay, averages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from gtape.core.quiet import hush, unhush
from gtape.core.state import tracer_now
from gtape.core.tensor import Tensor
from gtape.core.text import shown
from gtape.keras import naming
from gtape.keras.optimizers import flat
from gtape.keras.optimizers.gradients import Settings, dense, limited, unscaled, with_gradients
from gtape.keras.optimizers.slot_variable import SlotVariable
from gtape.keras.variables import HostNumber

#: How many combinations of variables are remembered.
_PLANS = 64


def _pairs(given: Any) -> list[tuple[Any, Any]]:
    """The (gradient, variable) pairs of an iterable.

    Raises:
        TypeError: there is something else in it, or it is none.
    """
    try:
        return [(g, v) for g, v in given]
    except (TypeError, ValueError):
        raise TypeError(f"apply_gradients takes (gradient, variable) pairs; got {shown(given)}. "
                        f"Write zip(gradients, variables)") from None


class Optimizer:
    """Base class. A rule overrides `constants` and `step`, and names its state in `slots`.

    `step(xp, w, g, *slots)`, given flat arrays, writes to the slots and gives what is subtracted
    from w. It runs once for all variables of a dtype and device, block by block where they are
    large. A rule that needs the variables one by one sets `elementwise = False` and receives
    arrays of their shapes.

    Args:
        learning_rate: a number, a `schedules.LearningRateSchedule`, or a function without
            arguments.
        weight_decay: before the update, w is multiplied by 1 - weight_decay learning_rate.
        clipnorm, clipvalue, global_clipnorm: limits on gradients; one at most.
        use_ema: keep an exponential moving average of the variables.
        ema_momentum: the weight of the past in it.
        ema_overwrite_frequency: after how many steps the variables become their averages.
        loss_scale_factor: gradients are divided by it.
        gradient_accumulation_steps: update only at every n-th step, with the mean gradient.
        name: for the paths of the state.

    Raises:
        ValueError: several limits, or a setting out of range.
    """

    slots: ClassVar[tuple[str, ...]] = ()
    elementwise: ClassVar[bool] = True
    _initial: Sequence[float]

    def __init__(self, learning_rate: Any, weight_decay: float | None = None,
                 clipnorm: float | None = None, clipvalue: float | None = None,
                 global_clipnorm: float | None = None, use_ema: bool = False,
                 ema_momentum: float = 0.99, ema_overwrite_frequency: int | None = None,
                 loss_scale_factor: float | None = None,
                 gradient_accumulation_steps: int | None = None, name: str | None = None,
                 **kwargs: Any) -> None:
        if kwargs:
            raise ValueError(f"{type(self).__name__} takes no keyword arguments {sorted(kwargs)}")
        self.name = naming.numbered(naming.snake_case(type(self).__name__)) if name is None \
            else naming.checked(name)
        self._settings = Settings(weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema,
                                  ema_momentum, ema_overwrite_frequency, loss_scale_factor,
                                  gradient_accumulation_steps).checked()
        with naming.scope(self.name):
            self._iterations = HostNumber(0, "int64", "iterations")
            self._rate = learning_rate if callable(learning_rate) else HostNumber(
                float(learning_rate), "float32", "learning_rate")
        self.built = False
        self._known: dict[int, Any] = {}
        self._place: dict[int, tuple[flat.Group, int]] = {}
        self._plans: dict[Any, tuple[list[Any], Any]] = {}
        self._not_decayed: tuple[set[int], tuple[str, ...]] = (set(), ())
        self._initial = [0.0] * len(self.slots)
        self._extra = tuple(n for n, wanted in (
            ("accumulator_of_gradients", gradient_accumulation_steps), ("average", use_ema))
            if wanted)

    # ------------------------------------------------------------------ the rule

    def constants(self, real: Any, rate: Any, step: int) -> Any:
        """What `step` needs besides arrays, in the dtype whose NumPy type is `real`."""
        return rate

    def step(self, k: Any, xp: Any, w: Any, g: Any, *slots: Any) -> Any:
        """What is subtracted from w. Writes to `slots`."""
        raise NotImplementedError(f"{type(self).__name__} must define step")

    def begin(self, group: flat.Group) -> None:
        """Called when state was made for variables, with the numbers in `_initial`."""

    def facing(self, state: Any) -> None:
        """Called before `step`, with the variable, by a rule that is not elementwise."""

    # ------------------------------------------------------------------ settings

    @property
    def iterations(self) -> Any:
        """How often variables were updated, int64: a variable, or with gradient accumulation in a
        traced function a tensor."""
        count = self._settings.gradient_accumulation_steps
        if not count:
            return self._iterations
        if tracer_now() is not None:
            return self._iterations._state._value // count
        return HostNumber(self._iterations.number() // count, "int64", "iterations")

    @property
    def learning_rate(self) -> Any:
        """The learning rate: a float32 variable, or what the schedule gives now."""
        if isinstance(self._rate, HostNumber):
            return self._rate
        from gtape.keras.optimizers.schedules import LearningRateSchedule

        if isinstance(self._rate, LearningRateSchedule):
            return self._rate(self._iterations)
        return self._rate()

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if callable(value) and not hasattr(value, "_read_"):
            self._rate = value
        elif isinstance(self._rate, HostNumber):
            self._rate.assign(value if isinstance(value, Tensor) or hasattr(value, "_read_")
                              else np.float32(value))
        else:
            raise TypeError("this optimizer follows a schedule, so its learning rate cannot be "
                            "set to a number; make the optimizer with a number instead")

    def _present_rate(self) -> np.float32:
        rate = self._rate
        if isinstance(rate, HostNumber):
            return np.float32(rate.number())
        return np.float32(float(self.learning_rate))

    @property
    def weight_decay(self) -> float | None:
        return self._settings.weight_decay

    @property
    def use_ema(self) -> bool:
        return self._settings.use_ema

    def exclude_from_weight_decay(self, var_list: Any = None, var_names: Any = None) -> None:
        """No decay for the variables listed, nor for those whose name contains one of the strings.

        Raises:
            ValueError: the optimizer is built already.
        """
        if self.built:
            raise ValueError("exclude_from_weight_decay must be called before the first update")
        ids, names = self._not_decayed
        self._not_decayed = (ids | {v._resource_()._k for v in var_list or ()},
                             (*names, *(var_names or ())))

    def _decays(self, state: Any) -> bool:
        ids, names = self._not_decayed
        return self._settings.weight_decay is not None and state._k not in ids and not any(
            name in state._name for name in names)

    # ------------------------------------------------------------------ state

    def build(self, variables: Iterable[Any]) -> None:
        """Know these variables, and no others. Called by the first update."""
        if self.built:
            return
        for variable in variables:
            self._known[variable._resource_()._k] = variable
        self.built = True

    def _grouped(self, states: Sequence[Any]) -> None:
        """Lay out the variables that have no place yet."""
        together: dict[Any, list[Any]] = {}
        for state in states:
            if state._k in self._place:
                continue
            array_type = state._value._t
            size = int(np.prod(state._value.spec.shape))
            limit = flat.SHARED_HOST if array_type.device.is_host else flat.SHARED_DEVICE
            alone = state._k if size > limit or not self.elementwise else None
            together.setdefault((id(array_type), self._decays(state), alone), []).append(state)
        initial = [*self._initial, *([0.0] * len(self._extra))]
        for (_, decays, _), members in together.items():
            group = flat.Group(members, initial, decays)
            self.begin(group)
            for at, state in enumerate(members):
                self._place[state._k] = (group, at)

    @property
    def variables(self) -> list[Any]:
        """The state: iterations, learning rate, and the slots of every variable known."""
        found: list[Any] = [self._iterations]
        if isinstance(self._rate, HostNumber):
            found.append(self._rate)
        self._grouped([v._resource_() for v in self._known.values()])
        for key, variable in self._known.items():
            group, at = self._place[key]
            owner = getattr(variable, "path", variable.name.removesuffix(":0")).replace("/", "_")
            found += [SlotVariable(group.cell(i, at), f"{self.name}/{owner}_{slot}")
                      for i, slot in enumerate((*self.slots, *self._extra))]
        return found

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Assign arrays to `variables`, in order.

        Raises:
            ValueError: the optimizer is not built, or the number of arrays differs.
        """
        if not self.built:
            raise ValueError("the optimizer has no state yet; call build(variables) first")
        for variable, value in zip(self.variables, weights, strict=True):
            variable.assign(np.asarray(value))

    # ------------------------------------------------------------------ the update

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Any]]) -> HostNumber:
        """Update variables from (gradient, variable) pairs; gives `iterations`.

        Pairs whose gradient is None are left out, with a UserWarning.

        Raises:
            TypeError: no pairs, but something else.
            ValueError: an empty list, no gradient in any, or a variable that the first call did
                not bring.
            InvalidArgumentError: a gradient of another shape or device than its variable.
        """
        pairs = _pairs(grads_and_vars)
        if not pairs:
            raise ValueError("apply_gradients takes at least one (gradient, variable) pair; got "
                             "none")
        self.apply([g for g, _ in pairs], [v for _, v in pairs])
        return self._iterations

    def apply(self, grads: Sequence[Any], trainable_variables: Any = None) -> None:
        """Update variables; those of `build` unless given. Raises as `apply_gradients`."""
        grads = list(grads)
        if not grads:
            return
        variables = self._variables_for(grads, trainable_variables)
        if any(g is None for g in grads):
            grads, variables = with_gradients(grads, variables)
        states = [v._resource_() for v in variables]
        if tracer_now() is not None:
            from gtape.keras.optimizers import traced

            traced.update(self, grads, states)
        else:
            state = hush()
            try:
                with states[0]._t.device.scope():
                    self._update(dense(grads, states), states)
            finally:
                unhush(state)
        for variable, owner in zip(variables, states):
            if owner._constraint is not None:
                variable.assign(owner._constraint(variable))
        self._iterations.advance()

    def _variables_for(self, grads: list[Any], given: Any) -> list[Any]:
        if given is None:
            if not self.built:
                raise ValueError("the optimizer does not know its variables yet; pass them, or "
                                 "call build(variables) first")
            variables = list(self._known.values())
        else:
            variables = list(given)
        if len(variables) != len(grads):
            raise ValueError(f"got {len(grads)} gradients for {len(variables)} variables")
        for variable in variables:
            if not hasattr(variable, "_resource_"):
                raise ValueError(f"an optimizer updates Variables; got a "
                                 f"{type(variable).__name__}")
        if not self.built:
            self.build(variables)
        known = self._known
        for variable in variables:
            if variable._resource_()._k not in known:
                raise ValueError(
                    f"the optimizer does not know the variable '{variable.name}': it keeps to the "
                    f"variables of its first update. Make one optimizer for each set of variables, "
                    f"or call optimizer.build(all_variables) first")
        return variables

    def _plan(self, states: list[Any]) -> tuple[list[Any], Any]:
        """(group, positions in it -> in `states`) of these variables, and what updates all of them
        at once."""
        key = tuple([s._k for s in states])
        found = self._plans.get(key)
        if found is None:
            self._grouped(states)
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            spread: dict[int, tuple[flat.Group, dict[int, int]]] = {}
            for i, state in enumerate(states):
                group, at = self._place[state._k]
                spread.setdefault(id(group), (group, {}))[1][at] = i
            at_once = None
            if states[0]._t.device.executor is not None:
                from gtape.keras.optimizers.fused import fused

                at_once = fused(self, list(spread.values()))
            found = self._plans[key] = list(spread.values()), at_once
        return found

    def _update(self, gradients: list[Any], states: list[Any]) -> None:
        settings, step = self._settings, int(self._iterations.number()) + 1
        count = settings.gradient_accumulation_steps
        plan, at_once = self._plan(states)
        in_passing = at_once is not None and not count
        if not in_passing:
            gradients = unscaled(settings, gradients)
        if count:
            summed = self._accumulated(plan, gradients, step)
            if summed is None:
                return
            gradients = summed
        rate, updates = self._present_rate(), (step - 1) // (count or 1) + 1
        if at_once is not None:
            scale = settings.loss_scale_factor if in_passing else None
            at_once.update(gradients, rate, updates, 1.0 / (scale or 1.0))
        else:
            gradients = limited(settings, gradients, states)
            for group, places in plan:
                self._update_group(group, places, gradients, rate, updates)
        if settings.use_ema:
            self._average([group for group, _ in plan], updates)

    def _update_group(self, group: flat.Group, places: dict[int, int], gradients: list[Any],
                      rate: Any, step: int) -> None:
        real = group.type.dtype.as_numpy_dtype
        k = self.constants(real, real(rate), step)
        shrink = None
        if group.decayed:
            shrink = real(self._settings.weight_decay) * real(rate)
        rule, count = self.step, len(self.slots)

        def formula(xp: Any, w: Any, g: Any, *slots: Any) -> Any:
            return rule(k, xp, w, g, *slots[:count])

        if not self.elementwise:
            shape = group.shapes[0]
            self.facing(group.states[0])

            def formula(xp: Any, w: Any, g: Any, *slots: Any) -> Any:
                shaped = [a.reshape(shape) for a in (w, g, *slots[:count])]
                return rule(k, xp, *shaped).reshape(-1)

            group.update_some(formula, [(0, gradients[places[0]])], shrink)
        elif len(places) == len(group.states):
            group.update(formula, [gradients[places[at]] for at in range(len(places))], shrink)
        else:
            group.update_some(formula, [(at, gradients[i]) for at, i in places.items()], shrink)

    def _accumulated(self, plan: list[Any], gradients: list[Any], step: int) -> list[Any] | None:
        """The mean gradients at every n-th step; otherwise they are added up."""
        count = self._settings.gradient_accumulation_steps or 1
        slot = len(self.slots)
        made = list(gradients)
        for group, places in plan:
            for at, i in places.items():
                start, end = group.bounds[at]
                kept = group.slots[slot][start:end]
                total = kept + gradients[i].reshape(-1)
                if step % count:
                    kept[...] = total
                else:
                    made[i] = (total / count).astype(kept.dtype).reshape(group.shapes[at])
                    kept[...] = 0
        return None if step % count else made

    def _average(self, groups: list[flat.Group], step: int) -> None:
        settings = self._settings
        slot = len(self.slots) + len(self._extra) - 1
        frequency = settings.ema_overwrite_frequency
        for group in groups:
            average = group.slots[slot]
            share = average.dtype.type(settings.ema_momentum if step > 1 else 0.0)
            average *= share
            average += (1 - share) * group.weights()
            if frequency and step % frequency == 0:
                group.write(group.type.xp.array(average))

    def finalize_variable_values(self, var_list: Iterable[Any]) -> None:
        """With use_ema: make the variables their averages."""
        if not self._settings.use_ema:
            return
        slot = len(self.slots) + len(self._extra) - 1
        for variable in var_list:
            group, at = self._place[variable._resource_()._k]
            average = group.cell(slot, at)._value
            variable._resource_()._store_(average)

    def scale_loss(self, loss: Any) -> Any:
        """loss times loss_scale_factor, whose gradients `apply` divides again."""
        factor = self._settings.loss_scale_factor
        return loss if factor is None else loss * factor


def wide(number: Any) -> Any:
    """A number in float64, in which rules compute what depends on the step."""
    return number.astype(np.float64) if hasattr(number, "astype") else np.float64(number)

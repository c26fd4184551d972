"""The state of optimizers under names that do not depend on how many objects were made before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gtape.keras.optimizers.combined import LossScaleOptimizer, MultiOptimizer
from gtape.keras.optimizers.optimizer import Optimizer

_NUMBERS = ("iterations", "learning_rate")


def known(optimizer: Optimizer) -> list[Any]:
    """The variables that the optimizer was built for, in order."""
    return list(optimizer._known.values())


def parts(optimizer: Optimizer, path: str, variables: Sequence[Any],
          ) -> Iterator[tuple[str, Optimizer, list[Any]]]:
    """(path, optimizer, its share of `variables`) of an optimizer and of those inside it."""
    if isinstance(optimizer, LossScaleOptimizer):
        yield path, optimizer, []
        yield from parts(optimizer.inner_optimizer, f"{path}/inner_optimizer", variables)
    elif isinstance(optimizer, MultiOptimizer):
        yield path, optimizer, []
        for i, (inner, at) in enumerate(optimizer._split(variables)):
            yield from parts(inner, f"{path}/optimizers/{i}", [variables[k] for k in at])
    else:
        yield path, optimizer, list(variables)


def numbers(optimizer: Optimizer) -> Iterator[tuple[str, Any]]:
    """The counter of steps, the learning rate where it is a variable, the scale of losses."""
    if isinstance(optimizer, (LossScaleOptimizer, MultiOptimizer)):
        yield _NUMBERS[0], optimizer._iterations
        if isinstance(optimizer, LossScaleOptimizer):
            yield from (("dynamic_scale", optimizer._scale), ("good_steps", optimizer._good))
        return
    slots = len(slot_names(optimizer)) * len(known(optimizer))
    state = optimizer.variables
    yield from zip(_NUMBERS, state[: len(state) - slots])


def slot_names(optimizer: Optimizer) -> tuple[str, ...]:
    """What the optimizer keeps for each variable, averages and summed gradients included."""
    return (*optimizer.slots, *optimizer._extra)


def slots(optimizer: Optimizer) -> dict[tuple[int, str], Any]:
    """The state of a built optimizer by the position of its variable, and the name."""
    names = slot_names(optimizer)
    places = [(i, name) for i in range(len(known(optimizer))) for name in names]
    state = optimizer.variables
    return dict(zip(places, state[len(state) - len(places):]))

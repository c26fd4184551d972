"""The state of Keras' optimizers under names that do not depend on how many were made before."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gtape.train.keras_objects import optimizer_variables, optimizers_in


def known(optimizer: Any, names: Mapping[int, str]) -> list[str]:
    """The names of the variables that an optimizer was built for, in order; '#i' without one."""
    return [_owner(variable, i, names)
            for i, variable in enumerate(optimizer._trainable_variables)]


def _owner(variable: Any, position: int, names: Mapping[int, str]) -> str:
    return names.get(id(variable._resource_()), f"#{position}")


def state(optimizer: Any, path: str, names: Mapping[int, str]) -> Iterator[tuple[str, Any]]:
    """(name, variable): counters, learning rates, scales, and slots by the variables' names."""
    owners = known(optimizer, names)
    for name, position, variable in optimizer_variables(optimizer):
        owner = "" if position is None else f"/{owners[position]}"
        yield f"{path}/{name}{owner}", variable._resource_()
    for name, inner in optimizers_in(optimizer):
        yield from state(inner, f"{path}/{name}", names)


@contextlib.contextmanager
def built(wanted: Iterable[tuple[Any, Sequence[Any]]]) -> Iterator[None]:
    """Build optimizers for variables; if the block fails they are as they were."""
    undo: list[Callable[[], None]] = []
    try:
        for optimizer, variables in wanted:
            undo.append(_kept(optimizer))
            optimizer.build(list(variables))
        yield
    except BaseException:
        for put_back in undo:
            put_back()
        raise


def _kept(optimizer: Any) -> Callable[[], None]:
    """What makes an optimizer, and those in it, as they are now."""
    inner = [_kept(held) for _, held in optimizers_in(optimizer)]
    attributes = dict(vars(optimizer))
    tracked = {name: set(ids) for name, ids in optimizer._tracker.stored_ids.items()}
    contents = [(held, held.copy()) for held in attributes.values()
                if isinstance(held, (list, dict))]

    def put_back() -> None:
        for held, before in contents:
            if isinstance(held, list):
                list.__setitem__(held, slice(None), before)
            else:
                dict.clear(held)
                dict.update(held, before)
        vars(optimizer).clear()
        vars(optimizer).update(attributes)
        optimizer._tracker.stored_ids.update(tracked)
        for one in inner:
            one()

    return put_back

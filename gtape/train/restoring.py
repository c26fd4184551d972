"""From a file to the objects: everything is checked before anything is assigned."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gtape.core.context import paused
from gtape.core.convert import convert
from gtape.core.errors import DataLossError, InvalidArgumentError
from gtape.train import keras_objects, optimizer_state
from gtape.train.experimental import PythonState
from gtape.train.graph import ObjectGraph
from gtape.train.stored import Stored
from gtape.train.targets import Targets, to_build


class Match(NamedTuple):
    """Names in both, names that only the objects have, names that only the file has.

    And the paths of layers that have no weights yet, and so no names in any of these.
    """

    common: list[str]
    missing: list[str]
    unexpected: list[str]
    unbuilt: list[str]


def restore(roots: Mapping[str, Any], stored: Stored, path: Path) -> Match:
    """Assign what the file holds to the variables and states of the same names.

    States come before variables, since only these can be refused after the checks.

    Raises:
        InvalidArgumentError: a shape or dtype differs; nothing was assigned.
        DataLossError: a Python object does not take its state; all have their old ones again.
    """
    graph = ObjectGraph(roots)
    with paused(), optimizer_state.built(to_build(graph, stored.optimizers)):
        targets = Targets(graph)
        match = _matched(targets, stored)
        _check(targets.arrays, stored, match, path)
        _take_states(targets.states, stored.states, path)
    with paused():
        for name in match.common:
            if name in stored.arrays:
                targets.arrays[name].assign(stored.arrays[name], read_value=False)
        for layer in graph.layers.values():
            keras_objects.settle(layer)
    return match


def _matched(targets: Targets, stored: Stored) -> Match:
    wanted = [*targets.arrays, *targets.states]
    held = stored.arrays.keys() | stored.states.keys()
    return Match([name for name in wanted if name in held],
                 [name for name in wanted if name not in held],
                 sorted(held.difference(wanted)), targets.unbuilt_layers)


def _check(arrays: Mapping[str, Any], stored: Stored, match: Match, path: Path) -> None:
    wrong = []
    for name in match.common:
        if (name in arrays) != (name in stored.arrays):
            wrong.append(f"'{name}' is a tensor here and a Python state there")
        elif name in arrays:
            variable, array = arrays[name], stored.arrays[name]
            dtype = variable._value.dtype.name
            if dtype != array.dtype.name or not variable.shape.is_compatible_with(array.shape):
                wrong.append(f"'{name}' is {dtype}{variable.shape}, the file has "
                             f"{array.dtype.name}{array.shape}")
    if wrong:
        also = "".join(f"; {text}" for text in differences(match))
        raise InvalidArgumentError(f"the checkpoint '{path}' does not fit; nothing was restored. "
                                   f"{listed(wrong, '; ')}{also}")


def differences(match: Match) -> list[str]:
    """What is missing, what is unexpected and what is not built, in words."""
    texts = []
    if match.missing:
        texts.append(f"not in the file: {listed(match.missing)}")
    if match.unexpected:
        texts.append(f"only in the file: {listed(match.unexpected)}")
    if match.unbuilt:
        texts.append(f"not built yet: {listed(match.unbuilt)}")
    return texts


def listed(names: list[str], separator: str = ", ") -> str:
    """The first ten of them, and how many there are besides."""
    shown = separator.join(names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"


@contextlib.contextmanager
def values_kept_on_failure(variables: Iterable[Any]) -> Iterator[None]:
    """Variables have their values again where the block fails."""
    before = [(variable, convert(variable)) for variable in variables]
    try:
        yield
    except BaseException:
        for variable, value in before:
            variable.assign(value)
        raise


def _take_states(states: Mapping[str, PythonState], texts: Mapping[str, str], path: Path) -> None:
    before = {name: state.serialize() for name, state in states.items() if name in texts}
    taken: list[str] = []
    try:
        for name in before:
            taken.append(name)
            states[name].deserialize(texts[name])
    except BaseException as error:
        changed = [name for name in reversed(taken) if not _put_back(states[name], before[name])]
        if not isinstance(error, Exception):
            raise
        outcome = f"these could not be put back: {listed(changed)}" if changed else (
            "nothing was restored")
        raise DataLossError(f"the checkpoint '{path}' does not fit; {outcome}. '{taken[-1]}' does "
                            f"not take its state: {error!r}") from error


def _put_back(state: PythonState, text: str) -> bool:
    """Whether the state is that of `text` again, be it that it complained."""
    try:
        with contextlib.suppress(Exception):
            state.deserialize(text)
        return state.serialize() == text
    except Exception:
        return False

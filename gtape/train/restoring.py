"""The variables and states of a checkpoint by their names in the file, optimizers included; from a
file to the objects, everything checked before anything is assigned; what became of that."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gtape.core.context import paused
from gtape.core.convert import convert
from gtape.core.errors import DataLossError, InvalidArgumentError
from gtape.train import keras_objects
from gtape.train.experimental import PythonState
from gtape.train.graph import ObjectGraph
from gtape.train.keras_objects import optimizer_variables, optimizers_in
from gtape.train.stored import Stored

_ADVICE = ("A model gets its variables when it is built: call it once, or build(input_shape), "
           "before the restore")


def _known(optimizer: Any, names: Mapping[int, str]) -> list[str]:
    """The names of the variables that an optimizer was built for, in order; '#i' without one."""
    return [names.get(id(variable._resource_()), f"#{i}")
            for i, variable in enumerate(optimizer._trainable_variables)]


def _slots(optimizer: object, path: str, names: Mapping[int, str]) -> Iterator[tuple[str, object]]:
    """(name, variable): counters, learning rates, scales, and slots by the variables' names."""
    owners = _known(optimizer, names)
    for name, position, variable in optimizer_variables(optimizer):
        owner = "" if position is None else f"/{owners[position]}"
        yield f"{path}/{name}{owner}", variable._resource_()
    for name, inner in optimizers_in(optimizer):
        yield from _slots(inner, f"{path}/{name}", names)


@contextlib.contextmanager
def _built(wanted: Iterable[tuple[Any, Sequence[Any]]]) -> Iterator[None]:
    """Build optimizers for variables; if the block fails they are as they were."""
    undo: list[Callable[[], None]] = []
    try:
        for optimizer, variables in wanted:
            undo.append(_kept(optimizer))  # before, since build may fail half-way
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
    # The lists themselves are kept, since Keras holds them in several places.
    contents = [(held, held.copy()) for held in attributes.values()
                if isinstance(held, (list, dict))]

    def put_back() -> None:
        for held, before in contents:
            # The list's own method: a tracked list of Keras would count the items again.
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


class Targets:
    """Everything that a checkpoint keeps of some objects."""

    def __init__(self, graph: ObjectGraph) -> None:
        self.arrays = {name: value._resource_() for name, value in graph.variables.items()}
        self.states: dict[str, PythonState] = dict(graph.states)
        #: The paths of layers without their weights, for which the rest holds nothing.
        self.unbuilt_layers = graph.unbuilt()
        #: The names of the variables of each built optimizer.
        self.optimizers: dict[str, list[str]] = {}
        names = {id(variable): name for name, variable in self.arrays.items()}
        for path, optimizer in graph.optimizers.items():
            if optimizer.built:
                self.optimizers[path] = _known(optimizer, names)
            self.arrays.update(_slots(optimizer, path, names))

    def stored(self) -> Stored:
        """The present values, unseen by tapes."""
        with paused():
            arrays = {name: variable._value._peek() for name, variable in self.arrays.items()}
        states = {name: state.serialize() for name, state in self.states.items()}
        return Stored(arrays, states, self.optimizers)


def _to_build(graph: ObjectGraph, recorded: Mapping[str, Sequence[str]],
             ) -> Iterator[tuple[object, list[object]]]:
    """The optimizers that are not built yet, and the variables that they had in the file. An
    optimizer some of whose variables are missing is left out. So is one whose list is wrong, be its
    checksum right."""
    for path, optimizer in graph.optimizers.items():
        names = recorded.get(path, ())
        variables = [graph.variables[name] for name in names if name in graph.variables]
        # Names twice, or unknown: slots made for them would be another optimizer's.
        if not optimizer.built and variables and len(variables) == len(set(names)) == len(names):
            yield optimizer, variables


class Match(NamedTuple):
    """Names in both, names that only the objects have, names that only the file has. And the paths
    of layers that have no weights yet, and so no names in any of these."""

    common: list[str]
    missing: list[str]
    unexpected: list[str]
    unbuilt: list[str]


def restore(roots: Mapping[str, object], stored: Stored, path: Path) -> Match:
    """Assign what the file holds to the variables and states of the same names. States come before
    variables, since only these can be refused after the checks. Raises InvalidArgumentError: a
    shape or dtype differs; nothing was assigned. DataLossError: a Python object does not take its
    state; all have their old ones again."""
    graph = ObjectGraph(roots)
    # Tapes and traces around a restore must not record it.
    with paused(), _built(_to_build(graph, stored.optimizers)):
        targets = Targets(graph)
        match = _matched(targets, stored)
        _check(targets.arrays, stored, match, path)
        _take_states(targets.states, stored.states, path)
    with paused():
        for name in match.common:
            if name in stored.arrays:
                # Not read back: the value would be copied, and thrown away.
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
    # All of them, so that one look at the message says what to change.
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
    # Taken of all before the first is changed: `deserialize` of one may change another.
    before = {name: state.serialize() for name, state in states.items() if name in texts}
    taken: list[str] = []
    try:
        for name in before:
            taken.append(name)
            states[name].deserialize(texts[name])
    # Ctrl-C too leaves the states as they were.
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


class RestoreStatus:
    """How the names in a checkpoint matched those of the objects. A status that goes away unasked,
    while names were left over on either side, gives a UserWarning; `expect_partial()` says that
    this is meant."""

    def __init__(self, path: str | None, match: Match | None) -> None:
        self._path, self._match = path, match
        self._asked = match is None or not differences(match)

    def _matched(self) -> Match:
        self._asked = True
        if self._match is None:
            raise AssertionError("no checkpoint was restored: the path was None")
        return self._match

    def assert_consumed(self) -> RestoreStatus:
        """Check that everything in the file, and everything in the objects, was restored. Raises
        AssertionError: something was left over; the names are listed."""
        self._require(self._matched())
        return self

    def assert_existing_objects_matched(self) -> RestoreStatus:
        """Check that everything in the objects was restored; the file may hold more. Raises
        AssertionError: the file lacks something; the names are listed."""
        self._require(self._matched()._replace(unexpected=[]))
        return self

    def assert_nontrivial_match(self) -> RestoreStatus:
        """Check that anything was restored. Raises AssertionError: file and objects have no name in
        common."""
        match = self._matched()
        if not match.common:
            self._require(match)
            raise AssertionError(f"the checkpoint '{self._path}' and the objects are empty")
        return self

    def expect_partial(self) -> RestoreStatus:
        """Names left over are meant: no warning."""
        self._asked = True
        return self

    def _require(self, match: Match) -> None:
        texts = differences(match)
        if texts:
            raise AssertionError(f"the checkpoint '{self._path}' was restored in part. "
                                 f"{'; '.join(texts)}. {_ADVICE}")

    def __del__(self) -> None:
        # Also called where __init__ did not get so far; an error here would be printed and lost.
        if not self.__dict__.get("_asked", True) and self._match is not None:
            warnings.warn(f"the checkpoint '{self._path}' was restored in part. "
                          f"{'; '.join(differences(self._match))}. {_ADVICE}; if this is meant, "
                          f"write checkpoint.restore(path).expect_partial()", UserWarning,
                          stacklevel=2)

"""Combining: datasets of the elements of several datasets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.type_specs import TensorSpec, TypeSpec
from gtape.data.arguments import weights
from gtape.data.base import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from gtape.data.choosing import Seed
from gtape.data.elements import arguments
from gtape.data.failures import Placed
from gtape.data.rows import Elements, Rows
from gtape.data.stacking import merged_specs


class Zip(Dataset):
    """Elements with the structure of a nest of datasets, an element of each; as many as the
    shortest has."""

    def __init__(self, datasets: Any) -> None:
        flat = nest.flatten(datasets)
        for dataset in flat:
            if not isinstance(dataset, Dataset):
                raise TypeError(f"zip takes Datasets, and tuples and dicts of them; got "
                                f"{type(dataset).__name__}: {shown(dataset)}")
        if not flat:
            raise ValueError("zip: there must be at least one dataset")
        self._structure = datasets
        super().__init__(lambda: _put(datasets, [d.element_spec for d in flat]), *flat)

    def _elements(self) -> Elements[Any]:
        passes = [d._iterate() for d in self._inputs]
        # zip gives tuples itself, which saves a call of Python for each element of the usual case.
        if type(self._structure) is tuple and not any(map(nest.is_nested, self._structure)):
            return zip(*passes)
        return (_put(self._structure, items) for items in zip(*passes))

    def _cardinality(self) -> int:
        counts = [d._cardinality() for d in self._inputs]
        if 0 in counts:
            return 0
        # What is not known may be the shorter one, except beside an empty dataset.
        if UNKNOWN_CARDINALITY in counts:
            return UNKNOWN_CARDINALITY
        finite = [n for n in counts if n != INFINITE_CARDINALITY]
        return min(finite) if finite else INFINITE_CARDINALITY

    def _rows(self) -> Rows | None:
        known = [rows for rows in [d._rows() for d in self._inputs] if rows is not None]
        if len(known) < len(self._inputs):
            return None
        return known[0].zipped(known[1:], self.element_spec)


def _put(structure: Any, items: Sequence[TypeSpec]) -> Any:
    """`items` in the places of the leaves of `structure`; they may be nests themselves."""
    return nest.pack_sequence_as(structure, iter(items))


class Interleave(Dataset):
    """The elements of the datasets that a function makes of elements: `cycle` of these at a time,
    `block` elements of each in turn. `flat_map` is the case of one at a time."""

    def __init__(self, dataset: Any, function: Callable[..., Any], cycle: int, block: int,
                 what: str) -> None:
        if cycle < 1:
            raise InvalidArgumentError(f"interleave: `cycle_length` must be > 0; got {cycle}")
        if block < 1:
            raise InvalidArgumentError(f"interleave: `block_length` must be > 0; got {block}")
        if not callable(function):
            raise TypeError(f"{what} takes a function that returns a Dataset; got "
                            f"{shown(function)}")
        super().__init__(lambda: self._found_spec(), dataset)
        self._told_by_elements = True
        self._function, self._cycle, self._block, self._what = function, cycle, block, what

    def _found_spec(self) -> Any:
        for dataset in self._datasets():
            return dataset.element_spec
        raise InvalidArgumentError(f"element_spec: {self._what} has no dataset whose elements "
                                   f"would tell it")

    def _datasets(self) -> Elements[Any]:
        made = Placed(lambda element: self._function(*arguments(element)), self._what)
        for dataset in map(made, self._inputs[0]._iterate()):
            if not isinstance(dataset, Dataset):
                raise TypeError(f"{self._what}: the function must return a Dataset; got "
                                f"{type(dataset).__name__}")
            yield dataset

    def _iterate(self) -> Elements[Any]:
        if self._cycle == 1:
            for dataset in self._datasets():
                yield from dataset._iterate()
            return
        datasets = self._datasets()
        slots: list[Any] = []
        more, at = True, 0
        while True:
            if at == len(slots):
                slots.append(None)
            # A slot that has run dry takes the next dataset when its turn comes, not before.
            if slots[at] is None and more:
                following = next(datasets, None)
                more = following is not None
                slots[at] = following._iterate() if following is not None else None
            if slots[at] is not None:
                for _ in range(self._block):
                    try:
                        element = next(slots[at])
                    except StopIteration:
                        slots[at] = None
                        break
                    yield element
            # A dry slot keeps its place in the cycle, so that the others come in the order that
            # they had.
            elif not more and all(slot is None for slot in slots):
                return
            at += 1
            if at == self._cycle or (at == len(slots) and not more):
                at = 0


class Choose(Dataset):
    """An element of the dataset that the next number of `choices` names."""

    def __init__(self, datasets: Sequence[Any], choices: Any, stop_on_empty: bool) -> None:
        spec = merged_specs([d.element_spec for d in datasets], "choose_from_datasets")
        super().__init__(spec, *datasets)
        self._choices, self._stops = choices, stop_on_empty

    def _iterate(self) -> Elements[Any]:
        return chosen([d._iterate() for d in self._inputs],
                      (int(choice) for choice in self._choices._iterate()), self._stops)


def chosen(passes: Sequence[Any], choices: Elements[int], stop_on_empty: bool) -> Elements[Any]:
    """The next element of the pass that each choice names."""
    left = set(range(len(passes)))
    for choice in choices:
        if not 0 <= choice < len(passes):
            raise InvalidArgumentError(f"choose_from_datasets: a choice must be in "
                                       f"[0, {len(passes)}); got {choice}")
        if choice not in left:
            continue
        try:
            element = next(passes[choice])
        except StopIteration:
            # Not asked again: a generator of the user might begin anew.
            left.discard(choice)
            if stop_on_empty or not left:
                return
            continue
        yield element


class Sample(Dataset):
    """An element of a dataset drawn by weights: a vector, or a dataset of vectors."""

    def __init__(self, datasets: Sequence[Any], given: np.ndarray, seed: int, stop_on_empty: bool,
                 renewed: bool) -> None:
        spec = merged_specs([d.element_spec for d in datasets], "sample_from_datasets")
        super().__init__(spec, *datasets)
        self._weights, self._stops = given, stop_on_empty
        self._seed = Seed(seed, renewed)

    def _iterate(self) -> Elements[Any]:
        """What has no element left is drawn no more."""
        generator = self._seed.generator()
        passes: list[Any] = [d._iterate() for d in self._inputs]
        left = np.ones(len(passes), bool)
        for vector in self._vectors():
            open_weights = np.where(left, vector, 0.0)
            total = open_weights.sum()
            if not total > 0:
                return
            # One number for each draw, whatever comes of it: the draws of a seed do not depend on
            # what the datasets hold.
            choice = int(np.searchsorted(np.cumsum(open_weights / total), generator.random(),
                                         "right"))
            try:
                # The rounded sums of weights may end just below 1, and the number lie between.
                element = next(passes[min(choice, len(passes) - 1)])
            except StopIteration:
                if self._stops:
                    return
                left[choice] = False
                continue
            yield element

    def _vectors(self) -> Elements[np.ndarray]:
        if isinstance(self._weights, Dataset):
            for number, vector in enumerate(self._weights._iterate()):
                yield weights(vector, len(self._inputs),
                              f"sample_from_datasets: element {number} of the weights")
        while True:
            yield self._weights

    def _cardinality(self) -> int:
        counts = [d._cardinality() for d in self._inputs]
        # One without end is enough where the others are passed over at their ends; where the first
        # end is the end, none may have one.
        return INFINITE_CARDINALITY if INFINITE_CARDINALITY in counts and (
            not self._stops or set(counts) == {INFINITE_CARDINALITY}) else UNKNOWN_CARDINALITY


def weights_of(datasets: Sequence[Any], given: object) -> Any:
    """The weights of `sample_from_datasets`: a vector, or a dataset of them."""
    if given is None:
        return np.ones(len(datasets))
    if not isinstance(given, Dataset):
        return weights(given, len(datasets), "Invalid `weights`: they")
    spec = given.element_spec
    if not isinstance(spec, TensorSpec) or spec.shape.rank not in (1, None) or (
            not spec.dtype.is_floating):
        raise TypeError(f"sample_from_datasets: a dataset of weights must have vectors of floats "
                        f"as elements, one number for each dataset; got {spec}")
    return given

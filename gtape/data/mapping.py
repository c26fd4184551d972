"""Mapping: datasets of what a function makes of every element, or says of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.device import CPU, current_device, on
from gtape.core.dtypes import bool_, int32
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.type_specs import TensorSpec
from gtape.data import elements
from gtape.data.arguments import integer, weights
from gtape.data.base import Dataset, Selected
from gtape.data.calls import Call
from gtape.data.choosing import Seed
from gtape.data.failures import Placed
from gtape.data.iterators import refuse
from gtape.data.prefetching import in_threads, uploaded
from gtape.data.rows import Elements, Rows
from gtape.data.stacking import loosened


class Mapped(Dataset):
    """A dataset whose elements a function of the user makes: their spec is that of the results,
    which is found from the first element where tracing does not tell it."""

    def __init__(self, call: Call, spec: object, *inputs: Any) -> None:
        super().__init__(spec or (lambda: self._found_spec()), *inputs)
        self._call = call
        self._told_by_elements = spec is None

    def _found_spec(self) -> Any:
        for element in self._iterate():
            # One element does not tell whether the others have its lengths.
            return loosened(elements.spec_of(element))
        raise InvalidArgumentError(f"element_spec: {self._call.what} gives no element that would "
                                   f"tell it, and its function cannot be traced")

    def _cardinality(self) -> int:
        return self._inputs[0]._cardinality()


class Map(Mapped):
    """function(element) for every element, in order."""

    def __init__(self, dataset: Any, function: Callable[..., object], threads: int | None,
                 deterministic: bool | None) -> None:
        call = Call(function, dataset._known_spec, "map")
        super().__init__(call, call.spec, dataset)
        self._threads, self._ordered = threads, deterministic is not False

    def _elements(self) -> Elements[object]:
        upstream = self._inputs[0]._iterate()
        # What reads or draws has to do so in the order of the elements.
        if self._threads is not None and not self._call.stateful:
            return in_threads(self._call, upstream, self._threads, self._ordered)
        return map(Placed(self._call, self._call.what), upstream)

    def _rows(self) -> Rows | None:
        # Rows may be computed in blocks, before they are asked for and in another order.
        if not self._call.rowwise:
            return None
        rows = self._inputs[0]._rows()
        return None if rows is None else rows.mapped(self._call)


class _Judged(Selected):
    """Those of the elements that a function of them, which says yes or no, lets through."""

    _what: str

    def __init__(self, dataset: Any, predicate: Callable[..., object]) -> None:
        super().__init__(dataset)
        self._call = Call(predicate, dataset._known_spec, self._what)
        result = self._call.spec
        if result is not None and not (isinstance(result, TensorSpec) and result.dtype is bool_
                                       and result.shape.rank in (0, None)):
            raise ValueError(f"{self._what}: the predicate must return one boolean; got {result}. "
                             f"Invalid `predicate`")

    def _says(self, element: TensorLike) -> bool:
        answer = self._call(element)
        if not isinstance(answer, EagerTensor) or answer.dtype is not bool_ or answer.ndim:
            raise InvalidArgumentError(f"the predicate must return one boolean; got "
                                       f"{shown(answer)}")
        return bool(answer._a)


class Filter(_Judged):
    """The elements for which a predicate is true."""

    _what = "filter"

    def _rows(self) -> Rows | None:
        rows = self._inputs[0]._rows()
        return None if rows is None else rows.where(self._call)

    def _iterate(self) -> Elements[Any]:
        return filter(Placed(self._says, self._what), self._inputs[0]._iterate())


class TakeWhile(_Judged):
    """The elements before the first for which a predicate is false."""

    _what = "take_while"

    def _iterate(self) -> Elements[Any]:
        return takewhile(Placed(self._says, self._what), self._inputs[0]._iterate())


def _with_state(state: Tensor, dataset: Any) -> Any:
    """The spec of (state, element), where that of the elements is known."""
    known = dataset._known_spec
    return None if known is None else (elements.spec_of(state), known)


class Scan(Mapped):
    """(state, element) -> (state, result), the results."""

    def __init__(self, dataset: object, initial: object, function: Callable[..., object]) -> None:
        self._initial = elements.hosted(initial)
        call = Call(function, _with_state(self._initial, dataset), "scan")
        if call.spec is not None:
            _check_pair(call.spec)
        super().__init__(call, None if call.spec is None else call.spec[1], dataset)

    def _iterate(self) -> Elements[Any]:
        state, step = self._initial, Placed(self._call, "scan")
        for element in self._inputs[0]._iterate():
            pair = step((state, element))
            _check_pair(pair)
            state, result = pair
            yield result


def _check_pair(pair: object) -> None:
    if type(pair) is not tuple or len(pair) != 2:
        raise TypeError(f"scan: the function must return a pair, (state, result); got "
                        f"{shown(pair)}")


class IgnoreErrors(Selected):
    """The elements that can be computed, without those of which an error comes."""

    def __init__(self, dataset: Any, log_warning: bool) -> None:
        super().__init__(dataset)
        self._warns = log_warning

    def _iterate(self) -> Elements[Any]:
        upstream = self._inputs[0]._iterate()
        while True:
            try:
                element = next(upstream)
            except StopIteration:
                return
            except Exception as error:
                if self._warns:
                    warnings.warn(f"ignore_errors: {error}", RuntimeWarning, stacklevel=2)
                continue
            yield element


class UniqueElements(Selected):
    """The elements without those that came before."""

    def _iterate(self) -> Elements[Any]:
        seen = set()
        for element in self._inputs[0]._iterate():
            key = tuple([_content(leaf) for leaf in elements.flatten(element)])
            if key not in seen:
                seen.add(key)
                yield element


def _content(leaf: object) -> Any:
    """What equal leaves have in common, and others have not."""
    if leaf is None:
        return None
    if not isinstance(leaf, EagerTensor):
        raise InvalidArgumentError(f"unique compares tensors; got {shown(leaf)}. Write "
                                   f"tf.sparse.to_dense(x) or x.to_tensor() in a map")
    array = leaf._a
    # The bytes of an array of objects are addresses, equal strings have other ones.
    return array.shape, tuple(array.reshape(-1)) if array.dtype == object else array.tobytes()


def reduced(dataset: object, initial: TensorLike, function: Callable[..., object]) -> Any:
    """function(... function(function(initial, e0), e1) ...), on the current device."""
    refuse("reduce")
    home = current_device()
    with on(CPU):
        # A pass computes in host memory, and a state on a GPU would make each step a copy there and
        # back.
        state = _reduced(dataset, elements.hosted(initial), function)
    return state if home.is_host else uploaded(state, home)


def _reduced(dataset: Any, state: Tensor, function: Callable[..., object]) -> Any:
    call = Call(function, _with_state(state, dataset), "reduce")
    if call.spec is not None:
        try:
            nest.assert_same_structure(state, call.spec)
        except (TypeError, ValueError) as error:
            raise TypeError(f"reduce: the function must return a state like the initial one: "
                            f"{error}") from None
        for old, new in zip(nest.flatten(elements.spec_of(state)), nest.flatten(call.spec)):
            if getattr(old, "dtype", None) is not getattr(new, "dtype", None):
                raise TypeError(f"reduce: the function must return a state of the dtypes of the "
                                f"initial one; got {new}, initially {old}")
    step = Placed(call, "reduce")
    for element in dataset._iterate():
        state = step((state, element))
    return state


class Resampled(Dataset):
    """Elements with their classes, each kept with the probability target/initial of its class
    relative to the largest of these. Without `initial` the proportions of what came so far stand
    for it."""

    def __init__(self, dataset: Any, class_func: Callable[..., object], target: Sequence[float],
                 initial: Sequence[float], seed: int) -> None:
        self._target = weights(target, None, "rejection_resample: target_dist")
        self._initial = None if initial is None else weights(
            initial, len(self._target), "rejection_resample: initial_dist")
        self._class = Call(class_func, dataset._known_spec, "rejection_resample")
        self._seed = Seed(seed)
        super().__init__(
            lambda: (self._class.spec or TensorSpec([], int32), dataset.element_spec), dataset)

    def _iterate(self) -> Elements[Any]:
        generator = self._seed.generator()
        # As if each class had been seen once: none has the proportion 0 at first, of which the
        # ratio would be without bound.
        counts = np.ones(len(self._target))
        tiny = np.finfo(np.float64).tiny  # instead of 0 for a class without elements
        labelled = Placed(self._labelled, "rejection_resample")
        for element in self._inputs[0]._iterate():
            label, at = labelled(element)
            counts[at] += 1
            initial = counts / counts.sum() if self._initial is None else self._initial
            ratios = self._target / np.maximum(initial, tiny)
            # The class that is wanted most beside what there is is always kept: fewer elements are
            # thrown away than by any other scale.
            if generator.random() * ratios.max() < ratios[at]:
                yield label, element

    def _labelled(self, element: Any) -> tuple[Any, int]:
        """What class_func returns, and the number of the class that it is."""
        label = self._class(element)
        at = integer(label, "what class_func returns")
        if not 0 <= at < len(self._target):
            raise InvalidArgumentError(f"class_func must return the number of a class, in "
                                       f"[0, {len(self._target)}); got {at}")
        return label, at

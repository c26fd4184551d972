"""Names in the text of a program, of values, functions and constants; and views as NumPy's:
reshaped, sliced, transposed, repeated."""

from __future__ import annotations

import builtins
import keyword
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gtape.compile.ir.nodes import Shape, Value, View, dense
from gtape.compile.schedule.plan import numpy_dtype
from gtape.numerics.sums import total


class Names:
    """`space` holds what the text finds as globals."""

    def __init__(self) -> None:
        self.space: dict[str, Any] = {
            "np": np, "empty": np.empty, "copyto": np.copyto, "total": total,
            # `zero` is float64: sums of blocks are added up in double precision.
            "concatenate": np.concatenate, "zero": np.float64(0), "inf": math.inf, "nan": math.nan}
        self._bound: dict[Any, str] = {}
        self._values: dict[int, str] = {}
        self._counts: dict[str, int] = {}

    def fresh(self, letter: str) -> str:
        """A name that nothing has."""
        count = self._counts.get(letter, 0)
        self._counts[letter] = count + 1
        return f"{letter}{count}"

    def bound(self, thing: Any, wanted: str) -> str:
        """The global name of an object: the wanted one, if that is free."""
        known = self._bound.get(id(thing))
        if known is None:
            name = wanted if wanted.isidentifier() and not keyword.iskeyword(wanted) else "f"
            # `x1` and the like are given by `fresh`.
            while name in self.space or hasattr(builtins, name) or name[1:].isdigit():
                name = f"{name}_"
            known = self._bound[id(thing)] = name
            self.space[name] = thing
        return known

    def numbered(self, thing: Any, letter: str) -> str:
        """The global name of an object: a letter or word, and a number."""
        known = self._bound.get(id(thing))  # by id: arrays have no hash, and `space` keeps them
        if known is None:
            known = self._bound[id(thing)] = self.fresh(letter)
            self.space[known] = thing
        return known

    def dtype(self, dtype: np.dtype) -> str:
        return self.bound(dtype, f"{dtype.name}_")

    def called(self, value: Value, name: str) -> str:
        """Give a value a name."""
        self._values[value.number] = name
        return name

    def give(self, value: Value) -> str:
        """A fresh name for a value."""
        return self.called(value, self.fresh("v"))

    def of(self, value: Value) -> str | None:
        """The name of a value that is there already."""
        return self._values.get(value.number)

    def number(self, number: object, dtype: np.dtype, beside_arrays: bool) -> str:
        """A number as an array without axes beside arrays, else as NumPy's scalar: each is what
        NumPy is fastest with."""
        array = np.asarray(number, dtype)
        key = (dtype, array.tobytes(), beside_arrays)  # by bits: 0.0 equals -0.0
        if key not in self._bound:
            self._bound[key] = self.fresh("k")
            self.space[self._bound[key]] = array if beside_arrays else array[()]
        return self._bound[key]

    def constant(self, value: Value) -> str:
        """An array that is one number everywhere."""
        dtype = numpy_dtype(value.dtype)
        number = value.node.body.value  # type: ignore[attr-defined]
        if not value.shape:
            return self.number(number, dtype, False)
        array = np.broadcast_to(np.asarray(number, dtype), value.shape)
        return self.called(value, self.numbered(array, "c"))


class Run(NamedTuple):
    """Some places of an axis."""

    axis: int
    length: int
    step: int

    def key(self, start: int, whole: int) -> str:
        """The slice of an axis whose length is `whole`."""
        if self.length == whole and self.step == 1:
            return ":"
        stop = start + (self.length - 1) * self.step + (1 if self.step > 0 else -1)
        step = "" if self.step == 1 else f":{self.step}"
        return f"{start}:{'' if stop < 0 else stop}{step}"  # -1 would be the last place


def view_text(names: Names, view: View, shape: Shape, text: str) -> str:
    """The elements of a view of the array `text`, which may lie in memory in any way."""
    (x,), (strides, offset) = view.inputs, view.layout
    size = math.prod(shape)
    if size == 0:
        return f"{names.bound(np.empty, 'empty')}({shape!r}, {text}.dtype)"
    if size == x.size and offset == 0 and all(
            s == d for s, d, n in zip(strides, dense(shape), shape) if n > 1):
        return text if shape == x.shape else f"{text}.reshape({shape!r})"
    starts = [offset // place % n for place, n in zip(dense(x.shape), x.shape)]
    axes = _axes(x.shape, shape, strides, starts)
    if axes is None:
        return f"{names.bound(_strided, 'strided')}({text}, {shape!r}, {strides!r}, {offset})"
    return _sliced(names, x.shape, shape, axes, starts, text)


def _axes(old: Shape, shape: Shape, strides: Sequence[int], starts: Sequence[int],
          ) -> list[Run | None] | None:
    """By axis: the run that it is; None for axes of length 1 and those that repeat. None for all
    where an axis is split or joined."""
    places = dense(old)
    runs: list[Run | None] = []
    for n, stride in zip(shape, strides):
        if n == 1 or stride == 0:
            runs.append(None)
            continue
        at = next((i for i, place in enumerate(places) if stride % place == 0
                   and 0 <= starts[i] + (n - 1) * (stride // place) < old[i]), None)
        if at is None or any(run is not None and run.axis == at for run in runs):
            return None
        runs.append(Run(at, n, stride // places[at]))
    return runs


def _sliced(names: Names, old: Shape, shape: Shape, axes: Sequence[Run | None],
            starts: Sequence[int], text: str) -> str:
    """Slices of the axes that are left, in their new order, with new ones between."""
    order = [run.axis for run in axes if run is not None]
    runs = {run.axis: run for run in axes if run is not None}
    keys = [str(start) if i not in runs else runs[i].key(start, n)
            for i, (start, n) in enumerate(zip(starts, old))]
    view = text if all(k == ":" for k in keys) else f"{text}[{', '.join(keys)}]"
    left = sorted(order)
    if order != left and order == left[::-1]:
        view += ".T"
    elif order != left:
        view += f".transpose({tuple(left.index(a) for a in order)!r})"
    if None in axes:
        view += f"[{', '.join('None' if a is None else ':' for a in axes)}]"
    if any(a is None and n > 1 for a, n in zip(axes, shape)):
        view = f"{names.bound(np.broadcast_to, 'broadcast_to')}({view}, {shape!r})"
    return view


def _strided(array: object, shape: Shape, strides: tuple[int, ...], offset: int) -> Any:
    """Strides and offset count elements of an array that lies together in memory."""
    flat = np.ascontiguousarray(array).reshape(-1)[offset:]
    return np.lib.stride_tricks.as_strided(flat, shape, [s * flat.itemsize for s in strides])

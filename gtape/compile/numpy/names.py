"""Names in the text of a program: of values, of the functions that it calls, of constants."""

from __future__ import annotations

import builtins
import keyword
import math
from typing import Any

import numpy as np

from gtape.compile.numpy.values import ArrayFunction, ArrayValue
from gtape.numerics.sums import total


class Names:
    """`space` holds what the text finds as globals."""

    def __init__(self) -> None:
        self.space: dict[str, Any] = {
            "np": np, "empty": np.empty, "copyto": np.copyto, "total": total,
            "concatenate": np.concatenate, "zero": np.float64(0), "inf": math.inf, "nan": math.nan}
        self._bound: dict[Any, str] = {}
        self._values: dict[int, str] = {}
        self._kept: list[Any] = []
        self._counts: dict[str, int] = {}

    def fresh(self, letter: str) -> str:
        """A name that nothing has."""
        count = self._counts.get(letter, 0)
        self._counts[letter] = count + 1
        return f"{letter}{count}"

    def bound(self, thing: Any, wanted: str) -> str:
        """The global name of an object: the wanted one, if that is free."""
        found = self._bound.get(id(thing))
        if found is None:
            name = wanted if wanted.isidentifier() and not keyword.iskeyword(wanted) else "f"
            while name in self.space or hasattr(builtins, name) or name[1:].isdigit():
                name = f"{name}_"
            found = self._bound[id(thing)] = name
            self.space[name] = thing
        return found

    def numbered(self, thing: Any, letter: str) -> str:
        """The global name of an object: a letter or word, and a number."""
        found = self._bound.get(id(thing))
        if found is None:
            found = self._bound[id(thing)] = self.fresh(letter)
            self.space[found] = thing
        return found

    def function(self, function: ArrayFunction) -> str:
        return self.bound(function.call, function.name)

    def dtype(self, dtype: np.dtype) -> str:
        return self.bound(dtype, f"{dtype.name}_")

    def called(self, value: ArrayValue, name: str) -> str:
        """Give a value a name."""
        self._values[id(value)] = name
        self._kept.append(value)
        return name

    def give(self, value: ArrayValue) -> str:
        """A fresh name for a value."""
        return self.called(value, self.fresh("v"))

    def text(self, value: ArrayValue, beside_arrays: bool = True) -> str:
        """A value; a number as an array without axes beside arrays, else as NumPy's scalar.

        Each is what NumPy is fastest with.
        """
        found = self._values.get(id(value))
        if found is not None:
            return found
        assert value.place is not None and value.place[0] == "constant", "a value is not made yet"
        array = value.place[1]
        if beside_arrays or value.dtype.kind == "O":
            return self._constant(array, array)
        return self._constant(array, array[()])

    def _constant(self, array: Any, shown: Any) -> str:
        key = (id(array), type(shown))
        if key not in self._bound:
            self._bound[key] = self.fresh("k")
            self.space[self._bound[key]] = shown
            self._kept.append(array)
        return self._bound[key]

"""Names in the text of a program: of values, of the functions that it calls, of constants."""

from __future__ import annotations

import builtins
import keyword
import math
from typing import Any

import numpy as np

from gtape.compile.ir.nodes import Value
from gtape.compile.schedule.plan import numpy_dtype
from gtape.numerics.sums import total


class Names:
    """`space` holds what the text finds as globals."""

    def __init__(self) -> None:
        self.space: dict[str, Any] = {
            "np": np, "empty": np.empty, "copyto": np.copyto, "total": total,
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
            while name in self.space or hasattr(builtins, name) or name[1:].isdigit():
                name = f"{name}_"
            known = self._bound[id(thing)] = name
            self.space[name] = thing
        return known

    def numbered(self, thing: Any, letter: str) -> str:
        """The global name of an object: a letter or word, and a number."""
        known = self._bound.get(id(thing))
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
        key = (dtype, array.tobytes(), beside_arrays)
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

"""Kernel: one instance of a `__global__` function, and what its arguments must be."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gtape.core.errors import InternalError, InvalidArgumentError
from gtape.devices.kernel_source import expand_file
from gtape.opdef.cuda_text import C_TYPES

if TYPE_CHECKING:
    from gtape.core.device import Array

def address(array: Any) -> int:
    """The address of an array's first element: CuPy's, or NumPy's under the emulator."""
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr


def span(array: Any) -> tuple[int, int]:
    """The addresses at which an array without gaps begins and ends; a view that repeats or leaves
    out elements may end elsewhere."""
    start = address(array)
    return start, start + array.nbytes


def overlap(a: Array, b: Array) -> bool:
    """Whether the memory between the first and last elements of two arrays overlaps."""
    # An empty array has an address, and nothing at it.
    if not a.size or not b.size:
        return False
    (start, end), (first, last) = _extent(a), _extent(b)
    return start < last and first < end


def _extent(array: Array) -> tuple[int, int]:
    steps = [(n - 1) * s for n, s in zip(array.shape, array.strides)]
    start = address(array)
    return (start + sum(s for s in steps if s < 0),
            start + sum(s for s in steps if s > 0) + array.dtype.itemsize)


_DTYPES = {c: name for name, c in C_TYPES.items()}
_SCALARS = {"long long": int, "double": float}


class Parameter(NamedTuple):
    """One parameter: `kind` is "array" or "number"; `type` its dtype, "" for any memory. An array
    may be `written` to; it is `unaliased` where the kernel is promised (`__restrict__`) that what
    it writes elsewhere is not in it."""

    name: str
    kind: str
    type: str
    written: bool = False
    unaliased: bool = False


class Kernel:
    """The function `entry` of the C++ program `text`: "softmax_forward<float, 4>". Scalars are
    `long long` or `double`, which is what Python's numbers are passed as."""

    __slots__ = ("_apart", "_arrays", "entry", "params", "text")

    def __init__(self, text: str, entry: str) -> None:
        self.text = text
        self.entry = entry
        self.params = parameters(text, entry)
        self._arrays = [i for i, p in enumerate(self.params) if p.kind == "array"]
        # Pairs are found once: a launch checks only those that the text promises (`__restrict__`),
        # since the compiler may then read before it writes.
        pairs = itertools.combinations(enumerate(self.params), 2)
        #: Positions of arrays that may not overlap.
        self._apart = [(i, j) for (i, p), (j, q) in pairs if (p.unaliased or q.unaliased)
                       and (p.written or q.written) and p.kind == q.kind == "array"]

    def check(self, args: Sequence[object]) -> None:
        """Raises InvalidArgumentError: the arguments are not what the kernel takes."""
        if len(args) != len(self.params):
            raise InvalidArgumentError(
                f"the kernel {self.entry} takes {len(self.params)} arguments "
                f"({', '.join(p.name for p in self.params)}); got {len(args)}")
        for param, arg in zip(self.params, args):
            # `type`, not `isinstance`: CuPy passes a bool or a NumPy number as other bits than the
            # kernel reads.
            if param.kind == "number":
                if type(arg) is not _SCALARS[param.type]:
                    raise self._wrong(param, arg)
                continue
            dtype = getattr(arg, "dtype", None)
            if dtype is None or (param.type and dtype_name(dtype) != param.type):
                raise self._wrong(param, arg)
        # Last, and by extents first: whether strided views really overlap takes longer to find out.
        if self._apart:
            self._check_memory(args)

    def _wrong(self, param: Parameter, arg: object) -> InvalidArgumentError:
        wanted = f"a Python {_SCALARS[param.type].__name__}" if param.kind == "number" else (
            f"an array of {param.type or 'any dtype'}")
        return InvalidArgumentError(f"the kernel {self.entry}: {param.name} must be {wanted}; got "
                                    f"{getattr(arg, 'dtype', None) or type(arg).__name__}")

    def _check_memory(self, args: Sequence[Any]) -> None:
        spans = {i: span(args[i]) for i in self._arrays}
        for i, j in self._apart:
            near = spans[i][0] < spans[j][1] and spans[j][0] < spans[i][1]
            if near and overlap(args[i], args[j]):
                raise InvalidArgumentError(
                    f"the kernel {self.entry} writes while it reads: {self.params[i].name} and "
                    f"{self.params[j].name} may not share memory; pass a copy of one")

    def check_devices(self, args: Sequence[object]) -> None:
        """Raises InvalidArgumentError: the arrays are on several devices."""
        places = [a.device for a in args if hasattr(a, "device")]
        other = next((p for p in places if p != places[0]), None)
        if other is not None:
            raise InvalidArgumentError(f"the kernel {self.entry} needs all arrays on one device; "
                                       f"got {places[0]} and {other}")

    def __repr__(self) -> str:
        return f"<Kernel {self.entry}>"


@cache
def dtype_name(dtype: np.dtype) -> str:
    """`dtype.name`, which NumPy puts together anew each time: 1 us and more."""
    return str(dtype.name)


@cache
def shipped_kernel(file: str, name: str, *template: Any) -> Kernel:
    """The kernel `name` of `kernels/<file>` with template arguments: dtype names, numbers, bools.
    `shipped_kernel("softmax.cu", "softmax_forward", "float32", 4)` is `softmax_forward<float,
    4>`."""
    args = ", ".join(_template_text(t) for t in template)
    return Kernel(expand_file(file), f"{name}<{args}>" if template else name)


def _template_text(value: int | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else C_TYPES.get(value, value)


def parameters(text: str, entry: str) -> tuple[Parameter, ...]:
    """The parameters of a kernel, read from its declaration. Raises InternalError: `text` declares
    no such kernel, or a parameter of another kind."""
    name, _, given = entry.partition("<")
    declaration = re.search(
        rf"(?:template\s*<([^>]*)>\s*)?(?:extern \"C\"\s*)?__global__\s+void\s+"
        rf"(?:__launch_bounds__\([^)]*\)\s*)?{re.escape(name)}\s*\(([^)]*)\)", text)
    if declaration is None:
        raise InternalError(f"the kernel text declares no {name}")
    bound = {}
    if declaration[1]:
        names = [p.split("=")[0].split()[-1] for p in declaration[1].split(",")]
        bound = dict(zip(names, [a.strip() for a in given.rstrip("> ").split(",")]))
    return tuple(_parameter(p, bound, entry) for p in declaration[2].split(",") if p.strip())


def _parameter(declared: str, bound: dict[str, str], entry: str) -> Parameter:
    words = declared.replace("*", " * ").split()
    unaliased = "__restrict__" in words
    words = [w for w in words if w != "__restrict__"]
    name = words.pop()
    if "*" in words:
        ctype = " ".join(w for w in words if w not in ("*", "const"))
        single = words.count("*") == 1
        return Parameter(name, "array", _DTYPES.get(bound.get(ctype, ctype), "") if single else "",
                         words[0] != "const", unaliased)
    ctype = " ".join(w for w in words if w != "const")
    if ctype not in _SCALARS:
        raise InternalError(f"the kernel {entry}: the parameter {name} is a {ctype}; scalars are "
                            f"long long or double")
    return Parameter(name, "number", ctype)

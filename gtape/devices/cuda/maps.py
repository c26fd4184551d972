"""Maps on a device: formulas applied element by element, each call one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.devices.cuda.executor import Executor, Function, Grid
from gtape.devices.cuda.kernel import Kernel
from gtape.devices.cuda.map_text import (
    BLOCK,
    Formula,
    Operand,
    entry_of,
    map_text,
    program,
    vector_width,
)
from gtape.devices.cuda.operands import Layout, layout
from gtape.kinds.expr import Expr
from gtape.kinds.print_cuda import servable

_BLOCK = (BLOCK, 1, 1)
_INT31 = 1 << 31
_LIMIT = 1024
Launch = tuple[Function, int]


class Map:
    """A formula for inputs of fixed dtypes.

    Call it with arrays and Python numbers: it gives the tuple of results, in new arrays of the
    broadcast shape.
    """

    __slots__ = ("_blocks", "_dtypes", "_empty", "_flat", "_formula", "_gpu", "_plans", "_results",
                 "_stream")

    def __init__(self, gpu: Executor, formula: Formula, dtypes: tuple[str, ...],
                 results: tuple[np.dtype, ...]) -> None:
        self._gpu = gpu
        self._formula = formula
        self._dtypes = dtypes
        self._results = results
        self._empty = gpu.empty
        self._stream = gpu.stream
        self._blocks: dict[int, Grid] = {}
        self._flat: dict[int, Launch] = {}
        self._plans: dict[Any, tuple[Any, ...]] = {}

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        shape, numbers, bit = None, 0, 1
        for a in args:
            if type(a) is float or type(a) is int:
                numbers |= bit
            elif shape is None:
                shape = a.shape
                n = a.size
                if not a.flags.c_contiguous:
                    return self._general(args)
            elif a.shape != shape or not a.flags.c_contiguous:
                return self._general(args)
            bit <<= 1
        if n >= _INT31 or not n:
            return self._general(args)
        if numbers:
            args = tuple([float(a) if type(a) is int else a for a in args])
        found = self._flat.get(numbers)
        function, width = found if found is not None else self._flat_launch(numbers)
        made = [self._empty(shape, d) for d in self._results]
        wanted = -(-n // width)
        grid = self._blocks.get(wanted) or self._grid(wanted)
        function(grid, _BLOCK, (*args, *made, n), 0, self._stream())
        return tuple(made)

    def _grid(self, wanted: int) -> Grid:
        if len(self._blocks) >= _LIMIT:
            self._blocks.clear()
        made = self._blocks[wanted] = self._gpu.blocks(wanted, BLOCK)
        return made

    def _flat_launch(self, numbers: int) -> Launch:
        modes = ["number" if numbers >> i & 1 else "each" for i in range(len(self._dtypes))]
        made = self._flat[numbers] = self._launch(modes, 0, False)
        return made

    def _launch(self, modes: Sequence[str], rank: int, large: bool) -> Launch:
        kernel, width = kernel_of(self._formula, self._dtypes, modes, rank, large)
        return self._gpu.function(kernel), width

    def _general(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Any shapes and strides; what follows from them is kept."""
        key = tuple([None if type(a) is float or type(a) is int else (a.shape, a.strides)
                     for a in args])
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= _LIMIT:
                self._plans.clear()
            plan = self._plans[key] = self._plan(layout(args))
        shape, function, grid, extents = plan
        args = tuple([float(a) if type(a) is int else a for a in args])
        made = tuple([self._empty(shape, d) for d in self._results])
        if function is not None:
            function(grid, _BLOCK, (*args, *made, *extents), 0, self._stream())
        return made

    def _plan(self, found: Layout) -> tuple[Any, ...]:
        n = 1
        for length in found.shape:
            n *= length
        if not n:
            return found.shape, None, None, None
        rank = len(found.axes) if found.strides else 0
        function, width = self._launch(found.modes, rank, n >= _INT31)
        extents = [n]
        if "row" in found.modes or "column" in found.modes:
            extents.append(found.columns)
        if found.strides:
            extents += found.axes[1:]
            extents += [s for steps in found.strides for s in steps]
            width = 1
        return found.shape, function, self._gpu.blocks(-(-n // width), BLOCK), tuple(extents)


_kernels: dict[str, tuple[Kernel, int]] = {}


def kernel_of(formula: Formula, dtypes: Sequence[str], modes: Sequence[str], rank: int = 0,
              large: bool = False) -> tuple[Kernel, int]:
    """The map kernel, and how many elements a thread moves at once."""
    operands = [Operand(d, m) for d, m in zip(dtypes, modes)]
    text = map_text(formula, operands, rank, large)
    found = _kernels.get(text)
    if found is None:
        kernel = Kernel(program(text), entry_of(formula, operands, large))
        found = _kernels.setdefault(text, (kernel, vector_width(formula, operands)))
    return found


def combine(kernels: Sequence[tuple[Formula, Sequence[Operand]]]) -> list[Kernel]:
    """Kernels that share one program, so that one compilation makes them all; `kernel_of` gives
    them from now on."""
    texts = {entry_of(f, o, False): (map_text(f, o), vector_width(f, o)) for f, o in kernels}
    whole = program(*(text for text, _ in texts.values()))
    made = []
    for entry, (text, width) in texts.items():
        found = _kernels[text] = Kernel(whole, entry), width
        made.append(found[0])
    return made


class Maps:
    """The maps of one device."""

    def __init__(self, gpu: Executor) -> None:
        self.gpu = gpu

    def make(self, name: str, outputs: Sequence[Expr], params: Sequence[str],
             dtypes: Sequence[np.dtype], results: Sequence[np.dtype]) -> Map | None:
        """The map of a formula whose inputs have these dtypes; None where a letter in it has no
        CUDA text for them."""
        names = tuple(d.name for d in dtypes)
        if not servable(outputs, dict(zip(params, names))) or not all(
                servable((), {"": r.name}) for r in results):
            return None
        formula = Formula(name, tuple(outputs), tuple(params), tuple(r.name for r in results))
        return Map(self.gpu, formula, names, tuple(results))

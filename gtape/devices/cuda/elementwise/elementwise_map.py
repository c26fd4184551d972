"""ElementwiseMap: a formula applied element by element, each call one launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gtape.devices.cuda.elementwise.map_text import (
    BLOCK,
    MapFormula,
    MapOperand,
    entry_of,
    map_text,
    program,
    vector_width,
)
from gtape.devices.cuda.runtime.executor import Executor, Function, Grid
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.opdef.numpy_code import define


class OperandLayout(NamedTuple):
    """The result's shape, the axes that remain after merging, and each operand's mode. `modes` has
    "number" for Python numbers. `strides` has, for each strided operand, its steps in elements
    along `axes`."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    modes: tuple[str, ...]
    strides: tuple[tuple[int, ...], ...]

    @property
    def columns(self) -> int:
        """The length of the last axis: the period of rows."""
        return self.axes[-1] if self.axes else 1


def layout(args: Sequence[object]) -> OperandLayout:
    """The layout of arrays and Python numbers that are combined element by element. Raises
    ValueError: the shapes cannot be broadcast."""
    arrays = [a for a in args if hasattr(a, "shape")]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    steps = [_steps(a, shape) for a in arrays]
    axes, steps = _merged(shape, steps)
    modes_and_steps = iter([(_mode(s, axes), s) for s in steps])
    modes, strides = [], []
    for a in args:
        mode, s = next(modes_and_steps) if hasattr(a, "shape") else ("number", ())
        modes.append(mode)
        if mode == "strided":
            strides.append(tuple(s))
    return OperandLayout(shape, tuple(axes), tuple(modes), tuple(strides))


def _steps(array: Any, shape: tuple[int, ...]) -> list[int]:
    """Elements to step along each axis of `shape`; 0 where the array is broadcast."""
    lead = len(shape) - array.ndim
    size = array.dtype.itemsize
    return [0] * lead + [0 if n == 1 else s // size for n, s in zip(array.shape, array.strides)]


def _merged(shape: Sequence[int], steps: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Axes of length 1 dropped, and neighbours that every operand walks as one joined."""
    kept = [i for i, n in enumerate(shape) if n != 1]
    axes: list[int] = []
    merged: list[list[int]] = [[] for _ in steps]
    for i in kept:
        # Each axis that remains costs a division for each element of a strided operand.
        if axes and all(m[-1] == s[i] * shape[i] for m, s in zip(merged, steps)):
            axes[-1] *= shape[i]
            for m, s in zip(merged, steps):
                m[-1] = s[i]
        else:
            axes.append(shape[i])
            for m, s in zip(merged, steps):
                m.append(s[i])
    return axes, merged


def _mode(steps: Sequence[int], axes: Sequence[int]) -> str:
    contiguous = [1] * len(axes)
    for d in range(len(axes) - 2, -1, -1):
        contiguous[d] = contiguous[d + 1] * axes[d + 1]
    if list(steps) == contiguous:
        return "each"
    if not any(steps):
        return "one"
    # Biases and factors of rows, which are most of all broadcasts, keep their wide loads; the rest
    # goes by coordinates.
    if len(axes) == 2 and tuple(steps) in ((0, 1), (1, 0)):
        return "row" if steps[1] else "column"
    return "strided"


#: A loaded kernel, and how many elements one of its threads moves at once.
Launch = tuple[Function, int]

#: By text, which is all that a kernel depends on: maps of equal formulas share one.
_kernels: dict[str, tuple[Kernel, int]] = {}


def kernel_of(formula: MapFormula, dtypes: Sequence[str], modes: Sequence[str], rank: int = 0,
              large: bool = False) -> tuple[Kernel, int]:
    """The map kernel, and how many elements a thread moves at once."""
    operands = [MapOperand(d, m) for d, m in zip(dtypes, modes)]
    # The text is printed before the look-up: what tells two formulas apart is no less than it.
    text = map_text(formula, operands, rank, large)
    kernel_and_width = _kernels.get(text)
    if kernel_and_width is None:
        kernel = Kernel(program(text), entry_of(formula, operands, large))
        width = 1 if "strided" in modes else vector_width(formula, operands)
        kernel_and_width = _kernels.setdefault(text, (kernel, width))
    return kernel_and_width


def combine(kernels: Sequence[tuple[MapFormula, Sequence[MapOperand]]]) -> list[Kernel]:
    """Kernels that share one program, so that one compilation makes them all; `kernel_of` gives
    them from now on."""
    texts = {entry_of(f, o, False): (map_text(f, o), vector_width(f, o)) for f, o in kernels}
    whole = program(*(text for text, _ in texts.values()))
    for entry, (text, width) in texts.items():
        _kernels[text] = Kernel(whole, entry), width
    return [_kernels[text][0] for text, _ in texts.values()]


_BLOCK = (BLOCK, 1, 1)
#: Below it an index and the step added to it fit into 32 bits, which GPUs divide faster than 64.
_INT31 = 1 << 31
#: Grids, and plans, that a map keeps: the shapes of a program may never come again.
_LIMIT = 1024


class ElementwiseMap:
    """A formula for inputs of fixed dtypes. Call it with arrays and Python numbers: it gives the
    tuple of results, in new arrays of the broadcast shape."""

    __slots__ = ("_gpu", "_grids", "_plans", "_results", "_short", "dtypes", "formula")

    def __init__(self, gpu: Executor, formula: MapFormula, dtypes: tuple[str, ...],
                 results: tuple[np.dtype, ...]) -> None:
        self._gpu = gpu
        self.formula = formula
        self.dtypes = dtypes
        self._results = results
        self._grids: dict[tuple[int, int], Grid] = {}
        self._plans: dict[Any, tuple[Any, ...]] = {}
        self._short: dict[int, Callable[..., tuple[Any, ...]]] = {}

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        numbers = sum([1 << i for i, a in enumerate(args) if type(a) is float or type(a) is int])
        return self.short(numbers)(*args)

    def short(self, numbers: int) -> Callable[..., tuple[Any, ...]]:
        """The map of arguments of which those in the bit mask `numbers` are Python numbers. A
        printed function: where all arrays have one shape and no gaps it launches at once."""
        return self._short.get(numbers) or self._short.setdefault(numbers, self._print(numbers))

    def _print(self, numbers: int) -> Callable[..., tuple[Any, ...]]:
        # What a steady op on a GPU runs besides the function of `eager_functions`: an allocation, a
        # look-up and CuPy's launch, 2 to 3 us in all, of which CuPy takes most. Checks of shapes
        # and layout are made here and not in `Executor.launch`, which reads them of every argument.
        count = len(self.dtypes)
        arrays = [i for i in range(count) if not numbers >> i & 1]
        args = ", ".join(f"a{i}" for i in range(count))
        # Kernels take numbers as doubles; CuPy would pass an int as the bits of one.
        passed = ", ".join(f"a{i}" if i in arrays else f"float(a{i})" for i in range(count))
        outs = ", ".join(f"y{i}" for i in range(len(self._results)))
        first = f"a{arrays[0]}"
        fits = " and ".join([f"a{i}.{self._gpu.contiguity}" for i in arrays]
                            + [f"a{i}.shape == shape" for i in arrays[1:]])
        lines = [f"def launch({args}):", f"    shape = {first}.shape", f"    n = {first}.size",
                 f"    if 0 < n < {_INT31} and {fits}:"]
        lines += [f"        y{i} = empty(shape, dtype{i})" for i in range(len(self._results))]
        lines += [f"        function(grids.get((n, {numbers})) or grid(n), block, "
                  f"({passed}, {outs}, n), 0, stream())",
                  f"        return {outs},",
                  f"    return general(({passed},))", ""]
        function, width = self._launch(
            ["each" if i in arrays else "number" for i in range(count)], 0, False)
        names: dict[str, Any] = {f"dtype{i}": d for i, d in enumerate(self._results)}
        names |= {"empty": self._gpu.empty, "grids": self._grids, "block": _BLOCK,
                  "stream": self._gpu.stream, "general": self._general, "function": function,
                  "grid": lambda n: self._grid(n, numbers, width)}
        return define("\n".join(lines), "launch", names)

    def _grid(self, n: int, numbers: int, width: int) -> Grid:
        if len(self._grids) >= _LIMIT:
            # All at once: which of them is old is not worth keeping.
            self._grids.clear()
        return self._grids.setdefault((n, numbers), self._gpu.blocks(-(-n // width), BLOCK))

    def _launch(self, modes: Sequence[str], rank: int, large: bool) -> Launch:
        kernel, width = kernel_of(self.formula, self.dtypes, modes, rank, large)
        return self._gpu.function(kernel), width

    def _general(self, args: tuple[Any, ...]) -> tuple[object, ...]:
        """Any shapes and strides; what follows from them is kept."""
        key = tuple([None if type(a) is float else (a.shape, a.strides) for a in args])
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= _LIMIT:
                self._plans.clear()
            plan = self._plans[key] = self._plan(layout(args))
        shape, function, grid, extents = plan
        outs = tuple([self._gpu.empty(shape, d) for d in self._results])
        if function is not None:
            function(grid, _BLOCK, (*args, *outs, *extents), 0, self._gpu.stream())
        return outs

    def _plan(self, operands: OperandLayout) -> tuple[Any, ...]:
        n = 1
        for length in operands.shape:
            n *= length
        if not n:
            return operands.shape, None, None, None
        rank = len(operands.axes) if operands.strides else 0
        function, width = self._launch(operands.modes, rank, n >= _INT31)
        extents = [n]
        if "row" in operands.modes or "column" in operands.modes:
            extents.append(operands.columns)
        if operands.strides:
            extents += operands.axes[1:]
            extents += [s for steps in operands.strides for s in steps]
        return operands.shape, function, self._gpu.blocks(-(-n // width), BLOCK), tuple(extents)

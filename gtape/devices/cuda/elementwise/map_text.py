"""The text of map kernels: one expression or several, over operands that may be broadcast.

How an operand is read is its mode:

- "each": it has the result's shape and lies in C order: element i.
- "row": one value for each of the last `columns` positions, as a bias has: element i % columns.
- "column": one value for each row of `columns` positions: element i / columns.
- "one": an array of one element.  "number": a Python number, passed by value.
- "strided": anything else, by coordinates. Then all arrays go element by element.

Without "strided" operands every thread moves 16 bytes at once, where the pointers allow it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from gtape.devices.kernel_source import expand
from gtape.opdef.cuda_text import C_SIZES, C_TYPES, NARROW, CudaPrinter, compute_dtype, rounded
from gtape.opdef.scalar_graph import Expr

# Whole blocks of this size fill a multiprocessor, be it of 1536 threads or of 2048.
BLOCK = 256


class MapOperand(NamedTuple):
    """An input: its dtype, and how it is read."""

    dtype: str
    mode: str


class MapFormula(NamedTuple):
    """What a kernel computes: outputs in terms of named inputs, and the outputs' dtypes."""

    name: str
    outputs: tuple[Expr, ...]
    params: tuple[str, ...]
    results: tuple[str, ...]


def entry_of(formula: MapFormula, operands: Sequence[MapOperand], large: bool) -> str:
    """The kernel's name: map_, the formula's as far as C++ allows, the dtypes, and the first
    letters of modes other than "each"."""
    # A name for each instance: profilers show it, and images of several kernels are told apart by
    # it.
    types = list(dict.fromkeys([o.dtype for o in operands] + list(formula.results)))
    if len(types) > 1:
        types = [o.dtype for o in operands] + list(formula.results)
    parts = ["map", re.sub(r"\W+", "_", formula.name).strip("_"), *types]
    if any(o.mode != "each" for o in operands):
        parts.append("".join(o.mode[0] for o in operands))
    return "_".join([*parts, "large"] if large else parts)


def number_text(operand: MapOperand, text: str) -> str:
    """A Python number, passed as a double, as an operand: one of its dtype."""
    narrow = f"({C_TYPES[operand.dtype]})(float)" if operand.dtype in NARROW else (
        f"({C_TYPES[operand.dtype]})")
    return narrow + text


def vector_width(formula: MapFormula, operands: Sequence[MapOperand]) -> int:
    """How many elements fit into 16 bytes of the widest array."""
    types = [o.dtype for o in operands if o.mode != "number"] + list(formula.results)
    return 16 // max(C_SIZES[C_TYPES[t]] for t in types)


def element_text(name: str, formula: MapFormula, operands: Sequence[MapOperand],
                 given: Sequence[str] | None = None) -> str:
    """The device function `name(inputs…, outputs…)`, which computes one element. `given` are the
    dtypes of the values, where the formula's results are the wider ones that they are taken on
    in."""
    dtypes = dict(zip(formula.params, [o.dtype for o in operands]))
    variables = {p: f"x{i}" for i, p in enumerate(formula.params)}
    values = formula.results if given is None else given
    printer = CudaPrinter(formula.outputs, dtypes, variables, values[0])
    lines = printer.lines()
    # Rounded to the dtype of the value first: a wider result must sum what an array of it would
    # hold.
    for i, (value, result, text) in enumerate(zip(values, formula.results,
                                                  printer.results(values))):
        if value != result:
            text = rounded(text, value)
        lines.append(f"y{i} = ({C_TYPES[result]})({text});")
    takes = [f"{C_TYPES[compute_dtype(o.dtype)]} x{i}" for i, o in enumerate(operands)]
    gives = [f"{C_TYPES[r]}& y{i}" for i, r in enumerate(formula.results)]
    return (f"DEVICE void {name}({', '.join(takes + gives)}) {{\n"
            + "".join(f"    {line}\n" for line in lines) + "}\n")


def map_text(formula: MapFormula, operands: Sequence[MapOperand], rank: int = 0,
             large: bool = False) -> str:
    """The kernel and its device function. `rank` is the number of axes that strided operands are
    read by; `large` says that indices do not fit into 31 bits."""
    name = entry_of(formula, operands, large)
    writer = MapWriter(f"{name}_at", formula, operands, rank)
    return (
        f"// {'; '.join(map(repr, formula.outputs))}\n"
        f"{element_text(f'{name}_at', formula, operands)}\n"
        f"__global__ void __launch_bounds__({BLOCK}, 1) {name}({writer.parameters()}) {{\n"
        f"    using index_t = {'long long' if large else 'unsigned int'};\n"
        f"{writer.hoisted()}"
        "    const index_t step = (index_t)grid_size();\n"
        "    index_t start = (index_t)grid_index();\n"
        f"{writer.wide_loop()}"
        "    for (index_t i = start; i < n; i += step) {\n"
        f"{writer.coordinates()}"
        f"        {name}_at({writer.element_arguments()});\n"
        "    }\n"
        "}\n")


def program(*kernels: str) -> str:
    """The C++ program of kernels' texts, includes and all."""
    return expand('#include "math.cuh"\n\n' + "\n".join(kernels), "derived.cu")


class MapWriter:
    """The parts of a kernel that goes over the elements from `start` on, in steps of `step`."""

    def __init__(self, function: str, formula: MapFormula, operands: Sequence[MapOperand],
                 rank: int) -> None:
        self._function = function
        self._operands = list(enumerate(operands))
        self._results = [C_TYPES[r] for r in formula.results]
        self._rank = rank
        self._width = vector_width(formula, operands)
        modes = {o.mode for o in operands}
        self._strided = "strided" in modes
        self._two = bool(modes & {"row", "column"})

    def parameters(self) -> str:
        texts = [f"double in{i}" if o.mode == "number"
                 else f"const {C_TYPES[o.dtype]}* __restrict__ in{i}" for i, o in self._operands]
        texts += [f"{r}* __restrict__ out{i}" for i, r in enumerate(self._results)]
        texts.append("long long n")
        if self._two:
            texts.append("long long columns")
        if self._strided:
            texts += [f"long long n{d}" for d in range(1, self._rank)]
            texts += [f"long long s{i}_{d}" for i, o in self._operands if o.mode == "strided"
                      for d in range(self._rank)]
        return ", ".join(texts)

    def hoisted(self) -> str:
        """What is the same for all elements."""
        lines = []
        for i, o in self._operands:
            ctype = C_TYPES[compute_dtype(o.dtype)]
            if o.mode == "number":
                lines.append(f"    const {ctype} x{i} = {number_text(o, f'in{i}')};\n")
            elif o.mode == "one":
                # With no elements the array may have no memory to read.
                lines.append(f"    const {ctype} x{i} = n ? ({ctype})in{i}[0] : ({ctype})0;\n")
        if self._two:
            lines.append("    const index_t width = (index_t)columns;\n")
        return "".join(lines)

    def wide_loop(self) -> str:
        # A load of 16 bytes is the widest there is; with one element at a time, memory's bandwidth
        # is not reached. Strided operands have no 16 bytes together.
        if self._strided or self._width == 1:
            return ""
        v = self._width
        aligned = [f"in{i}" for i, o in self._operands if o.mode in ("each", "row")]
        aligned += [f"out{i}" for i in range(len(self._results))]
        whole = f" && width % {v} == 0" if self._two else ""
        loads, args = [], []
        for i, o in self._operands:
            load, arg = self._wide(i, o)
            loads.append(load)
            args.append(arg)
        args += [f"r{i}.v[k]" for i in range(len(self._results))]
        results = "".join(f"            Vec<{r}, {v}> r{i};\n" for i, r in enumerate(self._results))
        stores = "".join(f"            reinterpret_cast<Vec<{r}, {v}>*>(out{i})[j] = r{i};\n"
                         for i, r in enumerate(self._results))
        return (
            f"    if (aligned16({', '.join(aligned)}){whole}) {{\n"
            f"        for (index_t j = start; j < n / {v}; j += step) {{\n"
            f"{''.join(loads)}{results}"
            "#pragma unroll\n"
            f"            for (int k = 0; k < {v}; k++) {self._function}({', '.join(args)});\n"
            f"{stores}"
            "        }\n"
            f"        start += (index_t)(n / {v} * {v});\n"
            "    }\n")

    def _wide(self, i: int, o: MapOperand) -> tuple[str, str]:
        """The load of an operand's vector, and how element k of it is read."""
        ctype, compute = C_TYPES[o.dtype], C_TYPES[compute_dtype(o.dtype)]
        vector = f"Vec<{ctype}, {self._width}>"
        if o.mode == "each":
            return (f"            const {vector} a{i} = "
                    f"reinterpret_cast<const {vector}*>(in{i})[j];\n", f"({compute})a{i}.v[k]")
        if o.mode == "row":
            return (f"            const {vector} a{i} = *reinterpret_cast<const {vector}*>"
                    f"(in{i} + j * {self._width} % width);\n", f"({compute})a{i}.v[k]")
        if o.mode == "column":
            return (f"            const {compute} a{i} = ({compute})"
                    f"in{i}[j * {self._width} / width];\n", f"a{i}")
        return "", f"x{i}"

    def coordinates(self) -> str:
        """The offsets of strided operands at element i."""
        if not self._strided:
            return ""
        strided = [i for i, o in self._operands if o.mode == "strided"]
        # A division for each axis and element is what strided operands cost; `_merged` leaves few
        # axes.
        lines = ["        index_t rest = i;\n"]
        lines += [f"        long long o{i} = 0;\n" for i in strided]
        for d in reversed(range(self._rank)):
            at = "rest" if d == 0 else f"rest % (index_t)n{d}"
            lines.append(f"        {{ const long long c = {at};"
                         + "".join(f" o{i} += c * s{i}_{d};" for i in strided) + " }\n")
            if d:
                lines.append(f"        rest /= (index_t)n{d};\n")
        return "".join(lines)

    def element_arguments(self) -> str:
        arguments = []
        for i, o in self._operands:
            compute = C_TYPES[compute_dtype(o.dtype)]
            index = {"each": "i", "row": "i % width", "column": "i / width",
                     "strided": f"o{i}"}.get(o.mode)
            arguments.append(f"x{i}" if index is None else f"({compute})in{i}[{index}]")
        arguments += [f"out{i}[i]" for i in range(len(self._results))]
        return ", ".join(arguments)

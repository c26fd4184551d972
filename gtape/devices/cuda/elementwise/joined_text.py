"""The text of joined maps: one formula for the tensors of many members, in one launch.

The kernel reads the members from a table, which has a row of long longs for each: how many elements
it has, and the addresses of its inputs and of its results. `chunks[c]` is the row of a chunk in the
upper 32 bits and its number within the member in the lower; a block takes whole chunks. Inputs are
read as in `map_text`, in mode "each" or "one".
"""

from __future__ import annotations

from collections.abc import Sequence

from gtape.devices.cuda.elementwise.map_text import (
    BLOCK,
    MapFormula,
    MapOperand,
    MapWriter,
    element_text,
    entry_of,
)
from gtape.opdef.cuda_text import C_TYPES


def joined_entry(formula: MapFormula, operands: Sequence[MapOperand]) -> str:
    """The kernel's name: joined_, and the formula's as in a map."""
    return f"joined_{entry_of(formula, operands, False)}"


def joined_text(formula: MapFormula, operands: Sequence[MapOperand]) -> str:
    """The kernel and its device function."""
    name = joined_entry(formula, operands)
    writer = MapWriter(f"{name}_at", formula, operands, 0)
    words = 1 + len(operands) + len(formula.results)
    return (
        f"// {'; '.join(map(repr, formula.outputs))}\n"
        f"{element_text(f'{name}_at', formula, operands)}\n"
        f"__global__ void __launch_bounds__({BLOCK}, 2) {name}(const void* __restrict__ table, "
        f"const long long* __restrict__ chunks, long long count, long long chunk) {{\n"
        "    using index_t = unsigned int;\n"
        "    const index_t step = blockDim.x;\n"
        "    for (long long c = blockIdx.x; c < count; c += gridDim.x) {\n"
        f"    const long long* row = static_cast<const long long*>(table) + (chunks[c] >> 32) * "
        f"{words};\n"
        "    const long long from = (chunks[c] & 0xffffffffll) * chunk;\n"
        "    const index_t n = (index_t)(row[0] - from < chunk ? row[0] - from : chunk);\n"
        f"{''.join(_pointers(formula, operands))}"
        "    index_t start = threadIdx.x;\n"
        f"{writer.hoisted()}"
        f"{writer.wide_loop()}"
        "    for (index_t i = start; i < n; i += step) {\n"
        f"        {name}_at({writer.element_arguments()});\n"
        "    }\n"
        "    }\n"
        "}\n")


def _pointers(formula: MapFormula, operands: Sequence[MapOperand]) -> list[str]:
    """The arrays of a chunk, from its first element on."""
    places = [(f"in{i}", f"const {C_TYPES[o.dtype]}", o.mode) for i, o in enumerate(operands)]
    places += [(f"out{i}", C_TYPES[r], "each") for i, r in enumerate(formula.results)]
    return [f"    {kind}* __restrict__ {name} = reinterpret_cast<{kind}*>("
            f"(unsigned long long)row[{word}]){' + from' if mode == 'each' else ''};\n"
            for word, (name, kind, mode) in enumerate(places, 1)]

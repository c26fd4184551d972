"""The kernels of maps: made once for each text."""

from __future__ import annotations

from collections.abc import Sequence

from gtape.devices.cuda.elementwise.map_text import (
    MapFormula,
    MapOperand,
    entry_of,
    map_text,
    program,
    vector_width,
)
from gtape.devices.cuda.runtime.executor import Function
from gtape.devices.cuda.runtime.kernel import Kernel

#: A loaded kernel, and how many elements one of its threads moves at once.
Launch = tuple[Function, int]

#: By text, which is all that a kernel depends on: maps of equal formulas share one.
_kernels: dict[str, tuple[Kernel, int]] = {}


def kernel_of(formula: MapFormula, dtypes: Sequence[str], modes: Sequence[str], rank: int = 0,
              large: bool = False) -> tuple[Kernel, int]:
    """The map kernel, and how many elements a thread moves at once."""
    operands = [MapOperand(d, m) for d, m in zip(dtypes, modes)]
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

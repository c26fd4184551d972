"""Formulas summed to a smaller shape: the gradients of broadcast inputs, each one reduction.

Their parts are as large as the op's result and are read once, by the sum: so the elements are
computed on the way into the reduction, which is `kernels/reduce.cuh`. Operands are read as in
`map_text`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gtape.devices.cuda.elementwise.elementwise_map import ElementwiseMap, OperandLayout, layout
from gtape.devices.cuda.elementwise.map_text import (
    MapFormula,
    MapOperand,
    element_text,
    entry_of,
    number_text,
)
from gtape.devices.cuda.kernels import reductions
from gtape.devices.cuda.kernels.reduction_geometry import ReductionGeometry, plan, steps
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.devices.kernel_source import expand
from gtape.opdef.cuda_text import C_TYPES, compute_dtype
from gtape.opdef.numpy_code import axes_to_sum, stretches, sum_to


def summed_entry(formula: MapFormula, operands: Sequence[MapOperand], template: str, out: str,
                 ) -> str:
    """The kernel's name: sum_rows_ or sum_columns_, and the formula's as in a map."""
    name = entry_of(formula, operands, False).removeprefix("map_")
    return f"sum_{template}_{name}_to_{out}"


def summed_text(formula: MapFormula, operands: Sequence[MapOperand], template: str, value: str,
                out: str, width: int) -> str:
    """The whole program of one sum.

    Args:
        formula: one output, in the dtype in which the sum is accumulated.
        operands: in any mode but "strided".
        template: "rows" or "columns".
        value: the dtype of the elements, which they are rounded to before they are added.
        out: the dtype of what the launch writes: the result's, or the accumulator's.
        width: how many elements are loaded at once.
    """
    name = summed_entry(formula, operands, template, out)
    running = C_TYPES[formula.results[0]]
    sizes = ["outer", "reduced", *(["inner"] if template == "columns" else [])]
    loads = _Loads(f"{name}_at", running, operands, width)
    parameters = [*loads.parameters(), f"{C_TYPES[out]}* y",
                  *(f"long long {s}" for s in (*sizes, "lanes", "part_length", "columns"))]
    call = ", ".join([f"{name}_load{{{loads.members()}, columns}}",
                      f"Output<{C_TYPES[out]}, Partial>{{y, {{}}}}", *sizes, "(int)lanes",
                      "part_length"])
    text = (
        '#include "math.cuh"\n#include "reduce.cuh"\n\n'
        f"// the sum of {formula.outputs[0]!r}\n"
        f"{element_text(f'{name}_at', formula, operands, (value,))}\n"
        f"{loads.struct(f'{name}_load')}\n"
        "__global__ void __launch_bounds__(REDUCE_THREADS, 2)\n"
        f"{name}({', '.join(parameters)}) {{\n"
        f"    reduce_{template}<Sum, {running}, {width}>({call});\n"
        "}\n")
    return expand(text, f"{name}.cu")


class _Loads:
    """The functor Load of `reduce.cuh` for a formula's operands."""

    def __init__(self, function: str, running: str, operands: Sequence[MapOperand],
                 width: int) -> None:
        self._function = function
        self._running = running
        self._operands = list(enumerate(operands))
        self._width = width

    def parameters(self) -> list[str]:
        return [f"double in{i}" if o.mode == "number"
                else f"const {C_TYPES[o.dtype]}* __restrict__ in{i}" for i, o in self._operands]

    def members(self) -> str:
        """The initialisers of the struct: one-element operands are read here."""
        values = []
        for i, o in self._operands:
            compute = C_TYPES[compute_dtype(o.dtype)]
            values.append({"one": f"({compute})in{i}[0]", "number": number_text(o, f"in{i}")}.get(
                o.mode, f"in{i}"))
        return ", ".join(values)

    def struct(self, name: str) -> str:
        a, v = self._running, self._width
        fields = "".join(f"    {self._field(i, o)};\n" for i, o in self._operands)
        return (
            f"struct {name} {{\n{fields}    long long columns;\n"
            f"    DEVICE {a} operator()(long long i) const {{\n"
            f"        {a} y;\n"
            f"        {self._function}({self._elements()}, y);\n"
            "        return y;\n"
            "    }\n"
            f"    DEVICE void vector(long long i, {a} (&v)[{v}]) const {{\n"
            f"{''.join(self._vector(i, o) for i, o in self._operands)}"
            "#pragma unroll\n"
            f"        for (int k = 0; k < {v}; k++) {self._function}({self._parts()}, v[k]);\n"
            "    }\n"
            f"    DEVICE bool can_vector() const {{ return {self._condition()}; }}\n"
            "};\n")

    def _field(self, i: int, o: MapOperand) -> str:
        if o.mode in ("one", "number"):
            return f"{C_TYPES[compute_dtype(o.dtype)]} in{i}"
        return f"const {C_TYPES[o.dtype]}* in{i}"

    def _elements(self) -> str:
        index = {"each": "i", "row": "i % columns", "column": "i / columns"}
        return ", ".join(
            f"({C_TYPES[compute_dtype(o.dtype)]})in{i}[{index[o.mode]}]" if o.mode in index
            else f"in{i}" for i, o in self._operands)

    def _vector(self, i: int, o: MapOperand) -> str:
        vector = f"Vec<{C_TYPES[o.dtype]}, {self._width}>"
        # A wide load of a row begins where the row does, as its length is a multiple of the load's.
        place = {"each": "i", "row": "i % columns"}.get(o.mode)
        if place:
            return (f"        const {vector} a{i} = *reinterpret_cast<const {vector}*>"
                    f"(in{i} + {place});\n")
        if o.mode == "column":
            compute = C_TYPES[compute_dtype(o.dtype)]
            return f"        const {compute} a{i} = ({compute})in{i}[i / columns];\n"
        return ""

    def _parts(self) -> str:
        parts = []
        for i, o in self._operands:
            wide = f"({C_TYPES[compute_dtype(o.dtype)]})a{i}.v[k]"
            parts.append({"each": wide, "row": wide, "column": f"a{i}"}.get(o.mode, f"in{i}"))
        return ", ".join(parts)

    def _condition(self) -> str:
        pointers = [f"in{i}" for i, o in self._operands if o.mode in ("each", "row")]
        return f"columns % {self._width} == 0 && aligned16({', '.join(pointers)})"


#: Plans that a map keeps: the shapes of a program may never come again.
_LIMIT = 1024


class SummedPlan(NamedTuple):
    """The launches of a sum."""

    kernel: Kernel
    columns: int
    geometry: ReductionGeometry


class SummedMap:
    """A formula summed over the axes along which an input was broadcast. Call it with the shape to
    sum to, then the formula's arguments."""

    def __init__(self, gpu: Executor, whole: ElementwiseMap) -> None:
        self._gpu = gpu
        self._whole = whole
        self._result = whole.formula.results[0]
        self._running = compute_dtype(self._result)
        self._formula = whole.formula._replace(results=(self._running,))
        self._plans: dict[Any, SummedPlan | None] = {}

    def __call__(self, target: tuple[int, ...], *args: Any) -> Any:
        key = (target, *[None if isinstance(a, (int, float)) else (a.shape, a.strides)
                         for a in args])
        if key not in self._plans:
            if len(self._plans) >= _LIMIT:
                self._plans.clear()
            self._plans[key] = self._plan(target, layout(args))
        plan = self._plans[key]
        if plan is None:
            whole = self._whole(*args)[0]
            if whole.shape == target:
                return whole
            # Two steps: the elements in memory first, then their sum.
            summed = reductions.sum_to(self._gpu, whole, target)
            return sum_to(whole, target) if summed is None else summed
        return self._run(plan, args).reshape(target)

    def _plan(self, target: tuple[int, ...], read: OperandLayout) -> SummedPlan | None:
        """None where the elements are wanted themselves, or are read in no simple order."""
        # The reduction counts elements in memory order; what only coordinates can read, and what no
        # operand has in that order, is made in memory first.
        if 0 in read.shape or "strided" in read.modes or "each" not in read.modes or stretches(
                read.shape, target):
            return None
        axes, _ = axes_to_sum(read.shape, target)
        forms = steps(read.shape, axes) if axes else ()
        if len(forms) != 1:
            return None
        operands = tuple(MapOperand(d, m) for d, m in zip(self._whole.dtypes, read.modes))
        widest = max(numpy_dtype(o.dtype).itemsize for o in operands if o.mode in ("each", "row"))
        running = numpy_dtype(self._running).itemsize
        geometry = plan(*forms[0], widest, self._gpu, running)
        first, out = geometry.first, self._running if geometry.second else self._result
        text = summed_text(self._formula, operands, first.template, self._result, out, first.width)
        kernel = Kernel(text, summed_entry(self._formula, operands, first.template, out))
        return SummedPlan(kernel, read.columns, geometry)

    def _run(self, plan: SummedPlan, args: tuple[object, ...]) -> Any:
        first, second = plan.geometry
        out = self._result if second is None else self._running
        args = tuple([float(a) if isinstance(a, int) else a for a in args])
        out_array = self._gpu.empty((first.results,), numpy_dtype(out))
        self._gpu.launch(plan.kernel, first.grid, first.block,
                         (*args, out_array, *first.sizes, plan.columns))
        if second is None:
            return out_array
        return reductions.launch_stage(self._gpu, "Sum", self._result, out_array, second, 1)

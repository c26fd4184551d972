"""Formulas summed to a smaller shape: the gradients of broadcast inputs, each one reduction."""

from __future__ import annotations

from typing import Any, NamedTuple

from gtape.devices.cuda.elementwise.elementwise_map import ElementwiseMap
from gtape.devices.cuda.elementwise.map_text import MapOperand
from gtape.devices.cuda.elementwise.operands import OperandLayout, layout
from gtape.devices.cuda.elementwise.summed_text import summed_entry, summed_text
from gtape.devices.cuda.kernels import reductions
from gtape.devices.cuda.kernels.reduction_geometry import ReductionGeometry, plan, steps
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.opdef.broadcasting import axes_to_sum, stretches, sum_to
from gtape.opdef.printers.cuda import compute_dtype

#: Plans that a map keeps: the shapes of a program may never come again.
_LIMIT = 1024


class SummedPlan(NamedTuple):
    """The launches of a sum."""

    kernel: Kernel
    columns: int
    geometry: ReductionGeometry


class SummedMap:
    """A formula summed over the axes along which an input was broadcast.

    Call it with the shape to sum to, then the formula's arguments.
    """

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
        found = self._plans[key]
        if found is None:
            made = self._whole(*args)[0]
            if made.shape == target:
                return made
            summed = reductions.sum_to(self._gpu, made, target)
            return sum_to(made, target) if summed is None else summed
        return self._run(found, args).reshape(target)

    def _plan(self, target: tuple[int, ...], found: OperandLayout) -> SummedPlan | None:
        """None where the elements are wanted themselves, or are read in no simple order."""
        if 0 in found.shape or "strided" in found.modes or "each" not in found.modes or stretches(
                found.shape, target):
            return None
        axes, _ = axes_to_sum(found.shape, target)
        forms = steps(found.shape, axes) if axes else ()
        if len(forms) != 1:
            return None
        operands = tuple(MapOperand(d, m) for d, m in zip(self._whole.dtypes, found.modes))
        widest = max(numpy_dtype(o.dtype).itemsize
                     for o in operands if o.mode in ("each", "row"))
        running = numpy_dtype(self._running).itemsize
        geometry = plan(*forms[0], widest, self._gpu, running)
        first, out = geometry.first, self._running if geometry.second else self._result
        text = summed_text(self._formula, operands, first.template, self._result, out,
                           first.width)
        kernel = Kernel(text, summed_entry(self._formula, operands, first.template, out))
        return SummedPlan(kernel, found.columns, geometry)

    def _run(self, found: SummedPlan, args: tuple[Any, ...]) -> Any:
        first, second = found.geometry
        out = self._result if second is None else self._running
        args = tuple([float(a) if isinstance(a, int) else a for a in args])
        made = self._gpu.empty((first.results,), numpy_dtype(out))
        self._gpu.launch(found.kernel, first.grid, first.block,
                         (*args, made, *first.sizes, found.columns))
        if second is None:
            return made
        return reductions.launch_stage(self._gpu, "Sum", self._result, made, second, 1)

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
from gtape.opdef.cuda_text import compute_dtype
from gtape.opdef.numpy_code import axes_to_sum, stretches, sum_to

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
        if 0 in read.shape or "strided" in read.modes or "each" not in read.modes or stretches(
                read.shape, target):
            return None
        axes, _ = axes_to_sum(read.shape, target)
        forms = steps(read.shape, axes) if axes else ()
        if len(forms) != 1:
            return None
        operands = tuple(MapOperand(d, m) for d, m in zip(self._whole.dtypes, read.modes))
        widest = max(numpy_dtype(o.dtype).itemsize
                     for o in operands if o.mode in ("each", "row"))
        running = numpy_dtype(self._running).itemsize
        geometry = plan(*forms[0], widest, self._gpu, running)
        first, out = geometry.first, self._running if geometry.second else self._result
        text = summed_text(self._formula, operands, first.template, self._result, out,
                           first.width)
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

"""Every declared case gives on a device what it gives on the CPU, with both derivatives."""

from __future__ import annotations

import fake_cupy
import numpy as np
import pytest

from gtape import testing
from gtape.autodiff.tape import GradientTape
from gtape.core.convert import convert
from gtape.core.device import CPU
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.placement import on
from gtape.ops import every_module

every_module()

CASES = [(op, case, dtype) for op, case in testing.declared()
          for dtype in dict.fromkeys((case.dtypes[0], case.dtypes[-1]))]


def results(op, case, dtype, device):
    """The values, the first and the second derivatives, with inputs on `device`."""
    inputs = [convert(a, None, device) for a in testing.draw(case, dtype)]
    try:
        return _to_order(2, op, case, inputs)
    except LookupError:  # the derivative has none of its own, by declaration
        return _to_order(1, op, case, inputs)


def _to_order(order, op, case, inputs):
    wanted = [t for t in inputs if t.dtype.is_differentiable]
    with GradientTape() as outer, GradientTape() as inner:
        inner.watch(wanted)
        if order > 1:
            outer.watch(wanted)
        values = testing.call(op, inputs, case)
        smooth = [y for y in values if y.dtype.is_differentiable]
        first = inner.gradient(smooth, wanted) if smooth and wanted and op.has_gradient else []
    known = [g for g in first if g is not None]
    second = outer.gradient(known, wanted) if known and order > 1 < case.orders else []
    return [*values, *first, *second]


@pytest.mark.parametrize("default", ["host", "device"])
@pytest.mark.parametrize("op, case, dtype", CASES,
                         ids=[f"{op.name}-{i}-{d}" for i, (op, _, d) in enumerate(CASES)])
def test_it_computes_where_its_inputs_are(gpus, op, case, dtype, default):
    device = gpus[1]
    with on(CPU):
        expected = results(op, case, dtype, CPU)
    with on(CPU if default == "host" else device):
        found = results(op, case, dtype, device)
    for a, b in zip(expected, found, strict=True):
        if a is None or b is None:
            assert a is None and b is None
            continue
        if isinstance(a, IndexedSlices):
            a, b = a.to_dense(), b.to_dense()
        assert b.device == "GPU:1" and isinstance(b._a, fake_cupy.ndarray)
        assert b._a.device.id == 1 and b._a.dtype == a._a.dtype
        # Sums of numbers near 1 that cancel differ by their order.
        np.testing.assert_allclose(a._peek(), b._peek(), rtol=1e-5, atol=5e-6)

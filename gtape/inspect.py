"""gtape.inspect: what ops and functions become, without running them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gtape.compile.frontend.result_specs import specs
from gtape.core import dtypes
from gtape.core.device import CPU
from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.devices.cuda.elementwise.map_text import MapFormula, MapOperand, map_text
from gtape.opdef.cuda_text import servable
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.elementwise_vjp import MapDefinition, backward_step, forward_step
from gtape.opdef.scalar_graph import unused_name

__all__ = ["cuda", "specs"]


def cuda(op: Callable[..., object], wrt: str | Sequence[str] | None = None,
         dtype: object = dtypes.float32) -> str:
    """The CUDA C++ of an elementwise op, or of its backward: the kernel that a GPU runs.

        print(tf.inspect.cuda(tf.tanh))             # y = tanh(x)
        print(tf.inspect.cuda(tf.tanh, wrt="x"))    # the cotangent of x: g (1 - y²)

    The text is a program together with `kernels/math.cuh`, and C++ for a CPU too.

    Args:
        op: a function such as tf.tanh or tf.nn.gelu, or what it declares.
        wrt: the inputs, by their names in the op's declaration, whose cotangents to compute in
            one kernel; None for the op itself.
        dtype: of the inputs.

    Raises:
        InvalidArgumentError: the op is not elementwise, has no such input, carries no gradient
            to one, or has no kernel for the dtype.
    """
    found = getattr(op, "op", op)
    if not isinstance(found, Elementwise):
        raise InvalidArgumentError(
            f"tf.inspect.cuda takes an elementwise op such as tf.tanh; got "
            f"{shown(op)}. What is not "
            f"elementwise is in the folder kernels/")
    step = _step(found, wrt, dtypes.as_dtype(dtype))
    types = [t.dtype.name for t in step.types]
    # What the printer cannot say in CUDA runs by CuPy's functions.
    if not servable(step.outputs, dict(zip(step.params, types))):
        raise InvalidArgumentError(f"{found.name} has no kernel for {types[0]}; CuPy's functions "
                                   f"compute it on a GPU")
    formula = MapFormula(step.name, step.outputs, step.params,
                         tuple(t.dtype.name for t in step.results))
    return map_text(formula, [MapOperand(t, "each") for t in types])


def _step(op: Elementwise, wrt: str | Sequence[str] | None, dtype: DType) -> MapDefinition:
    types = [CPU.typed(dtype)] * len(op.params)
    if op.types == "select":
        # The condition of `where`; the dtype is that of the values.
        types[0] = CPU.typed(dtypes.bool_)
    out = op.out_type(types)
    if wrt is None:
        return forward_step(op, types, out)
    names = [wrt] if isinstance(wrt, str) else list(wrt)
    unknown = [n for n in names if n not in op.params]
    if unknown or not names:
        raise InvalidArgumentError(f"{op.name} has the inputs {', '.join(op.params)}; got "
                                   f"wrt={shown(wrt)}")
    at = [op.params.index(n) for n in names]
    parts = [None] * len(at) if op.nondifferentiable else op.input_cotangents(at, False)
    missing = [n for n, p in zip(names, parts) if p is None]
    if missing:
        raise InvalidArgumentError(f"no gradient flows to {missing[0]} of {op.name}")
    return backward_step(op, types, [(i, p) for i, p in zip(at, parts) if p is not None],
                         unused_name("g", op.params), unused_name("y", op.params))

"""recompute_grad: keep the arguments instead of the intermediates, and compute them again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gtape.autodiff.custom_gradient import (
    VariableWatcher,
    _check_function,
    _is_tensor,
    _keyed,
    run_custom,
)
from gtape.autodiff.tape import GradientTape
from gtape.core import nest
from gtape.core.context import recorders
from gtape.core.convert import convert
from gtape.core.tensor import Tensor
from gtape.core.variable import is_variable


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, whose intermediate values are dropped and computed again for each gradient.

    Memory for time: the tape keeps only the arguments (Chen et al. 2016, arXiv:1604.06174).
    Unconnected arguments get zeros.

    Raises:
        TypeError: `f` is no function.
    """
    _check_function("recompute_grad", f)

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        structure = [list(args), kwargs]
        leaves = nest.flatten(structure)
        at = [i for i, leaf in enumerate(leaves) if _is_tensor(leaf)]
        inputs = [convert(leaves[i]) for i in at]
        watcher = VariableWatcher()
        token = recorders.set((watcher,))
        try:
            made = f(*args, **kwargs)
        finally:
            recorders.reset(token)
        given = {leaves[i]._resource_()._k for i in at if is_variable(leaves[i])}
        variables = [v for k, v in watcher.variables.items() if k not in given]
        again = _RecomputedVjp(f, structure, leaves, at, inputs, variables)
        every = inputs + [v._read_() for v in variables]
        flat = [convert(leaf) for leaf in nest.flatten(made)]
        return nest.pack_sequence_as(made, run_custom(
            getattr(f, "__name__", "recomputed"), _keyed(every), flat, again))

    wrapper.__wrapped__ = f  # type: ignore[attr-defined]
    return wrapper


class _RecomputedVjp:
    """Runs the function under a tape of its own and pulls back through that."""

    __slots__ = ("_at", "_f", "_inputs", "_leaves", "_structure", "_variables")

    def __init__(self, f: Callable[..., Any], structure: Any, leaves: list[Any], at: list[int],
                 inputs: list[Tensor], variables: list[Any]) -> None:
        self._f, self._structure, self._at = f, structure, at
        self._inputs, self._variables = inputs, variables
        self._leaves = [None if i in at else leaf for i, leaf in enumerate(leaves)]

    def __call__(self, upstream: list[Tensor]) -> list[Any]:
        from gtape.ops.shape.layout import optimization_barrier_

        fresh = [optimization_barrier_(x) for x in self._inputs]
        leaves = list(self._leaves)
        for i, x in zip(self._at, fresh):
            leaves[i] = x
        args, kwargs = nest.pack_sequence_as(self._structure, leaves)
        with GradientTape() as tape:
            tape.watch(fresh)
            made = nest.flatten(self._f(*args, **kwargs))
        pairs = [(convert(y), u) for y, u in zip(made, upstream) if y.dtype.is_differentiable]
        return tape.gradient([y for y, _ in pairs], [*fresh, *self._variables],
                             [u for _, u in pairs], unconnected_gradients="zero")

"""Metrics inside traced functions.

Metrics compute with NumPy arrays. In a traced function a method of a metric is one step, which
runs at every call on a copy of the metric that holds the state of that moment.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.convert import convert
from gtape.core.errors import NotTraceableError, OperatorNotAllowedInGraphError
from gtape.core.state import init_scope, tracer_now
from gtape.core.symbols import SymbolicTensor
from gtape.core.tensor import Tensor
from gtape.keras.variables import KerasVariable
from gtape.kinds.hosted import HostedOp

_UNTRACED = (NotTraceableError, OperatorNotAllowedInGraphError, NotImplementedError,
             AttributeError)


class _Held(KerasVariable):
    """A variable in the copy of a metric: as that of the metric, with another value."""

    __slots__ = ()

    def __init__(self, variable: KerasVariable, value: Any) -> None:
        from gtape.core.resource import ResourceVariable, VariableView

        self._path, self.regularizer = variable._path, None
        VariableView.__init__(self, ResourceVariable(value, trainable=False))


def traced(metric: Any, method: Callable[..., Any], args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> Any:
    """`method(metric, *args, **kwargs)` as part of the trace."""
    tracer = tracer_now()
    nodes, before = len(tracer.nodes), {k: use.present for k, use in tracer.cells.items()}
    try:
        return method(metric, *args, **kwargs)
    except _UNTRACED:
        del tracer.nodes[nodes:]
        for key, use in tracer.cells.items():
            use.present = before.get(key, use.start)
    return _hosted(metric, method, args, kwargs)


def _hosted(metric: Any, method: Callable[..., Any], args: tuple[Any, ...],
            kwargs: dict[str, Any]) -> Any:
    places = [(i, leaf) for i, leaf in enumerate(nest.flatten((args, kwargs)))
              if isinstance(leaf, Tensor) or hasattr(leaf, "_read_")]
    inputs = [convert(leaf) for _, leaf in places]
    variables = list(metric._variables)
    states = [v._state._value for v in variables]
    count = len(inputs)

    def on(target: Any, tensors: Sequence[Tensor]) -> Any:
        """The method of `target` with these tensors among its arguments."""
        leaves = nest.flatten((args, kwargs))
        for (i, _), tensor in zip(places, tensors):
            leaves[i] = tensor
        given, named = nest.pack_sequence_as((args, kwargs), leaves)
        return method(target, *given, **named)

    def applied(tensors: Sequence[Tensor]) -> tuple[Any, list[Tensor]]:
        """The result, and the state afterwards."""
        held = [_Held(v, value) for v, value in zip(variables, tensors[count:])]
        made = on(_copied(metric, dict(zip(map(id, variables), held)), held), tensors)
        return made, [v._state._value for v in held]

    with init_scope():
        blank = [_blank(t) for t in (*inputs, *states)]
        structure, after = applied(blank)
        if len(after) > len(variables):
            _built(metric, lambda: on(metric, blank))
    if len(after) > len(variables):
        return _hosted(metric, method, args, kwargs)
    like = [convert(leaf) for leaf in nest.flatten(structure) if leaf is not None]

    def run(*tensors: Tensor) -> list[Tensor]:
        made, after = applied(tensors)
        return [*(convert(leaf) for leaf in nest.flatten(made) if leaf is not None), *after]

    specs = [*(t.spec for t in like), *(t.spec for t in states)]
    types = [*(t._t for t in like), *(t._t for t in states)]
    name = f"{type(metric).__name__}.{method.__name__}"
    found = HostedOp(name, run, specs, types, differentiable=False)(*inputs, *states)
    if method.__name__ == "update_state":
        for variable, value in zip(variables, found[len(like):]):
            variable._state._value = value
    results = iter(found)
    return nest.map_structure(lambda leaf: None if leaf is None else next(results), structure)


class OnArrays:
    """`fn(y_true, y_pred, …)`, which computes with arrays, also for tensors of a trace.

    There it is one step in Python, or what the function declared by `traced` gives, in ops that are
    compiled.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self._fn = fn
        self._traced: Callable[..., Any] | None = None

    def traced(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: the same in ops."""
        self._traced = fn
        return fn

    def __call__(self, y_true: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
        fn = self._fn
        if type(y_true) is not SymbolicTensor and type(y_pred) is not SymbolicTensor:
            return fn(y_true, y_pred, *args, **kwargs)
        inputs = [convert(y_true), convert(y_pred)]
        if self._traced is not None:
            return self._traced(*inputs, *args, **kwargs)

        def run(*tensors: Tensor) -> list[Tensor]:
            return [convert(fn(*tensors, *args, **kwargs))]

        with init_scope():
            (like,) = run(*map(_blank, inputs))
        return HostedOp(fn.__name__, run, [like.spec], [like._t], differentiable=False)(*inputs)[0]


on_arrays = OnArrays


def _built(metric: Any, update: Callable[[], Any]) -> None:
    """Let the metric make its state, as its first update does, and nothing else."""
    kept = [(v, v._state._value) for v in metric._variables]
    update()
    metric.reset_state()
    for variable, value in kept:
        variable.assign(value)


def _blank(tensor: Any) -> Tensor:
    """A tensor of the same type to try a method on."""
    if type(tensor) is not SymbolicTensor:
        return tensor
    return convert(np.zeros(tensor.spec.shape, tensor.dtype.np_dtype), tensor.dtype,
                   tensor._t.device)


def _copied(metric: Any, held: dict[int, Any], variables: list[Any]) -> Any:
    """The metric with other variables."""
    made = copy.copy(metric)
    for name, value in vars(metric).items():
        if isinstance(value, (list, tuple, dict)) or id(value) in held:
            setattr(made, name, nest.map_structure(lambda v: held.get(id(v), v), value))
    made._variables = variables
    return made

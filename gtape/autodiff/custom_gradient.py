"""Functions with a backward of their own: custom_gradient, and recompute_grad, which computes the
intermediates again."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from gtape.autodiff.tape import GradientTape
from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.context import Recorder, active, new_key, recorders
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.installed import installed
from gtape.core.tensor import Readable, Tensor
from gtape.core.variable import Variable, is_variable

Pull = Callable[[list[Tensor]], list[Any]]


class _VariableWatcher(Recorder):
    """A recorder that only notes which trainable variables are read."""

    __slots__ = ("variables",)

    def __init__(self) -> None:
        self.variables: dict[int, Any] = {}

    def _on_read(self, state: Any, value: Tensor) -> None:
        if state.trainable:
            self.variables[state._k] = state


def is_numeric(leaf: TensorLike) -> bool:
    """Whether an argument can have a gradient: tensors, variables, numbers, arrays."""
    return (isinstance(leaf, (Tensor, int, float, complex)) and not isinstance(leaf, bool)) or (
        isinstance(leaf, Readable) or hasattr(leaf, "__array__"))


def _is_tensor(leaf: TensorLike) -> bool:
    return isinstance(leaf, (Tensor, Readable))


def custom_gradient(f: Callable[..., object] | None = None) -> Any:
    """Decorator: `f(*args)` returns (outputs, grad_fn).

    `grad_fn(*upstream)` takes one cotangent for each output (zeros where none arrived) and returns
    one gradient for each argument, in the order of the signature. When `f` reads trainable
    variables that are not arguments, `grad_fn` must take `variables=` and return
    (argument gradients, list of variable gradients).

    A second derivative differentiates the ops of `grad_fn`. To override it, let `grad_fn` call
    another custom_gradient function that takes x. Decorating `grad_fn` itself defines the gradient
    with respect to the cotangent, not to x.

    Raises:
        TypeError: `f` does not return (outputs, callable), or `grad_fn` lacks `variables`.
        ValueError: an output is None; later, gradients of the wrong number, shape or dtype.
    """
    if f is None:
        return custom_gradient
    _check_function("custom_gradient", f)

    @functools.wraps(f)
    def wrapper(*args: object, **kwargs: Any) -> Any:
        if kwargs:
            # By position where the signature allows it, for that is the order of the gradients.
            bound = inspect.signature(f).bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        return _call(f, args, kwargs)

    return wrapper


def _check_function(name: str, f: object) -> None:
    if not callable(f):
        raise TypeError(f"{name} takes a function; got {shown(f)}")


def _call(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = getattr(f, "__name__", "custom")
    leaves = nest.flatten([list(args), list(kwargs.values())])
    tensors = [convert(leaf) if _is_tensor(leaf) else None for leaf in leaves]
    watcher = _VariableWatcher()
    # Beside the tapes, which record what f does: the watcher only learns which variables it reads.
    # Set and reset by hand: `push` and `remove` look for the recorder, which is known to be last.
    token = recorders.set((*active(), watcher))
    try:
        pair = f(*args, **kwargs)
    finally:
        recorders.reset(token)
    outputs, grad_fn = _checked(name, pair)
    flat = [_output(name, leaf) for leaf in nest.flatten(outputs)]
    passed = {leaf._resource_()._k for leaf in leaves if is_variable(leaf)}
    # Those that are arguments get their gradient as arguments.
    variables = [v for k, v in watcher.variables.items() if k not in passed]
    if variables and not _takes_variables(grad_fn):
        raise TypeError(f"{name} reads the trainable variables "
                        f"{[v.name for v in variables]}, so its grad_fn must accept the keyword "
                        f"argument 'variables' and return (gradients, variable_gradients)")
    inputs = [t for t in tensors if t is not None] + [v._read_() for v in variables]
    pull = _Pull(name, grad_fn, leaves, tensors, variables)
    return nest.pack_sequence_as(outputs, _applied(name, inputs, flat, pull))


def _applied(name: str, inputs: list[Tensor], outputs: list[Tensor], pull: Pull) -> list[Tensor]:
    """`outputs` as new tensors, which `pull` answers for."""
    from gtape.trace.custom_op import apply_custom  # traces are built on tapes

    for tensor in inputs:
        if not tensor._k:
            tensor._k = new_key()
    return apply_custom(name, inputs, outputs, pull)


def _checked(name: str, pair: object) -> tuple[Any, Callable[..., Any]]:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(f"{name}, decorated with custom_gradient, must return (outputs, grad_fn); "
                        f"got {type(pair).__name__}")
    if not callable(pair[1]):
        raise TypeError(f"{name}: grad_fn must be callable; got {shown(pair[1])}")
    return pair[0], pair[1]


def _output(name: str, leaf: Tensor) -> Tensor:
    if leaf is None:
        raise ValueError(f"{name}: an output is None; every output must be a tensor or number")
    return convert(leaf)


def _takes_variables(grad_fn: Callable[..., object]) -> bool:
    params = inspect.signature(grad_fn).parameters.values()
    return any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in params)


class _Pull:
    """Calls grad_fn and hands its results to the tensors among the arguments."""

    __slots__ = ("_grad_fn", "_leaf_kinds", "_name", "_specs", "_variables")

    def __init__(self, name: str, grad_fn: Callable[..., object], leaves: Sequence[TensorLike],
                 tensors: Sequence[Tensor | None], variables: Sequence[Variable]) -> None:
        self._name, self._grad_fn, self._variables = name, grad_fn, variables
        self._leaf_kinds = [is_numeric(leaf) for leaf in leaves]
        self._specs = [None if t is None else (t.spec, t._t) for t in tensors]

    def __call__(self, upstream: list[Tensor]) -> list[Any]:
        if self._variables:
            answer = self._grad_fn(*upstream, variables=list(self._variables))
            if not isinstance(answer, (tuple, list)) or len(answer) != 2:
                raise ValueError(f"{self._name}: grad_fn must return (gradients, "
                                 f"variable_gradients) because variables are read")
            of_args, of_variables = answer[0], list(answer[1])
            if len(of_variables) != len(self._variables):
                raise ValueError(f"{self._name}: grad_fn must return one gradient for each of "
                                 f"the {len(self._variables)} variables; got {len(of_variables)}")
        else:
            of_args, of_variables = self._grad_fn(*upstream), []
        parts = self._matched(nest.flatten(of_args))
        checked = [self._fit(i, p) for i, p in enumerate(parts) if self._specs[i] is not None]
        return checked + [None if p is None else convert(p) if not isinstance(p, IndexedSlices)
                          else p for p in of_variables]

    def _matched(self, flat: list[object]) -> list[Any]:
        if len(flat) == len(self._leaf_kinds):
            return flat
        numeric = [i for i, kind in enumerate(self._leaf_kinds) if kind]
        if len(flat) != len(numeric):
            raise ValueError(f"{self._name}: grad_fn must return {len(numeric)} gradient(s), one "
                             f"for each argument; got {len(flat)}")
        parts: list[Any] = [None] * len(self._leaf_kinds)
        for i, part in zip(numeric, flat):
            parts[i] = part
        return parts

    def _fit(self, position: int, part: TensorLike | None) -> IndexedSlices | Tensor | None:
        if part is None or isinstance(part, IndexedSlices):
            return part
        expected = self._specs[position]
        assert expected is not None
        spec, array_type = expected
        tensor = part if isinstance(part, Tensor) else convert(
            part, spec.dtype if not isinstance(part, Readable) else None, array_type.device)
        if tensor.spec.shape != spec.shape or tensor.dtype is not spec.dtype:
            raise InvalidArgumentError(f"{self._name}: gradient {position} must have the shape and "
                                       f"dtype of its argument, {spec}; got {tensor.spec}")
        return tensor


def grad_pass_through(f: Callable[..., object]) -> Callable[..., Any]:
    """`f` forward, the identity backward (a straight-through estimator, arXiv:1308.3432).

    Raises:
        TypeError: `f` is no function.
        ValueError: the result differs in shape from the first argument.
    """
    _check_function("grad_pass_through", f)

    @custom_gradient
    def wrapped(*args: object, **kwargs: object) -> Any:
        def grad(*upstream: Tensor, variables: Any = None) -> Any:
            parts = upstream if len(args) > 1 else upstream[0]
            return parts if variables is None else (parts, [None] * len(variables))

        result = f(*args, **kwargs)
        return nest.map_structure(convert, result), grad

    return functools.wraps(f)(wrapped) if hasattr(f, "__name__") else wrapped


def recompute_grad(f: Callable[..., object]) -> Callable[..., Any]:
    """`f`, whose intermediate values are dropped and computed again for each gradient.

    Memory for time: the tape keeps only the arguments (Chen et al. 2016, arXiv:1604.06174).
    Unconnected arguments get zeros.

    Raises:
        TypeError: `f` is no function.
    """
    _check_function("recompute_grad", f)

    @functools.wraps(f)
    def wrapper(*args: object, **kwargs: object) -> Tensor:
        structure = [list(args), kwargs]
        leaves = nest.flatten(structure)
        at = [i for i, leaf in enumerate(leaves) if _is_tensor(leaf)]
        inputs = [convert(leaves[i]) for i in at]
        watcher = _VariableWatcher()
        token = recorders.set((watcher,))
        try:
            result = f(*args, **kwargs)
        finally:
            recorders.reset(token)
        given = {leaves[i]._resource_()._k for i in at if is_variable(leaves[i])}
        variables = [v for k, v in watcher.variables.items() if k not in given]
        again = _RecomputedVjp(f, structure, leaves, at, inputs, variables)
        every = inputs + [v._read_() for v in variables]
        flat = [convert(leaf) for leaf in nest.flatten(result)]
        return nest.pack_sequence_as(result, _applied(
            getattr(f, "__name__", "recomputed"), every, flat, again))

    wrapper.__wrapped__ = f
    return wrapper


class _RecomputedVjp:
    """Runs the function under a tape of its own and pulls back through that."""

    __slots__ = ("_at", "_f", "_inputs", "_leaves", "_structure", "_variables")

    def __init__(self, f: Callable[..., object], structure: object, leaves: Sequence[TensorLike],
                 at: list[int], inputs: list[Tensor], variables: Sequence[Variable]) -> None:
        self._f, self._structure, self._at = f, structure, at
        self._inputs, self._variables = inputs, variables
        # Without the tensors, which `_inputs` has: a Variable among them counts with the value it
        # had then.
        self._leaves = [None if i in at else leaf for i, leaf in enumerate(leaves)]

    def __call__(self, upstream: list[Tensor]) -> list[Any]:
        # In a compiled function the second computation has the operands of the first, and would be
        # joined with it: its values would be kept after all. Behind the barrier they are others.
        fresh = [installed.optimization_barrier(x) for x in self._inputs]
        leaves = list(self._leaves)
        for i, x in zip(self._at, fresh):
            leaves[i] = x
        args, kwargs = nest.pack_sequence_as(self._structure, leaves)
        with GradientTape() as tape:
            tape.watch(fresh)
            results = nest.flatten(self._f(*args, **kwargs))
        pairs = [(convert(y), u) for y, u in zip(results, upstream) if y.dtype.is_differentiable]
        return tape.gradient([y for y, _ in pairs], [*fresh, *self._variables],
                             [u for _, u in pairs], unconnected_gradients="zero")

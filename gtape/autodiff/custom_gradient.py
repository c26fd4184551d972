"""custom_gradient: a function with a backward rule given by the user."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gtape.autodiff.backward import Grads, add_to
from gtape.core import nest
from gtape.core.context import Recorder, active, new_key, paused, recorders, tracer_now
from gtape.core.convert import convert
from gtape.core.device import ArrayType
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.installed import installed
from gtape.core.op import Op
from gtape.core.recording import PAYLOAD, record_general
from gtape.core.spec import Spec
from gtape.core.state_ref import Readable
from gtape.core.tensor import EagerTensor, Tensor, wrap
from gtape.core.variable import is_variable


class VariableWatcher(Recorder):
    """A recorder that only notes which trainable variables are read."""

    __slots__ = ("variables",)

    def __init__(self) -> None:
        self.variables: dict[int, Any] = {}

    def _on_read(self, state: Any, value: Tensor) -> None:
        if state.trainable:
            self.variables[state._k] = state


class CustomPayload(NamedTuple):
    """What a record of a custom gradient keeps: who pulls back, which inputs are wanted, their
    keys, and the spec and type of every result."""

    pull: Callable[[list[Tensor]], list[Any]]
    wanted: list[int]
    keys: tuple[int, ...]
    results: tuple[tuple[Spec, ArrayType], ...]


class CustomOp(Op):
    """One application of a user's function with its own backward."""

    nondifferentiable = False
    has_gradient = True
    holomorphic = False
    attr_names: tuple[str, ...] = ()

    def __init__(self, name: str, pull: Callable[[list[Tensor]], list[Any]]) -> None:
        super().__init__(name, ("args",), "A function with a custom gradient.", name)
        self._pull = pull

    def record(self, mask: int, inputs: tuple[Any, ...], outputs: tuple[Any, ...],
               attrs: tuple[Any, ...]) -> Any:
        if not any(o._t.differentiable for o in outputs):
            return None
        wanted = [i for i in range(len(inputs)) if mask >> i & 1]
        keys = tuple(inputs[i]._k for i in wanted)
        results = tuple((o.spec, o._t) for o in outputs)
        return _backward, keys[0] if len(keys) == 1 else keys, CustomPayload(
            self._pull, wanted, keys, results)


def _tensors(grads: Grads, g: Any, record: Any) -> None:
    kept = CustomPayload(*record[PAYLOAD:])
    upstream = g if type(g) is list else [g]
    filled = [_zeros(spec, t) if u is None else u for u, (spec, t) in zip(upstream, kept.results)]
    parts = kept.pull(filled)
    for i, key in zip(kept.wanted, kept.keys):
        if parts[i] is not None:
            add_to(grads, key, parts[i])


def _zeros(spec: Any, array_type: Any) -> EagerTensor:
    return EagerTensor(array_type.xp.zeros(spec.shape, spec.dtype.np_dtype), array_type)


def _arrays(grads: Grads, g: Any, record: Any) -> None:
    wrapped = [None if a is None else wrap(a) for a in g] if type(g) is list else wrap(g)
    made: Grads = {}
    _tensors(made, wrapped, record)
    for key, part in made.items():
        add_to(grads, key, part._a if isinstance(part, EagerTensor) else part)


_backward = _arrays
_backward.tensors = _tensors  # type: ignore[attr-defined]


def run_custom(name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor],
               pull: Callable[[list[Tensor]], list[Any]]) -> list[Tensor]:
    """New tensors with the values of `outputs`, whose backward is `pull`."""
    if tracer_now() is not None:
        from gtape.trace.custom_step import stepped

        return stepped(name, inputs, outputs, pull)
    fresh = fresh_copies(outputs)
    if active():
        record_general(CustomOp(name, pull), tuple(inputs), tuple(fresh), ())
    return fresh


def fresh_copies(tensors: Sequence[Tensor]) -> list[Tensor]:
    """New tensors with the same values, of which nothing is recorded."""
    with paused():
        return [installed.identity(t) for t in tensors]


def is_numeric(leaf: Any) -> bool:
    """Whether an argument can have a gradient: tensors, variables, numbers, arrays."""
    return (isinstance(leaf, (Tensor, int, float, complex)) and not isinstance(leaf, bool)) or (
        isinstance(leaf, Readable) or hasattr(leaf, "__array__"))


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, (Tensor, Readable))


def custom_gradient(f: Callable[..., Any] | None = None) -> Any:
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
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return _call(f, _in_order(f, args, kwargs), kwargs and _keywords(f, args, kwargs))

    return wrapper


def _check_function(name: str, f: Any) -> None:
    if not callable(f):
        raise TypeError(f"{name} takes a function; got {shown(f)}")


def _in_order(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """All arguments as positional ones, where the signature allows it."""
    if not kwargs:
        return args
    bound = inspect.signature(f).bind(*args, **kwargs)
    return bound.args


def _keywords(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return inspect.signature(f).bind(*args, **kwargs).kwargs


def _call(f: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
    name = getattr(f, "__name__", "custom")
    leaves = nest.flatten([list(args), list((kwargs or {}).values())])
    tensors = [convert(leaf) if _is_tensor(leaf) else None for leaf in leaves]
    watcher = VariableWatcher()
    token = recorders.set((*active(), watcher))
    try:
        made = f(*args, **(kwargs or {}))
    finally:
        recorders.reset(token)
    outputs, grad_fn = _checked(name, made)
    flat = [_output(name, leaf) for leaf in nest.flatten(outputs)]
    passed = {leaf._resource_()._k for leaf in leaves if is_variable(leaf)}
    variables = [v for k, v in watcher.variables.items() if k not in passed]
    if variables and not _takes_variables(grad_fn):
        raise TypeError(f"{name} reads the trainable variables "
                        f"{[v.name for v in variables]}, so its grad_fn must accept the keyword "
                        f"argument 'variables' and return (gradients, variable_gradients)")
    inputs = [t for t in tensors if t is not None] + [v._read_() for v in variables]
    fresh = run_custom(name, _keyed(inputs), flat, _Pull(name, grad_fn, leaves, tensors, variables))
    return nest.pack_sequence_as(outputs, fresh)


def _keyed(inputs: list[Tensor]) -> list[Tensor]:
    for tensor in inputs:
        if not tensor._k:
            tensor._k = new_key()
    return inputs


def _checked(name: str, made: Any) -> tuple[Any, Callable[..., Any]]:
    if not isinstance(made, (tuple, list)) or len(made) != 2:
        raise TypeError(f"{name}, decorated with custom_gradient, must return (outputs, grad_fn); "
                        f"got {type(made).__name__}")
    if not callable(made[1]):
        raise TypeError(f"{name}: grad_fn must be callable; got {shown(made[1])}")
    return made[0], made[1]


def _output(name: str, leaf: Any) -> Tensor:
    if leaf is None:
        raise ValueError(f"{name}: an output is None; every output must be a tensor or number")
    return convert(leaf)


def _takes_variables(grad_fn: Callable[..., Any]) -> bool:
    params = inspect.signature(grad_fn).parameters.values()
    return any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in params)


class _Pull:
    """Calls grad_fn and hands its results to the tensors among the arguments."""

    __slots__ = ("_grad_fn", "_leaf_kinds", "_name", "_specs", "_variables")

    def __init__(self, name: str, grad_fn: Callable[..., Any], leaves: list[Any],
                 tensors: list[Any], variables: list[Any]) -> None:
        self._name, self._grad_fn, self._variables = name, grad_fn, variables
        self._leaf_kinds = [is_numeric(leaf) for leaf in leaves]
        self._specs = [None if t is None else (t.spec, t._t) for t in tensors]

    def __call__(self, upstream: list[Tensor]) -> list[Any]:
        if self._variables:
            made = self._grad_fn(*upstream, variables=list(self._variables))
            if not isinstance(made, (tuple, list)) or len(made) != 2:
                raise ValueError(f"{self._name}: grad_fn must return (gradients, "
                                 f"variable_gradients) because variables are read")
            of_args, of_variables = made[0], list(made[1])
            if len(of_variables) != len(self._variables):
                raise ValueError(f"{self._name}: grad_fn must return one gradient for each of "
                                 f"the {len(self._variables)} variables; got {len(of_variables)}")
        else:
            of_args, of_variables = self._grad_fn(*upstream), []
        parts = self._matched([of_args] if _is_leaf(of_args) else nest.flatten(of_args))
        checked = [self._fit(i, p) for i, p in enumerate(parts) if self._specs[i] is not None]
        return checked + [None if p is None else convert(p) if not isinstance(p, IndexedSlices)
                          else p for p in of_variables]

    def _matched(self, flat: list[Any]) -> list[Any]:
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

    def _fit(self, position: int, part: Any) -> Any:
        if part is None or isinstance(part, IndexedSlices):
            return part
        found = self._specs[position]
        assert found is not None
        spec, array_type = found
        made = part if isinstance(part, Tensor) else convert(
            part, spec.dtype if not isinstance(part, Readable) else None, array_type.device)
        if made.spec.shape != spec.shape or made.dtype is not spec.dtype:
            raise InvalidArgumentError(f"{self._name}: gradient {position} must have the shape and "
                                       f"dtype of its argument, {spec}; got {made.spec}")
        return made


def _is_leaf(value: Any) -> bool:
    return not nest.is_nested(value)


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` forward, the identity backward (a straight-through estimator, arXiv:1308.3432).

    Raises:
        TypeError: `f` is no function.
        ValueError: the result differs in shape from the first argument.
    """
    _check_function("grad_pass_through", f)

    @custom_gradient
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        def grad(*upstream: Any, variables: Any = None) -> Any:
            parts = upstream if len(args) > 1 else upstream[0]
            return parts if variables is None else (parts, [None] * len(variables))

        result = f(*args, **kwargs)
        return nest.map_structure(convert, result), grad

    return functools.wraps(f)(wrapped) if hasattr(f, "__name__") else wrapped



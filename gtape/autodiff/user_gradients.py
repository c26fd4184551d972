"""Gradients registered by users for ops that have none: `tf.RegisterGradient`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gtape.autodiff.backward import add_to, on_arrays
from gtape.core.formatting import shown
from gtape.core.op import Op, declared
from gtape.core.recording import INPUT_KEYS, PAYLOAD

_registered: dict[str, Callable[..., Any]] = {}


def has_builtin_gradient(op_type: str) -> bool:
    return any(op.tf_name == op_type and op.has_gradient for op in declared())


class RegisterGradient:
    """Decorator: give the op type a gradient function `f(op, *grads) -> grads of the inputs`.

    `op` has `.type`, `.inputs`, `.outputs` and `.get_attr(name)`; there is one upstream gradient
    for each output, and one result (or None) for each input.

    Raises:
        TypeError: `op_type` is not a string.
        KeyError: the op type has a gradient already.
    """

    __slots__ = ("_op_type",)

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError(f"RegisterGradient needs the op's type as a string; got "
                            f"{shown(op_type)}")
        self._op_type = op_type

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if self._op_type in _registered or has_builtin_gradient(self._op_type):
            raise KeyError(f"the gradient of {self._op_type} is registered already; wrap the call "
                           f"in tf.custom_gradient to use another")
        _registered[self._op_type] = function
        return function


def no_gradient(op_type: str) -> None:
    """Declare that no gradient flows through an op type that has no gradient: it becomes None.

    Raises:
        TypeError: `op_type` is not a string.
        KeyError: the op type has a gradient already.
    """
    RegisterGradient(op_type)(lambda op, *grads: [None] * len(op.inputs))


class AppliedOp:
    """What a registered gradient function learns of the application it differentiates."""

    __slots__ = ("_attrs", "inputs", "outputs", "type")

    def __init__(self, op_type: str, inputs: list[Any], outputs: list[object],
                 attrs: dict[str, object]) -> None:
        self.type = op_type
        self.inputs = inputs
        self.outputs = outputs
        self._attrs = attrs

    def get_attr(self, name: str) -> Any:
        """The attribute `name`. Raises ValueError when the op has no such attribute."""
        if name not in self._attrs:
            raise ValueError(f"the op {self.type} has no attribute '{name}'; "
                             f"it has {sorted(self._attrs)}")
        return self._attrs[name]


def lookup(op: Op) -> Callable[..., Any] | None:
    """The registered gradient function of an op."""
    return _registered.get(op.tf_name)


def missing_gradient(op: Op) -> Callable[..., Any]:
    """The backward of an op without a gradient: a LookupError, when it is asked for."""
    def backward(grads: object, g: object, record: object) -> None:
        gradient = lookup(op)
        if gradient is not None:
            raise LookupError(f"the gradient of {op.tf_name} was registered after the op ran; "
                              f"register it first")
        raise LookupError(f"gradient registry has no entry for: {op.tf_name}")

    backward.tensors = backward  # type: ignore[attr-defined]
    return backward


def failing(error: LookupError) -> Callable[..., Any]:
    """A backward whose derivation met an op without a gradient: said when it is asked for."""
    def backward(grads: object, g: object, record: object) -> None:
        raise LookupError(*error.args)

    backward.tensors = backward  # type: ignore[attr-defined]
    return backward


def override(op: Op) -> Callable[..., Any] | None:
    """A backward that calls the registered gradient function of an elementwise op, if any."""
    function = lookup(op)
    # A gradient of gtape's own is not replaced, even by one that was registered before the op was
    # declared.
    if function is None or op.has_gradient:
        return None
    arity = len(op.params)

    def tensors(grads: object, g: object, record: Any) -> None:
        # Behind the shapes, which records of several operands have first: see `VjpProgram.entry`.
        start = PAYLOAD if arity == 1 else PAYLOAD + arity
        inputs = list(record[start: start + arity])
        applied = AppliedOp(op.tf_name, inputs, [record[start + arity]], {})
        parts = function(applied, g)
        scatter(grads, record[INPUT_KEYS], inputs,
                parts if isinstance(parts, (list, tuple)) else [parts])

    return on_arrays(tensors)


def scatter(grads: Any, keys: object, inputs: list[Any], parts: Any) -> None:
    """Hand the parts of a registered gradient to the inputs they belong to."""
    wanted = keys if type(keys) is tuple else (keys,)
    if len(parts) != len(inputs):
        raise ValueError(f"a registered gradient function must return one gradient for each of "
                         f"the {len(inputs)} inputs; got {len(parts)}")
    for tensor, part in zip(inputs, parts):
        key = getattr(tensor, "_k", 0)
        if part is not None and key in wanted:
            add_to(grads, key, part)

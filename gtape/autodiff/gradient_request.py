"""The arguments of `GradientTape.gradient`: checked before anything is changed."""

from __future__ import annotations

import builtins
import enum
import warnings
from contextvars import ContextVar, Token
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.context import stack_level, tracer_now
from gtape.core.convert import convert, host_array
from gtape.core.errors import InvalidArgumentError, NonFloatWarning
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.tensor import EagerTensor, Readable, Tensor
from gtape.core.variable import Variable, is_variable


class UnconnectedGradients(enum.Enum):
    """What `gradient` answers for a source that the target does not depend on."""

    NONE = "none"
    ZERO = "zero"


_NONE = UnconnectedGradients.NONE
# Of elements, and of shapes: 8 MiB of ones at most, and mostly a few hundred bytes.
_SMALL = 1024
_MODES = ("ignore", "warn", "raise")


class AttributeError(TypeError, builtins.AttributeError):
    """A number or array stands where a Tensor is needed.

    It is a TypeError, which says what is wrong, and the AttributeError that TensorFlow raises.
    """


on_none_now: ContextVar[str] = ContextVar("gtape.on_none", default="ignore")


def check_on_none(mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(f"on_none must be one of {_MODES}; got {shown(mode)}")


class explain_none:
    """`with tf.explain_none("warn"):` what `gradient` does inside with answers that are None.

    Args:
        mode: "warn", "raise" or "ignore"; an `on_none` given to `gradient` itself comes first.

    Raises:
        ValueError: another mode.
    """

    __slots__ = ("_mode", "_tokens")

    def __init__(self, mode: str = "warn") -> None:
        check_on_none(mode)
        self._mode = mode
        self._tokens: list[Token[str]] = []

    def __enter__(self) -> explain_none:
        self._tokens.append(on_none_now.set(self._mode))
        return self

    def __exit__(self, *exc: object) -> None:
        on_none_now.reset(self._tokens.pop())


def unconnected(value: Any) -> bool:
    """Whether unconnected answers are zeros.

    Raises:
        ValueError: `value` is neither an UnconnectedGradients nor 'none' or 'zero'.
    """
    name = value if isinstance(value, str) else getattr(value, "value", None)
    if name not in ("none", "zero"):
        raise ValueError(f"Unknown value for unconnected_gradients: {shown(value)}; "
                         f"use tf.UnconnectedGradients.NONE or .ZERO")
    return name == "zero"


def leaf_state(leaf: Any, role: str, position: int, count: int) -> Any:
    """The Tensor or variable state meant by a leaf of targets or sources.

    Raises:
        TypeError: the leaf is something else; the text names it and its position.
    """
    if isinstance(leaf, Variable):
        return leaf._resource_()
    if isinstance(leaf, Tensor):
        return leaf
    if is_variable(leaf):
        return leaf._resource_()
    if isinstance(leaf, CompositeTensor):
        return leaf._source_()
    where = f"`{role}`" if count == 1 else f"leaf {position} of `{role}`"
    if leaf is None:
        raise TypeError(f"{where} must be a Tensor or Variable but is None; did a function forget "
                        f"to return its result?")
    kind = type(leaf).__name__
    error = AttributeError if isinstance(leaf, (int, float, np.ndarray, np.generic)) else TypeError
    raise error(
        f"{where} must be a Tensor or Variable; got {kind}: {shown(leaf)}. A NumPy or Python value "
        f"is not on the tape: keep it a tensor (leave out .numpy() and float()) inside the block")


def _leaves(structure: Any, role: str, composites: list[Any] | None = None) -> list[Any]:
    """The tensors and states meant; `composites` gets the composites with their positions."""
    # One tensor, the usual target, is spared the walk through a nest.
    if type(structure) is EagerTensor:
        return [structure]
    flat = nest.flatten(structure)
    for i, leaf in enumerate(flat):
        if type(leaf) is not EagerTensor:
            flat[i] = leaf_state(leaf, role, i, len(flat))
            if composites is not None and isinstance(leaf, CompositeTensor):
                composites.append((i, leaf))
    return flat


_ones: dict[Any, Any] = {}


def ones(leaf: Any) -> Tensor | None:
    """The default cotangent: ones like the target; None for strings. Small ones are made once."""
    value = value_of(leaf)
    if type(value) is not EagerTensor or not value._t.fast:
        return value._filled_(1)
    return EagerTensor(ones_array(value), value._t)


def ones_array(value: EagerTensor) -> Any:
    """Ones like a tensor of host floats; nobody writes to them, so small ones are made once."""
    key = (value._t, value._a.shape)
    array = _ones.get(key)
    if array is None:
        # `[()]` makes a NumPy scalar of an array without axes, with which NumPy computes in half
        # the time.
        array = np.ones(value._a.shape, value.dtype.np_dtype)[()]
        if array.size <= _SMALL and len(_ones) < _SMALL:
            _ones[key] = array
    return array


def value_of(leaf: Any) -> Tensor:
    """The tensor of what `leaf_state` gives."""
    return leaf if isinstance(leaf, Tensor) else leaf._value


class GradientRequest:
    """Targets, sources and seeds of one call, as flat lists."""

    __slots__ = ("_composites", "_given", "_structure", "_zero", "sources", "targets")

    def __init__(self, targets: list[Any], sources: list[Any], structure: Any,
                 given: list[Any] | None, zero: bool, composites: list[Any]) -> None:
        self.targets = targets
        self.sources = sources
        self._structure = structure
        self._given = given
        self._zero = zero
        self._composites = composites

    @staticmethod
    def of(target: Any, sources: Any, output_gradients: Any, unconnected_gradients: Any,
           ) -> GradientRequest:
        """Check the arguments.

        Raises:
            TypeError: a target or source is not a Tensor or Variable.
            ValueError: an unknown `unconnected_gradients`, or cotangents that do not match.
        """
        zero = unconnected_gradients is not _NONE and unconnected(unconnected_gradients)
        targets = _leaves(target, "target")
        composites: list[Any] = []
        states = _leaves(sources, "sources", composites)
        given = None
        if output_gradients is not None:
            given = _cotangents(output_gradients, targets)
        return GradientRequest(targets, states, sources, given, zero, composites)

    @property
    def symbolic(self) -> bool:
        """Whether a target or a cotangent may be a value of a trace."""
        return tracer_now() is not None

    def seeds(self) -> list[Tensor | None]:
        if self._given is None:
            return [ones(leaf) for leaf in self.targets]
        given = self._given
        return [ones(leaf) if seed is None else seed for leaf, seed in zip(self.targets, given)]

    def warn_non_float(self) -> None:
        """Say that integers, bools and strings carry no gradient."""
        for leaf in (*self.targets, *self.sources):
            if not leaf._t.differentiable:
                self._warn_each()
                return

    def _warn_each(self) -> None:
        for role, leaves in (("target", self.targets), ("source", self.sources)):
            for leaf in leaves:
                if not leaf._t.differentiable:
                    warnings.warn(
                        f"The dtype of the {role} tensor must be floating (e.g. tf.float32) when "
                        f"calling GradientTape.gradient, got {leaf.dtype!r}", NonFloatWarning,
                        stacklevel=stack_level())
                    break

    def packed(self, answers: list[Any]) -> Any:
        """The answers in the structure of the sources, with zeros in place of None if asked."""
        if self._zero:
            answers = [value_of(source)._filled_(0) if answer is None else answer
                       for source, answer in zip(self.sources, answers)]
        for i, composite in self._composites:
            answers[i] = composite._gradient_(answers[i])
        if not nest.is_nested(self._structure):
            return answers[0]
        return nest.pack_sequence_as(self._structure, answers)


def _cotangents(given: Any, targets: list[Any]) -> list[Any] | None:
    flat = nest.flatten(given)
    if not flat:
        return None
    if len(flat) != len(targets):
        hint = ""
        if all(isinstance(item, (int, float)) for item in flat):
            hint = (" A list of numbers is a list of scalars: for one vector write "
                    "tf.constant([...]).")
        raise ValueError(f"output_gradients must have one entry for each target; got {len(flat)} "
                         f"for {len(targets)} target(s).{hint}")
    return [_cotangent(item, target, i) for i, (item, target) in enumerate(zip(flat, targets))]


def _cotangent(item: Any, target: Any, position: int) -> Tensor | None:
    if item is None:
        return None
    shape = value_of(target).spec.shape
    if isinstance(item, IndexedSlices):
        item = item.to_dense()
    # Arrays and numbers take the dtype of the target; tensors must have it, as they are never cast.
    if not isinstance(item, (Tensor, Readable)):
        host = host_array(item, None)
        if host.dtype.kind in "fiu" and target.dtype.is_differentiable:
            item = convert(host, target.dtype, target._t.device)
    seed = convert(item)
    if seed.dtype is not target.dtype or seed.spec.shape != shape:
        raise ValueError(
            f"output_gradients[{position}] must have the shape and dtype of its target, "
            f"{target.dtype.name}{list(shape)}; got {seed.spec}. Use tf.cast, or "
            f"tf.broadcast_to(value, target.shape)")
    if seed._t.device is not target._t.device:
        raise InvalidArgumentError(
            f"output_gradients[{position}] must live on the device of its target, "
            f"{target.device}; got one on {seed.device}. Move it with x.gpu() or x.cpu()")
    return seed

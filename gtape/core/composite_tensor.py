"""CompositeTensor: a value made of several tensors, and how functions of tensors take one.

A function that is given a composite where it takes a tensor finds out when it converts the operand:
`convert` raises `CompositeOperand`. Only then is somebody asked who knows the composite, so that
dense tensors pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

from gtape.core.formatting import shown

if TYPE_CHECKING:
    from gtape.core.annotations import TensorLike
    from gtape.core.op import Op


class CompositeTensor:
    """A value made of tensors: an IndexedSlices, a SparseTensor, a RaggedTensor."""

    __slots__ = ()
    # NumPy's operators step back for it, as for tensors.
    __array_ufunc__ = None
    __array_priority__ = 200

    #: Whether one trace of a function serves values of any number.
    _opens_ = False
    #: What stands for a function of tensors, by its name, where an operand is of this class.
    _functions_: ClassVar[Mapping[str, Callable[..., Any]]] = {}

    def _parts_(self) -> tuple[Any, ...]:
        """The tensors that it is made of."""
        raise NotImplementedError

    def _frame_(self) -> Any:
        """All of it that is no tensor; can be hashed."""
        raise NotImplementedError

    @classmethod
    def _of_(cls, frame: Any, parts: Sequence[object]) -> Any:
        """The value with this frame, made of these tensors."""
        raise NotImplementedError

    def _mapped_(self, function: Callable[[Any], Any]) -> Any:
        """The same value made of `function` of each of its tensors, which has the same numbers."""
        return self._of_(self._frame_(), [function(part) for part in self._parts_()])

    def _source_(self) -> Any:
        """The tensor that stands for it among the targets and sources of gradients."""
        raise ValueError(f"a {type(self).__name__} is no target or source of a gradient; give its "
                         f"values: tape.gradient(y, x.values)")

    def _gradient_(self, gradient: object) -> Any:
        """The gradient with respect to it, of that with respect to `_source_`."""
        return gradient

    def _rows_(self) -> list[Any]:
        """What it has along its first axis, one by one, for loops over elements."""
        raise ValueError(f"a loop over elements takes tensors, SparseTensors and RaggedTensors; "
                         f"got a {type(self).__name__}")

    def _elementwise_(self, op: object, args: Sequence[object]) -> Any:
        """An elementwise op of which one operand is this; NotImplemented where there is none."""
        return NotImplemented

    @property
    def _type_spec(self) -> Any:
        raise NotImplementedError


class CompositeOperand(ValueError):
    """A composite came where a tensor is needed."""

    def __init__(self, value: CompositeTensor) -> None:
        super().__init__(
            f"a {type(value).__name__} is not one tensor and does not become one in silence; got "
            f"{shown(value)}. Write tf.sparse.to_dense(x) or x.to_tensor(), or use a function of "
            f"tf.sparse or tf.ragged")
        self.value = value


def components(value: TensorLike | CompositeTensor) -> list[Any]:
    """The tensors of a composite, composites in it taken apart too; [value] of anything else."""
    if not isinstance(value, CompositeTensor):
        return [value]
    return [leaf for part in value._type_spec._to_components(value) for leaf in components(part)]


def answered(refusal: CompositeOperand, function: Callable[..., object], args: Sequence[object],
             kwargs: Mapping[str, object]) -> Any:
    """The result of `function` by what stands for it where an operand is composite.

    Raises:
        CompositeOperand: nothing does.
    """
    other = refusal.value._functions_.get(function.__name__)
    if other is None:
        raise refusal
    return other(*args, **kwargs)


def takes_composites(function: Callable[..., object]) -> Callable[..., Any]:
    """Decorator for a function of tensors which composites can stand for."""
    @wraps(function)
    def run(*args: object, **kwargs: object) -> Any:
        try:
            return function(*args, **kwargs)
        except CompositeOperand as refusal:
            return answered(refusal, function, args, kwargs)

    return run


def elementwise(refusal: CompositeOperand, op: Op, args: Sequence[object]) -> Any:
    """An elementwise op of which an operand is composite.

    Raises:
        CompositeOperand: it has no meaning for such an operand.
    """
    result = refusal.value._elementwise_(op, args)
    if result is NotImplemented:
        raise refusal
    return result

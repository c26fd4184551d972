"""TensorSpec: a description of tensors, for signatures and checks."""

from __future__ import annotations

from typing import Any

from gtape.core.dtypes import DType, as_dtype, float32
from gtape.core.shape import TensorShape
from gtape.core.text import shown


class TensorSpec:
    """Shape, dtype and name of a tensor; `None` lengths stand for any length.

    Args:
        shape: what `TensorShape` takes; None for any rank.
        dtype: the element type.
        name: for messages.

    Raises:
        TypeError: no shape, or no dtype.
        ValueError: a negative length.
    """

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(self, shape: Any, dtype: Any = float32, name: str | None = None) -> None:
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)
        self._name = name

    @property
    def shape(self) -> TensorShape:
        return self._shape

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def name(self) -> str | None:
        return self._name

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """A spec like `spec`, under another name when `name` is given."""
        return cls(spec.shape, spec.dtype, name or getattr(spec, "name", None))

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The spec of a tensor or Variable.

        Raises:
            ValueError: `tensor` is neither.
        """
        if not (hasattr(tensor, "shape") and isinstance(getattr(tensor, "dtype", None), DType)):
            raise ValueError(f"TensorSpec.from_tensor takes a Tensor or Variable; got "
                             f"{type(tensor).__name__}: {shown(tensor)}. "
                             f"Write tf.convert_to_tensor(value) first")
        return cls(tensor.shape, tensor.dtype, name)

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a tensor, or one that fits the other spec, can fit this spec."""
        dtype = getattr(spec_or_tensor, "dtype", None)
        if dtype is None:
            from gtape.core.convert import convert

            spec_or_tensor = convert(spec_or_tensor)
            dtype = spec_or_tensor.dtype
        return self._dtype == dtype and self._shape.is_compatible_with(
            TensorShape(spec_or_tensor.shape))

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every tensor that fits this spec fits `other` too."""
        if not isinstance(other, TensorSpec) or other._dtype is not self._dtype:
            return False
        mine, theirs = self._shape.dims, other._shape.dims
        if theirs is None:
            return True
        return mine is not None and len(mine) == len(theirs) and all(
            b is None or a == b for a, b in zip(mine, theirs))

    def most_specific_common_supertype(self, others: Any) -> TensorSpec | None:
        """The narrowest spec that all of these fit; None when the dtypes differ."""
        shape = self._shape
        for other in others:
            if not isinstance(other, TensorSpec) or other._dtype is not self._dtype:
                return None
            shape = _joined(shape, other._shape)
        return TensorSpec(shape, self._dtype, self._name)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, TensorSpec) and self._shape == other._shape
                and self._dtype is other._dtype and self._name == other._name)

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"

    def __reduce__(self) -> Any:
        return TensorSpec, (self._shape, self._dtype, self._name)


def _joined(a: TensorShape, b: TensorShape) -> TensorShape:
    """The narrowest shape that both fit."""
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return TensorShape(None)
    return TensorShape([m if m == n else None for m, n in zip(a.dims, b.dims)])


class NoneTensorSpec:
    """The spec of None."""

    __slots__ = ()

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether the other is None too, or its spec."""
        return spec_or_value is None or isinstance(spec_or_value, NoneTensorSpec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoneTensorSpec)

    def __hash__(self) -> int:
        return hash(NoneTensorSpec)

    def __repr__(self) -> str:
        return "NoneTensorSpec()"


def type_spec_from_value(value: Any) -> TensorSpec | NoneTensorSpec:
    """The spec of a Tensor, a Variable, None, or a value that `tf.convert_to_tensor` takes.

    Raises:
        TypeError: no tensor can be made of it.
    """
    from gtape.core.convert import convert

    if value is None:
        return NoneTensorSpec()
    if isinstance(getattr(value, "dtype", None), DType):
        return TensorSpec(value.shape, value.dtype)
    try:
        made = convert(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{shown(value)} of type {type(value).__name__} has no TensorSpec: "
                        f"{error}") from None
    return TensorSpec(made.shape, made.dtype)

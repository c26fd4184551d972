"""TypeSpecs: descriptions of tensors, and of values made of tensors, for signatures and checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype, float32
from gtape.core.formatting import shown
from gtape.core.spec import TensorShape
from gtape.core.tensor import Tensor

if TYPE_CHECKING:
    from gtape.core.annotations import IntsLike, TensorLike


class TypeSpec:
    """What is known of a value before there is one: shapes, dtypes, and whatever is no tensor.

    Two specs are equal where their classes and all that they say are. A subclass gives what it
    says by `_serialize`, and of what tensors its values are made by `_component_specs`,
    `_to_components` and `_from_components`.
    """

    __slots__ = ()

    @property
    def value_type(self) -> type:
        """The class of the values described."""
        raise NotImplementedError

    def _serialize(self) -> tuple[object, ...]:
        """What it says."""
        raise NotImplementedError

    @property
    def _component_specs(self) -> list[TypeSpec]:
        """The specs of the tensors that a value is made of."""
        raise NotImplementedError

    def _to_components(self, value: object) -> list[object]:
        """The tensors that a value is made of."""
        raise NotImplementedError

    def _from_components(self, components: Sequence[object]) -> Any:
        """The value made of these tensors."""
        raise NotImplementedError

    def _of(self, said: Sequence[object]) -> Any:
        """A spec of this class that says this."""
        return type(self)(*said)

    def is_compatible_with(self, spec_or_value: object) -> bool:
        """Whether a value, or one that fits the other spec, can fit this spec."""
        other = spec_or_value
        if not isinstance(other, TypeSpec):
            try:
                other = type_spec_from_value(other)
            except TypeError:
                return False
        return type(other) is type(self) and all(
            a.is_compatible_with(b) if isinstance(a, (TensorShape, TypeSpec)) else a == b
            for a, b in zip(self._serialize(), other._serialize()))

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every value that fits this spec fits `other` too."""
        return type(other) is type(self) and all(
            _narrower(a, b) for a, b in zip(self._serialize(), other._serialize()))

    def most_specific_common_supertype(self, others: Sequence[ShapedSpec]) -> Any:
        """The narrowest spec that all of these fit; None where there is none."""
        said = self._serialize()
        for other in _listed(others):
            if type(other) is not type(self):
                return None
            joined = [_joined(a, b) for a, b in zip(said, other._serialize())]
            if any(part is NotImplemented for part in joined):
                return None
            said = tuple(joined)
        return self._of(said)

    def most_specific_compatible_type(self, other: Any) -> Any:
        """The narrowest spec that both fit.

        Raises:
            ValueError: there is none.
        """
        supertype = self.most_specific_common_supertype([other])
        if supertype is None:
            raise ValueError(f"no TypeSpec is compatible with both {self!r} and {shown(other)}")
        return supertype

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._serialize() == other._serialize()

    def __hash__(self) -> int:
        return hash((type(self), self._serialize()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._serialize()))})"

    def __reduce__(self) -> Any:
        return type(self), self._serialize()


def _listed(others: TensorLike) -> Sequence[object]:
    if not isinstance(others, Sequence) or isinstance(others, (str, bytes)):
        raise TypeError(f"most_specific_common_supertype takes a list of specs; got "
                        f"{shown(others)}. Write [spec]")
    return others


def _narrower(a: object, b: object) -> bool:
    if isinstance(a, TypeSpec):
        return a.is_subtype_of(b)
    if not isinstance(a, TensorShape) or not isinstance(b, TensorShape):
        return bool(a == b)
    mine, theirs = a.dims, b.dims
    return theirs is None or (mine is not None and len(mine) == len(theirs) and all(
        n is None or m == n for m, n in zip(mine, theirs)))


def _joined(a: Any, b: Any) -> Any:
    """What covers both; NotImplemented where nothing does."""
    if isinstance(a, TypeSpec):
        supertype = a.most_specific_common_supertype([b])
        return NotImplemented if supertype is None else supertype
    if not isinstance(a, TensorShape) or not isinstance(b, TensorShape):
        return a if a == b else NotImplemented
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return TensorShape(None)
    return TensorShape([m if m == n else None for m, n in zip(a.dims, b.dims)])


class ShapedSpec(TypeSpec):
    """The spec of values that have one shape and one dtype."""

    __slots__ = ("_dtype", "_shape")
    _dtype: DType
    _shape: TensorShape

    @property
    def shape(self) -> TensorShape:
        return self._shape

    @property
    def dtype(self) -> DType:
        return self._dtype


class TensorSpec(ShapedSpec):
    """Shape, dtype and name of a tensor; `None` lengths stand for any length.

    Args:
        shape: what `TensorShape` takes; None for any rank.
        dtype: the element type.
        name: for messages.

    Raises:
        TypeError: no shape, or no dtype.
        ValueError: a negative length.
    """

    __slots__ = ("_name",)

    def __init__(self, shape: IntsLike | None, dtype: Any = float32, name: str | None = None,
                 ) -> None:
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)
        self._name = name

    @property
    def name(self) -> str | None:
        return self._name

    @classmethod
    def from_spec(cls, spec: TensorSpec, name: str | None = None) -> TensorSpec:
        """A spec like `spec`, under another name when `name` is given.

        Raises:
            TypeError: it has no shape and dtype.
        """
        if not (hasattr(spec, "shape") and hasattr(spec, "dtype")):
            raise TypeError(f"TensorSpec.from_spec takes a spec with a shape and a dtype; got "
                            f"{shown(spec)}")
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

    @property
    def value_type(self) -> type:
        return Tensor

    def _serialize(self) -> tuple[object, ...]:
        return self._shape, self._dtype, self._name

    @property
    def _component_specs(self) -> list[TypeSpec]:
        return [self]

    def _to_components(self, value: object) -> list[object]:
        return [value]

    def _from_components(self, components: Sequence[object]) -> Any:
        return components[0]

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a tensor, or one that fits the other spec, can fit this spec."""
        if isinstance(spec_or_tensor, (CompositeTensor, CompositeSpec, NoneTensorSpec)):
            return False
        dtype = getattr(spec_or_tensor, "dtype", None)
        if dtype is None:
            spec_or_tensor = convert(spec_or_tensor)
            dtype = spec_or_tensor.dtype
        return self._dtype == dtype and self._shape.is_compatible_with(
            TensorShape(spec_or_tensor.shape))

    def most_specific_common_supertype(self, others: Sequence[object]) -> TensorSpec | None:
        """The narrowest spec that all of these fit; None when the dtypes differ."""
        shape = self._shape
        for other in _listed(others):
            if not isinstance(other, TensorSpec) or other._dtype is not self._dtype:
                return None
            shape = _joined(shape, other._shape)
        return TensorSpec(shape, self._dtype, self._name)

    def is_subtype_of(self, other: TensorSpec) -> bool:
        """Whether every tensor that fits this spec fits `other` too."""
        return (isinstance(other, TensorSpec) and other._dtype is self._dtype
                and _narrower(self._shape, other._shape))

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, TensorSpec) and self._shape == other._shape
                and self._dtype is other._dtype and self._name == other._name)

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"

    def __reduce__(self) -> Any:
        return TensorSpec, (self._shape, self._dtype, self._name)


class NoneTensorSpec(TypeSpec):
    """The spec of None."""

    __slots__ = ()

    @property
    def value_type(self) -> type:
        return type(None)

    def _serialize(self) -> tuple[object, ...]:
        return ()

    @property
    def _component_specs(self) -> list[TypeSpec]:
        return []

    def _to_components(self, value: object) -> list[object]:
        return []

    def _from_components(self, components: Sequence[object]) -> None:
        return None


class CompositeSpec(TypeSpec):
    """The spec of values made of several tensors, as traced functions take them."""

    __slots__ = ()

    def _part_specs_(self) -> list[TensorSpec]:
        """The specs of the tensors that change from call to call."""
        raise NotImplementedError

    def _part_names_(self) -> tuple[str, ...]:
        """What users call these tensors."""
        raise NotImplementedError

    def _frame_(self) -> Any:
        """What `CompositeTensor._frame_` is of a value.

        Raises:
            ValueError: the spec leaves it open.
        """
        raise NotImplementedError


def fully_known(spec: TypeSpec, shape: TensorShape) -> tuple[int, ...]:
    """The lengths of a shape.

    Raises:
        ValueError: one is left open.
    """
    if not shape.is_fully_defined():
        raise ValueError(f"a traced function needs the whole shape here; got {spec!r}. Give every "
                         f"length, or call the function with values")
    return tuple(shape.as_list())  # type: ignore[arg-type]


def type_spec_from_value(value: Any) -> TypeSpec:
    """The spec of a Tensor, a Variable, a composite, None, or a value that
    `tf.convert_to_tensor` takes.

    Raises:
        TypeError: no tensor can be made of it.
    """
    if value is None:
        return NoneTensorSpec()
    spec = getattr(value, "_type_spec", None)
    if isinstance(spec, TypeSpec):
        return spec
    if isinstance(getattr(value, "dtype", None), DType):
        return TensorSpec(value.shape, value.dtype)
    try:
        converted = convert(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{shown(value)} of type {type(value).__name__} has no TypeSpec: "
                        f"{error}") from None
    return TensorSpec(converted.shape, converted.dtype)

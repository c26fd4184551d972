"""TensorShape: the lengths of a tensor's axes, some or all possibly unknown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from gtape.core.formatting import shown

if TYPE_CHECKING:
    from gtape.core.annotations import TensorLike

Dims = tuple[int, ...]


def _lengths(dims: Sequence[int | None]) -> tuple[int | None, ...]:
    """The lengths in a sequence.

    Raises:
        TypeError: there is something else in it than integers and None, or it is no sequence.
        ValueError: a negative length.
    """
    try:
        if isinstance(dims, (str, bytes)):
            raise TypeError
        lengths = tuple([None if d is None else index(d) for d in dims])
    except TypeError:
        raise TypeError(f"a shape must be None, an integer or a sequence of integers and None; got "
                        f"{shown(dims)}") from None
    for d in lengths:
        if d is not None and d < 0:
            raise ValueError(f"a shape must not hold negative lengths; got {shown(dims)}. Write "
                             f"None for a length that is not known")
    return lengths


class TensorShape:
    """An immutable list of axis lengths; `None` stands for an unknown length or rank.

    Raises:
        TypeError: lengths that are no integers.
        ValueError: negative lengths.
    """

    __slots__ = ("_dims",)

    _dims: tuple[int | None, ...] | None

    def __init__(self, dims: Any) -> None:
        if isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif dims is None:
            self._dims = None
        else:
            self._dims = _lengths((dims,) if isinstance(dims, int) else dims)

    @classmethod
    def of_array(cls, dims: tuple[int, ...]) -> TensorShape:
        """The shape of an array, whose lengths need no check."""
        # Asked for at every `x.shape`: the lengths of an array need none of `__init__`'s checks.
        shape = object.__new__(cls)
        shape._dims = dims
        return shape

    @property
    def dims(self) -> tuple[int | None, ...] | None:
        return self._dims

    @property
    def rank(self) -> int | None:
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        return self.rank

    def _known(self) -> tuple[int | None, ...]:
        if self._dims is None:
            raise ValueError("the rank of this TensorShape is unknown")
        return self._dims

    def as_list(self) -> list[int | None]:
        """The lengths as a list.

        Raises:
            ValueError: the rank is unknown.
        """
        return list(self._known())

    def num_elements(self) -> int | None:
        """The product of the lengths, or None when it is not known."""
        if not self.is_fully_defined():
            return None
        return math.prod(self._known())  # type: ignore[arg-type]

    def is_fully_defined(self) -> bool:
        return self._dims is not None and None not in self._dims

    def is_compatible_with(self, other: object) -> bool:
        """Whether one shape can be both."""
        other = TensorShape(other)
        if self._dims is None or other._dims is None:
            return True
        return len(self._dims) == len(other._dims) and all(
            a is None or b is None or a == b for a, b in zip(self._dims, other._dims))

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """This shape.

        Raises:
            ValueError: it is known to have fewer than `rank` axes.
        """
        try:
            least = index(rank)
        except TypeError:
            raise TypeError(f"with_rank_at_least: a rank must be an integer; got "
                            f"{shown(rank)}") from None
        if self.rank is not None and self.rank < least:
            raise ValueError(f"shape {self} must have at least {rank} axes; it has {self.rank}")
        return self

    def assert_is_compatible_with(self, other: TensorLike) -> None:
        """Raises ValueError when `is_compatible_with` is false."""
        if not self.is_compatible_with(other):
            raise ValueError(f"shapes {self} and {TensorShape(other)} are not compatible")

    def concatenate(self, other: TensorLike) -> TensorShape:
        return self + other

    def __len__(self) -> int:
        return len(self._known())

    def __iter__(self) -> Iterator[int | None]:
        return iter(self._known())

    def __getitem__(self, index: int | slice) -> Any:
        lengths = self._known()
        try:
            part = lengths[index]
        except (IndexError, TypeError, ValueError):
            kind = IndexError if hasattr(index, "__index__") else TypeError
            raise kind(f"an index of the shape {self} must be an integer in [{-len(lengths)}, "
                       f"{len(lengths)}), or a slice; got {shown(index)}") from None
        return TensorShape(part) if isinstance(index, slice) else part

    def __add__(self, other: TensorLike) -> TensorShape:
        other = TensorShape(other)
        if self._dims is None or other._dims is None:
            return TensorShape(None)
        return TensorShape(self._dims + other._dims)

    def __radd__(self, other: TensorLike) -> TensorShape:
        return TensorShape(other) + self

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == TensorShape(other)._dims
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> int:
        return hash(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __str__(self) -> str:
        return "<unknown>" if self._dims is None else str(self._dims)

    def __repr__(self) -> str:
        inner = None if self._dims is None else list(self._dims)
        return f"TensorShape({inner})"

    def __reduce__(self) -> Any:
        return TensorShape, (self._dims,)

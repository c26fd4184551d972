"""Shape and dtype, all that is known of a value before it is computed, and how large it may be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError, ResourceExhaustedError
from gtape.core.formatting import shown
from gtape.core.symbolic_dim import is_open

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


class Spec(NamedTuple):
    """Shape and dtype of a value."""

    shape: Dims
    dtype: DType

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"

    def reshaped(self, shape: Dims) -> Spec:
        return Spec(tuple(shape), self.dtype)


def broadcast_shapes(name: str, *specs: Spec) -> Dims:
    """The common shape of `specs` by NumPy's rule: axes are aligned at the end; length 1 stretches.

    Raises:
        InvalidArgumentError: two lengths differ and neither is 1.
    """
    rank = max(len(s.shape) for s in specs)
    padded = [(1,) * (rank - len(s.shape)) + s.shape for s in specs]
    result = []
    for lengths in zip(*padded):
        real = [n for n in lengths if n != 1]
        if any(n != real[0] for n in real[1:]):
            raise InvalidArgumentError(
                f"{name}: the shapes must be equal or broadcast (axes aligned at the end, a "
                f"length of 1 stretches); got {', '.join(str(s) for s in specs)}. Use tf.reshape, "
                f"tf.expand_dims or tf.broadcast_to to align them")
        result.append(real[0] if real else 1)
    return tuple(result)


def normal_axes(name: str, axis: int | tuple[int, ...] | list[int] | None, ndim: int,
                ) -> tuple[int, ...]:
    """`axis` as a sorted tuple of distinct non-negative axes; None means all.

    Raises:
        InvalidArgumentError: an axis is outside [-ndim, ndim), or named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for a in axes:
        if not -ndim <= a < ndim:
            raise InvalidArgumentError(
                f"{name}: an axis must lie in [{-ndim}, {ndim}) for a tensor of rank {ndim}; "
                f"got {a}")
    normal = tuple(sorted({a % ndim for a in axes}))
    if len(normal) != len(axes):
        raise InvalidArgumentError(f"{name}: the axes must be distinct; got {axes}")
    return normal


def reduced(shape: Dims, axes: tuple[int, ...], keepdims: bool) -> Dims:
    """`shape` after a reduction over `axes` (non-negative)."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes)


#: The addresses of a process end here, so no array is larger.
_ADDRESSES = 2 ** 47
#: While a function is traced, results of more elements than this that do not depend on its
#: arguments are left to its calls. Smaller ones are computed once, while tracing, which makes
#: every call faster.
_FOLDED = 2 ** 22


def check_size(name: str, spec: Spec) -> None:
    """Refuse what no array can be. Open lengths are not looked at.

    Raises:
        InvalidArgumentError: a negative length, or 2**63 elements or more.
        ResourceExhaustedError: more bytes than a process can have.
    """
    shape = spec.shape
    if is_open(shape):
        return
    if any(n < 0 for n in shape):
        raise InvalidArgumentError(f"{name}: a shape must not hold negative lengths; got "
                                   f"{list(shape)}")
    count = math.prod(shape)
    if count >= 2 ** 63 or any(n >= 2 ** 63 for n in shape):
        raise InvalidArgumentError(f"{name}: a tensor must have fewer than 2**63 elements; got "
                                   f"the shape {list(shape)}")
    if count * spec.dtype.size > _ADDRESSES:
        raise exhausted(name, [spec])


def exhausted(name: str, specs: Iterable[Spec],
              cause: BaseException | None = None) -> ResourceExhaustedError:
    """The error where there is no memory to compute these results; what a device says of that, and
    of what a tape holds, is kept."""
    said = f"\n{cause}" if isinstance(cause, ResourceExhaustedError) else ""
    return ResourceExhaustedError(
        f"{name}: there is not enough memory to compute {', '.join(map(str, specs))}; use smaller "
        f"tensors, a dtype of fewer bytes, or do it in several steps{said}")


class room_for:
    """Inside the block the host computes a result of this spec by NumPy; both ways of being too
    large are errors in words.

    Raises:
        InvalidArgumentError, ResourceExhaustedError: as `check_size`, or there is no memory.
    """

    __slots__ = ("_name", "_spec")

    def __init__(self, name: str, spec: Spec) -> None:
        check_size(name, spec)
        self._name = name
        self._spec = spec

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, MemoryError):
            raise exhausted(self._name, [self._spec], error) from error


def outgrows(specs: Sequence[Spec], inputs: Sequence[Spec] = ()) -> bool:
    """Whether results are large, and larger than the inputs that they are computed from."""
    if any(is_open(s.shape) for s in (*specs, *inputs)):
        return False
    size = sum(math.prod(s.shape) for s in specs)
    return size > _FOLDED and size > sum(math.prod(s.shape) for s in inputs)

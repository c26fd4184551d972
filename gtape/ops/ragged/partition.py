"""Row partitions: which of a sequence of values belong to which row, written down in one of the
ways that are equivalent: splits, lengths, starts, limits, row numbers, a uniform length; and what
`tf.shape` gives of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import DType, as_dtype, int32, int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec, room_for
from gtape.core.tensor import EagerTensor, Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, host
from gtape.ops.reductions.cumulative import cumsum
from gtape.ops.shape.packing import concat_

if TYPE_CHECKING:
    from gtape.ops.ragged.ragged_tensor import RaggedTensor


@primitive(nondifferentiable=True, tf_name="SearchSorted")
def row_ids_(xp: ArrayModule, splits: Array, *, count: int) -> Array:
    """The row of each of `count` values."""
    # side="right": of empty rows, which begin where the next one does, none owns the value.
    return (xp.searchsorted(splits, xp.arange(count), side="right") - 1).astype(splits.dtype)


row_ids_.infer(lambda splits, *, count: Spec((count,), splits.dtype))
row_ids_.cases = [case(np.array([0, 2, 2, 5]), count=5)]


def spans(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers starts[i], starts[i] + 1, …, `lengths[i]` of them, of every i."""
    # One arange over all, moved in each stretch by where the stretch begins.
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def within(lengths: np.ndarray) -> np.ndarray:
    """The numbers 0, 1, … of the values of every row: `spans` that all start with 0."""
    return spans(np.zeros(len(lengths), np.int64), lengths)


def ends_of(lengths: np.ndarray) -> np.ndarray:
    """The row splits of rows of these lengths."""
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends


def integers(value: TensorLike, what: str, dtype: DType | None = None, like: Tensor | None = None,
             ) -> Tensor:
    """A vector of int32 or int64; int64 unless it is a tensor or an array of int32."""
    # A list has no dtype of its own and becomes int64, as in TensorFlow; np.int32 arrays and
    # tensors stay int32.
    known = getattr(value, "dtype", None)
    wanted = dtype or (int64 if known is None else None)
    device = None if like is None else like._t.device
    try:
        vector = value if isinstance(value, Tensor) else convert(value, wanted, device)
    except TypeError as error:
        raise ValueError(f"{what} must be a vector of int32 or int64: {error}") from None
    if vector.dtype not in (int32, int64) or vector.ndim != 1:
        raise ValueError(f"{what} must be a vector of int32 or int64; got {vector.spec}")
    return vector


def splits_dtype(dtype: object) -> DType:
    """The dtype of row splits."""
    wanted = as_dtype(dtype)
    if wanted not in (int32, int64):
        raise ValueError(f"row splits must be tf.int32 or tf.int64; got {wanted!r}")
    return wanted


def _wrong(what: str, how: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{what} do not form rows: {how}")


def check_splits(splits: Tensor, count: int | None) -> None:
    """Check that row splits begin with 0, do not decrease, and end with `count`."""
    if splits.spec.shape == (0,):
        raise ValueError("row_splits must not be empty; for no rows write [0]")
    # In a trace the numbers are known at a call only: what is wrong with them shows where they are
    # used.
    if type(splits) is not EagerTensor:
        return
    ends = host(splits)
    if ends[0] != 0:
        raise _wrong("row_splits", f"the first must be 0; got {shown(ends.tolist())}")
    if (ends[1:] < ends[:-1]).any():
        raise _wrong("row_splits", f"they must not decrease; got {shown(ends.tolist())}")
    if count is not None and ends[-1] != count:
        raise _wrong("row_splits", f"the last must be the number of values, {count}; got "
                                   f"{shown(ends.tolist())}")


def of_lengths(lengths: TensorLike, count: int | None = None, validate: bool = True) -> Tensor:
    """Row splits of row lengths."""
    vector = integers(lengths, "row_lengths")
    if validate and type(vector) is EagerTensor and vector.spec.shape[0]:
        array = host(vector)
        if array.min() < 0 or (count is not None and array.sum() != count):
            raise _wrong("row_lengths", f"they must be 0 or more and add up to the number of "
                                        f"values, {count}; got {shown(array.tolist())}")
    # By ops and not in NumPy, so that lengths that are computed in a trace or on a GPU stay there.
    return of_row_limits(cumsum(vector))


def of_value_rowids(value_rowids: TensorLike, nrows: TensorLike | None = None,
                    count: int | None = None, validate: bool = True) -> Tensor:
    """Row splits of the row number of every value."""
    ids = integers(value_rowids, "value_rowids")
    if count is not None and ids.spec.shape != (count,):
        raise ValueError(f"value_rowids must have one row for each value, {count}; got "
                         f"{list(ids.spec.shape)}")
    numbers = host(ids)
    least = int(numbers[-1]) + 1 if numbers.size else 0
    rows = least if nrows is None else as_int(nrows, "nrows")
    if validate and numbers.size and (numbers[0] < 0 or (numbers[1:] < numbers[:-1]).any()):
        raise _wrong("value_rowids", f"they must be 0 or more and must not decrease; got "
                                     f"{shown(numbers.tolist())}")
    if rows < least:
        raise ValueError(f"nrows must be more than the last of value_rowids, {least - 1}; got "
                         f"{rows}")
    # One value with the row 10**15 asks for as many splits: an error that says so comes before the
    # memory is gone.
    with room_for("value_rowids", Spec((rows + 1,), ids.dtype)):
        ends = ends_of(np.bincount(numbers, minlength=rows)) if rows else np.zeros(1, np.int64)
    return convert(ends.astype(ids.dtype.np_dtype), None, ids._t.device)


def of_row_starts(row_starts: TensorLike, count: int) -> Tensor:
    """Row splits of where rows start."""
    starts = integers(row_starts, "row_starts")
    last = convert(np.full(1, count, starts.dtype.np_dtype), None, starts._t.device)
    return concat_(starts, last, axis=0)


def of_row_limits(row_limits: TensorLike) -> Tensor:
    """Row splits of where rows end."""
    limits = integers(row_limits, "row_limits")
    first = convert(np.zeros(1, limits.dtype.np_dtype), None, limits._t.device)
    return concat_(first, limits, axis=0)


def of_uniform_length(length: int, nrows: int | None, count: int) -> tuple[Tensor, int]:
    """Row splits of rows of one length, and the length."""
    size = as_int(length, "uniform_row_length")
    if size < 0:
        raise ValueError(f"uniform_row_length must be 0 or more; got {size}")
    rows = (count // size if size else 0) if nrows is None else as_int(nrows, "nrows")
    if rows * size != count:
        raise ValueError(f"uniform_row_length={size} times nrows={rows} must be the number of "
                         f"values, {count}")
    with room_for("uniform_row_length", Spec((rows + 1,), int64)):
        return convert(np.arange(rows + 1, dtype=np.int64) * size), size


class RowPartition:
    """Rows of a sequence of values, without the values. Made by the `from_` functions."""

    __slots__ = ("_splits", "_uniform")

    def __init__(self, row_splits: Tensor, uniform_row_length: int | None = None) -> None:
        self._splits = row_splits
        self._uniform = uniform_row_length

    @classmethod
    def from_row_splits(cls, row_splits: Any, validate: bool = True, dtype: Any = None,
                        ) -> RowPartition:
        """Row i has the values row_splits[i] to row_splits[i + 1] - 1."""
        splits = integers(row_splits, "row_splits", dtype)
        if validate:
            check_splits(splits, None)
        return cls(splits)

    @classmethod
    def from_row_lengths(cls, row_lengths: Any, validate: bool = True) -> RowPartition:
        """Row i has row_lengths[i] values."""
        return cls(of_lengths(row_lengths, None, validate))

    @classmethod
    def from_value_rowids(cls, value_rowids: Any, nrows: Any = None, validate: bool = True,
                          ) -> RowPartition:
        """Value i is in row value_rowids[i], which do not decrease."""
        return cls(of_value_rowids(value_rowids, nrows, None, validate))

    @classmethod
    def from_row_starts(cls, row_starts: Any, nvals: Any, validate: bool = True) -> RowPartition:
        """Row i begins with value row_starts[i]."""
        return cls.from_row_splits(of_row_starts(row_starts, as_int(nvals, "nvals")), validate)

    @classmethod
    def from_row_limits(cls, row_limits: Any, validate: bool = True) -> RowPartition:
        """Row i ends before value row_limits[i]."""
        return cls.from_row_splits(of_row_limits(row_limits), validate)

    @classmethod
    def from_uniform_row_length(cls, uniform_row_length: int, nvals: int | None = None,
                                nrows: Any = None) -> RowPartition:
        """Every row has `uniform_row_length` values. Raises ValueError: neither how many values nor
        how many rows there are is given."""
        if nvals is None and nrows is None:
            raise ValueError("from_uniform_row_length needs nvals or nrows")
        length = as_int(uniform_row_length, "uniform_row_length")
        count = as_int(nrows, "nrows") * length if nvals is None else as_int(nvals, "nvals")
        return cls(*of_uniform_length(length, nrows, count))

    @property
    def dtype(self) -> DType:
        """int32 or int64."""
        return self._splits.dtype

    @property
    def uniform_row_length(self) -> int | None:
        """The one length of all rows, where it is known to be one."""
        return self._uniform

    def row_splits(self) -> Tensor:
        """Where each row begins, then where the last ends: [nrows + 1]."""
        return self._splits

    def row_lengths(self) -> Tensor:
        """How many values each row has: [nrows]."""
        return self._splits[1:] - self._splits[:-1]

    def row_starts(self) -> Tensor:
        """Where each row begins: [nrows]."""
        return self._splits[:-1]

    def row_limits(self) -> Tensor:
        """Where each row ends: [nrows]."""
        return self._splits[1:]

    def nrows(self) -> Tensor:
        """How many rows there are, a scalar."""
        # By the shape, which a trace knows as well.
        rows = np.array(self._splits.spec.shape[0] - 1, self.dtype.np_dtype)
        return convert(rows, None, self._splits._t.device)

    def nvals(self) -> Tensor:
        """How many values there are, a scalar."""
        return self._splits[-1]

    def value_rowids(self) -> Tensor:
        """The row of each value: [nvals]."""
        return row_ids_(self._splits, count=int(host(self._splits)[-1]))

    def __repr__(self) -> str:
        return f"tf.RowPartition(row_splits={host(self._splits)})"


class DynamicRaggedShape:
    """The lengths of a RaggedTensor: a number for a dense axis, one for each row for a ragged one.

    `shape[axis]` is the length of a dense axis.
    """

    __slots__ = ("_dtype", "_x")

    def __init__(self, x: RaggedTensor, dtype: DType | None = None) -> None:
        self._x = x
        self._dtype = x.row_splits.dtype if dtype is None else dtype

    @property
    def rank(self) -> int:
        """The number of axes."""
        return self._x.ragged_rank + self._x.flat_values.ndim

    @property
    def dtype(self) -> Any:
        """int32 or int64."""
        return self._dtype

    @property
    def num_row_partitions(self) -> int:
        """How many axes are ragged."""
        return self._x.ragged_rank

    def static_lengths(self) -> list[int | tuple[int, int, int]]:
        """Of each axis its length, or the lengths of its rows."""
        lengths: list[Any] = [self._x._count()]
        for level in self._x._levels():
            lengths.append(level._uniform if level._uniform is not None else
                           tuple(np.diff(level._host()).tolist()))
        return lengths + list(self._x.flat_values.shape[1:])

    def is_uniform(self, axis: int) -> bool:
        """Whether all rows have one length along an axis."""
        return self._x.shape[axis] is not None

    def __getitem__(self, index: int) -> Tensor:
        at = as_int(index, "an axis of a ragged shape")
        if not -self.rank <= at < self.rank:
            raise IndexError(f"there is no axis {at} in {self!r}")
        length = self._x.shape[at]
        if length is None:
            raise ValueError(f"axis {at} is ragged: it has no one length. Write x.row_lengths(), "
                             f"or x.bounding_shape(axis={at})")
        return convert(length, self._dtype, self._x.row_splits._t.device)

    def __repr__(self) -> str:
        return (f"<DynamicRaggedShape lengths={self.static_lengths()} "
                f"num_row_partitions={self.num_row_partitions}>")

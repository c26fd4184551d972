"""RaggedTensor: a tensor whose rows have different lengths, and its spec."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NoReturn

import numpy as np

from gtape.core.annotations import DTypeLike, IntsLike, TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype, float32, int64
from gtape.core.formatting import shown
from gtape.core.spec import TensorShape, normal_axes
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.type_specs import CompositeSpec, ShapedSpec, TensorSpec, TypeSpec
from gtape.ops.arguments import as_int, as_items, host
from gtape.ops.ragged import partition as parts
from gtape.ops.ragged.partition import row_ids_
from gtape.ops.shape.casting import cast

_KEY = object()


class RaggedTensor(CompositeTensor):
    """Rows of values: row i is values[row_splits[i]:row_splits[i + 1]].

    The values are a tensor, or ragged themselves; then more than one axis is ragged. Gradients
    flow through `flat_values`. Made by `tf.ragged.constant` and the `from_` functions.
    """

    __slots__ = ("__weakref__", "_ends", "_splits", "_uniform", "_values")

    # `ops.ragged.methods` sets these, and Python's operators: they are built on this class.
    from_tensor: ClassVar[Callable[..., RaggedTensor]]
    from_sparse: ClassVar[Callable[..., RaggedTensor]]
    to_tensor: ClassVar[Callable[..., Tensor]]
    to_sparse: ClassVar[Callable[..., Any]]
    bounding_shape: ClassVar[Callable[..., Tensor]]
    merge_dims: ClassVar[Callable[..., Any]]
    __getitem__: ClassVar[Callable[..., Any]]

    def __init__(self, values: Any, row_splits: Tensor, uniform: int | None = None,
                 key: object = None) -> None:
        # Parts that do not fit each other would give wrong rows without an error: only what checks
        # them, or knows them to fit, has the key.
        if key is not _KEY:
            raise ValueError("a RaggedTensor is made by tf.ragged.constant, or by a function such "
                             "as tf.RaggedTensor.from_row_lengths(values, row_lengths)")
        self._values: Tensor | RaggedTensor = values
        self._splits: Tensor = row_splits
        self._uniform = uniform
        #: The row splits in host memory, once somebody has asked: on a GPU that is a copy.
        self._ends: np.ndarray | None = None

    @classmethod
    def _of_splits(cls, values: Any, splits: Any, uniform: int | None = None) -> RaggedTensor:
        """One whose parts are known to fit; `splits` a tensor, or numbers in host memory."""
        if isinstance(splits, Tensor):
            return cls(values, splits, uniform, _KEY)
        flat = values.flat_values if isinstance(values, RaggedTensor) else values
        # All levels must have splits of one dtype.
        dtype = values.row_splits.dtype if isinstance(values, RaggedTensor) else int64
        ends = splits.astype(dtype.np_dtype)
        rows = cls(values, convert(ends, None, flat._t.device), uniform, _KEY)
        rows._ends = ends
        return rows

    # ------------------------------------------------------------------ making

    @classmethod
    def from_row_splits(cls, values: TensorLike | CompositeTensor, row_splits: TensorLike,
                        name: str | None = None, validate: bool = True) -> RaggedTensor:
        """Row i is values[row_splits[i]:row_splits[i + 1]].

        Args:
            values: a tensor or RaggedTensor [n, …].
            row_splits: integers [rows + 1], from 0 to n, not decreasing.
            validate: check them.

        Raises:
            InvalidArgumentError, ValueError: they do not form rows.
        """
        inner = values_of(values)
        splits = parts.integers(row_splits, "row_splits", like=_flat(inner))
        if isinstance(inner, RaggedTensor) and inner.row_splits.dtype is not splits.dtype:
            raise ValueError(f"row_splits must have the dtype of those of the values, "
                             f"{inner.row_splits.dtype.name}; got {splits.dtype.name}. Write "
                             f"values.with_row_splits_dtype(tf.{splits.dtype.name})")
        if validate:
            parts.check_splits(splits, count_of(inner))
        return cls(inner, splits, None, _KEY)

    @classmethod
    def from_row_lengths(cls, values: TensorLike | CompositeTensor, row_lengths: TensorLike,
                         name: str | None = None, validate: bool = True) -> RaggedTensor:
        """Row i has the next row_lengths[i] of the values. See `from_row_splits`."""
        inner = values_of(values)
        splits = parts.of_lengths(row_lengths, count_of(inner), validate)
        return cls.from_row_splits(inner, _beside(splits, inner), validate=False)

    @classmethod
    def from_value_rowids(cls, values: Any, value_rowids: Any, nrows: int | None = None,
                          name: str | None = None, validate: bool = True) -> RaggedTensor:
        """values[i] is in row value_rowids[i], which do not decrease. See `from_row_splits`."""
        inner = values_of(values)
        splits = parts.of_value_rowids(value_rowids, nrows, count_of(inner), validate)
        return cls.from_row_splits(inner, _beside(splits, inner), validate=False)

    @classmethod
    def from_row_starts(cls, values: TensorLike, row_starts: TensorLike, name: str | None = None,
                        validate: bool = True) -> RaggedTensor:
        """Row i begins with values[row_starts[i]]. See `from_row_splits`."""
        inner = values_of(values)
        splits = parts.of_row_starts(row_starts, count_of(inner))
        return cls.from_row_splits(inner, _beside(splits, inner), validate=validate)

    @classmethod
    def from_row_limits(cls, values: TensorLike, row_limits: TensorLike, name: str | None = None,
                        validate: bool = True) -> RaggedTensor:
        """Row i ends before values[row_limits[i]]. See `from_row_splits`."""
        inner = values_of(values)
        splits = parts.of_row_limits(row_limits)
        return cls.from_row_splits(inner, _beside(splits, inner), validate=validate)

    @classmethod
    def from_uniform_row_length(cls, values: TensorLike | CompositeTensor, uniform_row_length: int,
                                nrows: int | None = None, validate: bool = True,
                                name: str | None = None) -> RaggedTensor:
        """Every row has `uniform_row_length` values. Raises ValueError: the values are not so many
        rows."""
        inner = values_of(values)
        splits, length = parts.of_uniform_length(uniform_row_length, nrows, count_of(inner))
        return cls(inner, _beside(splits, inner), length, _KEY)

    @classmethod
    def from_nested_row_splits(cls, flat_values: TensorLike, nested_row_splits: TensorLike,
                               name: str | None = None, validate: bool = True) -> RaggedTensor:
        """Rows of rows: the row splits of every ragged axis, the outermost first."""
        return _nested(flat_values, nested_row_splits, cls.from_row_splits, validate)

    @classmethod
    def from_nested_row_lengths(cls, flat_values: TensorLike, nested_row_lengths: TensorLike,
                                name: str | None = None, validate: bool = True) -> RaggedTensor:
        """Rows of rows: the row lengths of every ragged axis, the outermost first."""
        return _nested(flat_values, nested_row_lengths, cls.from_row_lengths, validate)

    @classmethod
    def from_nested_value_rowids(cls, flat_values: Any, nested_value_rowids: TensorLike,
                                 nested_nrows: TensorLike | None = None, name: str | None = None,
                                 validate: bool = True) -> RaggedTensor:
        """Rows of rows: the row of every value of every ragged axis, the outermost first."""
        ids_of = _levels(nested_value_rowids)
        counts = [None] * len(ids_of) if nested_nrows is None else as_items(
            nested_nrows, "nested_nrows")
        if len(counts) != len(ids_of):
            raise ValueError(f"nested_nrows must have one number for each of {len(ids_of)} "
                             f"nested_value_rowids; got {shown(nested_nrows)}")
        return _nested(flat_values, list(zip(ids_of, counts)), lambda rows, level, validate: (
            cls.from_value_rowids(rows, level[0], level[1], validate=validate)), validate)

    # ------------------------------------------------------------------ parts

    @property
    def values(self) -> Any:
        """The rows one after another: a tensor or RaggedTensor with one axis less."""
        return self._values

    @property
    def flat_values(self) -> Tensor:
        """The innermost values: a tensor."""
        return _flat(self._values)

    @property
    def row_splits(self) -> Tensor:
        """Where each row begins in the values, then where the last ends: [rows + 1]."""
        return self._splits

    def _levels(self) -> list[RaggedTensor]:
        """This one, its values, their values, … as long as they are ragged."""
        levels, inner = [self], self._values
        while isinstance(inner, RaggedTensor):
            levels.append(inner)
            inner = inner._values
        return levels

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The row splits of every ragged axis, the outermost first."""
        inner = self._values  # no list of levels: every elementwise op asks for these
        rest = inner.nested_row_splits if isinstance(inner, RaggedTensor) else ()
        return (self._splits, *rest)

    @property
    def uniform_row_length(self) -> Tensor | None:
        """The one length of all rows, where they were made with one."""
        if self._uniform is None:
            return None
        return convert(self._uniform, self._splits.dtype, self._splits._t.device)

    @property
    def ragged_rank(self) -> int:
        """How many axes are ragged."""
        return len(self._levels())

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self.flat_values.dtype

    @property
    def device(self) -> str:
        return self.flat_values.device

    @property
    def shape(self) -> TensorShape:
        """The lengths of the axes; None for a ragged one."""
        rows = TensorShape([self._count(), self._uniform])
        return rows + self._values.shape[1:]

    def get_shape(self) -> TensorShape:
        return self.shape

    def _count(self) -> int:
        """How many rows there are."""
        return self._splits.spec.shape[0] - 1

    def _host(self) -> np.ndarray:
        """The row splits in host memory. Raises NotTraceableError: they are not known while
        tracing."""
        if self._ends is None:
            self._ends = host(self._splits)
        return self._ends

    def _ids(self) -> Tensor:
        """The row of each value."""
        return row_ids_(self._splits, count=count_of(self._values))

    def nrows(self, out_type: object = None, name: str | None = None) -> Tensor:
        """How many rows there are, a scalar."""
        dtype = self._splits.dtype if out_type is None else as_dtype(out_type)
        return convert(self._count(), dtype, self._splits._t.device)

    def row_starts(self, name: str | None = None) -> Tensor:
        """Where each row begins in the values."""
        return self._splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        """Where each row ends in the values."""
        return self._splits[1:]

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Tensor | RaggedTensor:
        """The length of each row; of inner rows, ragged, for axis 2 and more; `nrows` for 0. Raises
        InvalidArgumentError: no such axis."""
        (axis,) = normal_axes("row_lengths", as_int(axis, "row_lengths: axis"), len(self.shape))
        if axis == 0:
            return self.nrows()
        if axis == 1:
            return self._splits[1:] - self._splits[:-1]
        inner = self._values
        if isinstance(inner, RaggedTensor):
            return self.with_values(inner.row_lengths(axis - 1))
        return self.with_values(convert(np.full(
            inner.spec.shape[:axis - 1], inner.spec.shape[axis - 1], self._splits.dtype.np_dtype)))

    def value_rowids(self, name: str | None = None) -> Tensor:
        """The row of each value."""
        return self._ids()

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The row lengths of every ragged axis, the outermost first."""
        return tuple(s[1:] - s[:-1] for s in self.nested_row_splits)

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The row of each value of every ragged axis, the outermost first."""
        return tuple([level._ids() for level in self._levels()])

    # ------------------------------------------------------------------ like this one

    def with_values(self, new_values: TensorLike | CompositeTensor) -> RaggedTensor:
        """Rows of the same lengths with other values [n, …]. Raises ValueError: there are more or
        fewer of them."""
        inner = values_of(new_values)
        if count_of(inner) != count_of(self._values):
            raise ValueError(f"with_values takes {count_of(self._values)} values, as many as there "
                             f"are; got {count_of(inner)}")
        return self._with(inner)

    def _with(self, values: TensorLike | CompositeTensor) -> RaggedTensor:
        rows = RaggedTensor(values, self._splits, self._uniform, _KEY)
        rows._ends = self._ends
        return rows

    def with_flat_values(self, new_values: TensorLike | CompositeTensor) -> RaggedTensor:
        """The same rows, of every ragged axis, with other innermost values. See `with_values`."""
        inner = self._values
        if isinstance(inner, RaggedTensor):
            return self._with(inner.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: DTypeLike) -> RaggedTensor:
        """The same with row splits of int32 or int64. Raises ValueError: another dtype."""
        wanted = parts.splits_dtype(dtype)
        inner = self._values
        if isinstance(inner, RaggedTensor):
            inner = inner.with_row_splits_dtype(wanted)
        return RaggedTensor(inner, cast(self._splits, wanted), self._uniform, _KEY)

    # ------------------------------------------------------------------ as something else

    def to_list(self) -> list[Any]:
        """Nested lists of Python values."""
        return _lists(self, lambda flat: np.asarray(flat.numpy()))

    def numpy(self) -> np.ndarray:
        """A NumPy array of the rows: of objects, unless all have one length."""
        inner = self._values.numpy()
        rows = [inner[a:b] for a, b in pairwise(self._host())]
        if rows and all(r.dtype != object or self.dtype.name == "string" for r in rows) and len(
                {r.shape for r in rows}) == 1:
            # Equal rows make a plain array, as TensorFlow's numpy() does; of objects only strings
            # are stacked.
            return np.stack(rows)
        array = np.empty(len(rows), object)
        for i, row in enumerate(rows):
            array[i] = row
        return array

    def __repr__(self) -> str:
        if not hasattr(self._splits, "_a") or not hasattr(self.flat_values, "_a"):
            return f"<tf.RaggedTensor: shape={self.shape}, dtype={self.dtype.name}, traced>"
        # So many as NumPy shows in full too.
        if count_of(self._values) > 1000:
            return f"<tf.RaggedTensor: shape={self.shape}, dtype={self.dtype.name}>"
        return f"<tf.RaggedTensor {_lists(self, host)}>"  # no exit from the tape, as numpy() is

    def __bool__(self) -> NoReturn:
        raise TypeError("a RaggedTensor has no truth value; use tf.reduce_any(x) or x.nrows()")

    def __hash__(self) -> int:
        raise TypeError("a RaggedTensor is unhashable, because == compares its elements")

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self._count()))

    def __reduce__(self) -> Any:
        return RaggedTensor._of_, (self._frame_(), self._parts_())

    # ------------------------------------------------------------------ as a composite

    _opens_ = True

    def _parts_(self) -> tuple[Any, ...]:
        return (self.flat_values, *self.nested_row_splits)

    def _frame_(self) -> Any:
        return tuple([level._uniform for level in self._levels()])

    @classmethod
    def _of_(cls, frame: Any, parts: Sequence[Any]) -> RaggedTensor:
        rows = parts[0]
        for splits, uniform in list(zip(parts[1:], frame))[::-1]:
            rows = cls(rows, splits, uniform, _KEY)
        return rows

    def _mapped_(self, function: Callable[[Any], Any]) -> RaggedTensor:
        mapped: RaggedTensor = super()._mapped_(function)
        for old, new in zip(self._levels(), mapped._levels()):
            splits = old._splits
            # Only what is in host memory already: to ask a GPU for it would make it wait.
            new._ends = old._host() if (
                type(splits) is EagerTensor and splits._t.device.is_host) else old._ends
        return mapped

    def _source_(self) -> Tensor:
        return self.flat_values

    def _gradient_(self, gradient: object) -> Any:
        return None if gradient is None else self.with_flat_values(convert(gradient))

    def _rows_(self) -> list[object]:
        return list(self)

    @property
    def _type_spec(self) -> RaggedTensorSpec:
        return RaggedTensorSpec(self.shape, self.dtype, self.ragged_rank, self._splits.dtype)


def values_of(values: TensorLike | CompositeTensor) -> Tensor | RaggedTensor:
    """Values of rows: a RaggedTensor as it is, else a tensor of rank 1 or more."""
    if isinstance(values, RaggedTensor):
        return values
    tensor = convert(values)
    if not tensor.ndim:
        raise ValueError(f"the values of rows must have at least one axis; got {tensor.spec}")
    return tensor


def _flat(values: Any) -> Tensor:
    while isinstance(values, RaggedTensor):
        values = values._values
    return values


def count_of(values: Any) -> int:
    """How many values, or rows, there are along the first axis."""
    if isinstance(values, RaggedTensor):
        return values._count()
    return values.spec.shape[0]


def rank_of(x: Any) -> int:
    """How many axes a tensor or RaggedTensor has."""
    return x.ragged_rank + x.flat_values.ndim if isinstance(x, RaggedTensor) else x.ndim


def _beside(splits: Tensor, values: TensorLike | CompositeTensor) -> Tensor:
    """Row splits on the device of the values, and in the dtype of their row splits."""
    if isinstance(values, RaggedTensor):
        splits = cast(splits, values.row_splits.dtype)
    device = _flat(values)._t.device
    if splits._t.device is not device:
        splits = convert(host(splits), None, device)
    return splits


def _levels(nested: TensorLike) -> Sequence[Any]:
    """What is given for each ragged axis."""
    if not isinstance(nested, (list, tuple)):
        raise TypeError(f"nested rows must be a list, one entry for each ragged axis; got "
                        f"{shown(nested)}")
    return nested


def _nested(flat_values: TensorLike, nested: TensorLike, make: Callable[..., Any], validate: bool,
            ) -> Any:
    outer = flat_values
    for rows in _levels(nested)[::-1]:
        outer = make(outer, rows, validate=validate)
    return outer


def _lists(x: RaggedTensor, array_of: Callable[[Tensor], np.ndarray]) -> list[Any]:
    inner = x._values
    flat = _lists(inner, array_of) if isinstance(inner, RaggedTensor) else (
        array_of(inner).tolist())
    return [flat[a:b] for a, b in pairwise(x._host().tolist())]


class RaggedTensorSpec(ShapedSpec, CompositeSpec):
    """The spec of a `tf.RaggedTensor`.

    Args:
        shape: the lengths of the axes; None for any, also for ragged ones.
        dtype: of the values.
        ragged_rank: how many axes are ragged; all but the first unless given.
        row_splits_dtype: tf.int32 or tf.int64.

    Raises:
        ValueError: neither a shape nor a ragged_rank is given, or it is not less than the rank.
    """

    __slots__ = ("_ragged_rank", "_row_splits_dtype")

    def __init__(self, shape: IntsLike | None = None, dtype: Any = float32,
                 ragged_rank: int | None = None, row_splits_dtype: DTypeLike = int64) -> None:
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)
        self._row_splits_dtype = parts.splits_dtype(row_splits_dtype)
        rank = self._shape.rank
        if ragged_rank is None and rank is None:
            raise ValueError("a RaggedTensorSpec needs a shape of known rank, or a ragged_rank")
        count = max(rank or 0, 1) - 1 if ragged_rank is None else as_int(ragged_rank, "ragged_rank")
        if count < 0 or (rank is not None and count >= max(rank, 1)):
            raise ValueError(f"ragged_rank must be 0 or more and less than the rank, {rank}; got "
                             f"{count}")
        self._ragged_rank = count

    @classmethod
    def from_value(cls, value: TensorLike) -> RaggedTensorSpec:
        """The spec of a RaggedTensor, or of a tensor as one without ragged axes."""
        if isinstance(value, RaggedTensor):
            return value._type_spec
        tensor = convert(value)
        return cls(tensor.shape, tensor.dtype, 0)

    @property
    def ragged_rank(self) -> int:
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> DType:
        return self._row_splits_dtype

    @property
    def value_type(self) -> type:
        return RaggedTensor if self._ragged_rank else Tensor

    def _serialize(self) -> tuple[TensorShape, DType, int, DType]:
        return self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype

    @property
    def _component_specs(self) -> list[TypeSpec]:
        return list(self._part_specs_())

    def _part_specs_(self) -> list[TensorSpec]:
        count, dims = self._ragged_rank, self._shape.dims
        if dims is None:
            flat, rows = TensorShape(None), None
        else:
            flat = TensorShape([None, *dims[count + 1:]] if count else dims)
            rows = None if dims[0] is None else dims[0] + 1
        splits = [TensorSpec([rows if i == 0 else None], self._row_splits_dtype)
                  for i in range(count)]
        return [TensorSpec(flat, self._dtype), *splits]

    def _part_names_(self) -> tuple[str, ...]:
        splits = (f"nested_row_splits[{i}]" for i in range(self._ragged_rank))
        return ("flat_values", *splits)

    def _frame_(self) -> tuple[None, ...]:
        return (None,) * self._ragged_rank

    def _to_components(self, value: object) -> list[object]:
        return list(value._parts_()) if isinstance(value, RaggedTensor) else [value]

    def _from_components(self, components: Sequence[object]) -> Any:
        if not self._ragged_rank:
            return components[0]
        flat, *splits = components
        rows: Any = flat if isinstance(flat, Tensor) else convert(flat)
        for ends in splits[::-1]:
            rows = RaggedTensor(rows, ends if isinstance(ends, Tensor) else convert(ends), None,
                                _KEY)
        return rows

"""SparseTensor: values at some index tuples of a tensor that is 0 elsewhere, its spec, and index
tuples as numbers of cells and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert, convert_like
from gtape.core.device import Array, ArrayModule, on
from gtape.core.dtypes import DType, as_dtype, float32, int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case, ints
from gtape.core.spec import Spec, TensorShape
from gtape.core.symbolic_dim import SymbolicDim, is_open, require_known
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.type_specs import CompositeSpec, ShapedSpec, TensorSpec, TypeSpec, fully_known
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_shape, host
from gtape.ops.elementwise.operators import truediv
from gtape.ops.elementwise.scalars import multiply
from gtape.ops.indexing.gathering import gather_nd_
from gtape.ops.indexing.masking import compress_
from gtape.ops.shape.layout import broadcast_to_

#: Elementwise functions that give 0 for 0, which change the values alone.
_KEEP_ZERO = frozenset((
    "abs", "complex_abs", "negative", "asinh", "sin", "tan", "atan", "asin", "atanh", "sign",
    "unit", "square", "sqrt", "erf", "tanh", "bessel_i0e", "bessel_i1e", "rint"))


class SparseTensor(CompositeTensor):
    """The tensor of `dense_shape` with `values[i]` at `indices[i]`, and 0 elsewhere.

    Most functions want the indices in row-major order; `tf.sparse.reorder` sorts them. Gradients
    flow through the values.

    Args:
        indices: int64 [n, rank].
        values: [n], of any dtype.
        dense_shape: int64 [rank].

    Raises:
        ValueError: these shapes do not fit each other, or the indices are a tensor that is not
            int64.
    """

    __slots__ = ("__weakref__", "_dense_shape", "_indices", "_lengths", "_values")

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self._values: Tensor = convert(values)
        self._indices: Tensor = convert(indices, int64, self._values._t.device)
        self._lengths: tuple[int, ...] = _lengths(dense_shape)
        self._dense_shape: Tensor | None = (
            # Kept as it was given, so that asking for it again copies nothing.
            dense_shape if type(dense_shape) is EagerTensor else None)
        at, what, rank = self._indices.spec, self._values.spec, len(self._lengths)
        # `indices=[]` has one axis: without values any shape will do.
        if len(at.shape) != 2 and 0 in require_known(at.shape):
            self._indices = convert(np.zeros((0, rank), np.int64), int64, self._values._t.device)
            at = self._indices.spec
        if (len(at.shape) != 2 or len(what.shape) != 1 or at.shape[0] != what.shape[0]
                or at.shape[1] != rank):
            raise ValueError(
                f"a SparseTensor takes indices [n, rank], values [n] and dense_shape [rank]; got "
                f"indices {list(at.shape)}, values {list(what.shape)} and a dense_shape of "
                f"{rank} lengths")

    @classmethod
    def _of_parts(cls, indices: Tensor, values: Tensor, lengths: tuple[int, ...]) -> SparseTensor:
        """One whose parts are known to fit."""
        whole = cls.__new__(cls)
        whole._indices, whole._values, whole._lengths = indices, values, lengths
        whole._dense_shape = None
        return whole

    @classmethod
    def _of_rows(cls, rows: np.ndarray, values: Tensor, lengths: tuple[int, ...]) -> SparseTensor:
        """One of index tuples in host memory."""
        indices = convert(np.ascontiguousarray(rows, np.int64), int64, values._t.device)
        return cls._of_parts(indices, values, lengths)

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """A SparseTensor as it is, or one of an object with `indices`, `values` and `dense_shape`.
        Raises TypeError: it has none of these."""
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        try:
            return cls(sparse_tensor_value.indices, sparse_tensor_value.values,
                       sparse_tensor_value.dense_shape)
        except AttributeError:
            raise TypeError(f"SparseTensor.from_value takes a SparseTensor or an object with "
                            f"indices, values and dense_shape; got "
                            f"{shown(sparse_tensor_value)}") from None

    # ------------------------------------------------------------------ parts

    @property
    def indices(self) -> Tensor:
        """The index tuples, int64 [n, rank]."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """The values [n]."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """The shape of the whole, int64 [rank]."""
        if self._dense_shape is None or self._dense_shape.dtype is not int64:
            with on(self._values._t.device):
                self._dense_shape = convert(np.array(require_known(self._lengths), np.int64))
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole."""
        return TensorShape([None if type(n) is SymbolicDim else n for n in self._lengths])

    def get_shape(self) -> TensorShape:
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Raises ValueError when `shape` contradicts the shape known already."""
        self.shape.assert_is_compatible_with(shape)

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._values.dtype

    @property
    def device(self) -> str:
        return self._values.device

    def with_values(self, new_values: Any) -> SparseTensor:
        """`new_values` at the same indices. Raises ValueError: there is not one for each index."""
        values = convert(new_values, None, self._values._t.device)
        if values.spec.shape != self._values.spec.shape:
            raise ValueError(f"with_values takes one value for each index, "
                             f"{list(self._values.spec.shape)}; got {list(values.spec.shape)}")
        return self._with(values)

    def _with(self, values: Tensor) -> SparseTensor:
        whole = self._of_parts(self._indices, values, self._lengths)
        whole._dense_shape = self._dense_shape
        return whole

    def __repr__(self) -> str:
        lengths = self.shape if is_open(self._lengths) else self.dense_shape
        return (f"SparseTensor(indices={self._indices!s}, values={self._values!s}, "
                f"dense_shape={lengths!s})")

    def __reduce__(self) -> Any:
        return SparseTensor, (self._indices, self._values, list(self._lengths))

    # ------------------------------------------------------------------ as a composite

    _opens_ = True

    def _parts_(self) -> tuple[Any, ...]:
        return self._indices, self._values

    def _frame_(self) -> Any:
        return require_known(self._lengths)

    @classmethod
    def _of_(cls, frame: Any, parts: Sequence[Any]) -> SparseTensor:
        return cls._of_parts(parts[0], parts[1], frame)

    @property
    def _type_spec(self) -> SparseTensorSpec:
        return SparseTensorSpec(self.shape, self.dtype)

    def _rows_(self) -> list[SparseTensor]:
        """The slices along the first axis, without it. Raises ValueError: there is no axis."""
        if not self._lengths:
            raise ValueError("a SparseTensor without axes has no rows")
        at, lengths = host(self._indices), self._lengths[1:]
        # Stable, so that each row keeps the order of its values.
        order = np.argsort(at[:, 0], kind="stable")
        ends = np.searchsorted(at[order, 0], np.arange(self._lengths[0] + 1))
        return [self._of_rows(at[part, 1:], pick(self._values, part), lengths)
                for part in (order[a:b] for a, b in pairwise(ends))]

    # ------------------------------------------------------------------ arithmetic

    def _elementwise_(self, op: Any, args: Sequence[Any]) -> Any:
        # Only what leaves 0 at 0 may look at the values alone: the others would need all cells.
        if len(args) == 1:
            return self._with(op.python(self._values)) if op.name in _KEEP_ZERO else NotImplemented
        if op.name == "multiply":
            a, b = args
            return times(a, b, op.python) if a is self else times(b, a, op.python)
        if op.name == "divide" and args[0] is self:
            return times(self, args[1], op.python)
        return NotImplemented

    def __mul__(self, other: Any) -> Any:
        return times(self, other, multiply)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return times(self, other, truediv)


def times(x: SparseTensor, other: Any, function: Callable[..., Any]) -> SparseTensor:
    """function(x, other) at the indices of x; `other` is dense, and broadcast. Raises
    CompositeOperand: `other` is sparse; ValueError: it does not broadcast to the shape of x."""
    dense = convert_like(other, x._values._t, function.__name__)
    if not dense.ndim:
        return x._with(function(x._values, dense))
    if dense.spec.shape != x._lengths:
        dense = broadcast_to_(dense, shape=x._lengths)
    return x._with(function(x._values, gather_nd_(dense, x._indices)))


def pick(values: Tensor, order: Tensor | np.ndarray) -> Tensor:
    """The elements with these numbers."""
    if not isinstance(order, Tensor):
        order = placed(order, values)
    return compress_(values, order, axis=0)


def values_in_rows(x: Any) -> tuple[Tensor, np.ndarray, int] | None:
    """The values of a SparseTensor or RaggedTensor, the row of each and how many rows there are;
    None for anything else."""
    if isinstance(x, SparseTensor):
        return x.values, host(x.indices)[:, 0], x._lengths[0]
    if hasattr(x, "row_splits"):  # not by its class, which stands above this module
        return x.flat_values, host(x.value_rowids()), x._count()
    return None


def placed(array: np.ndarray, like: Tensor) -> Tensor:
    """A host array beside a tensor."""
    return convert(array, None, like._t.device)


def _lengths(dense_shape: Any) -> tuple[int, ...]:
    rank = getattr(dense_shape, "ndim", 1)
    if isinstance(dense_shape, int) or rank != 1:
        raise ValueError(f"the dense_shape of a SparseTensor must be a vector [rank]; got "
                         f"{shown(dense_shape)}")
    return lengths_of(dense_shape, "the dense_shape of a SparseTensor")


def lengths_of(shape: Any, what: str) -> tuple[int, ...]:
    """A shape of int64 lengths, none negative. A sparse one may have more cells than memory holds.
    """
    lengths = as_shape(shape, what)
    if any(n >= 1 << 63 for n in lengths):
        raise InvalidArgumentError(f"{what} must hold lengths of int64; got {shown(list(lengths))}")
    return lengths


class SparseTensorSpec(ShapedSpec, CompositeSpec):
    """The spec of a `tf.SparseTensor`: the shape of the whole, None for any and with lengths of
    None for any length, and the dtype of the values."""

    __slots__ = ()

    def __init__(self, shape: Any = None, dtype: Any = float32) -> None:
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)

    @classmethod
    def from_value(cls, value: Any) -> SparseTensorSpec:
        """The spec of a SparseTensor. Raises TypeError: it is none."""
        if not isinstance(value, SparseTensor):
            raise TypeError(f"SparseTensorSpec.from_value takes a SparseTensor; got {shown(value)}")
        return cls(value.shape, value.dtype)

    @property
    def value_type(self) -> type:
        return SparseTensor

    def with_shape(self, new_shape: Any) -> SparseTensorSpec:
        """This spec with another shape."""
        return SparseTensorSpec(new_shape, self._dtype)

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype

    def _part_specs_(self) -> list[TensorSpec]:
        return self._component_specs[:2]  # type: ignore[return-value]

    def _part_names_(self) -> tuple[str, ...]:
        return "indices", "values"

    def _frame_(self) -> Any:
        return fully_known(self, self._shape)

    @property
    def _component_specs(self) -> list[TypeSpec]:
        rank = self._shape.rank
        return [TensorSpec([None, rank], int64), TensorSpec([None], self._dtype),
                TensorSpec([rank], int64)]

    def _to_components(self, value: Any) -> list[Any]:
        return [value.indices, value.values, value.dense_shape]

    def _from_components(self, components: Sequence[Any]) -> SparseTensor:
        return SparseTensor(*components)


Ints = tuple[int, ...]


@primitive(nondifferentiable=True, tf_name="SparseReshape")
def cells_(xp: ArrayModule, indices: Array, *, shape: Ints, axes: Ints) -> Array:
    """The numbers of the cells, in row-major order, of the tensor of the chosen `axes` alone."""
    cells = xp.zeros(indices.shape[:1], np.int64)
    for axis in axes:
        cells = cells * shape[axis] + indices[:, axis]
    return cells


@cells_.infer
def _(indices: Spec, *, shape: Ints, axes: Ints) -> Spec:
    # The numbers of cells are int64: beyond that two cells would have one number.
    if math.prod(shape[a] for a in axes) >= 1 << 63:
        raise InvalidArgumentError(f"a sparse shape must have fewer than 2**63 cells here; got "
                                   f"{list(shape)}")
    return Spec(indices.shape[:1], int64)


cells_.cases = [case(ints(4, 2, below=3), shape=(3, 3), axes=(0, 1))]


@primitive(nondifferentiable=True, tf_name="SparseReshape")
def places_(xp: ArrayModule, cells: Array, *, shape: Ints) -> Array:
    """The index tuples of cells of a tensor of `shape`: the inverse of `cells_`."""
    parts, cells = [], cells.astype(np.int64)
    for length in reversed(shape):
        # A length of 0 has no cells, and must not divide.
        parts.append(cells % max(length, 1))
        cells = cells // max(length, 1)
    if not parts:
        return xp.zeros((cells.shape[0], 0), np.int64)
    return xp.stack(parts[::-1], axis=1)


places_.infer(lambda cells, *, shape: Spec((*cells.shape, len(shape)), int64))
places_.cases = [case(ints(4, below=6), shape=(2, 3))]


@primitive(nondifferentiable=True, tf_name="SparseReorder")
def order_(xp: ArrayModule, cells: Array) -> Any:
    """The order that sorts them, equal ones as they came."""
    return xp.argsort(cells, kind="stable").astype(np.int64)


order_.infer(lambda cells: Spec(cells.shape, int64))
order_.cases = [case(ints(5, below=9))]


@primitive(nondifferentiable=True, tf_name="GatherV2")
def columns_(xp: ArrayModule, indices: Array, *, axes: Ints) -> Array:
    """The chosen columns of index tuples; -1 stands for a column of zeros."""
    columns = xp.zeros((indices.shape[0], len(axes)), np.int64)
    for i, axis in enumerate(axes):
        if axis >= 0:
            columns[:, i] = indices[:, axis]
    return columns


columns_.infer(lambda indices, *, axes: Spec((indices.shape[0], len(axes)), int64))
columns_.cases = [case(ints(4, 3, below=3), axes=(2, -1, 0))]


def all_cells(x: SparseTensor) -> Tensor:
    """The number of the cell of each value."""
    shape = x._lengths
    return cells_(x.indices, shape=shape, axes=tuple(range(len(shape))))


def keys_of(lengths: Ints, *rows: np.ndarray) -> list[np.ndarray]:
    """Numbers that order index tuples as the tuples are, equal for equal ones."""
    if math.prod(lengths) < 1 << 63:
        every = []
        for part in rows:
            keys = np.zeros(len(part), np.int64)
            for axis, length in enumerate(lengths):
                keys = keys * length + part[:, axis]
            every.append(keys)
        return every
    # The number of a cell would overflow int64: the rank among all tuples orders them as well.
    joined = np.unique(np.concatenate(rows), axis=0, return_inverse=True)[1].reshape(-1)
    return np.split(joined, np.cumsum([len(part) for part in rows])[:-1])


def check_order(x: SparseTensor) -> None:
    """Check that the indices are within the shape, in row-major order, and none comes twice."""
    if type(x.indices) is not EagerTensor:
        return
    rows = host(x.indices)
    wrong = ((rows < 0) | (rows >= np.array(x._lengths, np.int64))).any(axis=1)
    if wrong.any():
        at = int(wrong.argmax())
        raise InvalidArgumentError(f"indices[{at}] = {rows[at].tolist()} is out of bounds: need "
                                   f"0 <= index < {list(x._lengths)}")
    (keys,) = keys_of(x._lengths, rows)
    # Of sorted keys every step is more than 0; where one is 0 the index is there twice.
    steps = keys[1:] - keys[:-1]
    if (steps <= 0).any():
        at = int((steps <= 0).argmax()) + 1
        how = "is repeated" if steps[at - 1] == 0 else (
            "is out of order. Many sparse ops require sorted indices. Use tf.sparse.reorder to "
            "create a correctly ordered copy")
        raise InvalidArgumentError(f"indices[{at}] = {rows[at].tolist()} {how}")


def sparse(value: SparseTensor, name: str) -> SparseTensor:
    """A SparseTensor as it is."""
    try:
        return SparseTensor.from_value(value)
    except TypeError:
        raise TypeError(f"tf.sparse.{name} takes a SparseTensor; got a {type(value).__name__}. "
                        f"Write tf.sparse.from_dense(x)") from None

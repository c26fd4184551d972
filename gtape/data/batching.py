"""Batching: several elements as one, also of different lengths, and one as several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Iterator as Elements
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.convert import convert
from gtape.core.device import CPU
from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.shape import TensorShape
from gtape.core.size_limits import room_for
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor
from gtape.core.type_specs import TensorSpec, TypeSpec
from gtape.data import elements, stacking
from gtape.data.base import Dataset
from gtape.data.failures import failed
from gtape.data.rows import Rows, cut
from gtape.ops.arguments import as_int, as_ints, as_items


class Batch(Dataset):
    """`size` elements as one, along a new first axis."""

    _what = "batch"

    def __init__(self, dataset: Any, size: int, drop_remainder: bool) -> None:
        if size < 1:
            raise InvalidArgumentError(f"batch: batch_size must be greater than zero; got {size}")
        self._size, self._drop = size, drop_remainder
        super().__init__(lambda: stacking.batched_spec(
            dataset.element_spec, size if drop_remainder else None), dataset)

    def _iterate(self) -> Elements[Any]:
        rows = self._inputs[0]._rows()
        return self._of_elements() if rows is None else self._of_rows(rows)

    def _of_elements(self) -> Elements[object]:
        upstream, stack = self._inputs[0]._iterate(), self._stack()
        number = 0
        while items := list(islice(upstream, self._size)):
            if len(items) < self._size and self._drop:
                return
            try:
                yield stack(items)
            except Exception as error:
                raise failed(error, self._what, number) from error
            number += 1

    def _stack(self) -> Callable[[list[Any]], Any]:
        """What makes several elements one."""
        return partial(stacking.batched,
                       ragged=stacking.ragged_leaves(self._inputs[0]._known_spec))

    def _of_rows(self, rows: Rows) -> Elements[Any]:
        for number, chunk in enumerate(cut(rows.chunks(), self._size, self._drop)):
            try:
                yield rows.batch(chunk, number * self._size)
            except Exception as error:
                raise failed(error, "batch", number) from error

    def _cardinality(self) -> int:
        return _parts(self._inputs[0]._cardinality(), self._size, self._drop)


def _parts(count: int, size: int, drop_remainder: bool) -> int:
    """How many batches so many elements make."""
    if count < 0:
        return count
    return count // size if drop_remainder else -(-count // size)


class RaggedBatch(Batch):
    """Batches whose leaves are ragged where the elements differ in their first lengths."""

    def __init__(self, dataset: object, size: int, drop_remainder: bool, splits_dtype: DType,
                 ) -> None:
        self._splits_dtype = stacking.splits_dtype(splits_dtype)
        super().__init__(dataset, size, drop_remainder)
        length = size if drop_remainder else None
        self._spec = lambda: stacking.batched_spec(self._row_spec(), length)

    def _row_spec(self) -> Any:
        return stacking.ragged_spec(self._inputs[0].element_spec, self._splits_dtype)

    def _stack(self) -> Callable[[list[Any]], Any]:
        return partial(stacking.batched, ragged=stacking.ragged_leaves(self._row_spec()))


class Unbatch(Dataset):
    """The rows of the elements, one after the other."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(lambda: stacking.row_spec(dataset.element_spec, "unbatch"), dataset)
        self._known_spec  # noqa: B018  (refuses what does not fit)

    def _iterate(self) -> Elements[Any]:
        for number, element in enumerate(self._inputs[0]._iterate()):
            try:
                yield from stacking.rows(element)
            except Exception as error:
                raise failed(error, "unbatch", number) from error

    def _cardinality(self) -> int:
        count = self._inputs[0]._cardinality()
        if count <= 0:
            return count
        dims = [leaf.shape.dims for leaf in nest.flatten(self._inputs[0].element_spec)
                if isinstance(leaf, TensorSpec)]
        length = next((d[0] for d in dims if d and d[0] is not None), None)
        return -2 if length is None else count * length


class Rebatch(Dataset):
    """Elements that are batches, in batches of other sizes: of one size, or of each of several in
    turn."""

    def __init__(self, dataset: Any, sizes: list[int], drop_remainder: bool) -> None:
        if not sizes or min(sizes) < 1:
            raise InvalidArgumentError(f"rebatch: batch_size must be greater than zero; got "
                                       f"{sizes}")
        self._sizes, self._drop = sizes, drop_remainder
        length = sizes[0] if len(set(sizes)) == 1 and drop_remainder else None
        super().__init__(lambda: stacking.batched_spec(
            stacking.row_spec(dataset.element_spec, "rebatch"), length), dataset)
        self._known_spec  # noqa: B018  (refuses what does not fit)

    def _iterate(self) -> Elements[Any]:
        rows = Unbatch(self._inputs[0])._iterate()
        at = 0
        while items := list(islice(rows, self._sizes[at % len(self._sizes)])):
            if len(items) < self._sizes[at % len(self._sizes)] and self._drop:
                return
            yield stacking.batched(items)
            at += 1

    def _cardinality(self) -> int:
        count = Unbatch(self._inputs[0])._cardinality()
        if count < 0 or len(self._sizes) > 1:
            return count if count == -1 else -2
        return _parts(count, self._sizes[0], self._drop)


class PaddedBatch(Batch):
    """Batches whose elements are padded at their ends to one shape: see `Dataset.padded_batch`."""

    _what = "padded_batch"

    def __init__(self, dataset: Any, size: int, shapes: Sequence[int], values: Any,
                 drop_remainder: bool) -> None:
        super().__init__(dataset, size, drop_remainder)
        spec, batch_spec = dataset.element_spec, self.element_spec
        specs = nest.flatten(spec)
        self._shapes = _padded_shapes(spec, shapes)
        self._values = [_value(leaf, value) for leaf, value in zip(
            specs, _spread(values, spec, lambda v: not nest.is_nested(v), "padding_values"))]
        self._spec = nest.pack_sequence_as(batch_spec, [
            TensorSpec([size if drop_remainder else None, *dims], leaf.dtype)
            for dims, leaf in zip(self._shapes, specs)])

    def _iterate(self) -> Elements[Any]:  # rows of arrays too, which may be padded further
        return self._of_elements()

    def _stack(self) -> Callable[[list[Any]], Any]:
        return self._padded

    def _padded(self, items: list[object]) -> Any:
        columns = zip(*[elements.flatten(item) for item in items])
        return nest.pack_sequence_as(items[0], [
            _padded(column, dims, value)
            for column, dims, value in zip(columns, self._shapes, self._values)])


def _is_shape(value: Sequence[int]) -> bool:
    return isinstance(value, (TensorShape, EagerTensor, np.ndarray)) or (
        isinstance(value, (list, tuple)) and all(
            n is None or isinstance(n, (int, np.integer)) for n in value))


def _spread(given: list[int] | None, spec: TypeSpec, single: Callable[..., object], what: str,
            ) -> list[object]:
    """One of `given` for every leaf of the elements: None for all where nothing is given, the same
    for all where one is.

    Raises:
        ValueError: it has another structure than the elements.
    """
    count = len(nest.flatten(spec))
    if given is None:
        return [None] * count
    if single(given) and (count == 1 or not nest.is_nested(given)):
        return [given] * count

    def refusal(part: object, like: object) -> ValueError:
        return ValueError(f"padded_batch: {what} must have the structure of the elements, {spec}; "
                          f"got {shown(given)}")

    return elements.parts_like(given, spec, refusal)


def _padded_shapes(spec: Any, shapes: Any) -> list[list[int | None]]:
    """For every leaf of elements of `spec` the lengths to pad to."""
    return [_padded_shape(leaf, shape) for leaf, shape in zip(
        nest.flatten(spec), _spread(shapes, spec, _is_shape, "padded_shapes"))]


def _padded_shape(spec: TypeSpec, shape: object) -> list[int | None]:
    if not isinstance(spec, TensorSpec):
        raise TypeError(f"Padding and padding values are supported only for tf.Tensor elements; "
                        f"got {spec}")
    if shape is None:
        if spec.shape.dims is None:
            raise ValueError("You must provide padded_shapes: the rank of a leaf is not known")
        return list(spec.shape.dims)
    dims = _lengths(shape)
    known = spec.shape.dims
    if known is not None and (len(known) != len(dims) or any(
            n is not None and m is not None and n > m for n, m in zip(known, dims))):
        raise ValueError(f"The padded shape {tuple(dims)} is not compatible with the shape "
                         f"{spec.shape} of the input component.")
    return dims


def _lengths(shape: object) -> list[int | None]:
    """The lengths of a `padded_shapes`, None for those that are open.

    Raises:
        TypeError: it holds something else.
    """
    if isinstance(shape, TensorShape):
        return list(shape.as_list())
    what = "padded_batch: a shape of padded_shapes"
    given = as_ints(shape, what) if hasattr(shape, "dtype") else as_items(shape, what)
    lengths = [None if n is None else as_int(n, f"{what}: a length") for n in given]
    return [None if n is None or n < 0 else n for n in lengths]


def filled(shapes: object, spec: object, length: int) -> Any:
    """`padded_shapes` for elements of `spec`, with `length` in the place of what is open."""
    return nest.pack_sequence_as(spec, [
        TensorShape([length if n is None else n for n in dims])
        for dims in _padded_shapes(spec, shapes)])


def _value(spec: Any, value: object) -> Any:
    if value is None:
        return b"" if spec.dtype.name == "string" else 0
    scalar = elements.hosted(value)
    if not isinstance(scalar, EagerTensor) or scalar.ndim:
        raise ValueError(f"padding_values must be scalars; got {shown(value)}")
    if scalar.dtype is not spec.dtype:
        if isinstance(value, EagerTensor) or hasattr(value, "dtype"):
            raise TypeError(f"padding_values must be {spec.dtype.name}; got {scalar.dtype.name}")
        scalar = elements.on_host(convert(value, spec.dtype, CPU))
    return scalar._a[()]


def _padded(leaves: Sequence[Any], dims: Sequence[int | None], value: Any) -> EagerTensor:
    shapes = [leaf._a.shape for leaf in leaves]
    if any(len(shape) != len(dims) for shape in shapes):
        raise InvalidArgumentError(f"All elements in a batch must have the same rank as the padded "
                                   f"shape; got {shapes} for {list(dims)}")
    whole = []
    for axis, length in enumerate(dims):
        longest = max(shape[axis] for shape in shapes)
        if length is not None and longest > length:
            raise InvalidArgumentError(f"Attempted to pad to a smaller size than the input "
                                       f"element: axis {axis} is {longest} long, and is to be "
                                       f"padded to {length}")
        whole.append(longest if length is None else length)
    with room_for("padded_batch", Spec((len(leaves), *whole), leaves[0].dtype)):
        array = np.full((len(leaves), *whole), value, leaves[0].dtype.np_dtype)
        for at, leaf in enumerate(leaves):
            place: Any = (at, *[slice(n) for n in leaf._a.shape])
            array[place] = leaf._a
    return EagerTensor(array, leaves[0]._t)

"""Batching: several elements as one, also of different lengths, and one as several; windows, which
are elements gathered into datasets, and datasets reduced group by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from gtape.autograph.convert import do_not_convert
from gtape.core import nest
from gtape.core.annotations import IntsLike
from gtape.core.convert import convert
from gtape.core.device import CPU
from gtape.core.dtypes import DType, int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec, TensorShape, room_for
from gtape.core.tensor import EagerTensor
from gtape.core.type_specs import TensorSpec, TypeSpec
from gtape.data import batching, elements, stacking
from gtape.data.arguments import integer, specs_of
from gtape.data.base import Dataset, ReadyElements
from gtape.data.calls import Call
from gtape.data.failures import Placed, failed
from gtape.data.iterators import SpecOfElements
from gtape.data.rows import Elements, Rows, cut
from gtape.data.stacking import loosened
from gtape.ops.arguments import as_function, as_int, as_ints, as_items


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
        # `islice` takes what a batch needs and no more: what comes after is not computed ahead.
        upstream, stack = self._inputs[0]._iterate(), Placed(self._stack(), self._what)
        while items := list(islice(upstream, self._size)):
            if len(items) < self._size and self._drop:
                return
            yield stack(items)

    def _stack(self) -> Callable[[list[Any]], Any]:
        """What makes several elements one."""
        return partial(stacking.batched, ragged=stacking.ragged_leaves(self._row_spec()))

    def _row_spec(self) -> Any:
        return self._inputs[0]._known_spec

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
        self._splits_dtype = stacking.composites().splits_dtype(splits_dtype)
        super().__init__(dataset, size, drop_remainder)
        length = size if drop_remainder else None
        self._spec = lambda: stacking.batched_spec(self._row_spec(), length)

    def _row_spec(self) -> Any:
        return stacking.composites().ragged_spec(self._inputs[0].element_spec, self._splits_dtype)


class Unbatch(Dataset):
    """The rows of the elements, one after the other."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(lambda: stacking.row_spec(dataset.element_spec, "unbatch"), dataset)
        # Only where no element has to be computed to tell.
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
    for all where one is."""
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
    """The lengths of a `padded_shapes`, None for those that are open."""
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
        # A number of Python has no dtype of its own and takes the leaf's; an array or tensor has
        # one, and is not cast unasked.
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
        # Filled as a whole and then written over: for each leaf one copy, and no list of pads.
        array = np.full((len(leaves), *whole), value, leaves[0].dtype.np_dtype)
        for at, leaf in enumerate(leaves):
            place: Any = (at, *[slice(n) for n in leaf._a.shape])
            array[place] = leaf._a
    return EagerTensor(array, leaves[0]._t)


class DatasetSpec(SpecOfElements):
    """The spec of a dataset that is an element, or a leaf of one, with elements of a spec."""

    def __init__(self, element_spec: Any, dataset_shape: IntsLike = ()) -> None:
        super().__init__(specs_of(element_spec, "DatasetSpec: element_spec"))
        self.dataset_shape = dataset_shape

    def __repr__(self) -> str:
        return f"DatasetSpec({self.element_spec!r}, TensorShape([]))"


class Window(Dataset):
    """Datasets of `size` elements each, `stride` apart, the first of each `shift` after that of
    the one before."""

    def __init__(self, dataset: Any, size: int, shift: int, stride: int, drop: bool) -> None:
        for name, value in (("size", size), ("shift", shift), ("stride", stride)):
            if value < 1:
                raise InvalidArgumentError(f"window: `{name}` must be greater than zero; got "
                                           f"{value}")
        self._size, self._shift, self._stride, self._drop = size, shift, stride, drop
        super().__init__(lambda: nest.map_structure(DatasetSpec, dataset.element_spec), dataset)

    def _iterate(self) -> Elements[Any]:
        """One dataset for each leaf of the elements, in their structure."""
        spec = self._inputs[0].element_spec
        upstream = self._inputs[0]._iterate()
        held: list[Any] = []
        span = (self._size - 1) * self._stride + 1
        ended = False
        while True:
            while len(held) < span and not ended:
                element = next(upstream, upstream)
                ended = element is upstream
                if not ended:
                    held.append(element)
            items = held[:span:self._stride]
            if not items or (self._drop and len(held) < span):
                return
            yield _datasets(items, spec)
            # Of what is shifted over and not held, nothing is kept: it is asked for and let go.
            gone = min(self._shift, len(held))
            del held[:gone]
            for _ in range(self._shift - gone):
                if next(upstream, upstream) is upstream:
                    ended = True
                    break

    def _cardinality(self) -> int:
        count = self._inputs[0]._cardinality()
        if count < 0:
            return count
        if not self._drop:
            return -(-count // self._shift)
        span = (self._size - 1) * self._stride + 1
        return 0 if count < span else (count - span) // self._shift + 1


def _datasets(items: list[object], spec: object) -> Any:
    if not nest.is_nested(spec):
        return ReadyElements(items, spec)
    columns = zip(*[elements.flatten(item) for item in items])
    return nest.pack_sequence_as(spec, [
        ReadyElements(list(column), leaf) for column, leaf in zip(columns, nest.flatten(spec))])


class GroupByWindow(Dataset):
    """The elements of what a function makes of groups: elements with the same key, as many as the
    window of that key has, as a dataset."""

    def __init__(self, dataset: Any, key: Callable[..., object], reduce: Callable[..., object],
                 size: Callable[[Any], int]) -> None:
        super().__init__(lambda: self._found_spec(), dataset)
        self._told_by_elements = True
        self._key = Call(key, dataset._known_spec, "group_by_window: key_func")
        self._reduce = as_function(reduce, "group_by_window: reduce_func")
        self._size = size

    def _found_spec(self) -> Any:
        spec = self._inputs[0].element_spec
        for element in self._inputs[0]._iterate():
            key = Placed(self._key_of, "group_by_window")(element)
            return loosened(self._reduced(key, [element], spec).element_spec)
        raise InvalidArgumentError("element_spec: group_by_window has no group that would tell it")

    def _iterate(self) -> Elements[Any]:
        spec = self._inputs[0].element_spec
        groups: dict[int, list[Any]] = {}
        sizes: dict[int, int] = {}
        key_of = Placed(self._key_of, "group_by_window")
        for element in self._inputs[0]._iterate():
            key = key_of(element)
            at = int(key._a)
            if at not in groups:
                groups[at], sizes[at] = [], self._size(key)
                if sizes[at] < 1:
                    raise InvalidArgumentError(f"group_by_window: the size of a window must be "
                                               f"greater than zero; got {sizes[at]} for key {at}")
            groups[at].append(element)
            if len(groups[at]) == sizes[at]:
                yield from self._reduced(key, groups.pop(at), spec)._iterate()
        # At the end the groups that are not full come in the order in which their keys did first.
        for at, items in groups.items():
            yield from self._reduced(_key(at), items, spec)._iterate()

    def _key_of(self, element: Any) -> Any:
        key = self._key(element)
        if not isinstance(key, EagerTensor) or key.dtype is not int64 or key.ndim:
            got = key.spec if isinstance(key, EagerTensor) else shown(key)
            raise ValueError(f"`key_func` must return a single tf.int64 tensor; got {got}. "
                             f"Write tf.cast(key, tf.int64)")
        return key

    def _reduced(self, key: object, items: list[object], spec: object) -> Any:
        reduced = self._reduce(key, ReadyElements(items, spec))
        if not isinstance(reduced, Dataset):
            raise TypeError(f"group_by_window: `reduce_func` must return a single dataset; got "
                            f"{type(reduced).__name__}")
        return reduced


def _key(at: int) -> Any:
    return elements.tensor(np.asarray(at, np.int64))


def bucketed(dataset: Any, length: Callable[..., object], boundaries: object, sizes: object,
             shapes: object, values: object, pad_to_boundary: bool, no_padding: bool,
             drop_remainder: bool) -> Any:
    """Batches of elements of like lengths: see `Dataset.bucket_by_sequence_length`."""
    bounds, counts = (
        [integer(n, f"bucket_by_sequence_length: a number of {what}")
         for n in as_items(given, f"bucket_by_sequence_length: {what}")]
        for given, what in ((boundaries, "bucket_boundaries"), (sizes, "bucket_batch_sizes")))
    if len(counts) != len(bounds) + 1:
        raise ValueError(f"`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but "
                         f"`len(bucket_batch_sizes)={len(counts)}` and "
                         f"`len(bucket_boundaries)={len(bounds)}`.")
    length_of = Call(length, dataset._known_spec, "bucket_by_sequence_length: element_length_func")

    def key(*element: Any) -> Any:
        size = integer(length_of(element if len(element) > 1 else element[0]),
                       "bucket_by_sequence_length: what element_length_func returns")
        # "right": a length that equals a boundary belongs to the bucket above it, as in TensorFlow.
        return _key(int(np.searchsorted(bounds, size, "right")))

    def batches(at: Any, grouped: Any) -> Any:
        bucket = int(at)
        if no_padding:
            return grouped.batch(counts[bucket], drop_remainder=drop_remainder)
        wanted = shapes
        if pad_to_boundary:
            if bucket == len(bounds):
                raise InvalidArgumentError(
                    "When pad_to_bucket_boundary=True, elements must have length < "
                    "max(bucket_boundaries).")
            # Boundaries are exclusive, so that the longest element of a bucket is one shorter.
            wanted = batching.filled(shapes, grouped.element_spec, bounds[bucket] - 1)
        return grouped.padded_batch(counts[bucket], wanted, values, drop_remainder)

    # AutoGraph would convert `key`, which is gtape's own and calls what is converted already.
    return GroupByWindow(dataset, do_not_convert(key), batches, lambda at: counts[int(at)])


class Nested(Dataset):
    """The dataset whose one element is a dataset."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(lambda: DatasetSpec(dataset.element_spec), dataset)

    def _iterate(self) -> Elements[Any]:
        yield self._inputs[0]

    def _cardinality(self) -> int:
        return 1

"""What hostile.py calls, found in the namespaces and classes: functions, classes, methods;
and what their parameters usually get."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gtape as tf
from gtape import _names

_SPACES = ("bitwise", "data", "data.experimental", "debugging", "image", "linalg", "lookup",
           "lookup.experimental", "math", "nest", "nn", "ragged", "random", "sets", "signal",
           "sparse")
#: They change what later calls see, wait for input, or are about the machine.
_SKIPPED = {
    "control_dependencies", "device", "debugging.disable_check_numerics",
    "debugging.enable_check_numerics", "debugging.set_log_device_placement", "explain_none",
    "get_logger", "init_scope", "name_scope", "no_op", "print", "random.set_global_generator",
    "random.set_seed", "TensorShape.of_array"}
#: Spaces of whose classes the objects are made and the methods are called, and such classes.
_OPENED = {"data", "data.experimental", "lookup", "lookup.experimental"}
#: They are made by other functions than their own, which only takes what those know to fit.
_NOT_MADE = {"Tensor", "data.Dataset", "data.experimental.Optional"}
#: Its operators serve gradients that are added up, not users.
_MADE_ONLY = {"IndexedSlices"}
#: Methods of Python's own protocols, which get what Python hands them.
_PROTOCOLS = {"__array__", "__deepcopy__", "__exit__", "__getattr__", "__init__", "__new__",
              "__reduce_ex__", "__setattr__", "__round__", "__init_subclass__", "__format__",
              "__getattribute__", "__delattr__", "__subclasshook__", "__class__", "__setstate__"}


class Method:
    """A method of an object that is made anew for each call.

    An object that can be changed (`state` tells what is in it) must be as it was after a call that
    is refused.
    """

    def __init__(self, make: Callable[[], Any], name: str) -> None:
        self.make, self.name = make, name
        made = make()
        self.before = state(made)
        self.__signature__ = inspect.signature(getattr(made, name))

    def __call__(self, *args: Any, **named: Any) -> Any:
        return getattr(self.make(), self.name)(*args, **named)

    def of(self, subject: Any) -> Callable[..., Any]:
        """The method of an object that was made before."""
        return getattr(subject, self.name)  # type: ignore[no-any-return]

    def check(self, subject: Any) -> None:
        """Raises AssertionError: a call that was refused changed the object."""
        after = state(subject)
        assert after == self.before, f"the refused call changed it from {self.before} to {after}"


class Applied:
    """A public function whose first argument is an object of a class that has a function of its
    own for it, or two of them where it takes a list."""

    def __init__(self, function: Callable[..., Any], make: Callable[[], Any]) -> None:
        first, *rest = inspect.signature(function).parameters.values()
        self.function, self.make = function, make
        self.several = first.name in ("values", "inputs")
        self.__signature__ = inspect.Signature(rest)

    def __call__(self, *args: Any, **named: Any) -> Any:
        first = [self.make(), self.make()] if self.several else self.make()
        return self.function(first, *args, **named)


def state(subject: Any) -> str | None:
    """What is in an object that can be changed; None for others."""
    if isinstance(subject, tf.data.Dataset):
        return str(list(subject.take(4).as_numpy_iterator()))
    if isinstance(subject, tf.data.Iterator):
        return str(next(subject))
    if hasattr(subject, "export"):
        return str([x.numpy().tolist() for x in (*subject.export(), subject.lookup([1, 7]))])
    if isinstance(subject, tf.Variable):
        return str(subject.numpy().tolist())
    if isinstance(subject, tf.random.Generator):
        return f"{subject.algorithm} {subject.state.numpy().tolist()}"
    if isinstance(subject, tf.data.Options | list):
        return repr(subject)
    return None


# ---------------------------------------------------------------------- what is called

def _found() -> Iterator[tuple[str, Any]]:
    """Every public name of the spaces, and what it stands for."""
    for name in _names.ROOT:
        yield name, getattr(tf, name)
    for space in _SPACES:
        module: Any = tf
        for part in space.split("."):
            module = getattr(module, part)
        for name in getattr(module, "__all__", None) or dir(module):
            yield f"{space}.{name}", getattr(module, name)


def functions() -> dict[str, Callable[..., Any]]:
    """Every public function, and the methods of public classes, by name."""
    made: dict[str, Callable[..., Any]] = {}
    kinds: dict[str, type] = {}
    for name, found in _found():
        if "._" in name or name in _SKIPPED:
            continue
        if inspect.isroutine(found):
            made[name] = found
        elif inspect.isclass(found) and (name in _MAKERS or _opened(name, found)):
            kinds[name] = found
    for name, kind in kinds.items():
        if name in _MADE_ONLY:
            made[name] = kind
            continue
        bases = [k for k in kinds.values() if k is not kind and issubclass(kind, k)]
        made |= _of_class(name, kind, bases)
        own = getattr(kind, "_functions_", {})
        made |= {f"{name} in {called}": Applied(f, _MAKERS[name]) for called, f in made.items()
                 if called.rpartition(".")[2] in own and inspect.isroutine(f)
                 and called.partition(".")[0] not in ("ragged", "sparse", "data")}
    return {name: f for name, f in sorted(made.items()) if name not in _SKIPPED}


def _opened(name: str, kind: type) -> bool:
    return name.rpartition(".")[0] in _OPENED and not issubclass(kind, enum.Enum)


def _of_class(name: str, kind: type, bases: list[type]) -> dict[str, Callable[..., Any]]:
    """The class, and those of its methods that it does not have from another public class."""
    made: dict[str, Callable[..., Any]] = {} if name in _NOT_MADE else {name: kind}
    make = _MAKERS.get(name) or _maker(name, kind)
    for member in dir(kind):
        found = inspect.getattr_static(kind, member)
        special = member.startswith("__") and member.endswith("__")
        if member in _PROTOCOLS or (member.startswith("_") and not special) or (
                found is inspect.getattr_static(object, member, None)):
            continue
        if any(inspect.getattr_static(base, member, None) is found for base in bases):
            continue
        if isinstance(found, (staticmethod, classmethod)):
            made[f"{name}.{member}"] = getattr(kind, member)
        elif inspect.isroutine(found):
            made[f"{name}.{member}"] = Method(make, member)
    return made


def _maker(name: str, kind: type) -> Callable[[], Any]:
    """Makes an object of what the parameters of its class usually get."""
    def make() -> Any:
        return kind(**{p.name: usual(name, p.name)
                       for p in inspect.signature(kind).parameters.values()
                       if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD})

    return make


def beside(name: str) -> tuple[str, ...]:
    """Parameters that have defaults, without which the others do not get far."""
    return _BESIDE.get(name, ())


_BESIDE = {
    "data.Dataset.from_generator": ("output_signature",),
    "data.Dataset.group_by_window": ("window_size",),
    "data.experimental.group_by_window": ("window_size",),
    "data.experimental.make_csv_dataset": ("num_epochs",),
    "lookup.TextFileInitializer": ("vocab_size",),
    "sparse.split": ("sp_input", "num_split", "axis"),
}


# ---------------------------------------------------------------------- what they usually get

def prepare(folder: Path) -> None:
    """Write the files that usual arguments name into the present folder."""
    (folder / "lines.txt").write_text("5\t6\n7\t8\n")
    (folder / "rows.csv").write_text("a,b\n1,2\n3,4\n")
    with tf.io.TFRecordWriter(str(folder / "records")) as writer:
        writer.write(b"record")
    tf.data.Dataset.range(3).save(str(folder / "saved"))


def _square() -> Any:
    return tf.constant([[2.0, 1.0], [1.0, 3.0]])


def _image() -> Any:
    return tf.ones([1, 4, 4, 1])


def _dataset() -> Any:
    return tf.data.Dataset.from_tensor_slices([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def _table() -> Any:
    made = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1)
    made.insert([1, 2], [3, 4])
    return made


def _sparse() -> Any:
    return tf.SparseTensor([[0, 0], [1, 1]], [1.0, 2.0], [2, 3])


def _ragged() -> Any:
    return tf.ragged.constant([[1.0, 2.0], [], [3.0]])


def _ids() -> Any:
    return tf.constant([1, 2], tf.int64)


#: Objects of classes that usual arguments do not make.
_MAKERS: dict[str, Callable[[], Any]] = {
    "Variable": lambda: tf.Variable([[1.0, 2.0], [3.0, 4.0]]),
    "TensorArray": lambda: tf.TensorArray(tf.float32, 3).unstack(tf.ones([3, 2])),
    "random.Generator": lambda: tf.random.Generator.from_seed(1),
    "TensorShape": lambda: tf.TensorShape([2, None]),
    "TensorSpec": lambda: tf.TensorSpec([2, None]),
    "Tensor": _square,
    "IndexedSlices": lambda: tf.IndexedSlices(tf.ones([1, 2]), [0], [2, 2]),
    "RaggedTensor": _ragged,
    "RaggedTensorSpec": lambda: tf.RaggedTensorSpec([2, None]),
    "SparseTensor": _sparse,
    "SparseTensorSpec": lambda: tf.SparseTensorSpec([2, None]),
    "data.Dataset": _dataset,
    "data.DatasetSpec": lambda: tf.data.DatasetSpec(tf.TensorSpec([])),
    "data.Iterator": lambda: iter(_dataset()),
    "data.experimental.Optional": lambda: tf.data.experimental.Optional.from_value(1.0),
    "lookup.experimental.MutableHashTable": _table,
}

#: By the end of "function.parameter" that begins with a dot or with the name of a space: the
#: longest that is found.
_USUAL: dict[str, Any] = {
    "axis": 0, "axes": 1, "dtype": tf.float32, "shape": [2, 2], "seed": [1, 2], "perm": [1, 0],
    "num_segments": 2, "num": 2, "depth": 3, "k": 1, "n": 2, "size": [4, 4], "begin": [0, 0],
    "end": [1, 1], "padding": "SAME", "strides": 1, "ksize": 2, "dilations": 1,
    "equation": "ij,jk->ik", "paddings": [[1, 1], [1, 1]], "multiples": [1, 2], "repeats": 2,
    "num_or_size_splits": 2, "fn": lambda *a: a[-1], "cond": lambda x: False,
    "body": lambda x: x, "loop_vars": [1.0], "func": lambda *a: 1.0, "Tout": tf.float32,
    "dims": [2, 2], "window_length": 4, "frame_length": 2, "frame_step": 1, "rate": 0.5,
    "block_shape": [1, 1], "crops": [[0, 0]] * 2, "output_shape": [1, 4, 4, 1],
    "target_height": 4, "target_width": 4, "offset_height": 0, "offset_width": 0,
    "true_fn": lambda: 1.0, "false_fn": lambda: 2.0, "pred": True, "branch_index": 0,
    "branch_fns": [lambda: 1.0], "limit": 5, "start": 0, "delta": 1, "num_rows": 2, "lam": 2.0,
    "alpha": 2.0, "counts": 3.0, "probs": 0.5, "num_samples": 2, "structure": [1, 2],
    "flat_sequence": [1, 2], "block_size": 2, "mask": [True, False], "rank": 2,
    "window_shape": [2, 2], "index": 1, "message": "text", "lengths": [1, 2], "key": 0,
    "spec": [2], "predicate": lambda *a: True, "op": lambda *a: a[-1],
    # tf.data
    "batch_size": 2, "buffer_size": 2, "count": 2, "num_shards": 2, "map_func": lambda *a: a[-1],
    "data.range.args": 5, "data.size": 2, "scan_func": lambda s, x: (s, x),
    "reduce_func": lambda s, x: s, "data.initial_state": 0.0, "transformation_func": lambda d: d,
    "key_func": lambda x: tf.constant(0, tf.int64), "window_size": 2,
    "window_size_func": lambda key: tf.constant(2, tf.int64), "num_parallel_calls": 2,
    "class_func": lambda x: tf.constant(0), "target_dist": [0.5, 0.5],
    "element_length_func": lambda x: tf.shape(x)[0], "bucket_boundaries": [2],
    "bucket_batch_sizes": [2, 2], "generator": lambda *a: iter([[1.0, 2.0]]),
    "path": "saved", "filename": "lines.txt", "filenames": "lines.txt",
    "data.TFRecordDataset.filenames": "records", "file_pattern": "rows.csv",
    "data.CsvDataset.filenames": "rows.csv", "record_defaults": ["", ""], "record_bytes": 2,
    "num_epochs": 1, "expected_cardinality": 3, "target_device": "/cpu:0", "device": "/cpu:0",
    "data.list_files.file_pattern": "*.txt", "data.save.path": "written",
    "data.snapshot.path": "shot", "data.TFRecordWriter.filename": "made",
    # tf.lookup
    "key_dtype": tf.int64, "value_dtype": tf.int64, "lookup.default_value": -1,
    "key_index": tf.lookup.TextFileIndex.LINE_NUMBER, "value_index": 0, "vocab_size": 2,
    "num_oov_buckets": 2, "empty_key": 100, "deleted_key": 101,
    # tf.ragged and tf.sparse
    "ragged_rank": 1, "inner_shape": [], "row_splits": [0, 1, 2], "row_lengths": [1, 1],
    "value_rowids": [0, 1], "row_starts": [0, 1], "row_limits": [1, 2], "uniform_row_length": 1,
    "nested_row_splits": [[0, 1, 2]], "nested_row_lengths": [[1, 1]],
    "nested_value_rowids": [[0, 1]], "outer_axis": 0, "inner_axis": 1,
    "RaggedTensor.new_values": [1.0, 2.0, 3.0], "pylist": [[1.0], [2.0, 3.0]], "splits": [0, 1, 2],
    "RaggedTensor.lengths": [1, 2], "starts": [0, 1], "partitions": [0, 1], "num_partitions": 2,
    "num_columns": 2, "num_buckets": 2, "num_split": 2, "sparse.start": [0, 0],
    "sparse.size": [1, 1], "dense_shape": [2, 3], "new_shape": [2, 4], "sparse.shape": [3, 2],
    "to_retain": [True, False], "SparseTensor.new_values": [1.0, 2.0], "mask_indices": [0],
    "SparseTensor.values": [1.0, 2.0], "sparse.segment_ids": [0, 1], "sparse.default_value": 0.0,
    "sparse.values": [1, 2], "ragged.mask": [True, False, True],
    "RaggedTensorSpec.shape": [2, None],
    "sampled_addmm.indices": [[0, 0], [1, 1]], "sampled_addmm.values": [1.0, 2.0],
    "sampled_addmm.dense_shape": [2, 2], "RaggedTensor in math.segment_ids": [0, 1, 0],
    "RaggedTensor in math.y": 2.0, "clip_by_value.clip_value_min": 0.0,
    "clip_by_value.clip_value_max": 1.0, "RaggedTensor.other": 2.0,
}

_MADE: dict[str, Callable[[], Any]] = {
    "indices": lambda: tf.constant([[0], [1]]), "segment_ids": lambda: tf.constant([0, 1]),
    "filters": lambda: tf.ones([2, 2, 1, 1]), "images": _image, "image": _image,
    "labels": lambda: tf.constant([0, 1]), "condition": lambda: tf.constant([True, False]),
    "values": lambda: [_square(), _square()], "tensors": lambda: [_square(), _square()],
    "inputs": lambda: [_square(), _square()], "inp": lambda: [_square()],
    # tf.data
    "dataset": _dataset, "dataset_or_iterator": _dataset, "datasets": lambda: (_dataset(),) * 2,
    "data.zip.args": _dataset, "data.options": tf.data.Options, "data.tensors": _square,
    "data.flat_map.map_func": lambda: lambda x: tf.data.Dataset.from_tensors(x),
    "data.interleave.map_func": lambda: lambda x: tf.data.Dataset.from_tensors(x),
    "data.group_by_window.reduce_func": lambda: lambda key, rows: rows.batch(2),
    "choice_dataset": lambda: tf.data.Dataset.range(2), "iterator": lambda: iter(_dataset()),
    "output_signature": lambda: tf.TensorSpec([2]), "element_spec": lambda: tf.TensorSpec([]),
    "write.dataset": lambda: tf.data.Dataset.from_tensors("x"),
    "features": lambda: {"a": tf.io.FixedLenFeature([], tf.float32)},
    # tf.lookup
    "lookup.keys": _ids, "lookup.values": _ids, "table": _table,
    "initializer": lambda: tf.lookup.KeyValueTensorInitializer(_ids(), _ids()),
    # tf.ragged and tf.sparse
    "sp_input": _sparse, "sp_a": _sparse, "sparse.b": _sparse, "sp_b": _sparse, "sparse.a": _sparse,
    "sparse.sparse_dense_matmul.b": lambda: tf.ones([3, 2]),
    "sparse.mask.a": lambda: tf.IndexedSlices(tf.ones([2, 2]), [0, 1], [2, 2]),
    "sp_inputs": lambda: [_sparse(), _sparse()], "st_input":
        lambda: tf.sparse.from_dense([[1.0, 2.0], [3.0, 0.0]]), "to_indicator.sp_input":
        lambda: tf.SparseTensor([[0, 0], [1, 1]], [0, 1], [2, 3]),
    "cross.inputs": lambda: [_ids()[None], _ids()[None]],
    "cross_hashed.inputs": lambda: [_ids()[None], _ids()[None]],
    "sparse.map_values.args": _sparse, "ragged.map_flat_values.args": _ragged,
    "ragged.boolean_mask.data": _ragged, "SparseTensor.indices": lambda: [[0, 0], [1, 1]],
    "sparse.SparseTensor.indices": lambda: [[0, 0], [1, 1]],
    "sparse_tensor_value": _sparse, "RaggedTensor.values": lambda: tf.constant([1.0, 2.0]),
    "flat_values": lambda: tf.constant([1.0, 2.0]),
}


def usual(function: str, parameter: str) -> Any:
    """What a parameter of a function usually gets."""
    *spaces, last = function.split(".")
    space = ".".join(spaces)
    for name in (f"{space}.{last}.{parameter}", f"{spaces[0] if spaces else ''}.{last}.{parameter}",
                 f"{last}.{parameter}", f"{spaces[-1] if spaces else ''}.{parameter}",
                 f"{spaces[0] if spaces else ''}.{parameter}", parameter):
        if name in _MADE:
            return _MADE[name]()
        if name in _USUAL:
            return _USUAL[name]
    return _square()

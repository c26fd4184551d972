"""TensorFlow's private names, as far as Keras calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gtape as tf
from gtape.core.composite import CompositeTensor as CompositeTensor

#: The version of TensorFlow whose behaviour Keras may expect.
TENSORFLOW_VERSION = "2.21.0"


class Dimension:
    """A length in TensorFlow 1's shapes; gtape's are numbers."""


class ListWrapper(list):
    """What TensorFlow makes of lists in attributes; gtape leaves lists alone."""


class DictWrapper(dict):
    """What TensorFlow makes of dicts in attributes; gtape leaves dicts alone."""


class Context:
    """TensorFlow's eager context; gtape has nothing to clear in it."""

    def clear_kernel_cache(self) -> None:
        pass

    executing_eagerly = staticmethod(tf.executing_eagerly)


def unchanged(value: Any) -> Any:
    return value


def unwrap(function: Any) -> tuple[list[Any], Any]:
    """(decorators, the function inside), as far as `functools.wraps` tells."""
    decorators = []
    while hasattr(function, "__wrapped__"):
        decorators.append(function)
        function = function.__wrapped__
    return decorators, function


def nothing(*args: Any) -> None:
    """What TensorFlow has to wait for or to clear, gtape has not."""


def yes(*args: Any) -> bool:
    return True


def no() -> bool:
    return False


def smart_cond(pred: Any, true_fn: Callable[[], Any] | None = None,
               false_fn: Callable[[], Any] | None = None, name: str | None = None) -> Any:
    """One branch where `pred` is known, else tf.cond."""
    known = pred if isinstance(pred, (bool, int)) else tf.get_static_value(pred)
    if known is None:
        return tf.cond(pred, true_fn, false_fn)
    return true_fn() if known else false_fn()  # type: ignore[misc]


def maybe_merge_call(fn: Callable[..., Any], strategy: Any, *args: Any, **kwargs: Any) -> Any:
    """`fn(strategy, ...)`: with one replica there is nothing to merge."""
    return fn(strategy, *args, **kwargs)


def sparse_mat_mul(a: Any, b: Any, dtype: Any) -> Any:
    """The product of two sparse matrices, which are SparseTensors here."""
    from gtape.ops.sparse.products import sparse_sparse_matmul

    return sparse_sparse_matmul(a, b)


def of_sparse_matrix(matrix: Any, dtype: Any) -> Any:
    return matrix


def dynamic_update_slice(inputs: Any, updates: Any, start_indices: Any) -> Any:
    """`inputs` with the block at `start_indices` replaced; a block beyond the end is moved back."""
    shape, size = tf.shape(inputs), tf.shape(updates)
    start = tf.cast(tf.convert_to_tensor(start_indices), tf.int32)
    start = tf.clip_by_value(start, 0, shape - size)
    grid = tf.meshgrid(*[tf.range(n) for n in tf.unstack(size)], indexing="ij") or [start[:0]]
    indices = tf.stack(grid, -1) + start
    return tf.tensor_scatter_nd_update(inputs, indices, updates)

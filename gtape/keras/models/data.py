"""Arrays and iterables as batches."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.nest import flatten, map_structure
from gtape.keras.metrics.metric import host

_BATCH = 32


def unpacked(data: Any) -> tuple[Any, Any, Any]:
    """(x, y, sample_weight) of a batch; what is missing is None."""
    if not isinstance(data, (tuple, list)):
        return data, None, None
    if isinstance(data, list) and not 1 <= len(data) <= 3:
        return data, None, None
    if not 1 <= len(data) <= 3:
        raise ValueError(f"a batch is x, (x, y) or (x, y, sample_weight); got {len(data)} entries")
    return tuple([*data, None, None][:3])  # type: ignore[return-value]


def _is_batches(data: Any) -> bool:
    """Whether a list holds batches, that is tuples."""
    return isinstance(data, list) and bool(data) and isinstance(data[0], tuple)


def validation_parts(data: Any) -> tuple[Any, Any, Any]:
    """(x, y, sample_weight) of arrays; an iterable of batches stays whole, as x."""
    if _is_batches(data) or not isinstance(data, (tuple, list)):
        return data, None, None
    return unpacked(data)


def _is_arrays(x: Any) -> bool:
    if _is_batches(x):
        return False
    leaves = flatten(x) if isinstance(x, (dict, list, tuple)) else [x]
    return bool(leaves) and all(hasattr(leaf, "shape") or hasattr(leaf, "_read_")
                                or isinstance(leaf, (int, float)) for leaf in leaves)


def _as_arrays(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and value and isinstance(flatten(value)[0], (int, float)):
        return np.asarray(value)
    return value


def _float32(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype == np.float64 else array


def batches(x: Any, y: Any, sample_weight: Any, class_weight: Any, batch_size: int | None,
            shuffle: bool) -> Iterator[tuple[Any, ...]]:
    """Tensors (x, y, sample_weight), batch by batch, without what is None.

    Raises:
        ValueError: arrays of different lengths, or none.
    """
    x = _as_arrays(x)
    if not _is_arrays(x):
        yield from _given_batches(x, class_weight)
        return
    if class_weight is not None:
        sample_weight = _class_weights(y, class_weight)
    whole = [part for part in (x, _as_arrays(y), _as_arrays(sample_weight)) if part is not None]
    arrays = map_structure(lambda leaf: _float32(host(leaf)), tuple(whole))
    lengths = {len(leaf) if leaf.ndim else 0 for leaf in flatten(arrays)}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"the arrays must have one length along their first axis, which is not "
                         f"0; got {sorted(lengths)}")
    order = np.arange(lengths.pop())
    if shuffle:
        np.random.default_rng(random.getrandbits(64)).shuffle(order)
    size = batch_size or _BATCH
    for start in range(0, len(order), size):
        chosen = order[start: start + size] if shuffle else slice(start, start + size)
        yield map_structure(lambda leaf, at=chosen: convert(leaf[at]), arrays)


def _given_batches(data: Iterable[Any], class_weight: Any) -> Iterator[tuple[Any, ...]]:
    if data is None or not hasattr(data, "__iter__"):
        raise ValueError(f"data must be arrays or an iterable of batches; got "
                         f"{type(data).__name__}")
    for batch in data:
        x, y, weight = unpacked(batch)
        if class_weight is not None:
            weight = _class_weights(y, class_weight)
        yield tuple(map_structure(convert, part) for part in (x, y, weight) if part is not None)


def _class_weights(y: Any, class_weight: dict[int, float]) -> np.ndarray:
    labels = host(y)
    numbers = labels.argmax(-1) if labels.ndim > 1 and labels.shape[-1] > 1 else labels.reshape(-1)
    return np.array([class_weight.get(int(n), 1.0) for n in numbers], np.float32)


def split_validation(x: Any, y: Any, weight: Any, share: float) -> tuple[Any, Any]:
    """((x, y, weight), (x, y[, weight])): the last `share` of the arrays apart.

    Raises:
        ValueError: a share that leaves one side empty.
    """
    count = len(flatten(x)[0])
    at = int(count * (1 - share))
    if not 0 < at < count:
        raise ValueError(f"validation_split={share} of {count} examples leaves one part empty")
    parts = [None if p is None else map_structure(host, _as_arrays(p)) for p in (x, y, weight)]
    first = tuple(None if p is None else map_structure(lambda a: a[:at], p) for p in parts)
    rest = tuple(map_structure(lambda a: a[at:], p) for p in parts if p is not None)
    return first, rest

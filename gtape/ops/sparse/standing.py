"""What functions of tensors do with a SparseTensor, where TensorFlow's take one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.dtypes import as_dtype, int32
from gtape.core.tensor import Tensor
from gtape.ops.sparse.counting import dense_bincount
from gtape.ops.sparse.places import placed
from gtape.ops.sparse.tensor import SparseTensor


def _integers(x: SparseTensor, value: Any, out_type: Any) -> Tensor:
    dtype = int32 if out_type is None else as_dtype(out_type)
    return placed(np.array(value, dtype.as_numpy_dtype), x.values)


def shape(input: SparseTensor, out_type: Any = None, name: str | None = None) -> Tensor:
    return _integers(input, input._frame_(), out_type)


def size(input: SparseTensor, out_type: Any = None, name: str | None = None) -> Tensor:
    return _integers(input, np.prod(input._frame_(), dtype=np.int64), out_type)


def rank(input: SparseTensor, name: str | None = None) -> Tensor:
    return _integers(input, len(input._frame_()), None)


def identity(input: SparseTensor, name: str | None = None) -> SparseTensor:
    from gtape.ops.shape.layout import identity

    return input._mapped_(identity)  # type: ignore[no-any-return]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "bincount": dense_bincount, "shape": shape, "size": size, "rank": rank, "identity": identity}

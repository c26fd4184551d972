"""What arguments may be, for annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np

from gtape.core.dtypes import DType
from gtape.core.spec import TensorShape
from gtape.core.tensor import Readable, Tensor


class SupportsArray(Protocol):
    """What NumPy can ask for an array: NumPy's own, and values of other libraries."""

    def __array__(self) -> np.ndarray: ...


#: What becomes a tensor by itself; int, float and bool are among the complex for type checkers, and
#: str and bytes among the sequences. Lists hold numbers, strings, tensors or lists of them.
TensorLike: TypeAlias = (
    Tensor | Readable | SupportsArray | complex | Sequence[object] | TensorShape)
#: What names a dtype: `tf.float32`, "float32", `np.float32`, `float`, `np.dtype("float32")`.
DTypeLike: TypeAlias = DType | str | type | np.dtype
#: Integers that have to be known before anything is computed: shapes, axes, permutations, counts.
IntsLike: TypeAlias = (
    int | np.integer | Tensor | Readable | np.ndarray | TensorShape
    | Sequence[int | np.integer | Tensor] | Sequence[int | None])
#: A nest of tensors, or of whatever its leaves are: lists, tuples, dicts, or a leaf alone.
Nest: TypeAlias = object

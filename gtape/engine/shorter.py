"""What Keras asks for at every eager call, answered from memory."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from gtape.core.tensor import EagerTensor


def amend_dtypes(module: ModuleType) -> None:
    """Remember the dtypes of results."""
    plain, config = module.result_type, module.config
    of_all = functools.cache(lambda floatx, *dtypes: plain(*dtypes))

    @functools.wraps(plain)
    def result_type(*dtypes: Any) -> Any:
        try:
            return of_all(config.floatx(), *dtypes)
        except TypeError:  # something that cannot be hashed
            return plain(*dtypes)

    module.result_type = result_type  # type: ignore[attr-defined]


def amend_core(module: ModuleType) -> None:
    """Give tensors back that are what they are to become."""
    plain = module.convert_to_tensor

    @functools.wraps(plain)
    def convert_to_tensor(x: Any, dtype: Any = None, sparse: Any = None, ragged: Any = None) -> Any:
        if type(x) is EagerTensor and (dtype is None or dtype == x._t.dtype.name):
            return x
        return plain(x, dtype, sparse, ragged)

    module.convert_to_tensor = convert_to_tensor  # type: ignore[attr-defined]

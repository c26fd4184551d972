"""What Keras asks for at every eager call, answered from memory."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from gtape.core.dtypes import DType
from gtape.core.tensor import EagerTensor


def amend_variables(module: ModuleType) -> None:
    """Remember the names of dtypes."""
    plain = module.standardize_dtype
    names: dict[Any, str] = {}

    @functools.wraps(plain)
    def standardize_dtype(dtype: Any) -> str:
        if type(dtype) is not str and type(dtype) is not DType:
            return plain(dtype)  # type: ignore[no-any-return]
        found = names.get(dtype)
        if found is None:
            found = names[dtype] = plain(dtype)
        return found

    module.standardize_dtype = standardize_dtype  # type: ignore[attr-defined]


def amend_dtypes(module: ModuleType) -> None:
    """Remember the dtypes of results."""
    plain, config = module.result_type, module.config
    known: dict[Any, str] = {}

    @functools.wraps(plain)
    def result_type(*dtypes: Any) -> str:
        key = (config.floatx(), *dtypes)
        try:
            return known[key]
        except KeyError:
            return known.setdefault(key, plain(*dtypes))
        except TypeError:  # something that cannot be hashed
            return plain(*dtypes)  # type: ignore[no-any-return]

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


def amend_keras_tensor(module: ModuleType) -> None:
    """Remember which types are neither symbolic nor hold anything."""
    plain, symbolic = module.any_symbolic_tensors, module.KerasTensor
    leaves: set[type] = set()

    def is_leaf(x: Any) -> bool:
        if issubclass(type(x), symbolic) or module.tree.is_nested(x):
            return False
        leaves.add(type(x))
        return True

    @functools.wraps(plain)
    def any_symbolic_tensors(args: Any = None, kwargs: Any = None) -> bool:
        for values in (args, kwargs.values() if kwargs else None):
            for x in values or ():
                if type(x) not in leaves and not is_leaf(x):
                    return plain(args, kwargs)  # type: ignore[no-any-return]
        return False

    module.any_symbolic_tensors = any_symbolic_tensors  # type: ignore[attr-defined]

"""gtape.types: classes for annotations and isinstance."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Union

import numpy as np

from gtape._names import lacking as _lacking
from gtape.compile.frontend.concrete_function import ConcreteFunction
from gtape.compile.frontend.function import Function
from gtape.core.tensor import Tensor
from gtape.core.variable import Variable
from gtape.distribute import DistributedValues

__all__ = ["experimental"]

#: What becomes a tensor by itself.
TensorLike = Union[Tensor, Variable, int, float, bool, str, bytes, complex, tuple, list,  # noqa: UP007
                   np.ndarray, np.generic]


#: What tf.function makes, and what `get_concrete_function` gives.
Callable = Union[Function, ConcreteFunction]  # noqa: UP007


class PerReplica(DistributedValues):
    """Values that differ between replicas. One replica has plain tensors, and none of these."""


class Mirrored(DistributedValues):
    """Values that are alike on all replicas. One replica has plain tensors, and none of these."""


# TensorFlow has these below `experimental` only.
experimental = SimpleNamespace(
    TensorLike=TensorLike, Callable=Callable, GenericFunction=Function,
    PolymorphicFunction=Function, ConcreteFunction=ConcreteFunction,
    distributed=SimpleNamespace(PerReplica=PerReplica, Mirrored=Mirrored))

__getattr__ = _lacking("gtape.types", __all__)

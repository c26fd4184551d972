"""The `tensorflow` that Keras' modules see: gtape, and the private names of TensorFlow in Keras."""

from __future__ import annotations

import functools
from types import ModuleType, SimpleNamespace
from typing import Any

import gtape as tf
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.tensor import EagerTensor
from gtape.core.variable import Holder
from gtape.files.records import records
from gtape.ops.sparse.arithmetic import sparse_sparse_matmul
from gtape.summary.writers import Event, SummaryMetadata


class Dimension:
    """A length in TensorFlow 1's shapes; gtape's are numbers."""


class ListWrapper(list):
    """What TensorFlow makes of lists in attributes; gtape leaves lists alone."""


class DictWrapper(dict):
    """What TensorFlow makes of dicts in attributes; gtape leaves dicts alone."""


class Trackable:
    """Something that a checkpoint can hold. Keras tells which parts it has by its own lists."""

    def _track_trackable(self, trackable: object, name: str, overwrite: bool = False) -> Any:
        return trackable

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: object,
                            ) -> dict[str, object]:
        return {}


class AutoTrackable(Trackable):
    """A Trackable whose attributes are its parts."""

    def _delete_tracking(self, name: str) -> None:
        """Nothing is kept beside the attributes."""


def nothing(*args: object) -> None:
    """What TensorFlow has to wait for or to clear, gtape has not."""


_CSR = "python.ops.linalg.sparse.sparse_csr_matrix_ops"

#: By their paths below `tensorflow`.
_NAMES: dict[str, Any] = {
    # The version whose behaviour Keras may expect.
    "__version__": "2.21.0",
    "__internal__.types.Tensor": Holder,
    "__internal__.tracking.Trackable": Trackable,
    "__internal__.tracking.AutoTrackable": AutoTrackable,
    "__internal__.tracking.no_automatic_dependency_tracking": lambda method: method,
    "__internal__.CompositeTensor": CompositeTensor,
    "__internal__.EagerTensor": EagerTensor,
    "__internal__.smart_cond.smart_cond": tf.cond,
    "__internal__.eager_context.eager_mode": tf.init_scope,
    "__internal__.tf2.enabled": lambda: True,
    # With one replica there is nothing to merge.
    "__internal__.distribute.strategy_supports_no_merge_call": lambda: True,
    "__internal__.distribute.interim.maybe_merge_call": lambda fn, *args: fn(*args),
    "compat.v1.reset_default_graph": nothing,
    "compat.v1.Dimension": Dimension,
    "compat.v1.SummaryMetadata": SummaryMetadata,
    "core.util.event_pb2.Event": Event,
    "python.lib.io.tf_record.tf_record_iterator": records,
    "python.trackable.data_structures.ListWrapper": ListWrapper,
    "python.trackable.data_structures._DictWrapper": DictWrapper,
    "python.eager.context.context": lambda: SimpleNamespace(clear_kernel_cache=nothing),
    "python.eager.context.async_wait": nothing,
    "python.framework.config.is_op_determinism_enabled": lambda: False,
    "python.ops.math_ops.is_nan": tf.math.is_nan,
    # Sparse matrices are SparseTensors here.
    f"{_CSR}.sparse_tensor_to_csr_sparse_matrix": tf.SparseTensor,
    f"{_CSR}.csr_sparse_matrix_to_sparse_tensor": tf.cast,
    f"{_CSR}.sparse_matrix_sparse_mat_mul": sparse_sparse_matmul,
    "compiler.tf2xla.python.xla.dynamic_update_slice": lambda x, update, indices: (
        tf.raw_ops.XlaDynamicUpdateSlice(input=x, update=update, indices=indices)),
}

#: Paths of TensorFlow's modules that are asked for before anything in them; of the last, nothing is
#: asked on one device.
_SPACES = frozenset(path[:i] for path in (*_NAMES, "experimental.dtensor.")
                    for i, c in enumerate(path) if c == ".")


class _Space(ModuleType):
    """A module of TensorFlow: its private names, and those of gtape's module of the same name."""

    def __init__(self, path: str, public: ModuleType | None) -> None:
        super().__init__(f"tensorflow{path}")
        self.__path__: list[str] = []
        self._path = path
        self._public = public

    def __getattr__(self, name: str) -> Any:
        path = f"{self._path}.{name}"
        dotted = path[1:]
        if dotted in _NAMES:
            value = _NAMES[dotted]
        elif dotted in _SPACES:
            value = _Space(path, getattr(self._public, name, None))
        elif self._public is None or name.startswith("__"):
            raise AttributeError(f"gtape does not have TensorFlow's private name "
                                 f"tensorflow.{dotted}")
        else:
            value = getattr(self._public, name)
        return self.__dict__.setdefault(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *(dir(self._public) if self._public else ())})


_tensorflow = _Space("", tf)


def module(name: str) -> Any:
    """What stands for `tensorflow`, `tensorflow.a.b` …

    Raises:
        ModuleNotFoundError: gtape has no module of this name.
    """
    try:
        return functools.reduce(getattr, name.split(".")[1:], _tensorflow)
    except AttributeError as error:
        raise ModuleNotFoundError(f"No module named {name!r}: {error}", name=name) from None

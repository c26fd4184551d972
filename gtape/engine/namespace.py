"""The `tensorflow` that Keras' modules see: gtape, and the private names of TensorFlow in Keras."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

_INTERNAL = "gtape.engine.internal"
_TRACKING = "gtape.engine.tracking"

#: Names below `tensorflow` that are not gtape's own, and the module of the engine with them.
_PRIVATE = {
    "__version__": (_INTERNAL, "TENSORFLOW_VERSION"),
    "__internal__.types.Tensor": (_TRACKING, "TensorBase"),
    "__internal__.tracking.Trackable": (_TRACKING, "Trackable"),
    "__internal__.tracking.AutoTrackable": (_TRACKING, "AutoTrackable"),
    "__internal__.tracking.no_automatic_dependency_tracking": (_INTERNAL, "unchanged"),
    "__internal__.CompositeTensor": ("gtape.core.composite", "CompositeTensor"),
    "__internal__.EagerTensor": ("gtape.core.tensor", "EagerTensor"),
    "__internal__.smart_cond.smart_cond": (_INTERNAL, "smart_cond"),
    "__internal__.decorator.unwrap": (_INTERNAL, "unwrap"),
    "__internal__.eager_context.eager_mode": ("gtape.core.state", "init_scope"),
    "__internal__.tf2.enabled": (_INTERNAL, "yes"),
    "__internal__.distribute.strategy_supports_no_merge_call": (_INTERNAL, "yes"),
    "__internal__.distribute.interim.maybe_merge_call": (_INTERNAL, "maybe_merge_call"),
    "compat.v1.reset_default_graph": (_INTERNAL, "nothing"),
    "compat.v1.Dimension": (_INTERNAL, "Dimension"),
    "compat.v1.SummaryMetadata": ("gtape.summary.events", "SummaryMetadata"),
    "core.util.event_pb2.Event": ("gtape.summary.events", "Event"),
    "python.lib.io.tf_record.tf_record_iterator": ("gtape.files.records", "records"),
    "compiler.tf2xla.python.xla.dynamic_update_slice": (_INTERNAL, "dynamic_update_slice"),
    "python.trackable.data_structures.ListWrapper": (_INTERNAL, "ListWrapper"),
    "python.trackable.data_structures._DictWrapper": (_INTERNAL, "DictWrapper"),
    "python.eager.context.context": (_INTERNAL, "Context"),
    "python.eager.context.async_wait": (_INTERNAL, "nothing"),
    "python.ops.linalg.sparse.sparse_csr_matrix_ops.sparse_tensor_to_csr_sparse_matrix": (
        "gtape.ops.sparse.tensor", "SparseTensor"),
    "python.ops.linalg.sparse.sparse_csr_matrix_ops.csr_sparse_matrix_to_sparse_tensor": (
        _INTERNAL, "of_sparse_matrix"),
    "python.ops.linalg.sparse.sparse_csr_matrix_ops.sparse_matrix_sparse_mat_mul": (
        _INTERNAL, "sparse_mat_mul"),
    "python.framework.config.is_op_determinism_enabled": (_INTERNAL, "no"),
    "python.framework.ops.EagerTensor": ("gtape.core.tensor", "EagerTensor"),
    "python.ops.math_ops.is_nan": ("gtape.math", "is_nan"),
}

#: Modules that Keras imports without using a name of them on one device.
_EMPTY = ("experimental.dtensor.",)
#: Names that stand for modules of TensorFlow, which are asked for before anything in them.
_SPACES = frozenset(name[:i] for name in (*_PRIVATE, *_EMPTY)
                    for i, c in enumerate(name) if c == ".")

_modules: dict[str, ModuleType] = {}


class _Space(ModuleType):
    """A module of TensorFlow: the names above, and those of gtape's module of the same name."""

    def __init__(self, path: str, public: ModuleType | None) -> None:
        super().__init__("tensorflow" + path)
        self.__path__ = []
        self._path = path
        self._public = public

    def __getattr__(self, name: str) -> Any:
        dotted = f"{self._path}.{name}"[1:]
        if dotted in _PRIVATE:
            owner, attribute = _PRIVATE[dotted]
            value = getattr(importlib.import_module(owner), attribute)
        elif name.startswith("__") and name != "__internal__":
            raise AttributeError(name)
        else:
            value = self._public_value(name, dotted)
        self.__dict__[name] = value
        return value

    def _public_value(self, name: str, dotted: str) -> Any:
        public = self._public
        if public is None or (dotted in _SPACES and not hasattr(public, name)):
            if dotted in _SPACES:
                return _space(dotted, None)
            raise AttributeError(f"gtape does not have TensorFlow's private name "
                                 f"tensorflow.{dotted}")
        value = getattr(public, name)
        return _space(dotted, value) if dotted in _SPACES else value

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *(dir(self._public) if self._public else ())})


def _space(dotted: str, public: ModuleType | None) -> ModuleType:
    return _modules.setdefault(dotted, _Space(f".{dotted}" if dotted else "", public))


def module(name: str) -> Any:
    """What stands for `tensorflow`, `tensorflow.a.b` …

    Raises:
        ModuleNotFoundError: gtape has no module of this name.
    """
    found: Any = _space("", importlib.import_module("gtape"))
    for part in name.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError as error:
            raise ModuleNotFoundError(f"No module named {name!r}: {error}", name=name) from None
    return found

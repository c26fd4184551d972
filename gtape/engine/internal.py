"""TensorFlow's private names, as far as Keras asks for them, and what gtape has in their place."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gtape as tf
from gtape.core.composite import CompositeTensor
from gtape.core.tensor import EagerTensor
from gtape.engine import tracking
from gtape.files.records import records
from gtape.ops.sparse.products import sparse_sparse_matmul
from gtape.summary.events import Event, SummaryMetadata


class Dimension:
    """A length in TensorFlow 1's shapes; gtape's are numbers."""


class ListWrapper(list):
    """What TensorFlow makes of lists in attributes; gtape leaves lists alone."""


class DictWrapper(dict):
    """What TensorFlow makes of dicts in attributes; gtape leaves dicts alone."""


def nothing(*args: Any) -> None:
    """What TensorFlow has to wait for or to clear, gtape has not."""


_CSR = "python.ops.linalg.sparse.sparse_csr_matrix_ops"

#: By their paths below `tensorflow`.
NAMES: dict[str, Any] = {
    # The version whose behaviour Keras may expect.
    "__version__": "2.21.0",
    "__internal__.types.Tensor": tracking.TensorBase,
    "__internal__.tracking.Trackable": tracking.Trackable,
    "__internal__.tracking.AutoTrackable": tracking.AutoTrackable,
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

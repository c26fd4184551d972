"""gtape.distribute: strategies of one replica.

A program written for `tf.distribute` runs unchanged on one device: every strategy has one replica,
whose results need no gathering. More replicas are more processes: gtape has none of its own.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, NamedTuple

from gtape._names import lacking as _lacking
from gtape.core import nest
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.context import tracer_now
from gtape.core.convert import convert
from gtape.core.device import current_device, on
from gtape.core.dtypes import int32
from gtape.core.errors import InvalidArgumentError, UnimplementedError
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.tensor import Tensor
from gtape.devices.probe import device_named
from gtape.ops.reductions.reductions import reduce_mean, reduce_sum

__all__ = [
    "DistributedDataset", "DistributedIterator", "DistributedValues", "InputContext",
    "MirroredStrategy", "MultiWorkerMirroredStrategy", "OneDeviceStrategy",
    "ParameterServerStrategy", "ReduceOp", "ReplicaContext", "Strategy", "StrategyExtended",
    "TPUStrategy", "cluster_resolver", "experimental", "experimental_set_strategy",
    "get_replica_context", "get_strategy", "has_strategy", "in_cross_replica_context"]


class ReduceOp(enum.Enum):
    """How the values of the replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: Any) -> ReduceOp | None:
        """The ReduceOp of a tf.VariableAggregation; None for NONE."""
        return ReduceOp.__members__.get(aggregation.name)


def _reduce_op(value: str | ReduceOp) -> ReduceOp:
    return ReduceOp(value.upper()) if isinstance(value, str) else ReduceOp(value)


class _Entered(NamedTuple):
    """Where the program is: in the scope of a strategy, or in its replica."""

    strategy: Strategy
    replica: ReplicaContext | None


# A context variable: threads and coroutines are each in a strategy of their own.
_entered: ContextVar[_Entered | None] = ContextVar("gtape.strategy", default=None)


@contextmanager
def _within(strategy: Strategy, replica: ReplicaContext | None) -> Iterator[None]:
    token = _entered.set(_Entered(strategy, replica))
    try:
        with strategy._on():
            yield
    finally:
        _entered.reset(token)


def _require_cross_replica() -> None:
    place = _entered.get()
    # Outside of all scopes the program is in the usual replica, where TensorFlow allows it too.
    if place is not None and place.replica is not None:
        raise RuntimeError("this method is for cross-replica context, and it was called in a "
                           "function that strategy.run runs; use "
                           "tf.distribute.get_replica_context().merge_call(...)")


def _value(value: TensorLike) -> Any:
    """A tensor, or what stands for one."""
    return value if isinstance(value, (Tensor, IndexedSlices)) else convert(value)


class ReplicaContext:
    """What a function run by `strategy.run` knows of its replica: `get_replica_context()`."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    @property
    def strategy(self) -> Strategy:
        """The strategy whose replica this is."""
        return self._strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """1."""
        return 1

    @property
    def replica_id_in_sync_group(self) -> Tensor:
        """0, as a tensor."""
        return convert(0, int32)

    def all_reduce(self, reduce_op: ReduceOp, value: TensorLike, options: object = None) -> Any:
        """`value`, a nest of tensors: the sum, or mean, over one replica. Raises ValueError:
        `reduce_op` is neither SUM nor MEAN, or a value cannot be a tensor."""
        _reduce_op(reduce_op)
        return nest.map_structure(_value, value)

    def all_gather(self, value: TensorLike, axis: int, options: object = None) -> Any:
        """`value`, a nest of tensors: what one replica has."""
        return nest.map_structure(_value, value)

    def merge_call(self, merge_fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """`merge_fn(strategy, *args, **kwargs)`, in cross-replica context."""
        # The function may call what is for cross-replica context only.
        with _within(self._strategy, None):
            return merge_fn(self._strategy, *args, **(kwargs or {}))


class InputContext(NamedTuple):
    """What a `dataset_fn` is told: it makes the one input pipeline of one replica."""

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """`global_batch_size`: one replica takes the whole batch."""
        return global_batch_size


class ValueContext(NamedTuple):
    """What a `value_fn` is told: which replica its value is for."""

    replica_id_in_sync_group: int = 0
    num_replicas_in_sync: int = 1


class DistributedValues:
    """A value for each of several replicas. One replica has plain tensors, and none of these."""


class DistributedDataset:
    """A dataset split between replicas. One replica has a plain dataset, and none of these."""


class DistributedIterator:
    """The iterator of a DistributedDataset. One replica has a plain iterator, and none of these."""


class StrategyExtended:
    """What a library needs of a strategy: `strategy.extended`."""

    experimental_require_static_shapes = False

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The device of the one replica."""
        return self._strategy._devices()

    parameter_devices = worker_devices

    def update(self, var: Any, fn: Callable[..., Any], args: Any = (), kwargs: Any = None,
               group: bool = True) -> Any:
        """`fn(var, *args, **kwargs)`; with `group=False` as the list of all replicas' results."""
        result = fn(var, *args, **(kwargs or {}))
        return result if group else (result,)

    def broadcast_to(self, tensor: TensorLike, destinations: object) -> Any:
        """`tensor`: there is one device."""
        return tensor

    def reduce_to(self, reduce_op: str, value: TensorLike, destinations: TensorLike,
                  options: object = None) -> Any:
        """`value`, of one replica. Raises ValueError for another `reduce_op` than SUM and MEAN."""
        _require_cross_replica()
        _reduce_op(reduce_op)
        return value

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: object = None,
                        ) -> list[Any]:
        """The values of the pairs (value, destination)."""
        return [self.reduce_to(reduce_op, *pair) for pair in value_destination_pairs]

    def call_for_each_replica(
            self, fn: Callable[..., object], args: Any = (), kwargs: object = None) -> Any:
        """`strategy.run`."""
        return self._strategy.run(fn, args, kwargs)

    def colocate_vars_with(self, colocate_with_variable: TensorLike,
                           ) -> AbstractContextManager[None]:
        """Variables made inside go to the one device."""
        return nullcontext()

    def variable_created_in_scope(self, v: TensorLike) -> bool:
        """Whether `v` belongs to this strategy; all variables of one replica do."""
        return True

    def value_container(self, value: TensorLike) -> Any:
        """`value`: it is its own container."""
        return value

    # Keras asks for it by this name.
    def _in_multi_worker_mode(self) -> bool:
        return False


class Strategy:
    """One replica where tensors are made anyway; the base of the strategies below."""

    num_replicas_in_sync = 1
    cluster_resolver: Any = None

    def __init__(self) -> None:
        self.extended = StrategyExtended(self)

    def _on(self) -> AbstractContextManager[object]:
        """The block in which new tensors go to the strategy's device."""
        return nullcontext()

    def _devices(self) -> tuple[str, ...]:
        device = current_device()
        return (f"/device:{device.kind}:{device.index}",)

    @contextmanager
    def scope(self) -> Iterator[Strategy]:
        """A block in which this is the strategy of the program, in cross-replica context. Raises
        RuntimeError: it is inside another strategy's scope, or in a replica."""
        self._check_unmixed()
        _require_cross_replica()
        with _within(self, None):
            yield self

    def _check_unmixed(self) -> None:
        place = _entered.get()
        if place is not None and place.strategy is not self:
            raise RuntimeError(f"Mixing different tf.distribute.Strategy objects: {self!r} inside "
                               f"the scope of {place.strategy!r}; leave that first")

    def run(self, fn: Callable[..., object], args: TensorLike = (), kwargs: Any = None,
            options: object = None) -> Any:
        """`fn(*args, **kwargs)` in the replica, and its results as they are. Raises ValueError:
        `args` is no list or tuple; RuntimeError: it is called in a replica."""
        # A tensor would be taken apart into its rows.
        if not isinstance(args, (list, tuple)):
            raise ValueError(f"strategy.run: args must be a list or tuple of the arguments; got "
                             f"{shown(args)}. Write args=(value,)")
        _require_cross_replica()
        if tracer_now() is not None:  # AutoGraph is loaded already, by the function in trace
            from gtape.autograph.convert import callee

            fn = callee(fn)
        with _within(self, ReplicaContext(self)):
            return fn(*args, **(kwargs or {}))

    def reduce(self, reduce_op: str | ReduceOp, value: object, axis: IntsLike | None) -> Any:
        """The values of the one replica, a nest of tensors, also reduced over `axis` unless that is
        None. Raises ValueError: another `reduce_op`; RuntimeError: it is called in a replica.

        Args:
            reduce_op: ReduceOp.SUM or MEAN, or their names.
            axis: the axis, or axes, of examples in a batch.
        """
        _require_cross_replica()
        op = _reduce_op(reduce_op)
        # One replica: there is nothing to add up.
        if axis is None:
            return value
        reduced = reduce_sum if op is ReduceOp.SUM else reduce_mean
        return nest.map_structure(lambda x: reduced(x, axis=axis), value)

    def gather(self, value: TensorLike, axis: int) -> Any:
        """`value`, a nest of tensors: the replicas' values joined along `axis`."""
        _require_cross_replica()
        return nest.map_structure(_value, value)

    def experimental_local_results(self, value: TensorLike) -> tuple[Any, ...]:
        """The values of the replicas: (value,)."""
        # One for each replica, as TensorFlow gives.
        return (value,)

    def experimental_distribute_dataset(self, dataset: object, options: object = None) -> Any:
        """`dataset`: its batches go to the one replica whole."""
        _require_cross_replica()
        return dataset

    def distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], object],
                                          options: object = None) -> Any:
        """The dataset that `dataset_fn` makes for the one replica."""
        _require_cross_replica()
        return dataset_fn(InputContext())

    def experimental_distribute_values_from_function(
            self, value_fn: Callable[[ValueContext], object]) -> Any:
        """The value that `value_fn` makes for the one replica."""
        _require_cross_replica()
        return value_fn(ValueContext())


class _Usual(Strategy):
    """The strategy of a program that names none: it is in its replica everywhere."""

    @contextmanager
    def scope(self) -> Iterator[Strategy]:
        self._check_unmixed()
        yield self


class _Placed(Strategy):
    """A strategy with a device of its own."""

    def __init__(self, device: str | None) -> None:
        super().__init__()
        self._device = None if device is None else device_named(device)

    def _on(self) -> AbstractContextManager[object]:
        return nullcontext() if self._device is None else on(self._device)

    def _devices(self) -> tuple[str, ...]:
        if self._device is None:
            return super()._devices()
        return (f"/device:{self._device.kind}:{self._device.index}",)


class OneDeviceStrategy(_Placed):
    """One replica on `device`: inside its scope, and in what it runs, tensors are made there.
    Raises InvalidArgumentError: there is no such device."""

    def __init__(self, device: str) -> None:
        super().__init__(device)


class MirroredStrategy(_Placed):
    """One replica, on the one device of `devices`, or else on that where tensors are made anyway.
    Raises InvalidArgumentError: several devices, or one that is not there."""

    def __init__(self, devices: Any = None, cross_device_ops: object = None) -> None:
        names = [devices] if isinstance(devices, str) else list(devices or ())
        if len(names) > 1:
            raise InvalidArgumentError(
                f"MirroredStrategy: gtape has one replica, and devices names {len(names)}: "
                f"{shown(names)}. Name one, or run one process for each device")
        super().__init__(names[0] if names else None)


class _OfMany(Strategy):
    def __init__(self, *args: Any, **kwargs: object) -> None:
        raise UnimplementedError(
            f"{type(self).__name__}: gtape has one replica, on one device of one machine; use "
            f"tf.distribute.get_strategy() or tf.distribute.MirroredStrategy()")


class MultiWorkerMirroredStrategy(_OfMany):
    """Raises UnimplementedError when it is made: gtape has one replica."""


class TPUStrategy(_OfMany):
    """Raises UnimplementedError when it is made: gtape has one replica, and no TPUs."""


class ParameterServerStrategy(_OfMany):
    """Raises UnimplementedError when it is made: gtape has one replica."""


class CentralStorageStrategy(_OfMany):
    """Raises UnimplementedError when it is made: gtape has one replica."""


class TPUClusterResolver:
    """Looks for TPUs, and raises ValueError: there are none."""

    def __init__(self, tpu: object = None, *args: Any, **kwargs: object) -> None:
        raise ValueError("there is no TPU to connect to: gtape runs on NumPy and CuPy")


_usual = _Usual()
_usual_replica = ReplicaContext(_usual)
# Of the whole program, and so no context variable. A list, to be changed in its place.
_chosen: list[Strategy] = []


def get_strategy() -> Strategy:
    """The strategy whose scope or replica this is; outside, the usual one."""
    place = _entered.get()
    if place is not None:
        return place.strategy
    return _chosen[-1] if _chosen else _usual


def has_strategy() -> bool:
    """Whether the program is inside the scope of a strategy that it made."""
    return get_strategy() is not _usual


def get_replica_context() -> ReplicaContext | None:
    """The replica that the program is in; None in cross-replica context."""
    place = _entered.get()
    if place is not None:
        return place.replica
    return None if _chosen else _usual_replica


def in_cross_replica_context() -> bool:
    """Whether the program is in the scope of a strategy and not in its replica."""
    return get_replica_context() is None


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Make `strategy` that of the whole program, as if in its scope; None for the usual one. Raises
    RuntimeError: it is called inside the scope of a strategy."""
    if _entered.get() is not None:
        raise RuntimeError("experimental_set_strategy: it must not be called inside the scope of a "
                           "strategy; leave that first")
    _chosen[:] = [] if strategy is None else [strategy]


experimental = SimpleNamespace(
    CentralStorageStrategy=CentralStorageStrategy, ParameterServerStrategy=ParameterServerStrategy,
    MultiWorkerMirroredStrategy=MultiWorkerMirroredStrategy, TPUStrategy=TPUStrategy,
    ValueContext=ValueContext)

cluster_resolver = SimpleNamespace(TPUClusterResolver=TPUClusterResolver)

__getattr__ = _lacking("gtape.distribute", __all__, ". It has strategies of one replica only")

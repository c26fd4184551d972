"""Options: how a pipeline may be run. They never change what its elements are."""

from __future__ import annotations

import enum
from typing import Any

from gtape.core.device import Device
from gtape.core.formatting import shown
from gtape.data.base import Dataset, Same
from gtape.data.rows import Elements, Rows


class AutoShardPolicy(enum.IntEnum):
    """How a dataset is divided among several workers."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(enum.Enum):
    """What to do about state outside a pipeline when it is saved."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class AutotuneAlgorithm(enum.Enum):
    """How parallelism is chosen."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class _Group:
    """Options of one kind: None until they are set, and no others than these."""

    _names: tuple[str, ...] = ()

    def __init__(self) -> None:
        for name in self._names:
            setattr(self, name, None)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in self._names:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}: it has "
                                 f"{', '.join(self._names)}")
        # A misspelt option would otherwise be kept and do nothing.
        object.__setattr__(self, name, value)

    def _merged(self, other: Any) -> Any:
        merged = type(self)()
        for name in self._names:
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, _Group) and isinstance(theirs, _Group):
                theirs = mine._merged(theirs)
            setattr(merged, name, mine if theirs is None else theirs)
        return merged

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, name) == getattr(other, name) for name in self._names)

    def __hash__(self) -> int:
        # Options can be set after they were hashed: the hash may depend on nothing that changes.
        return hash(type(self))

    def __repr__(self) -> str:
        given = [f"{n}={getattr(self, n)!r}" for n in self._names if getattr(self, n) is not None]
        return f"{type(self).__name__}({', '.join(given)})"


class AutotuneOptions(_Group):
    """Options of what is chosen while a pipeline runs."""

    _names = ("enabled", "cpu_budget", "ram_budget", "autotune_algorithm", "initial_parallelism",
              "min_parallelism")


class DistributeOptions(_Group):
    """Options of datasets that several workers share."""

    _names = ("auto_shard_policy", "num_devices")


class OptimizationOptions(_Group):
    """Options of what may be rewritten in a pipeline."""

    _names = ("apply_default_optimizations", "filter_fusion", "filter_parallelization",
              "inject_prefetch", "map_and_batch_fusion", "map_and_filter_fusion", "map_fusion",
              "map_parallelization", "noop_elimination", "parallel_batch",
              "seq_interleave_prefetch", "shuffle_and_repeat_fusion", "warm_start")


class ThreadingOptions(_Group):
    """Options of a pipeline's threads."""

    _names = ("max_intra_op_parallelism", "private_threadpool_size")


class Options(_Group):
    """Options of a dataset: see `Dataset.with_options`."""

    _names = ("autotune", "dataset_name", "deterministic", "experimental_deterministic",
              "experimental_distribute", "experimental_external_state_policy",
              "experimental_optimization", "experimental_slack", "experimental_symbolic_checkpoint",
              "experimental_threading", "experimental_warm_start", "framework_type", "threading")

    def __init__(self) -> None:
        super().__init__()
        self.autotune = AutotuneOptions()
        self.experimental_distribute = DistributeOptions()
        self.experimental_optimization = OptimizationOptions()
        self.threading = self.experimental_threading = ThreadingOptions()

    def merge(self, options: Options) -> Options:
        """These options, and where `options` sets one, that. Raises TypeError: they are no
        tf.data.Options."""
        if not isinstance(options, Options):
            raise TypeError(f"merge takes tf.data.Options; got {shown(options)}")
        return self._merged(options)


class WithOptions(Same):
    """A dataset with options of its own."""

    def __init__(self, dataset: Dataset, options: Options) -> None:
        if not isinstance(options, Options):
            raise TypeError(f"with_options takes tf.data.Options; got {shown(options)}")
        super().__init__(dataset)
        self._options = options

    def _iterate(self) -> Elements[Any]:
        return self._inputs[0]._iterate()

    def _sent(self, device: Device) -> Elements[object]:
        return self._inputs[0]._sent(device)

    def _rows(self) -> Rows | None:
        return self._inputs[0]._rows()


def options_of(dataset: Dataset) -> Options:
    """The options of a dataset and of all that it is made from."""
    options = Options()
    for source in dataset._inputs:
        options = options.merge(options_of(source))
    return options.merge(dataset._options) if isinstance(dataset, WithOptions) else options

"""gtape.data: pipelines that read, transform, shuffle and batch what a model is trained on."""

from __future__ import annotations

from gtape.data.dataset import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from gtape.data.iterators import Iterator

#: A number of threads, or of elements kept ready, that is chosen while the pipeline runs.
AUTOTUNE = -1

__all__ = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset", "Iterator"]


def __getattr__(name: str) -> object:
    from gtape._names import missing

    raise AttributeError(missing("gtape.data", name, __all__))

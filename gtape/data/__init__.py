"""gtape.data: pipelines that read, transform, shuffle and batch what a model is trained on."""

from __future__ import annotations

import importlib

from gtape._names import missing, parsed

#: A number of threads, or of elements kept ready, that is chosen while the pipeline runs.
AUTOTUNE = -1

_TABLE = {
    "gtape.data.dataset": "Dataset",
    "gtape.data.base": "INFINITE_CARDINALITY UNKNOWN_CARDINALITY",
    "gtape.data.iterators": "Iterator NumpyIterator",
    "gtape.data.reading": "FixedLengthRecordDataset TFRecordDataset TextLineDataset",
    "gtape.data.options": "Options ThreadingOptions",
    "gtape.data.batching": "DatasetSpec",
}
_NAMES = parsed(_TABLE)

__all__ = ["AUTOTUNE", "experimental", *sorted(_NAMES)]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name == "experimental":
        return importlib.import_module("gtape.data.experimental")
    entry = _NAMES.get(name)
    if entry is None:
        raise AttributeError(missing("gtape.data", name, __all__))
    attribute = globals()[name] = getattr(importlib.import_module(entry[0]), entry[1])
    return attribute


def __dir__() -> list[str]:
    return sorted(__all__)

"""gtape.nest: nested structures flattened, packed and mapped."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.core.nest": "assert_same_structure flatten is_nested map_structure pack_sequence_as",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)

"""Names of gtape.nest; written by `python -m gtape._stub`."""

from gtape.core.nest import assert_same_structure as assert_same_structure
from gtape.core.nest import flatten as flatten
from gtape.core.nest import is_nested as is_nested
from gtape.core.nest import map_structure as map_structure
from gtape.core.nest import pack_sequence_as as pack_sequence_as

"""Names of gtape.sets; written by `python -m gtape._stub`."""

from gtape.ops.sparse.combining import difference as difference
from gtape.ops.sparse.combining import intersection as intersection
from gtape.ops.sparse.combining import size as size
from gtape.ops.sparse.combining import union as union

"""Names of gtape.sets; written by `python -m gtape._stub`."""

from gtape.ops.sparse.sets import difference as difference
from gtape.ops.sparse.sets import intersection as intersection
from gtape.ops.sparse.sets import size as size
from gtape.ops.sparse.sets import union as union

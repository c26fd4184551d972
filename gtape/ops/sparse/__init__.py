"""SparseTensors: values at some places, and the functions of them.

Importing any part completes them: see `methods`.
"""

from gtape.ops.sparse import methods as methods

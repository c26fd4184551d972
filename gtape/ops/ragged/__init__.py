"""RaggedTensors: rows of different lengths, and the functions of them.

Importing any part completes them: see `methods`.
"""

from gtape.ops.ragged import methods as methods

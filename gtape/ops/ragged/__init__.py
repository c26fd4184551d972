"""RaggedTensors: rows of different lengths, and the functions of them.

Importing any part installs Python's operators on them.
"""

from gtape.ops.ragged import elementwise as _elementwise

_installed = _elementwise

"""The ops: one declaration each, in files by subject.

Importing any of them makes tensors whole: Python's operators, indexing, the writing methods of
variables and the choice of a default device are installed here.
"""

from gtape.core import placement as _placement
from gtape.core.device import Device as _Device
from gtape.ops import indexing as _indexing
from gtape.ops import operators as _operators
from gtape.ops import slice_assignment as _slice_assignment
from gtape.ops import transfer as _transfer
from gtape.ops import variable_scatter as _variable_scatter

_installed = (_indexing, _operators, _slice_assignment, _transfer, _variable_scatter)


def _default_device() -> _Device:
    from gtape.devices.probe import default_device

    return default_device()


if not _placement.find_default:
    _placement.find_default.append(_default_device)

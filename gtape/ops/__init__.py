"""The ops: one declaration each, in files by subject.

Importing any of them makes tensors whole: Python's operators, indexing, the writing methods of
variables and the choice of a default device are installed here.
"""

import importlib as _importlib
import pkgutil as _pkgutil
from types import ModuleType as _ModuleType

from gtape.ops.elementwise import operators as _operators
from gtape.ops.indexing import getitem as _indexing
from gtape.ops.indexing import slice_assignment as _slice_assignment
from gtape.ops.installation import install as _install
from gtape.ops.shape import identity as _passing

#: They give methods to Tensor and Variable when they are imported.
_METHODS = (_indexing, _operators, _slice_assignment, _passing)
_install()


def every_module() -> list[_ModuleType]:
    """The modules of all ops, imported: what declares an op has declared it then."""
    return [_importlib.import_module(module.name)
            for module in _pkgutil.walk_packages(__path__, f"{__name__}.") if not module.ispkg]

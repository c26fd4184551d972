"""gtape.io.gfile: the files and folders of this machine, with TensorFlow's names and errors."""

from __future__ import annotations

from gtape._names import lacking as _lacking
from gtape.files.gfile import (
    GFile,
    copy,
    exists,
    get_registered_schemes,
    glob,
    isdir,
    join,
    listdir,
    makedirs,
    mkdir,
    remove,
    rename,
    rmtree,
    stat,
    walk,
)

__all__ = ["GFile", "copy", "exists", "get_registered_schemes", "glob", "isdir", "join", "listdir",
           "makedirs", "mkdir", "remove", "rename", "rmtree", "stat", "walk"]

__getattr__ = _lacking("gtape.io.gfile", __all__)

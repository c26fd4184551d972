"""gtape.io.gfile: the files and folders of this machine, with TensorFlow's names and errors."""

from __future__ import annotations

from gtape.files.folders import (
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
from gtape.files.gfile import GFile

__all__ = ["GFile", "copy", "exists", "get_registered_schemes", "glob", "isdir", "join", "listdir",
           "makedirs", "mkdir", "remove", "rename", "rmtree", "stat", "walk"]


def __getattr__(name: str) -> object:
    from gtape._names import missing

    raise AttributeError(missing("gtape.io.gfile", name, __all__))

"""C++ text to loaded shared libraries, through the system's compiler and the cache folder.

A library is kept as `<key>/<digest>.so`: the key says what it was made from, the digest what is in
it. Loading a library that was cut short can kill the process, so the digest is compared first.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from gtape.core.errors import KernelError
from gtape.devices.cache import folder, key, write
from gtape.devices.cuda.listing import excerpt

_ERROR = re.compile(r"^(.+?):(\d+):(?:\d+:)? (?:fatal )?error: .*$", re.MULTILINE)
#: Libraries by key. None is loaded twice: a second copy would have a state of its own.
_LOADED: dict[str, ctypes.CDLL] = {}
_LOCKS: dict[str, threading.Lock] = {}


class Compiler(NamedTuple):
    """The command that starts a C++ compiler, and what it says of its version."""

    command: tuple[str, ...]
    version: str


class Recipe(NamedTuple):
    """How a program becomes a library: options, those that are left out where the compiler does
    not know them, libraries, and the machine that the result is for."""

    compiler: Compiler
    options: tuple[str, ...]
    optional: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    machine: str = ""

    def key(self, program: str) -> str:
        return key(program, *map(" ".join, (self.compiler.command, self.options, self.optional,
                                            self.libraries)),
                   self.compiler.version, self.machine)


@cache
def compiler(purpose: str, names: tuple[str, ...] = ("c++", "g++", "clang++")) -> Compiler:
    """The compiler of CXX, else the first of `names` that there is.

    Raises:
        KernelError: there is none; the message begins with `purpose`.
    """
    given = shlex.split(os.environ.get("CXX", ""))
    for command in [given] if given else [[name] for name in names]:
        if shutil.which(command[0]):
            return Compiler(tuple(command), output(*command, "--version"))
    raise KernelError(f"{purpose} needs a C++ compiler" + (
        f", and CXX={given[0]} is none" if given else "") + ": install g++ (apt install g++, "
        "dnf install gcc-c++) or clang++, or set CXX to one")


def output(*command: str) -> str:
    """What a command prints; "" where it cannot be run."""
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return ""


def load(kind: str, program: str, recipe: Recipe, *, name: str = "program",
         mode: int = ctypes.RTLD_LOCAL) -> ctypes.CDLL:
    """The library of `program`: loaded already, in the cache folder, or compiled now.

    Raises:
        KernelError: the program does not compile; or the library it became cannot be loaded.
    """
    made_from = recipe.key(program)
    with _LOCKS.setdefault(made_from, threading.Lock()):
        if made_from not in _LOADED:
            _LOADED[made_from] = (_kept(kind, made_from, mode)
                                  or _made(kind, made_from, program, recipe, name, mode))
        return _LOADED[made_from]


def _kept(kind: str, made_from: str, mode: int) -> ctypes.CDLL | None:
    """A library of the cache folder; None where it is not there, is damaged, or may not be run."""
    with contextlib.suppress(OSError):
        for path in sorted((folder(kind) / made_from).glob("*.so")):
            if path.stem == _digest(path.read_bytes()):
                return ctypes.CDLL(str(path), mode=mode)
            path.unlink()
    return None


def _made(kind: str, made_from: str, program: str, recipe: Recipe, name: str,
          mode: int) -> ctypes.CDLL:
    with _private_folder() as private:
        source, target = Path(private) / f"{name}.cpp", Path(private) / f"{name}.so"
        source.write_text(program, "utf-8")
        _compile(recipe, source, target, program)
        try:
            binary = target.read_bytes()
        except OSError as error:
            raise KernelError(f"{recipe.compiler.command[0]} made no file, and said nothing of "
                              f"it: {error}") from error
        kept = write(kind, f"{made_from}/{_digest(binary)}.so", binary)
        if kept:
            with contextlib.suppress(OSError):
                return ctypes.CDLL(str(kept), mode=mode)
        try:
            return ctypes.CDLL(str(target), mode=mode)
        except OSError as error:
            raise KernelError(f"a compiled program cannot be loaded: {error}") from error


def _private_folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="gtape-")
    except OSError as error:
        raise KernelError(f"compiling needs a temporary folder: {error}; set TMPDIR to one that "
                          "can be written to") from error


def _digest(binary: bytes) -> str:
    return sha256(binary).hexdigest()[:40]


def _compile(recipe: Recipe, source: Path, target: Path, program: str) -> None:
    known = [option for option in recipe.optional if _accepted(recipe.compiler, option)]
    command = [*recipe.compiler.command, *recipe.options, *known, str(source), "-shared", "-o",
               str(target), *recipe.libraries]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise KernelError(f"{command[0]} cannot be started: {error}") from error
    if done.returncode:
        raise KernelError(f"a program does not compile with {command[0]}:\n"
                          f"{_readable(done.stderr, program)}")


def _readable(messages: str, program: str) -> str:
    """The first error of a compiler, with the line of the program that it names."""
    found = _ERROR.search(messages)
    if found is None:
        return "\n".join(messages.strip().splitlines()[-12:])
    shown = excerpt(program, found[1], int(found[2]))
    more = messages[found.end():].strip().splitlines()[:8]
    return "\n".join([found[0], *filter(None, [shown]), *more])


@cache
def _accepted(compiler: Compiler, option: str) -> bool:
    command = [*compiler.command, option, "-E", "-x", "c++", os.devnull]
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


if hasattr(os, "register_at_fork"):
    # A lock that another thread held when the process forked would stay held in the child.
    os.register_at_fork(after_in_child=_LOCKS.clear)

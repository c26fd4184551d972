"""C++ text to loaded shared libraries, through the system's compiler and the cache folder.

A library is kept as `<key>/<digest>.so`: the key says what it was made from, the digest what is in
it. Loading a library that was cut short can kill the process, so the digest is compared first.
Commands of the system run to their end, or are stopped with all that they started.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from gtape.core.errors import KernelError, MissingError, PassingError, PermissionDeniedError
from gtape.devices import cache as kept
from gtape.devices import ownership
from gtape.devices.kernel_source import excerpt

#: Names of libraries that are loaded into a program for a sanitizer to watch it.
_SANITIZER = re.compile(r"lib(clang_rt\.)?(a|hwa|l|m|t|ub)san\b")


class Finished(NamedTuple):
    """The exit status of a command, and what it printed."""

    status: int
    printed: str
    errors: str


def run(command: Sequence[str], seconds: float, temporary: Path | None = None) -> Finished:
    """The command's result, with messages in English. Its temporary files lie in `temporary`.
    Raises PassingError: it cannot be started, takes longer than `seconds`, or is stopped again.

    It has a session of its own, so Ctrl-C at the terminal reaches only the program that waits for
    it. One that a signal stops is started once more.
    """
    # Twice: the kernel's killer of processes picks one where memory is short, and a moment later
    # there is room again.
    for _ in range(2):
        done = _attempt(command, seconds, temporary)
        if done.status >= 0:
            return done
    raise PassingError(f"{command[0]} was stopped by signal {-done.status}")


def _attempt(command: Sequence[str], seconds: float, temporary: Path | None) -> Finished:
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            encoding="utf-8", errors="replace", env=_environment(temporary),
            start_new_session=True)
    except OSError as error:
        raise PassingError(f"{command[0]} cannot be started: {error}") from error
    with process:
        try:
            printed, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            _stop(process)
            raise PassingError(f"{command[0]} did not end within {seconds:g} seconds, "
                               "and was stopped") from error
        except BaseException:
            _stop(process)
            raise
    return Finished(process.returncode, printed, errors)


def _environment(temporary: Path | None) -> dict[str, str]:
    """This process's, but for the sanitizers that watch it: a compiler takes three times as long
    with them."""
    loaded = re.split("[ :]+", os.environ.get("LD_PRELOAD", ""))
    there = {} if temporary is None else {"TMPDIR": str(temporary)}
    return {**os.environ, "LC_ALL": "C", **there, "LD_PRELOAD": " ".join(
        name for name in loaded if not _SANITIZER.match(os.path.basename(name)))}


def _stop(process: subprocess.Popen[str]) -> None:
    """End the command and what it started; its number is its group's until it is waited for."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


_ERROR = re.compile(r"^(.+?):(\d+):(?:\d+:)? (?:fatal )?error: .*$", re.MULTILINE)
#: What compilers say where a part of theirs was killed, or the disk is full.
_PASSING = re.compile(r"(Killed|Terminated) signal terminated program|command failed due to signal"
                      r"|unable to execute command: (Killed|Terminated)|No space left on device")
#: Seconds that a compiler may take to say what it is, and to compile a program.
_ANSWERING, _COMPILING = 15.0, 600.0
#: Libraries in use by key. None is loaded twice: a second copy would have a state of its own.
_LOADED: MutableMapping[str, Library] = WeakValueDictionary()
_LOCKS: dict[str, threading.Lock] = {}
#: What the names of folders for compilations begin with, and the seconds after which one of them
#: belongs to a process that was killed.
_PRIVATE, _FORSAKEN = "gtape-compile-", 86400.0


class Library(ctypes.CDLL):
    """A loaded library, which goes when nothing refers to it or to a function of it: a process may
    have some ten thousand loaded at once, and no more."""

    def __del__(self) -> None:
        # Until the end of the process, threads may run in it.
        if "_handle" in self.__dict__ and not sys.is_finalizing():
            import _ctypes  # where there are libraries to load, it has this function

            _ctypes.dlclose(self._handle)


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
        lists = (self.compiler.command, self.options, self.optional, self.libraries)
        return kept.key(program, *map(" ".join, lists), self.compiler.version, self.machine)


@cache
def compiler(purpose: str, names: tuple[str, ...] = ("c++", "g++", "clang++")) -> Compiler:
    """The compiler of CXX, else the first of `names` that there is. Raises MissingError: there is
    none; the message begins with `purpose`; KernelError: CXX cannot be read, or the compiler does
    not answer."""
    given = _given()
    for command in [given] if given else [[name] for name in names]:
        if shutil.which(command[0]):
            # The version is part of the key: another compiler behind the same name makes another
            # library.
            version = run([*command, "--version"], _ANSWERING).printed
            return Compiler(tuple(command), version)
    raise MissingError(f"{purpose} needs a C++ compiler" + (
        f", and CXX={given[0]} is none" if given else "") + ": install g++ (apt install g++, "
        "dnf install gcc-c++) or clang++, or set CXX to one")


def _given() -> list[str]:
    text = os.environ.get("CXX", "")
    try:
        return shlex.split(text)
    except ValueError as error:
        raise KernelError(f"CXX must be a command as a shell reads it; it was {text!r} ({error}): "
                          "close the quotation, or unset CXX") from error


def output(*command: str) -> str:
    """What a command prints; "" where it cannot be run."""
    with contextlib.suppress(PassingError):
        return run(command, _ANSWERING).printed
    return ""


def load(kind: str, program: str, recipe: Recipe, *, name: str = "program",
         mode: int = ctypes.RTLD_LOCAL) -> Library:
    """The library of `program`: loaded already, in the cache folder, or compiled now. Raises
    PassingError: the compiler was stopped, or lacked space or files; nothing of it is kept;
    KernelError: the program does not compile; or the library it became cannot be loaded.

    Who takes an address in it keeps the library as well.
    """
    made_from = recipe.key(program)
    # For each text: two threads that want one program compile it once, and do not hold up others.
    with _LOCKS.setdefault(made_from, threading.Lock()):
        library = _LOADED.get(made_from)
        if library is None:
            library = _LOADED[made_from] = (_kept(kind, made_from, mode)
                                            or _build(kind, made_from, program, recipe, name, mode))
        return library


def function(library: ctypes.CDLL, name: str) -> Any:
    """The function `name` of a loaded library. Raises KernelError: it has none of this name."""
    try:
        return library[name]  # as an attribute it and the library would hold each other
    except AttributeError as error:
        raise KernelError(f"a compiled program lacks its function {name}: CXX may be no C++ "
                          f"compiler; correct it, and remove {library._name} if it is there",
                          ) from error


def _kept(kind: str, made_from: str, mode: int) -> Library | None:
    """A library of the cache folder; None where it is not there, is damaged, or may not be run."""
    for path, binary in kept.each(kind, made_from):
        with contextlib.suppress(OSError):
            # What a crash or a full disk cut short has another digest, and dlopen of it may end the
            # process.
            if path.stem == _digest(binary):
                return Library(str(path), mode=mode)
            path.unlink()
    return None


def _build(kind: str, made_from: str, program: str, recipe: Recipe, name: str,
           mode: int) -> Library:
    with _private_folder() as private:
        target, binary = _compiled(private, program, recipe, name)
        # Loaded from the cache where that worked, so that the private folder can go at once; a file
        # that is mapped stays where the folder is removed.
        path = kept.write(kind, f"{made_from}/{_digest(binary)}.so", binary)
        if path:
            with contextlib.suppress(OSError):
                return Library(str(path), mode=mode)
        try:
            return Library(str(target), mode=mode)
        except OSError as error:
            raise KernelError(f"a compiled program cannot be loaded: {error}") from error


def file(kind: str, made_from: str, program: str, recipe: Recipe, *, name: str = "program",
         headers: Mapping[str, str] = MappingProxyType({})) -> Path:
    """As `load`, a file in the cache folder that is not loaded; `made_from` says all that it was
    made from. `headers` are files that the program includes.

    Raises:
        PassingError: as `load`; or nothing can be kept.
        KernelError: the program does not compile.
    """
    for path, binary in kept.each(kind, made_from):
        if path.stem == _digest(binary):
            return path
    with _private_folder() as private:
        for header, text in headers.items():
            place = (private / header).resolve()
            if not place.is_relative_to(private.resolve()):
                raise KernelError(f"the header {header!r} would lie outside its folder")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8", "surrogateescape")
        if headers:
            recipe = recipe._replace(options=(*recipe.options, "-I", str(private)))
        _, binary = _compiled(private, program, recipe, name)
        written = kept.write(kind, f"{made_from}/{_digest(binary)}.so", binary)
    if written is None:
        raise PassingError("a compiled library could not be kept: the cache folder cannot be "
                           "written to; set GTAPE_CACHE_DIR to one that can")
    return written


def _compiled(private: Path, program: str, recipe: Recipe, name: str) -> tuple[Path, bytes]:
    """The library made of a program, in the folder `private`, and its bytes."""
    source, target = private / f"{name}.cpp", private / f"{name}.so"
    with _storing():
        source.write_text(program, "utf-8", "surrogateescape")
    _compile(recipe, source, target, program)
    if not target.exists():
        raise KernelError(f"{recipe.compiler.command[0]} made no file, and said nothing of it")
    with _storing():
        return target, target.read_bytes()


@contextlib.contextmanager
def _private_folder() -> Iterator[Path]:
    """A folder for the time of a compilation, where nobody else can put another library. It is not
    `TemporaryDirectory`, which a forked child would remove as it ends."""
    with _storing():
        temporary = Path(tempfile.gettempdir())
    _sweep(temporary)
    private = temporary / f"{_PRIVATE}{secrets.token_hex(8)}"
    try:
        with _storing():
            private.mkdir(mode=0o700)
            ownership.trusted(private)
        yield private
    finally:
        shutil.rmtree(private, ignore_errors=True)


@cache
def _sweep(temporary: Path) -> None:
    """Remove what killed compilations left; once in a process."""
    before = time.time() - _FORSAKEN
    for folder in temporary.glob(f"{_PRIVATE}*"):
        with contextlib.suppress(OSError):
            if folder.lstat().st_mtime < before:
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _storing() -> Iterator[None]:
    try:
        yield
    except (OSError, PermissionDeniedError) as error:
        raise PassingError(f"compiling needs a temporary folder: {error}; set TMPDIR to a folder "
                           "of this user's that can be written to and has room") from error


def _digest(binary: bytes) -> str:
    return sha256(binary).hexdigest()[:40]


def _compile(recipe: Recipe, source: Path, target: Path, program: str) -> None:
    known = [option for option in recipe.optional if _accepted(recipe.compiler, option)]
    command = [*recipe.compiler.command, *recipe.options, *known, str(source), "-shared", "-o",
               str(target), *recipe.libraries]
    done = _finished(command, target.parent)
    if done.status:
        said = _readable(done.errors, program) or f"exit status {done.status}, and no message"
        failure = PassingError if _PASSING.search(done.errors) else KernelError
        raise failure(f"a program does not compile with {command[0]}:\n{said}")


def _finished(command: list[str], folder: Path) -> Finished:
    """Compiled; once more where it failed for what may pass. A compiler that is killed leaves its
    files in `folder`."""
    done = run(command, _COMPILING, folder)
    if done.status and _PASSING.search(done.errors):
        return run(command, _COMPILING, folder)
    return done


def _readable(messages: str, program: str) -> str:
    """The first error of a compiler, with the line of the program that it names."""
    error = _ERROR.search(messages)
    if error is None:
        return "\n".join(messages.strip().splitlines()[-12:])
    shown = excerpt(program, error[1], int(error[2]))
    more = messages[error.end():].strip().splitlines()[:8]
    return "\n".join([error[0], *filter(None, [shown]), *more])


# Asked once for each option, since it is asked by starting the compiler.
@cache
def _accepted(compiler: Compiler, option: str) -> bool:
    command = [*compiler.command, option, "-E", "-x", "c++", os.devnull]
    return run(command, _ANSWERING).status == 0


if hasattr(os, "register_at_fork"):
    # A lock that another thread held when the process forked would stay held in the child.
    os.register_at_fork(after_in_child=_LOCKS.clear)

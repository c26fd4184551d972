"""Compilers that are there and do not work: NumPy with one warning, and no other error."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gtape.core.errors import KernelError, MissingError, PassingError
from gtape.devices import compiler
from gtape.devices.compiler import Recipe

pytestmark = pytest.mark.native

#: Two traced functions, the second one after what stood in the way is gone.
SCRIPT = """
import os, pathlib, warnings
import gtape as tf
warnings.simplefilter("always")
x = tf.constant([1.0, 2.0])
for fn in (tf.sin, tf.cos):
    f = tf.function(fn)
    assert abs(f(x) - fn(x)).numpy().max() < 1e-6
    print("native" if "GTAPE_EXPORT" in str(f.inspect(x)) else "numpy")
    pathlib.Path("broken").unlink(missing_ok=True)
"""
Script = Callable[[str], str]


@pytest.fixture
def fake(tmp_path: Path) -> Script:
    """Makes a compiler of shell text, which answers `--version`; `$*` are its arguments."""

    def made(text: str) -> str:
        path = tmp_path / "fake"
        path.write_text(f'#!/bin/sh\ncase "$*" in *--version*) echo 1; exit;; esac\n{text}\n')
        path.chmod(0o755)
        return str(path)

    return made


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A process that knows no compiler yet."""
    compiler.compiler.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    compiler.compiler.cache_clear()


def compiled(command: str, text: str = "int x;\n") -> ctypes.CDLL:
    recipe = Recipe(compiler.Compiler((command,), "1"), ())
    return compiler.load("cpu", text, recipe)


def script(folder: Path, command: str, **more: str) -> tuple[list[str], list[str]]:
    """How two functions run, and what is warned of."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=folder, capture_output=True, text=True, timeout=300,
        check=False, env={**os.environ, "CXX": command, "GTAPE_CACHE_DIR": str(folder), **more})
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), [line for line in done.stderr.splitlines() if "Warning: " in line]


@pytest.mark.parametrize(("command", "reason"), [
    ("false", r"a program does not compile with false:"),
    ("true", r"true made no file"),
    ("g++ 'x", r"CXX must be a command .* \(No closing quotation\)"),
])
def test_one_that_compiles_nothing_is_warned_of_once(tmp_path: Path, command: str,
                                                     reason: str) -> None:
    ran, warned = script(tmp_path, command)
    assert ran == ["numpy"] * 2
    (warning,) = warned
    assert warning.startswith("<string>:")  # the user's line
    assert re.search(reason, warning)


@pytest.mark.parametrize(("command", "more"), [
    ("no-such-compiler", {}), ("false", {"GTAPE_NATIVE": "0"})])
def test_no_compiler_is_not_warned_of(tmp_path: Path, command: str, more: dict[str, str]) -> None:
    assert script(tmp_path, command, **more) == (["numpy"] * 2, [])


def test_one_that_is_stopped_is_tried_again_for_the_next_program(tmp_path: Path,
                                                                 fake: Script) -> None:
    (tmp_path / "broken").touch()
    ran, warned = script(tmp_path, fake('test -e broken && kill -9 $$\nexec c++ "$@"'))
    assert ran == ["numpy", "native"]
    (warning,) = warned
    assert "fake was stopped by signal 9" in warning


def test_a_runtime_without_its_functions(tmp_path: Path, fake: Script) -> None:
    empty = ('while [ "$1" != -o ]; do shift; done\n'
             'exec c++ -shared -o "$2" -x c++ /dev/null')
    ran, warned = script(tmp_path, fake(f'case "$*" in *-E*) exit;; esac\n{empty}'))
    assert ran == ["numpy"] * 2
    (warning,) = warned
    assert "lacks its function gtape_set_threads" in warning


def test_a_silent_failure_has_its_exit_status(fake: Script) -> None:
    with pytest.raises(KernelError, match=r"fake:\nexit status 7, and no message$") as caught:
        compiled(fake("exit 7"))
    assert not isinstance(caught.value, PassingError)


def test_messages_that_are_not_utf_8(fake: Script) -> None:
    with pytest.raises(KernelError, match="fake:\na\ufffdb"):
        compiled(fake(r"printf 'a\377b' >&2; exit 1"))


@pytest.mark.parametrize("message", [
    "c++: fatal error: Killed signal terminated program cc1plus",
    "fatal error: error writing to /tmp/x.s: No space left on device"])
def test_what_may_pass_is_tried_twice(fake: Script, tmp_path: Path, message: str) -> None:
    command = fake(f"echo >> {tmp_path}/tried; echo '{message}' >&2; exit 1")
    with pytest.raises(PassingError, match=re.escape(message)):
        compiled(command)
    assert (tmp_path / "tried").read_text() == "\n\n"


def test_an_error_of_the_text_is_no_passing_one(fake: Script, tmp_path: Path) -> None:
    command = fake(f'echo >> {tmp_path}/tried; exec c++ "$@"')
    with pytest.raises(KernelError, match="error: ") as caught:
        compiled(command, "nonsense\n")
    assert not isinstance(caught.value, PassingError)
    assert (tmp_path / "tried").read_text() == "\n"


def test_one_that_hangs(fake: Script, fresh: pytest.MonkeyPatch) -> None:
    fresh.setattr(compiler, "_COMPILING", 0.2)
    fresh.setattr(compiler, "_ANSWERING", 0.2)
    with pytest.raises(PassingError, match=r"fake did not end within 0.2 seconds"):
        compiled(fake("sleep 1000"))
    fresh.setenv("CXX", "sh -c 'sleep 1000'")
    with pytest.raises(PassingError, match=r"sh did not end within 0.2 seconds"):
        compiler.compiler("native code")


def test_an_option_is_not_judged_by_a_compiler_that_was_stopped(fake: Script) -> None:
    known = compiler.Compiler((fake("kill -9 $$"),), "1")
    for _ in range(2):
        with pytest.raises(PassingError, match="stopped by signal 9"):
            compiler._accepted(known, "-O1")


def test_a_disk_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    before = set(Path(tempfile.gettempdir()).glob("gtape-*"))
    with pytest.raises(PassingError, match=r"temporary folder: .*No space left.*has room"):
        compiled("c++")
    assert set(Path(tempfile.gettempdir()).glob("gtape-*")) <= before


def test_kinds_of_errors(fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("CXX", "no-such-compiler")
    with pytest.raises(MissingError):
        compiler.compiler("native code")
    fresh.setenv("CXX", "g++ 'x")
    with pytest.raises(KernelError, match=r"CXX .*it was \"g\+\+ 'x\" .*unset CXX") as caught:
        compiler.compiler("native code")
    assert not isinstance(caught.value, MissingError)


def test_one_that_is_killed_leaves_no_files(fake: Script, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    command = fake(f'echo "$TMPDIR" >> {tmp_path}/seen; : > "$TMPDIR/ccabc.s"; kill -9 $$')
    with pytest.raises(PassingError, match="signal 9"):
        compiled(command)
    seen = set((tmp_path / "seen").read_text().split())
    assert len(seen) == 1 and all(s.startswith(str(temporary)) for s in seen)
    assert not list(temporary.iterdir())

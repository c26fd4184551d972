"""A cache folder in which somebody else may have put machine code: nothing of it is run."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gtape.core.errors import CacheWarning, PassingError, PermissionDeniedError
from gtape.devices import cache, compiler, ownership
from gtape.devices.cpu.toolchain import library, why_not
from gtape.devices.cuda.runtime import cubins
from gtape.devices.cuda.runtime.kernel import Kernel
from tests import forking

pytestmark = [
    pytest.mark.native(required=False),
    pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no owners of files")]
needs_compiler = pytest.mark.skipif(bool(why_not()), reason=why_not() or "native")
needs_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0,
                                reason="only root may give files away")

ANSWER = '#include "cpu_threads.h"\nGTAPE_EXPORT int answer() { return %d; }\n'
STRANGER = 4242


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The cache folder of a process that has loaded nothing and warned of nothing."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "kept"))
    monkeypatch.setattr(compiler, "_LOADED", {})
    monkeypatch.setattr(cache, "_WARNED", set())
    cubins.forget()
    yield tmp_path / "kept"
    cubins.forget()


def answer(number: int = 42) -> int:
    compiler._LOADED.clear()
    return library(ANSWER % number, name="answer").answer()


def planted(folder: Path) -> Path:
    """A library of another answer in the place of that of 42, its digest being right."""
    assert (answer(42), answer(666)) == (42, 666)
    real, other = (next((folder / "cpu").glob(f"*/{compiler._digest(binary)}.so"))
                   for binary in (_binary(folder, 42), _binary(folder, 666)))
    target = real.with_name(other.name)
    os.replace(other, target)
    real.unlink()
    assert answer(42) == 666  # as the name is that of the content, only the owner tells
    return target


def _binary(folder: Path, number: int) -> bytes:
    from gtape.devices.cpu.toolchain import recipe
    from gtape.devices.kernel_source import expand

    key = recipe().key(expand(ANSWER % number, "answer"))
    (path,) = (folder / "cpu" / key).iterdir()
    return path.read_bytes()


def give_away(path: Path) -> None:
    os.chown(path, STRANGER, -1)


def open_to(mode: int) -> Callable[[Path], None]:
    return lambda path: path.chmod(stat.S_IMODE(path.stat().st_mode) | mode)


def _exchange(path: Path) -> None:
    """A link in the place of a file, to what was there."""
    elsewhere = path.parent.parent / "elsewhere"
    os.rename(path, elsewhere)
    path.symlink_to(elsewhere)


CHANGES = [
    pytest.param(open_to(0o020), "others may write to '.*' .mode 0620", id="group"),
    pytest.param(open_to(0o002), "others may write to '.*' .mode 0602", id="others"),
    pytest.param(give_away, f"belongs to user {STRANGER}", id="owner", marks=needs_root)]


@needs_compiler
@pytest.mark.parametrize(("change", "reason"), CHANGES)
def test_a_library_that_others_may_have_written(folder: Path, change: Callable[[Path], None],
                                                reason: str) -> None:
    change(planted(folder))
    with pytest.warns(CacheWarning, match=reason):
        assert answer(42) == 42


@needs_compiler
@pytest.mark.parametrize("above", [1, 2, 3], ids=["of the program", "of its kind", "of all"])
@pytest.mark.parametrize("change", [
    pytest.param(open_to(0o022), id="others"),
    pytest.param(open_to(0o002), id="any"),
    pytest.param(give_away, id="owner", marks=needs_root)])
def test_a_folder_that_others_may_have_written(folder: Path, change: Callable[[Path], None],
                                               above: int) -> None:
    library_file = planted(folder)
    change(library_file.parents[above - 1])
    with pytest.warns(CacheWarning, match=r"others may write|belongs to user"):
        assert answer(42) == 42
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answer(42) == 42  # it was said
    assert {p.name for p in library_file.parent.iterdir()} == {library_file.name}


@needs_compiler
def test_a_folder_above_that_others_may_write_to(folder: Path) -> None:
    planted(folder)
    folder.parent.chmod(0o777)
    with pytest.warns(CacheWarning, match=r"others may write to '.*' .mode 0777"):
        assert answer(42) == 42
    folder.parent.chmod(0o1777)  # as /tmp: what is in it cannot be exchanged
    assert answer(42) == 666


@needs_compiler
def test_a_linked_library_is_not_loaded(folder: Path) -> None:
    _exchange(planted(folder))
    assert answer(42) == 42


@needs_compiler
def test_a_link_leads_to_a_folder_that_is_looked_at(folder: Path) -> None:
    target = planted(folder)
    _exchange(target.parent)
    assert answer(42) == 666
    (folder / "elsewhere").chmod(0o777)
    with pytest.warns(CacheWarning, match="elsewhere"):
        assert answer(42) == 42


@needs_compiler
def test_one_that_cannot_be_loaded_does_not_hide_the_next(
        folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer(42) == 42
    (kept,) = (p for p in folder.rglob("*.so") if b"answer" in p.read_bytes())
    for text in (f"{n}".encode() for n in range(10**6)):
        if compiler._digest(text) < kept.stem:
            kept.with_name(f"{compiler._digest(text)}.so").write_bytes(text)
            break
    monkeypatch.setattr(compiler, "_compile", None)
    assert answer(42) == 42


@pytest.mark.parametrize("change", [open_to(0o022), pytest.param(give_away, marks=needs_root)])
def test_kernels_of_gpus(folder: Path, change: Callable[[Path], None]) -> None:
    kernel = Kernel("__global__ void nothing(float* x, long long n) {}\n", "nothing")
    name = cubins.file_name(kernel, "sm_90", "13.0")
    cache.write(cubins.KIND, name, cubins.packed(cubins.Cubin(b"planted", "nothing")))
    assert cubins.unpacked(cache.read(cubins.KIND, name)) == (b"planted", "nothing")
    change(folder / cubins.KIND / name)
    with pytest.warns(CacheWarning):
        assert cache.read(cubins.KIND, name) is None
    assert list(cache.each(cubins.KIND, "")) == []


@needs_compiler
def test_the_place_where_a_program_is_compiled(folder: Path, tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setattr(compiler.tempfile, "tempdir", str(shared))
    with pytest.raises(PassingError, match=r"others may write to '.*shared'.*set TMPDIR"):
        answer(43)
    assert not list(shared.iterdir())
    shared.chmod(0o1777)
    assert answer(43) == 43


SCRIPT = "from gtape.devices import cache; print(cache.write('cpu', 'f' * 40, b'content'))"


def run(folder: Path, umask: int = 0o022, **environment: str) -> str:
    """What `SCRIPT` prints in `folder`."""
    without = {name: value for name, value in os.environ.items()
               if name not in ("HOME", "XDG_CACHE_HOME", cache.VARIABLE)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=folder, text=True, check=True,
                          capture_output=True, env={**without, **environment}, umask=umask)
    return done.stdout.strip()


def test_folders_are_for_one_user_whatever_the_umask(tmp_path: Path) -> None:
    kept = Path(run(tmp_path, umask=0, HOME=str(tmp_path)))
    assert kept == tmp_path / ".cache" / "gtape" / "cpu" / ("f" * 40)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    for folder in (tmp_path / ".cache", tmp_path / ".cache" / "gtape", kept.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("environment", [
    {"HOME": ""}, {"HOME": "here"}, {"HOME": "~"}, {"HOME": "here", "XDG_CACHE_HOME": "here"},
    {cache.VARIABLE: "here"}, {cache.VARIABLE: "~nobody-of-this-name/x"}, {cache.VARIABLE: "./~"}],
    ids=str)
def test_no_folder_is_made_where_the_program_happens_to_run(tmp_path: Path,
                                                            environment: dict[str, str]) -> None:
    assert run(tmp_path, **environment) == "None"
    assert not list(tmp_path.iterdir())


def test_a_relative_xdg_folder_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    found = run(tmp_path, HOME=str(tmp_path / "home"), XDG_CACHE_HOME="here")
    assert found.startswith(str(tmp_path / "home" / ".cache"))
    assert [p.name for p in tmp_path.iterdir()] == ["home"]


def test_a_user_without_a_home(folder: Path, tmp_path: Path,
                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(cache.os.path, "expanduser", lambda path: path)  # as for an unknown user
    monkeypatch.chdir(tmp_path)
    with pytest.warns(CacheWarning, match="no home"):
        assert cache.write("cpu", "name", b"content") is None
    assert not list(tmp_path.iterdir())
    assert cache.state() == (None, "this user has no home folder (HOME)")


@needs_root
def test_root_with_the_home_of_a_user(folder: Path, tmp_path: Path,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """As under `sudo -E`."""
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    give_away(tmp_path)
    with pytest.warns(CacheWarning, match=f"belongs to user {STRANGER}, and .* as user 0"):
        assert cache.write("cpu", "name", b"content") is None
    assert not list(tmp_path.iterdir())
    assert f"belongs to user {STRANGER}" in cache.state()[1]


@needs_root
def test_a_folder_that_another_user_made_before() -> None:
    with tempfile.TemporaryDirectory() as shared:  # as /tmp is: its name is known to everybody
        os.chmod(shared, 0o1777)

        def written_by(user: int) -> bool:
            def work() -> bool:
                os.umask(0)
                os.setgid(user)
                os.setuid(user)
                os.environ[cache.VARIABLE] = f"{shared}/kept"
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    return cache.write("cpu", f"of-{user}", b"content") is not None

            return forking.child(work)

        assert [written_by(user) for user in (STRANGER, STRANGER + 1, STRANGER)] == [
            True, False, True]
        assert [p.name for p in Path(shared, "kept", "cpu").iterdir()] == [f"of-{STRANGER}"]


def test_a_group_with_its_owner_alone_may_write_above(tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the umask is 002 and every user has a group."""
    import grp
    import pwd
    from types import SimpleNamespace as Entry

    user, group = os.geteuid(), tmp_path.stat().st_gid
    me = Entry(pw_name="me", pw_uid=user, pw_gid=group)
    users, members = [me], ["me"]
    monkeypatch.setattr(pwd, "getpwuid", lambda _: me)
    monkeypatch.setattr(pwd, "getpwall", lambda: users)
    monkeypatch.setattr(grp, "getgrgid", lambda _: Entry(gr_mem=members))
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    inner.parent.chmod(0o775)
    assert ownership.trusted(inner) == inner

    def refused(mode: str) -> None:
        with pytest.raises(PermissionDeniedError, match=mode):
            ownership.trusted(inner)

    with monkeypatch.context() as listed:
        listed.setattr(ownership, "_has_access_list", lambda _: True)
        refused("0775")
    members.append("you")
    refused("0775")
    members.pop()
    users.append(Entry(pw_name="you", pw_uid=user + 1, pw_gid=group))
    refused("0775")
    users.pop()
    inner.chmod(0o770)  # where the files are, no group may write
    refused("0770")

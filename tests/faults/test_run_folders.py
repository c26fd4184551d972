"""Run folders that cannot be listed, synced or filled any more, and files that others own."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gtape as tf
from gtape import train
from gtape.core import atomic_files, safetensors_files
from tests import forking

posix = pytest.mark.skipif(os.name != "posix", reason="needs the rights of POSIX")
needs_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0,
                                reason="only root may become somebody else")
PASSING = [errno.EACCES, errno.EIO, errno.ESTALE, errno.ETIMEDOUT]
STRANGER = 4242


def manager_of(folder: Path, value: float = 0.0, **options: Any) -> tuple[Any, Any]:
    variable = tf.Variable(value)
    options = {"max_to_keep": 2, **options}
    return variable, train.CheckpointManager(train.Checkpoint(v=variable), folder, **options)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run that saved twice."""
    variable, manager = manager_of(tmp_path / "run")
    for number in (1.0, 2.0):
        variable.assign(number)
        manager.save()
    return tmp_path / "run"


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user may read."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


@contextlib.contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, number: int, *functions: str) -> Iterator[None]:
    """Functions of `os` that fail with this error."""
    def fail(*args: object, **_: object) -> None:
        raise OSError(number, os.strerror(number), *map(str, args[:1]))

    with monkeypatch.context() as patched:
        for function in functions:
            patched.setattr(os, function, fail)
        yield


# ---------------------------------------------------------------- listing

@pytest.mark.parametrize("number", PASSING)
def test_a_folder_that_cannot_be_listed_is_not_empty(
        run: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    variable, manager = manager_of(run, init_fn=lambda: started.append(1))
    before = names(run)
    error = tf.errors.PermissionDeniedError if number == errno.EACCES else OSError
    for use in (manager.restore_or_initialize, manager.save, lambda: manager.checkpoints,
                lambda: manager.latest_checkpoint, lambda: train.latest_checkpoint(run)):
        with failing(monkeypatch, number, "listdir", "scandir"), pytest.raises(
                error, match=os.strerror(number)):
            use()
    assert not started and names(run) == before
    assert int(manager.checkpoint.save_counter) == 0
    assert Path(manager.restore_or_initialize()).stem == "ckpt-2" and float(variable) == 2
    assert Path(manager.save()).stem == "ckpt-3"


@needs_root
def test_a_folder_that_may_not_be_listed(public: Path) -> None:
    manager_of(public)[1].save()
    public.chmod(0o711)

    def refused() -> bool:
        os.setuid(STRANGER)
        try:
            train.latest_checkpoint(public)
        except tf.errors.PermissionDeniedError as error:
            return "cannot be listed: Permission denied" in str(error)
        return False

    assert forking.child(refused)


def test_a_list_that_cannot_be_read_is_not_an_old_one(run: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """By the numbers alone, the latest would be another one."""
    _, manager = manager_of(run, max_to_keep=None)
    manager.save(checkpoint_number=1)
    read = Path.read_text

    def stale(path: Path, *args: Any) -> str:
        if path.name == "checkpoint":
            raise OSError(errno.ESTALE, "Stale file handle", str(path))
        return read(path, *args)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", stale)
        with pytest.raises(OSError, match="Stale"):
            train.latest_checkpoint(run)
        with pytest.raises(OSError, match="Stale"):
            manager.save()
    assert Path(str(train.latest_checkpoint(run))).stem == "ckpt-1"


def test_only_a_missing_folder_is_empty(tmp_path: Path) -> None:
    assert train.latest_checkpoint(tmp_path / "absent" / "too") is None
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        train.latest_checkpoint(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        train.latest_checkpoint(tmp_path / "file" / "inside")


@pytest.mark.parametrize("function", ["unlink"])
def test_an_old_one_that_cannot_be_removed_is_tried_again(
        run: Path, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, manager = manager_of(run)
    manager.restore_or_initialize()
    with failing(monkeypatch, errno.EBUSY, function):
        assert Path(manager.save()).stem == "ckpt-3"
    assert [Path(p).stem for p in manager.checkpoints] == ["ckpt-1", "ckpt-2", "ckpt-3"]
    manager.save()
    assert [Path(p).stem for p in manager.checkpoints] == ["ckpt-3", "ckpt-4"]


# ---------------------------------------------------------------- syncing

def unsyncable(monkeypatch: pytest.MonkeyPatch, number: int, opening: bool = False) -> None:
    """Folders cannot be forced to the disk, or not even opened for that; files can."""
    opened, forced = os.open, os.fsync

    def no_folder(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if opening and os.path.isdir(path):
            raise OSError(number, os.strerror(number), str(path))
        return opened(path, flags, *args, **kwargs)

    def no_sync(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        forced(handle)

    monkeypatch.setattr(os, "open", no_folder)
    monkeypatch.setattr(os, "fsync", no_sync)


@posix
@pytest.mark.parametrize("opening", [False, True])
@pytest.mark.parametrize("number", [errno.EINVAL, errno.EACCES, errno.ENOTSUP, errno.EPERM])
def test_a_folder_that_cannot_be_synced(tmp_path: Path, number: int, opening: bool,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    unsyncable(monkeypatch, number, opening)
    variable, manager = manager_of(tmp_path / "run", max_to_keep=3)
    for i in (1, 2, 3):
        variable.assign(float(i))
        assert Path(manager.save()).stem == f"ckpt-{i}"
    assert train.Checkpoint(v=variable).write(tmp_path / "other")
    assert Path(train.Checkpoint(v=variable).save(tmp_path / "other")).stem == "other-1"


@posix
def test_a_disk_that_fails_as_a_folder_is_synced_is_told_of(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unsyncable(monkeypatch, errno.EIO)
    _, manager = manager_of(tmp_path)
    with pytest.warns(UserWarning, match="after a power cut they may be missing: Input/output"):
        assert Path(manager.save()).stem == "ckpt-1"
    assert names(tmp_path) == ["checkpoint", "ckpt-1.safetensors"]


# ---------------------------------------------------------------- files

@needs_root
def test_an_unreadable_file_is_not_missing(public: Path) -> None:
    path = Path(manager_of(public)[1].save())
    path.chmod(0o600)

    def refused() -> bool:
        os.setuid(STRANGER)
        try:
            train.Checkpoint(v=tf.Variable(0.0)).restore(path)
        except tf.errors.PermissionDeniedError as error:
            return "ckpt-1.safetensors' cannot be read: Permission denied" in str(error)
        return False

    assert forking.child(refused)


@pytest.mark.parametrize("number", PASSING)
def test_a_file_that_cannot_be_read_now(run: Path, number: int,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = train.Checkpoint(v=tf.Variable(0.0))
    error = tf.errors.PermissionDeniedError if number == errno.EACCES else OSError
    with failing(monkeypatch, number, "stat"), pytest.raises(error, match=os.strerror(number)):
        checkpoint.restore(run / "ckpt-2")

    def failed(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(safetensors_files, "_values", failed)
    with pytest.raises(error, match=os.strerror(number)):
        checkpoint.restore(run / "ckpt-2")
    with pytest.raises(OSError, match=rf"{os.strerror(number)}: '.*ckpt-2"):
        safetensors_files.read(run / "ckpt-2.safetensors", "the file")


@posix
@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_what_is_no_file(run: Path, kind: str) -> None:
    place = run / "ckpt-9.safetensors"
    {"folder": place.mkdir, "pipe": lambda: os.mkfifo(place),
     "link": lambda: place.symlink_to("ckpt-9.safetensors")}[kind]()
    checkpoint = train.Checkpoint(v=tf.Variable(0.0))
    with pytest.raises((tf.errors.NotFoundError, OSError)):
        checkpoint.restore(place)
    with pytest.raises(OSError, match=r"ckpt-9\.safetensors"):
        checkpoint.write(place)
    assert not [name for name in names(run) if name.endswith(".part")]


@posix
@pytest.mark.parametrize("umask, mode", [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_rights_of_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        path = Path(train.Checkpoint(v=tf.Variable(0.0)).write(tmp_path / "x"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_a_save_keeps_the_rights(tmp_path: Path, mode: int,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = train.Checkpoint(v=tf.Variable(0.0))
    path = Path(checkpoint.write(tmp_path / "x"))
    path.chmod(mode)
    seen: list[int] = []
    forced = os.fsync

    def watched(handle: int) -> None:
        status = os.fstat(handle)
        if stat.S_ISREG(status.st_mode):
            seen.append(stat.S_IMODE(status.st_mode))
        forced(handle)

    monkeypatch.setattr(os, "fsync", watched)
    checkpoint.write(tmp_path / "x")
    assert [*seen, stat.S_IMODE(path.stat().st_mode)] == [mode, mode]


@needs_root
def test_a_save_keeps_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    os.chown(path, STRANGER, STRANGER + 1)
    atomic_files.write_whole(path, b"new")
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (
        STRANGER, STRANGER + 1, 0o640)


@needs_root
def test_a_group_that_cannot_be_kept_hands_its_rights_to_no_other(public: Path) -> None:
    path = public / "file"
    path.write_bytes(b"old")
    path.chmod(0o664)
    os.chown(path, STRANGER, STRANGER + 1)
    os.chown(public, STRANGER, -1)

    def work() -> bool:
        os.setgid(STRANGER)
        os.setuid(STRANGER)
        atomic_files.write_whole(path, b"new")
        status = path.stat()
        return (status.st_gid, stat.S_IMODE(status.st_mode)) == (STRANGER, 0o644)

    assert forking.child(work)


@posix
def test_a_save_goes_through_a_link(tmp_path: Path) -> None:
    variable = tf.Variable(1.0)
    (tmp_path / "disk").mkdir()
    for target in ("there", "missing"):
        real, link = tmp_path / "disk" / target, tmp_path / f"{target}.safetensors"
        if target == "there":
            real.write_bytes(b"old")
        link.symlink_to(Path("disk") / target)
        train.Checkpoint(v=variable).write(link)
        assert link.is_symlink() and os.readlink(link) == f"disk/{target}"
        train.Checkpoint(v=variable).restore(real.rename(f"{real}.safetensors")).assert_consumed()
    assert names(tmp_path / "disk") == ["missing.safetensors", "there.safetensors"]


# ---------------------------------------------------------------- names

@pytest.mark.parametrize("name", ["a**b", "**", "[a]", "a\nb", "a\n", "?", "a-1", "ä-💾", " ", "-",
                                  "n" * 200])
def test_names_of_all_kinds(tmp_path: Path, name: str) -> None:
    _, manager = manager_of(tmp_path, checkpoint_name=name)
    for _ in range(4):
        manager.save()
    found = [str(tmp_path / f"{name}-{n}.safetensors") for n in (3, 4)]
    assert manager.checkpoints == found
    assert train.latest_checkpoint(tmp_path) == found[-1]
    assert names(tmp_path) == sorted(["checkpoint", *(Path(p).name for p in found)])
    _, again = manager_of(tmp_path, checkpoint_name=name)
    assert again.restore_or_initialize() == found[-1]


@posix
def test_names_with_stars_sweep_what_they_left(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    left = atomic_files._part(tmp_path / "a**b-1.safetensors").name.replace(
        f".{os.getpid()}-", f".{child.pid}-")
    other = left.replace("a**b", "axxb")
    for name in (left, other):
        (tmp_path / name).write_text("half")
    _, manager = manager_of(tmp_path, checkpoint_name="a**b")
    manager.save()
    assert names(tmp_path) == sorted([other, "a**b-1.safetensors", "checkpoint"])


@pytest.mark.parametrize("name", ["", "a/b", "/", "a\0b", 5, None, b"x"], ids=repr)
def test_names_that_no_file_can_have(tmp_path: Path, name: Any) -> None:
    with pytest.raises(ValueError, match="without folders"):
        manager_of(tmp_path, checkpoint_name=name)


@pytest.mark.parametrize("use", ["write", "save", "read"])
def test_a_path_with_a_zero_byte(tmp_path: Path, use: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="such as 'folder/ckpt'"):
        getattr(train.Checkpoint(v=tf.Variable(1.0)), use)(f"{tmp_path}/a\0b")


# ---------------------------------------------------------------- full disks

_FILLING = """
import resource, sys
import numpy as np
import gtape as tf
from gtape import train

step, wide = tf.Variable(0.0), tf.Variable(np.zeros(1000, np.float32))
manager = train.CheckpointManager(train.Checkpoint(step=step, wide=wide), sys.argv[1], 2)
for _ in range(2):
    step.assign_add(1.0)
    manager.save()
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
step.assign_add(1.0)
for attempt in range(3):
    try:
        manager.save()
    except OSError as error:
        print(error.errno, int(manager.checkpoint.save_counter))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(manager.save())
"""


@posix
def test_a_limit_of_size(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _FILLING, str(tmp_path)], text=True, check=True,
                          capture_output=True)
    assert done.stdout.splitlines() == [*[f"{errno.EFBIG} 2"] * 3,
                                        str(tmp_path / "ckpt-3.safetensors")]
    assert names(tmp_path) == ["checkpoint", "ckpt-2.safetensors", "ckpt-3.safetensors"]


@contextlib.contextmanager
def small_disk(place: Path, size: str) -> Iterator[None]:
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)],
                             capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


@needs_root
def test_a_full_disk(tmp_path: Path) -> None:
    """Room for the checkpoints that are kept, and not for one more."""
    disk = tmp_path / "disk"
    with small_disk(disk, "256k"):
        variable = tf.Variable(tf.zeros(20_000))
        manager = train.CheckpointManager(train.Checkpoint(v=variable), disk, 2)
        for i in (1.0, 2.0):
            variable.assign(tf.fill([20_000], i))
            manager.save()
        before = names(disk)
        (disk / "other").write_bytes(bytes(70_000))
        variable.assign(tf.fill([20_000], 3.0))
        for _ in range(2):
            with pytest.raises(OSError, match=r"No space left on device.*ckpt-3"):
                manager.save()
        assert names(disk) == sorted([*before, "other"])
        assert Path(manager.restore_or_initialize()).stem == "ckpt-2"
        assert float(variable[0]) == 2
        (disk / "other").unlink()
        assert Path(manager.save()).stem == "ckpt-3"


def test_a_disk_that_is_full_for_the_list_alone(run: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint is in place, counts, and is the latest; the next save goes on from there."""
    from gtape.train import manager as module

    _, manager = manager_of(run)
    manager.restore_or_initialize()
    with monkeypatch.context() as patched:
        patched.setattr(module, "write_whole", lambda *_: (_ for _ in ()).throw(
            OSError(errno.ENOSPC, "No space left on device")))
        with pytest.raises(OSError, match="No space"):
            manager.save()
    assert Path(manager.latest_checkpoint).stem == "ckpt-3"
    assert Path(manager.save()).stem == "ckpt-4"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        manager_of(run)[1].restore_or_initialize()

"""Files that are either whole or absent, even when the process or the machine stops."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import secrets
import stat
import warnings
from collections.abc import Iterator
from pathlib import Path

_SUFFIX = ".part"
_POSIX = os.name == "posix"
#: Bytes of a name that the name of its part begins with: together with the name of a host, at most
#: 64, it stays below the 255 that systems allow.
_SHOWN = 120
#: What systems answer that cannot force a folder to the disk, such as those of network and FUSE
#: disks; and where the folder may be written to but not read.
_CANNOT = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES, errno.EPERM,
           errno.EBADF, errno.EROFS)


def _shortened(name: str) -> str:
    return os.fsdecode(os.fsencode(name)[:_SHOWN])


def _ending(process: int | str, token: str) -> str:
    return f".{platform.node().replace('.', '-')[:64]}.{process}-{token}{_SUFFIX}"


def _part(target: Path) -> Path:
    """Where `target` is prepared: hidden, beside it, named after its host and process."""
    return target.with_name(f".{_shortened(target.name)}"
                            f"{_ending(os.getpid(), secrets.token_hex(8))}")


def write_whole(target: Path, *content: bytes | memoryview) -> None:
    """Write `content`, one part after another, beside `target`, force it to the disk,
    and then take the place of `target`.

    A reader sees the old file or the new one. The new one survives a power cut as soon as this
    returns, where the system can promise that; before that the old one is untouched. A new file has
    the rights that the umask leaves. One that is replaced hands on its own, and its owner where
    that is allowed; a symbolic link stays, and what it leads to is replaced.

    Raises:
        OSError: the folder cannot be written to, the disk is full, or `target` is no file; it is
            as it was. The error names `target`.
    """
    part = None
    try:
        old = _present(target)
        real = Path(os.path.realpath(target))
        part = _part(real)
        # What others may not read now, they may at no time.
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0),
                         0o666 if old is None else 0o600)
        with open(handle, "wb") as file:
            file.writelines(content)
            file.flush()
            if old is not None and _POSIX:
                _hand_on(file.fileno(), old)
            os.fsync(file.fileno())
        os.replace(part, real)
    except BaseException as error:
        if part is not None:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(target)) from error
        raise
    _force_names(real.parent)


def _present(target: Path) -> os.stat_result | None:
    """The file that is replaced, behind a link. The system follows the link itself, and so refuses
    one that another user put into a folder like /tmp."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", str(target))
    return status


def _hand_on(handle: int, old: os.stat_result) -> None:
    """Give a file the owner, the group and the rights of `old`, as far as the system allows."""
    for user in (old.st_uid, -1):
        with contextlib.suppress(OSError):
            os.fchown(handle, user, old.st_gid)
            break
    rights = stat.S_IMODE(old.st_mode) & 0o777
    if os.fstat(handle).st_gid != old.st_gid:
        # The rights of its group were given to other people: this one has those of everybody.
        rights = rights & 0o707 | (rights & 0o007) << 3
    with contextlib.suppress(OSError):
        os.fchmod(handle, rights)


def make_folder(folder: Path) -> None:
    """Make a folder with those above it, and force their names to the disk.

    Raises:
        OSError: it cannot be made, or a file is in its place.
    """
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        if folder == folder.parent:
            break
        folder = folder.parent
    for part in reversed(missing):
        part.mkdir(exist_ok=True)
        _force_names(part.parent)


def _force_names(folder: Path) -> None:
    """Force the names in `folder` to the disk, where the system can do that.

    What was written is in its place already, so a failure is no reason to say that it is not.
    """
    if not _POSIX:
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _CANNOT:
            warnings.warn(f"the files in '{folder}' are written, but after a power cut they may be "
                          f"missing: {error.strerror}", stacklevel=3)


def abandoned(folder: Path, start: str) -> Iterator[Path]:
    """What killed processes of this machine left behind of files whose names begin so.

    Raises:
        OSError: the folder cannot be listed.
    """
    if not _POSIX:
        return
    start = f".{_shortened(start)}"
    host = _ending("", "").removesuffix(f"-{_SUFFIX}")
    for part in folder.iterdir():
        head, _, last = part.name.removesuffix(_SUFFIX).rpartition(".")
        number = last.partition("-")[0]
        if (part.name.startswith(start) and part.name.endswith(_SUFFIX)
                and f"{head}.".endswith(host) and number.isdecimal()
                and not _running(int(number))):
            yield part


def _running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True

"""Whether anybody but this process's user may change what lies in a folder.

Machine code is run with all the rights of the process that loads it, so a folder is trusted only
where nobody else can have put it there: by the rule of OpenSSH's StrictModes (sshd_config(5)),
every folder on the way belongs to the effective user or to root, and nobody else may write to it.
A folder with the sticky bit, such as /tmp, may be passed through: nobody can rename in it what
belongs to somebody else.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from gtape.core.errors import PermissionDeniedError

_POSIX = hasattr(os, "geteuid")
_ROOT = 0
#: No link is followed, and a pipe in the place of a file is not waited for.
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def trusted(folder: Path, make: bool = False) -> Path:
    """`folder` without symbolic links, in which only this user and root can have put anything.
    Raises PermissionDeniedError: somebody else may write there, or owns a folder on the way;
    OSError: it is missing, is no folder, or cannot be made or looked at.

    Each folder is looked at after those above it, so nobody can exchange what was found good. With
    `make`, those that are missing are made, for this user alone. Without ownership, on Windows,
    every folder is trusted.
    """
    real = Path(os.path.realpath(folder))
    if not _POSIX:
        if make:
            real.mkdir(parents=True, exist_ok=True)
        return real
    for place in (*reversed(real.parents), real):
        status = _status(place, make)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(f"'{place}' is no folder")
        _require_own(place, status, passed=place != real)
    return real


def _status(place: Path, make: bool) -> os.stat_result:
    try:
        return os.lstat(place)
    except FileNotFoundError:
        if not make:
            raise
    # Whoever was faster, and with what rights, is seen by the look that follows.
    with contextlib.suppress(FileExistsError):
        os.mkdir(place, 0o700)
    return os.lstat(place)


def content(file: Path) -> tuple[bytes, float]:
    """What is in a file of a trusted folder, which must belong to this user or root as well; and
    the time when it was changed. Raises PermissionDeniedError: it belongs to somebody else, or
    somebody else may write to it; OSError: it cannot be read, or is a symbolic link."""
    with open(file, "rb", opener=lambda path, flags: os.open(path, flags | _CAREFULLY)) as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"'{file}' is no file")
        if _POSIX:
            _require_own(file, status, passed=False)
        return opened.read(), status.st_mtime


def _require_own(path: Path, status: os.stat_result, passed: bool) -> None:
    """`passed`: a folder that only leads to the one that is used."""
    if status.st_uid not in (os.geteuid(), _ROOT):
        raise PermissionDeniedError(f"'{path}' belongs to user {status.st_uid}, and this process "
                                    f"runs as user {os.geteuid()}")
    others = stat.S_IMODE(status.st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
    if not others or (passed and status.st_mode & stat.S_ISVTX):
        return
    if passed and others == stat.S_IWGRP and _is_private_group(path, status):
        return
    raise PermissionDeniedError(f"others may write to '{path}' (mode "
                                f"{stat.S_IMODE(status.st_mode):04o}); take that away: chmod go-w "
                                f"'{path}'")


def _is_private_group(path: Path, status: os.stat_result) -> bool:
    """Whether the group of a folder has its owner alone, as where the umask is 002: then ~/.cache
    may be written to by the group, which is nobody else. Access lists hide behind a group's bits.
    """
    import grp
    import pwd

    try:
        owner = pwd.getpwuid(status.st_uid)
        members = grp.getgrgid(status.st_gid).gr_mem
    except KeyError:
        return False
    if owner.pw_gid != status.st_gid or set(members) - {owner.pw_name} or _has_access_list(path):
        return False
    return all(user.pw_uid == status.st_uid for user in pwd.getpwall()
               if user.pw_gid == status.st_gid)


def _has_access_list(path: Path) -> bool:
    if not hasattr(os, "listxattr"):
        return True
    try:
        return "system.posix_acl_access" in os.listxattr(path)
    except OSError as error:
        return error.errno != errno.ENOTSUP

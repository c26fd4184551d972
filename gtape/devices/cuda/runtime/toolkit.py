"""Where the shared libraries of the CUDA toolkit lie: wheels, environments, the toolkit itself."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

#: The toolkits whose libraries gtape can use, the newest first.
MAJORS = (13, 12)


class _Only:
    """Where all libraries are while the GPU is a simulated one."""

    folders: tuple[Path, ...] = ()


def use_only(folder: Path) -> None:
    """From now on libraries are taken from `folder` alone."""
    _Only.folders = (folder,)


def folders(wheel: str) -> Iterator[Path]:
    """Folders that may hold libraries of the toolkit, those that pip installed first. `wheel` is
    the folder of the library's CUDA 12 wheel, "cuda_nvrtc"; those of CUDA 13 share one."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(place) / part for place in (spec and spec.submodule_search_locations) or ()
             for part in ("cu13", wheel)]
    roots += [Path(os.environ[name]) for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    roots += [Path("/usr/local/cuda"), Path(sys.prefix), Path(sys.prefix, "Library")]
    for root in roots:
        for part in ("lib", "lib64", "bin", "bin/x64", "bin/x86_64"):
            if (root / part).is_dir():
                yield root / part


def load(name: str, wheel: str, majors: tuple[int, ...] = MAJORS,
         companion: str = "") -> tuple[ctypes.CDLL, str] | None:
    """The library `name` ("nvrtc") and where it was found: the folders above before the system's
    own search. None where there is none. `companion` is loaded with it from the same folder."""
    for folder in _Only.folders or folders(wheel):
        for major in majors:
            file = folder / _file_name(name, major)
            if file.is_file():
                _load_beside(file, companion, major)
                if (library := _opened(str(file))) is not None:
                    return library, str(file)
    for major in () if _Only.folders else majors:
        if (library := _opened(_file_name(name, major))) is not None:
            return library, _file_name(name, major)
    return None


def _file_name(name: str, major: int) -> str:
    if sys.platform == "win32":
        return f"{name}64_{major}0_0.dll"
    return f"lib{name}.so.{major}"


def _load_beside(file: Path, companion: str, major: int) -> None:
    # The library opens its companion by name when it first compiles, and not every build of it
    # looks in its own folder.
    if companion:
        pattern = (f"{companion}64_{major}*.dll" if sys.platform == "win32"
                   else f"lib{companion}.so.{major}*")
        for beside in sorted(file.parent.glob(pattern)):
            _opened(str(beside), ctypes.RTLD_GLOBAL)


def _opened(file: str, mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(file, mode=mode)
    except OSError:
        return None

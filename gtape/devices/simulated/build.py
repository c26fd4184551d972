"""The simulated GPU's libraries, built once and kept: CUDA of software, CuPy's module for it."""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from gtape.core.errors import SimulatorError
from gtape.devices import cache as kept
from gtape.devices import compiler, ownership
from gtape.devices.compiler import run
from gtape.devices.simulated import (
    cublas_solvers,
    cufft,
    curand,
    cusolver,
    cusparse,
    device_random,
    nvml,
    nvrtc,
    sources,
)
from gtape.devices.simulated.stand_ins import StandIn

#: CuPy's modules that are built anew: the wheel links NVIDIA's runtime into it.
REBUILT = "cupy_backends.cuda.api.runtime"
_PARTS = ("settings", "errors", "memory", "streams", "runtime", "driver")
# Signed, whatever the host's own char is: ARM's is not. Device memory is seen as many types.
_FLAGS = ("-std=c++17", "-O2", "-w", "-fPIC", "-fsigned-char", "-fno-strict-aliasing")
#: The emulator of the kernels' checks may be loaded beside it, so names differ.
_NAMES = ("-Dgtape_emulator=gtape_simulated_emulator",
          "-Dgtape_emulator_launch=gtape_simulated_launch")
# -E: names that CuPy's .pyx files compare while they are compiled.
_CYTHON = ("-3", "--cplus", "-X", "embedsignature=True,binding=False,c_api_binop_methods=True",
           "-E", "CUPY_CUDA_VERSION=13000,CUPY_HIP_VERSION=0,CUPY_USE_CUDA_PYTHON=False,"
                 "CUPY_CUFFT_STATIC=False")
#: The names under which CUDA's own libraries are looked for.
_CORE_NAMES = ("libcuda.so.1", "libcudart.so.13")
#: What others need to be loaded.
_ONLY_THERE = (StandIn("libnvJitLink.so.13", "nvJitLink"),)
_SECONDS = 900.0  # for one compiler; far above what all take, since machines may be loaded
_NEEDED_BYTES = 200 << 20  # CuPy's sources, unpacked for a while, and all that is built


def cupy_folder() -> Path:
    """Where CuPy is installed.

    Raises:
        SimulatorError: it is not, or in another version than the one that is simulated.
    """
    advice = f'pip install "gtape[simulator]" brings CuPy {sources.VERSION} and Cython'
    spec = importlib.util.find_spec("cupy_backends")
    if spec is None or not spec.submodule_search_locations:
        raise SimulatorError(f"the simulated GPU runs the real CuPy, which is not installed: "
                             f"{advice}")
    try:
        version = importlib.metadata.version("cupy-cuda13x")
    except importlib.metadata.PackageNotFoundError:
        raise SimulatorError("the simulated GPU runs CuPy's build for CUDA 13 (cupy-cuda13x), and "
                             f"another one is installed: {advice}") from None
    if version != sources.VERSION:
        raise SimulatorError(f"the simulated GPU is made for CuPy {sources.VERSION}, and CuPy "
                             f"{version} is installed: {advice}")
    return Path(next(iter(spec.submodule_search_locations))).parent


@cache
def folder() -> Path:
    """The folder of all that was built, built now where it is not there.

    Raises:
        SimulatorError: something that building needs is missing; the message says what.
    """
    if not sys.platform.startswith("linux"):
        raise SimulatorError(f"the simulated GPU runs on Linux; this is {sys.platform}")
    cupy = cupy_folder()
    with as_file(files("gtape._kernels")) as texts:
        root = _root()
        target = root / _key(texts)
        if not (target / "complete").is_file():
            with _alone(root):
                # Looked at again: another process may have built it meanwhile.
                if not (target / "complete").is_file():
                    _build(texts, cupy, root, target)
        return target


def _root() -> Path:
    return ownership.trusted(kept.root() / "simulator", make=True)


def archive() -> Path:
    """CuPy's sources, fetched where they are not there. Raises SimulatorError: they cannot be."""
    return sources.archive(_root() / f"cupy-{sources.VERSION}.tar.gz")


def _key(texts: Path) -> str:
    used = [*sorted(texts.glob("emulator*")), *sorted((texts / "simulated").rglob("*")),
            Path(__file__)]  # the flags stand here
    parts = [path.read_text("utf-8") for path in used if path.is_file()]
    # The table of a stand-in is in the order of its functions' names.
    tables = [" ".join([lib.soname, *lib.functions]) for lib in libraries()]
    # sys.version: CuPy's module is an extension of this very Python.
    return kept.key(*parts, sources.VERSION, sys.version, _compiler().version, *tables)


def libraries() -> tuple[StandIn, ...]:
    """The libraries that Python stands in for."""
    return (nvrtc.library, *cublas_solvers.LIBRARIES, *cusolver.LIBRARIES, cufft.library,
            curand.library, cusparse.library, device_random.library, nvml.library, *_ONLY_THERE)


def _compiler() -> compiler.Compiler:
    return compiler.compiler("the simulated GPU", ("g++", "c++"))


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """One process builds; others wait for it."""
    # Never removed: a lock on a file that is gone would keep nobody out.
    with open(root / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # first without waiting, to say so
        except OSError:
            _say("another process builds it; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(text: str) -> None:
    print(f"simulated GPU: {text}", file=sys.stderr, flush=True)


def _build(texts: Path, cupy: Path, root: Path, target: Path) -> None:
    if importlib.util.find_spec("Cython") is None:
        raise SimulatorError("building the simulated GPU needs Cython: pip install "
                             '"gtape[simulator]", or pip install cython')
    free = shutil.disk_usage(root).free
    if free < _NEEDED_BYTES:
        raise SimulatorError(f"building the simulated GPU needs {_NEEDED_BYTES >> 20} MB in "
                             f"{root}; {free >> 20} MB are free. Set GTAPE_CACHE_DIR to a larger "
                             "disk")
    # Beside the target, since only renaming in one file system is a single step.
    work = Path(tempfile.mkdtemp(dir=root, prefix=".building-"))
    try:
        with ThreadPoolExecutor(2) as pool:  # threads will do: they wait for compilers
            _say("building it, once; about 20 seconds on two cores")
            module = pool.submit(_runtime_module, texts, work, root)
            _core(texts, work)
            _say("simulated CUDA is built; CuPy's module for it follows")
            _stand_ins(work, cupy)
            module.result()
        (work / "complete").touch()  # last: what lacks it is built anew
        # Unfinished; a full folder is not replaced by renaming.
        shutil.rmtree(target, ignore_errors=True)
        work.rename(target)
        _say(f"built, in {target}")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run(*command: str, folder: Path | None = None) -> None:
    done = run([*map(str, command)], _SECONDS, folder)
    if done.status:
        raise SimulatorError(f"building the simulated GPU: {command[0]} failed:\n"
                             f"{(done.errors or done.printed)[-3000:]}")


def _core(texts: Path, work: Path) -> None:
    """libcuda and libcudart, which are one library, what kernels link, and the headers."""
    shutil.copytree(texts / "simulated" / "include", work / "include")
    for header in [*texts.glob("emulator*.h"), texts / "simulated" / "kernel.h"]:
        shutil.copy(header, work / header.name)
    build = (*_compiler().command, *_FLAGS, f"-I{work / 'include'}", f"-I{texts}", *_NAMES)
    objects = []
    for part in (*(texts / "simulated" / f"{name}.cpp" for name in _PARTS),
                 texts / "emulator.cpp"):
        objects.append(str(work / f"{part.stem}.o"))
        _run(*build, "-c", str(part), "-o", objects[-1])
    _run(*build, "-c", str(texts / "simulated" / "checks.cpp"), "-o", str(work / "checks.o"))
    (work / "exports").write_text("{ local: __ubsan*; __asan*; };\n")
    for name in _CORE_NAMES[:1]:
        _run(*_compiler().command, "-shared", "-o", str(work / name), f"-Wl,-soname,{name}",
             f"-Wl,--version-script,{work / 'exports'}", *objects, "-ldl", "-lpthread")
    # Calls of the one are calls of the other: libcudart is a name that leads to libcuda.
    empty = work / "empty.c"
    empty.write_text("")
    _run(*_compiler().command, "-shared", "-fPIC", "-Wl,--no-as-needed", "-o",
         # no-as-needed: it calls nothing of libcuda, which would be left out as not needed.
         str(work / _CORE_NAMES[1]), f"-Wl,-soname,{_CORE_NAMES[1]}", str(empty),
         f"-L{work}", f"-l:{_CORE_NAMES[0]}", "-Wl,-rpath,$ORIGIN")


def undefined(cupy: Path) -> set[str]:
    """The symbols that CuPy's compiled modules ask of CUDA's libraries."""
    modules = [*(cupy / "cupy_backends" / "cuda" / "libs").glob("*.so"),
               *(cupy / "cupy" / "cuda").glob("*.so")]
    printed = run(["nm", "-D", "--undefined-only", *map(str, modules)], _SECONDS).printed
    # After the @ stands the symbol's version.
    names = (line.split()[-1].split("@")[0] for line in printed.splitlines() if " U " in line)
    return {name for name in names if name.startswith(("cu", "nvrtc", "nvml"))}


def _stand_ins(work: Path, cupy: Path) -> None:
    asked_for = undefined(cupy)
    (work / "asked_for").write_text("\n".join(sorted(asked_for)))
    for library in libraries():
        text = work / f"{library.soname}.c"
        text.write_text(library.source(asked_for))
        _run(*_compiler().command, "-x", "c", "-O1", "-w", "-fPIC", "-shared", str(text), "-o",
             str(work / library.soname), f"-Wl,-soname,{library.soname}")


def _runtime_module(texts: Path, work: Path, root: Path) -> None:
    with tempfile.TemporaryDirectory(dir=root, prefix=".cupy-") as place:
        sources.unpack(archive(), Path(place))
        source = Path(place) / f"cupy-{sources.VERSION}"
        text = source / Path(*REBUILT.split(".")).with_suffix(".pyx")
        made = text.with_suffix(".cpp")
        done = subprocess.run([sys.executable, "-m", "cython", *_CYTHON, "--module-name", REBUILT,
                               "-I", ".", str(text.relative_to(source)), "-o",
                               str(made.relative_to(source))],
                              cwd=source, capture_output=True, text=True)
        if done.returncode:
            raise SimulatorError(f"Cython could not read CuPy's {REBUILT}:\n{done.stderr[-3000:]}")
        include = texts / "simulated" / "include"
        target = work / f"runtime{sysconfig.get_config_var('EXT_SUFFIX')}"
        # It hands calls on: -O2 would only build longer.
        _run(*_compiler().command, "-std=c++17", "-O1", "-w", "-fPIC", "-shared", f"-I{include}",
             f"-I{source}", f"-I{sysconfig.get_paths()['include']}", str(made), "-o", str(target))


def runtime_module() -> Path:
    """The file of CuPy's module that was built for simulated CUDA."""
    return folder() / f"runtime{sysconfig.get_config_var('EXT_SUFFIX')}"


def asked_for() -> list[str]:
    """The symbols of CUDA's libraries that CuPy's modules name."""
    return (folder() / "asked_for").read_text().split()


def core_libraries() -> list[Path]:
    return [folder() / name for name in _CORE_NAMES]


def environment() -> dict[str, str]:
    """What CuPy must find in the environment, so that it looks nowhere else."""
    # No accelerators: CUB's reductions are device code, compiled into CuPy. A cache of its own:
    # images of NVIDIA's NVRTC would not run here, nor these there.
    return {"CUDA_PATH": os.fspath(folder()), "CUPY_ACCELERATORS": "",
            "CUPY_CACHE_DIR": os.fspath(folder() / "cupy-cache")}

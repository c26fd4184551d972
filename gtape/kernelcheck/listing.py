"""`python -m gtape kernels --list`, and what there is and can be run here without an option."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence

from gtape.cli.kernels import ARCHITECTURES
from gtape.core.errors import UnavailableError
from gtape.devices.cuda.runtime import nvrtc
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.kernelcheck import ptxas_report
from gtape.kernelcheck.sources import all_checks, all_kernels

_COMPILERS = ("g++", "clang++", "c++")


def names(wanted: Sequence[str]) -> None:
    """A line for each kernel; with its registers where it has been compiled by `--compile`."""
    try:
        version = nvrtc.find().version
    except UnavailableError:
        version = ""
    for source in all_kernels(wanted):
        told = registers(source.kernel, version)
        print(f"{source.file:<24}{source.kernel.entry:<56}{told}".rstrip())


def registers(kernel: Kernel, version: str) -> str:
    """The registers of a kernel on the architectures for which it has been compiled."""
    seen = {f"sm_{n}": ptxas_report.known(kernel, f"sm_{n}", version) for n in ARCHITECTURES}
    told = [f"{arch} {found.registers}" for arch, found in seen.items() if found is not None]
    return f"registers: {', '.join(told)}" if told else ""


def overview() -> None:
    """Kernels and checks by family, and what this machine can do with them."""
    families = Counter(source.family for source in all_kernels())
    checks = {family: len(found) for family, found in all_checks().items()}
    for family in sorted({*families, *checks}):
        print(f"{family:<24}{families[family]:>5} kernels{checks.get(family, 0):>6} checks")
    print(f"{'all':<24}{families.total():>5} kernels{sum(checks.values()):>6} checks\n")
    print(f"--compile         {_compile_state()}")
    print(f"--run             {_run_state()}")
    print(f"--run --on gpu    {_gpu_state()}")
    print("--list            names the kernels; see python -m gtape kernels --help")


def _compile_state() -> str:
    try:
        found = nvrtc.find()
    except UnavailableError as error:
        return f"cannot: {error}"
    return f"can: NVRTC {found.version} ({found.path})"


def _run_state() -> str:
    given = os.environ.get("CXX")
    for name in (given,) if given else _COMPILERS:
        found = shutil.which(name)
        if found:
            return f"can: in the emulator, built by {found}"
    return (f"cannot: CXX={given} is not found" if given else
            "cannot: the emulator needs a C++ compiler; install g++ or clang++")


def _gpu_state() -> str:
    from gtape.devices.probe import probe, why_not

    found = [f.reason for f in probe().findings if f.usable and f.name == "GPU:0"]
    return f"can: {found[0]}" if found else f"cannot: {why_not()}"

"""`python -m gtape kernels --list`, and what there is and can be run here without an option."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence

from gtape.core.errors import UnavailableError
from gtape.devices import probe
from gtape.devices.cuda.runtime import nvrtc
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.kernelcheck import ARCHITECTURES, ptxas_report
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
    told = [f"{arch} {usage.registers}" for arch, usage in seen.items() if usage is not None]
    return f"registers: {', '.join(told)}" if told else ""


def overview() -> None:
    """Kernels and checks by family, and what this machine can do with them."""
    families = Counter(source.family for source in all_kernels())
    checks = {family: len(checks_) for family, checks_ in all_checks().items()}
    for family in sorted({*families, *checks}):
        print(f"{family:<24}{families[family]:>5} kernels{checks.get(family, 0):>6} checks")
    print(f"{'all':<24}{families.total():>5} kernels{sum(checks.values()):>6} checks\n")
    print(f"--compile         {_compile_state()}")
    print(f"--run             {_run_state()}")
    print(f"--run --on gpu    {_gpu_state()}")
    print("--list            names the kernels; see python -m gtape kernels --help")


def _compile_state() -> str:
    try:
        compiler = nvrtc.find()
    except UnavailableError as error:
        return f"cannot: {error}"
    return f"can: NVRTC {compiler.version} ({compiler.path})"


def _run_state() -> str:
    given = os.environ.get("CXX")
    for name in (given,) if given else _COMPILERS:
        path = shutil.which(name)
        if path:
            return f"can: in the emulator, built by {path}"
    return (f"cannot: CXX={given} is not found" if given else
            "cannot: the emulator needs a C++ compiler; install g++ or clang++")


def _gpu_state() -> str:
    reasons = [f.reason for f in probe.probe().findings if f.usable and f.name == "GPU:0"]
    return f"can: {reasons[0]}" if reasons else f"cannot: {probe.why_not()}"

"""Which kernels there are, and which checks of them: read from the modules that ship them; and
`python -m gtape kernels --list`, which names them and says what can be run here.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import NamedTuple

from gtape.cli.output import CommandError
from gtape.core.errors import UnavailableError
from gtape.devices import probe
from gtape.devices.cuda import kernels as kernels_package
from gtape.devices.cuda.elementwise.maps import cast_kernels
from gtape.devices.cuda.runtime import nvrtc
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.kernelcheck import ARCHITECTURES, derived, ptxas_report
from gtape.kernelcheck import checks as checks_package
from gtape.kernelcheck.checks.bench import Check

_FILE = re.compile(r'#line 1 "(?!gtape\.cuh)([^"]+)"')
#: Kernels with broadcast operands have a text each, which takes long to build.
_BROADCAST_TOGETHER = 7
#: Checks of one job: few texts for each process to build, and some for every process.
_DERIVED_TOGETHER = 60


class Family(NamedTuple):
    """Kernels and their checks. `together`: how many checks are one job, at most; of kernels with
    many texts the processors then build different ones. `needs_gpu`: the checks call NVIDIA's
    libraries, which the emulator has not; their module says `NEEDS_GPU = True`."""

    name: str
    kernels: Callable[[], Iterable[Kernel]]
    checks: Callable[[], Iterable[Check]]
    together: int = 1000
    needs_gpu: bool = False


class KernelSource(NamedTuple):
    """A kernel, the family it belongs to, and the file that holds its text."""

    family: str
    file: str
    kernel: Kernel


def _modules(package: ModuleType, wanted: str) -> dict[str, ModuleType]:
    # By import of every module: a kernel whose module lists no instances, or has no checks, would
    # else go unseen.
    modules = {m.name: importlib.import_module(f"{package.__name__}.{m.name}")
               for m in pkgutil.iter_modules(package.__path__)}
    return {name: module for name, module in modules.items() if hasattr(module, wanted)}


def shipped() -> Iterator[Family]:
    """The kernels of the folder `kernels`, by the module of their host functions."""
    kernels = _modules(kernels_package, "instances")
    checks = _modules(checks_package, "checks")
    for name in sorted({*kernels, *checks}):
        yield Family(name, kernels[name].instances if name in kernels else list,
                     checks[name].checks if name in checks else list,
                     needs_gpu=getattr(checks.get(name), "NEEDS_GPU", False))


def printed() -> Iterator[Family]:
    """The kernels that follow from declarations, and those with broadcast operands, whose texts
    are made as shapes ask for them; these first, as they take longest. And formulas of many
    tensors in one launch."""
    yield Family("broadcast", derived.broadcast_kernels, derived.broadcast_checks,
                 _BROADCAST_TOGETHER)
    yield Family("derived", derived.kernels, derived.checks, _DERIVED_TOGETHER)
    yield Family("joined", derived.joined_kernels, derived.joined_checks)
    yield Family("casting", cast_kernels, derived.cast_checks)


#: What yields families: all that the command knows of.
PRODUCERS: list[Callable[[], Iterator[Family]]] = [shipped, printed]


def families() -> dict[str, Family]:
    """Every family by name."""
    return {family.name: family for producer in PRODUCERS for family in producer()}


def all_kernels(names: Sequence[str] = ()) -> list[KernelSource]:
    """Every kernel once; only those whose family, file or name contains one of `names`. Raises
    CommandError: there are none such."""
    sources: dict[tuple[str, str], KernelSource] = {}
    for family in families().values():
        for kernel in family.kernels():
            file = _FILE.search(kernel.text)
            source = KernelSource(family.name, file[1] if file else family.name, kernel)
            sources.setdefault((kernel.text, kernel.entry), source)
    chosen = [s for s in sources.values() if _named((s.family, s.file, s.kernel.entry), names)]
    _require(chosen, names)
    return chosen


def all_checks(names: Sequence[str] = ()) -> dict[str, list[Check]]:
    """The checks by family; only those whose family or own name contains one of `names`. Raises
    CommandError: there are none such."""
    chosen = {family: family_checks(family, names) for family in families()}
    chosen = {family: checks for family, checks in chosen.items() if checks}
    _require(chosen, names)
    return chosen


def family_checks(family: str, names: Sequence[str] = ()) -> list[Check]:
    """The checks of one family that are named so."""
    return [c for c in families()[family].checks() if _named((family, c.name), names)]


def _named(texts: Sequence[str], names: Sequence[str]) -> bool:
    return not names or any(name in text for name in names for text in texts)


def _require(chosen: object, names: Sequence[str]) -> None:
    if not chosen and names:
        raise CommandError(f"nothing is named {' or '.join(names)}; the families are "
                           f"{', '.join(families()) or 'none'}")


_COMPILERS = ("g++", "clang++", "c++")


def list_names(wanted: Sequence[str]) -> None:
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
    print("--list            list_names the kernels; see python -m gtape kernels --help")


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

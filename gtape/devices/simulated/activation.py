"""Puts the simulated GPU into this process, before CuPy is imported."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from types import ModuleType

from gtape.core.errors import SimulatorError
from gtape.devices.cuda.runtime import toolkit
from gtape.devices.simulated import build, cupy_modules, device_arrays, pools


def activate() -> None:
    """From now on `import cupy` finds the simulated GPU. It is built where it is not there.

    Raises:
        SimulatorError: something that it needs is missing, or CuPy was imported before.
    """
    if device_arrays.active():  # libraries load once; `simulate` has activated it before gtape
        return
    if "cupy" in sys.modules or "cupy_backends" in sys.modules:
        raise SimulatorError("CuPy was imported before the simulated GPU was there: set "
                             "GTAPE_DEVICE=simulated and import gtape first, or start the program "
                             "with python -m gtape simulate")
    folder = build.folder()
    # Global: CuPy's rebuilt module is linked to nothing and finds its symbols so.
    core = ctypes.CDLL(str(build.core_libraries()[0]), mode=ctypes.RTLD_GLOBAL)
    for path in build.core_libraries()[1:]:
        ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    device_arrays.use(core)
    for library in build.libraries():
        library.load(folder, build.asked_for())
    toolkit.use_only(folder)  # NVIDIA's toolkit, where one is installed, must not mix in
    os.environ.update(build.environment())  # before CuPy is imported, when it reads some of them

    def imported(cupy: ModuleType) -> None:
        if _checks("memory"):
            pools.install(cupy, core)

    here = Path(__file__).parent
    cupy_modules.install({build.REBUILT: build.runtime_module(),
                          "cupy.cuda.thrust": here / "thrust.py"}, imported)


def _checks(what: str) -> bool:
    chosen = os.environ.get("GTAPE_SIMULATED_CHECK")
    return not chosen or what in chosen.split(",")  # unset: all; `none` is no check's name

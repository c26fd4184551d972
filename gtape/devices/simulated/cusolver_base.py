"""cuSOLVER: handles, and what all its solvers share."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from gtape.devices.simulated import device_arrays
from gtape.devices.simulated.device_arrays import array, later
from gtape.devices.simulated.stand_ins import Handles, StandIn

SUCCESS, INVALID, FAILED, NOT_SUPPORTED = 0, 3, 6, 9
LOWER, NO_VECTORS, LEFT = 0, 0, 0
OPERATIONS = "NTC"
LETTERS: dict[str, np.dtype] = {
    "S": np.dtype(np.float32), "D": np.dtype(np.float64), "C": np.dtype(np.complex64),
    "Z": np.dtype(np.complex128)}
#: Elements of workspace that every solver asks for: LAPACK brings its own, so few will do.
WORK = 256
P, N, L, Z = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong, ctypes.c_size_t
_VERSION = (12, 0, 4)  # of cuSOLVER in CUDA 13.0

library = StandIn("libcusolver.so.12", "cusolver", NOT_SUPPORTED, FAILED)
#: The streams of handles, of cusolverDn and cusolverSp, and the settings of Jacobi methods.
_streams: Handles[int | None] = Handles()
_settings: Handles[dict[str, float]] = Handles()


def real_of(kind: np.dtype) -> np.dtype:
    """The dtype of singular values, and of eigenvalues of Hermitian matrices."""
    return np.zeros((), kind).real.dtype


@cache  # SciPy looks the name up in its modules each time
def lapack(name: str, kind: np.dtype) -> Any:
    """SciPy's function of LAPACK, by its name without the letter of its dtype."""
    from scipy.linalg import get_lapack_funcs  # late: most programs factorise nothing

    return get_lapack_funcs((name,), dtype=kind)[0]


def of_each(name: str, *types: Any, complex_name: str = "") -> Callable[[Any], Any]:
    """Makes function(dtype, *args) the symbols cusolverDnS, D, C and Z + `name`. Those of complex
    dtypes may have a name of their own, as orgqr is called ungqr."""
    def add(function: Any) -> Any:
        for letter, kind in LETTERS.items():
            own = complex_name if complex_name and kind.kind == "c" else name
            library.function(f"Dn{letter}{own}", *types)(partial(function, kind))
        return function

    return add


def sized(name: str, *types: Any, at: int = -1, complex_name: str = "") -> None:
    """The function that tells the size of the workspace, through its argument number `at`."""
    def answer(kind: np.dtype, *args: Any) -> int:
        N.from_address(args[at]).value = WORK
        return SUCCESS

    own = f"{complex_name}_bufferSize" if complex_name else ""
    of_each(f"{name}_bufferSize", *types, complex_name=own)(answer)


def fits(rows: int, columns: int, ld: int) -> bool:
    """Whether a matrix of such a leading dimension can be."""
    return rows >= 0 and columns >= 0 and ld >= max(1, rows)


def matrix(address: int, rows: int, columns: int, kind: np.dtype, ld: int, *,
           written: bool = False) -> np.ndarray:
    """A view of a matrix that lies column by column."""
    return array(address, (rows, columns), kind, (1, ld), written=written)


def vector(address: int, size: int, kind: Any, *, written: bool = False) -> np.ndarray:
    return array(address, (size,), kind, written=written)


def tell(info: int, value: int) -> None:
    """devInfo: 0, or where the matrix was found to be what it must not be."""
    vector(info, 1, np.int32, written=True)[0] = value


def submit(handle: int, run: Callable[[], object]) -> int:
    return FAILED if later(_streams[handle], run) else SUCCESS


def submit_and_wait(handle: int, run: Callable[[], object]) -> int:
    """For functions that answer in memory of the host as well."""
    return submit(handle, run) or (
        FAILED if device_arrays.synchronize(_streams[handle]) else SUCCESS)


def each_pointer(table: int, count: int) -> list[int]:
    """The addresses of a batch of matrices, which are in device memory themselves."""
    return [int(address) for address in array(table, (count,), np.int64)]


# ------------------------------------------------------------------ handles


def _new(to: int) -> int:
    number = max(_streams, default=0) + 1
    _streams[number] = None
    P.from_address(to).value = number
    return SUCCESS


def _end(handle: int) -> int:
    _streams.pop(handle, None)
    return SUCCESS


def _set_stream(handle: int, stream: int | None) -> int:
    _streams[handle] = stream
    return SUCCESS


def _get_stream(handle: int, to: int) -> int:
    P.from_address(to).value = _streams[handle]
    return SUCCESS


for _part in ("Dn", "Sp"):
    library.function(f"{_part}Create", P)(_new)
    library.function(f"{_part}Destroy", P)(_end)
    library.function(f"{_part}SetStream", P, P)(_set_stream)
    library.function(f"{_part}GetStream", P, P)(_get_stream)


@library.function("GetProperty", N, P)
def _property(which: int, to: int) -> int:
    if which not in range(len(_VERSION)):
        return INVALID
    N.from_address(to).value = _VERSION[which]
    return SUCCESS


@library.function("GetVersion", P)
def _version(to: int) -> int:
    N.from_address(to).value = _VERSION[0] * 1000 + _VERSION[1] * 100 + _VERSION[2]
    return SUCCESS


# ------------------------------------------------------------------ settings of methods


def _new_settings(to: int) -> int:
    number = max(_settings, default=0) + 1
    _settings[number] = {}
    P.from_address(to).value = number
    return SUCCESS


def _end_settings(settings: int) -> int:
    _settings.pop(settings, None)
    return SUCCESS


library.function("DnCreateParams", P)(_new_settings)
library.function("DnDestroyParams", P)(_end_settings)


def _jacobi(method: str) -> None:
    """Settings of a Jacobi method. LAPACK's methods do without them: they are as exact as can be,
    and their values are sorted, which is what the defaults say too."""
    def put(name: str) -> Callable[[int, float], int]:
        def call(settings: int, value: float) -> int:
            _settings[settings][name] = value
            return SUCCESS

        return call

    def residual(handle: int, settings: int, to: int) -> int:
        ctypes.c_double.from_address(to).value = 0.0  # LAPACK iterates to the end
        return SUCCESS

    def sweeps(handle: int, settings: int, to: int) -> int:
        N.from_address(to).value = 1
        return SUCCESS

    library.function(f"DnCreate{method.capitalize()}Info", P)(_new_settings)
    library.function(f"DnDestroy{method.capitalize()}Info", P)(_end_settings)
    library.function(f"DnX{method}SetTolerance", P, ctypes.c_double)(put("tolerance"))
    library.function(f"DnX{method}SetMaxSweeps", P, N)(put("sweeps"))
    library.function(f"DnX{method}SetSortEig", P, N)(put("sorted"))
    library.function(f"DnX{method}GetResidual", P, P, P)(residual)
    library.function(f"DnX{method}GetSweeps", P, P, P)(sweeps)


_jacobi("syevj")
_jacobi("gesvdj")

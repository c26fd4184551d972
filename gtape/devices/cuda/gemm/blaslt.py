"""cuBLASLt, NVIDIA's matrix products with epilogues, bound with ctypes.

The calls are those of NVIDIA's document "cuBLAS", part "Using the cuBLASLt API". CuPy does not
expose this library, and its own products cannot be captured into CUDA graphs.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from ctypes import byref, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

from gtape.core.errors import InternalError, UnavailableError
from gtape.devices.cuda.gemm.blaslt_enums import (
    MATMUL_DESC,
    MATMUL_PREF,
    MATRIX_LAYOUT,
    Attribute,
    Compute,
    DataType,
    Epilogue,
    HeuristicResult,
    Operation,
    Status,
)
from gtape.devices.cuda.runtime import toolkit

_HANDLE = ctypes.POINTER(c_void_p)
_SET = [c_void_p, c_int, c_void_p, c_size_t]
_SIGNATURES = {
    "Create": [_HANDLE], "Destroy": [c_void_p],
    "MatmulDescCreate": [_HANDLE, c_int, c_int], "MatmulDescDestroy": [c_void_p],
    "MatmulDescSetAttribute": _SET,
    "MatrixLayoutCreate": [_HANDLE, c_int, c_uint64, c_uint64, c_int64],
    "MatrixLayoutDestroy": [c_void_p], "MatrixLayoutSetAttribute": _SET,
    "MatmulPreferenceCreate": [_HANDLE], "MatmulPreferenceDestroy": [c_void_p],
    "MatmulPreferenceSetAttribute": _SET,
    "MatmulAlgoGetHeuristic": [c_void_p] * 7 + [c_int, ctypes.POINTER(HeuristicResult),
                                                ctypes.POINTER(c_int)]}
#: What the machine lacks; every other failure contradicts what gtape checked before.
_MISSING = (Status.NOT_INITIALIZED, Status.ALLOC_FAILED, Status.ARCH_MISMATCH, Status.LICENSE_ERROR)
#: More than one, because each has a status of its own: the first may not run.
_REQUESTED = 8


class BlasLt:
    """One loaded libcublasLt, found at `path`. Threads may share it."""

    def __init__(self, library: ctypes.CDLL, path: str) -> None:
        self.path = path
        self._library = library
        for name, types in _SIGNATURES.items():
            getattr(library, f"cublasLt{name}").argtypes = types
        library.cublasLtGetVersion.restype = c_size_t
        library.cublasLtGetStatusName.restype = ctypes.c_char_p
        #: cublasLtMatmul, whose arguments must be ctypes objects made beforehand: it has no
        #: declared types, because converting 16 arguments would take longer than the call.
        self.matmul: Any = library.cublasLtMatmul

    @property
    def version(self) -> int:
        """130100 is 13.1.0."""
        return int(self._library.cublasLtGetVersion())

    def handle(self) -> Any:
        """A handle on the current GPU, for the life of the object returned. Raises
        UnavailableError: there is no GPU, or no memory left on it."""
        return self._object("Create", "Destroy")

    def matmul_desc(self, compute: Compute, scale: DataType) -> Descriptor:
        """What to compute; cublasLtMatmulDesc_t."""
        return Descriptor(self, "MatmulDesc", MATMUL_DESC, compute, scale)

    def matrix_layout(self, kind: DataType, rows: int, columns: int, ld: int) -> Descriptor:
        """A column-major matrix, whose columns lie `ld` elements apart; cublasLtMatrixLayout_t."""
        return Descriptor(self, "MatrixLayout", MATRIX_LAYOUT, kind, rows, columns, ld)

    def preference(self) -> Descriptor:
        """Which algorithms are welcome; cublasLtMatmulPreference_t."""
        return Descriptor(self, "MatmulPreference", MATMUL_PREF)

    def heuristic(self, handle: object, desc: Descriptor, a: Descriptor, b: Descriptor,
                  c: Descriptor, preference: Descriptor, workspace: int) -> HeuristicResult | None:
        """The algorithm expected to be the fastest for D = op(A) op(B) + C with D laid out as C.
        None: the library has none. Raises InternalError: the descriptors contradict each other."""
        results = (HeuristicResult * _REQUESTED)()
        count = c_int(0)
        status = self._library.cublasLtMatmulAlgoGetHeuristic(
            handle, desc.handle, a.handle, b.handle, c.handle, c.handle, preference.handle,
            _REQUESTED, results, byref(count))
        if status == Status.NOT_SUPPORTED:
            return None
        self.check("MatmulAlgoGetHeuristic", status)
        for result in results[:count.value]:
            if result.state == Status.SUCCESS and result.workspace <= workspace:
                return result
        return None

    def check(self, call: str, status: int) -> None:
        """Raises InternalError or UnavailableError: `status` is no success."""
        if status:
            name = self._library.cublasLtGetStatusName(c_int(status))
            text = f"cublasLt{call} of {self.path} says {name.decode() if name else status}"
            if status in _MISSING:
                raise UnavailableError(f"{text}: the GPU, its driver or memory on it is missing")
            raise InternalError(text)

    def _object(self, create: str, destroy: str, *args: object) -> c_void_p:
        """An object of the library, destroyed with the one that stands for it here."""
        pointer = c_void_p()
        self.check(create, getattr(self._library, f"cublasLt{create}")(byref(pointer), *args))
        # Not at exit: by then the driver may have taken its context down.
        weakref.finalize(pointer, getattr(self._library, f"cublasLt{destroy}"),
                         pointer.value).atexit = False
        return pointer


class Descriptor:
    """A descriptor of the library; `handle` is its address, as calls take it."""

    __slots__ = ("_attributes", "_kind", "_lt", "handle")

    def __init__(self, lt: BlasLt, kind: str, attributes: dict[str, Attribute], *args: Any) -> None:
        self._lt, self._kind, self._attributes = lt, kind, attributes
        self.handle = lt._object(f"{kind}Create", f"{kind}Destroy", *args)

    def set(self, **values: object) -> None:
        """Set attributes under the names of the header: `set(TRANSA=1)`."""
        for name, value in values.items():
            self.setter(name)(value)

    def setter(self, name: str) -> Callable[[Any], None]:
        """A function that sets one attribute, for attributes that change with every call."""
        number, ctype = self._attributes[name]
        call = f"{self._kind}SetAttribute"
        function = getattr(self._lt._library, f"cublasLt{call}")
        box = ctype()
        handle, where, size, check = self.handle, byref(box), ctypes.sizeof(box), self._lt.check

        def put(value: int | Epilogue | Operation) -> None:
            box.value = value
            status = function(handle, number, where, size)
            if status:
                check(call, status)

        return put


def find(major: int) -> BlasLt:
    """The library, best of the toolkit `major`, which is CuPy's. Raises UnavailableError: there is
    none."""
    # CuPy's own major first: its libraries are loaded already, and others would come beside them.
    others = tuple(m for m in toolkit.MAJORS if m != major)
    for majors in ((major,), others):
        if (library := toolkit.load("cublasLt", "cublas", majors)) is not None:
            return BlasLt(*library)
    raise UnavailableError(
        'cuBLASLt (libcublasLt.so) was not found. Install gtape with the toolkit\'s libraries: '
        'pip install "gtape[cuda13]", or "gtape[cuda12]"')

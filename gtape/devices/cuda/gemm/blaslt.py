"""cuBLASLt, NVIDIA's matrix products with epilogues, bound with ctypes: enums, attributes with
their types, structs, and calls.

The numbers are those of cublasLt.h, cublas_api.h and library_types.h of the CUDA toolkits 12 and
13, under the names of the headers without their prefixes; the calls those of NVIDIA's document
"cuBLAS", part "Using the cuBLASLt API". CuPy does not expose this library, and its own products
cannot be captured into CUDA graphs.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from ctypes import (
    Structure,
    byref,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from ctypes import c_void_p as c_pointer
from enum import IntEnum
from typing import Any, NamedTuple

from gtape.core.errors import InternalError, UnavailableError
from gtape.devices.cuda.runtime import toolkit

#: An attribute's number and the C type of its value.
Attribute = tuple[int, Any]


class Status(IntEnum):
    """cublasStatus_t: what a call returns."""

    SUCCESS = 0
    NOT_INITIALIZED = 1
    ALLOC_FAILED = 3
    INVALID_VALUE = 7
    ARCH_MISMATCH = 8
    NOT_SUPPORTED = 15
    LICENSE_ERROR = 16


class DataType(IntEnum):
    """cudaDataType_t: the type of a matrix, and of alpha and beta."""

    R_32F = 0
    R_64F = 1
    R_16F = 2
    R_16BF = 14


class Compute(IntEnum):
    """cublasComputeType_t: the type of products and sums. `F32_FAST_TF32` may round the factors
    to TF32."""

    F32 = 68
    F64 = 70
    F32_FAST_TF32 = 77


class Operation(IntEnum):
    """cublasOperation_t: a matrix as it is, or transposed."""

    N = 0
    T = 1


class ReductionScheme(IntEnum):
    """cublasLtReductionScheme_t: how parts of a split sum are added; bits of a mask."""

    COMPUTE_TYPE = 2
    MASK = 7


class Epilogue(IntEnum):
    """cublasLtEpilogue_t: what is done to αAB + βC before it is stored. GELU is its tanh form."""

    DEFAULT = 1
    RELU = 2
    BIAS = 4
    RELU_BIAS = 2 | 4
    RELU_AUX = 2 | 128
    RELU_AUX_BIAS = 2 | 128 | 4
    DRELU = 8 | 128
    DRELU_BGRAD = 8 | 128 | 16
    GELU = 32
    GELU_BIAS = 32 | 4
    GELU_AUX = 32 | 128
    GELU_AUX_BIAS = 32 | 128 | 4
    DGELU = 64 | 128
    DGELU_BGRAD = 64 | 128 | 16
    BGRADA = 256
    BGRADB = 512

    @property
    def has_bias(self) -> bool:
        """It reads a bias, or writes the gradient of one."""
        return bool(self & (4 | 16 | 256 | 512))

    @property
    def has_bias_gradient(self) -> bool:
        return bool(self & (16 | 256 | 512))

    @property
    def has_aux(self) -> bool:
        """It writes, or reads, what the activation's gradient needs."""
        return bool(self & 128)

    @property
    def has_mask(self) -> bool:
        """Its aux is relu's bit mask; that of gelu is gelu's input."""
        return self.has_aux and bool(self & (2 | 8))


MATMUL_DESC: dict[str, Attribute] = {
    "TRANSA": (3, c_int32), "TRANSB": (4, c_int32), "EPILOGUE": (7, c_uint32),
    "BIAS_POINTER": (8, c_pointer), "EPILOGUE_AUX_POINTER": (11, c_pointer),
    "EPILOGUE_AUX_LD": (12, c_int64)}
MATRIX_LAYOUT: dict[str, Attribute] = {
    "BATCH_COUNT": (5, c_int32), "STRIDED_BATCH_OFFSET": (6, c_int64)}
MATMUL_PREF: dict[str, Attribute] = {
    "MAX_WORKSPACE_BYTES": (1, c_uint64), "REDUCTION_SCHEME_MASK": (3, c_uint32),
    **{f"MIN_ALIGNMENT_{matrix}_BYTES": (5 + i, c_uint32) for i, matrix in enumerate("ABCD")}}


class HeuristicResult(Structure):
    """cublasLtMatmulHeuristicResult_t. Its first member is the opaque cublasLtMatmulAlgo_t."""

    _fields_ = (("algo", c_uint64 * 8), ("workspace", c_size_t), ("state", c_int),
                ("waves", c_float), ("reserved", c_int * 4))


class Precision(NamedTuple):
    """How products of one element type are computed."""

    matrix: DataType
    compute: Compute
    scale: DataType
    #: The C type of alpha and beta.
    number: Any
    itemsize: int


#: By dtype. Two-byte floats are summed in float32.
PRECISIONS = {
    "float32": Precision(DataType.R_32F, Compute.F32, DataType.R_32F, c_float, 4),
    "float64": Precision(DataType.R_64F, Compute.F64, DataType.R_64F, c_double, 8),
    "float16": Precision(DataType.R_16F, Compute.F32, DataType.R_32F, c_float, 2),
    "bfloat16": Precision(DataType.R_16BF, Compute.F32, DataType.R_32F, c_float, 2)}


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

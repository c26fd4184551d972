"""cuBLASLt by NumPy, with the rules of its header and manual.

What the header's comments forbid gives INVALID_VALUE (unknown attributes, wrong sizes, missing
pointers, layouts that contradict each other); what the library does not offer gives
NOT_SUPPORTED (alignments, distances of aux rows, bias gradients of transposed factors). An
algorithm remembers what it was chosen for and refuses other calls. Sums are made in float64 and
rounded once.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from gtape.devices.simulated.device_arrays import array, host_array, later
from gtape.devices.simulated.matrices import DTYPES, ColumnMajor
from gtape.devices.simulated.stand_ins import Handles, StandIn

_SUCCESS, _INVALID, _FAILED, _NOT_SUPPORTED = 0, 7, 13, 15
_NAMES = {_SUCCESS: b"CUBLAS_STATUS_SUCCESS", 1: b"CUBLAS_STATUS_NOT_INITIALIZED",
          _INVALID: b"CUBLAS_STATUS_INVALID_VALUE", _FAILED: b"CUBLAS_STATUS_EXECUTION_FAILED",
          _NOT_SUPPORTED: b"CUBLAS_STATUS_NOT_SUPPORTED"}
#: Bits of cublasLtEpilogue_t, and the combinations that it names.
_RELU, _BIAS, _DRELU, _BGRAD, _GELU, _DGELU, _AUX, _BGRADA, _BGRADB = (
    2, 4, 8, 16, 32, 64, 128, 256, 512)
_EPILOGUES = {1, _RELU, _BIAS, _RELU | _BIAS, _RELU | _AUX, _RELU | _AUX | _BIAS, _DRELU | _AUX,
              _DRELU | _AUX | _BGRAD, _GELU, _GELU | _BIAS, _GELU | _AUX, _GELU | _AUX | _BIAS,
              _DGELU | _AUX, _DGELU | _AUX | _BGRAD, _BGRADA, _BGRADB}
_F32, _F64, _F16, _BF16 = 0, 1, 2, 14
_COMPUTE_32F, _COMPUTE_64F, _COMPUTE_TF32 = 68, 70, 77
_MAGIC = 0x67746170  # 'gtap': an algorithm that did not come from the heuristic is refused
#: What an algorithm asks for beside the matrices.
_WORKSPACE = 1024  # not 0, so that callers who forget it are found
_P, _I, _U, _Z = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_size_t

library = StandIn("libcublasLt.so.13", "cublasLt", _NOT_SUPPORTED, _FAILED)


class LtObject:
    """What to compute (cublasLtMatmulDesc_t), a layout or a preference: attributes by number."""

    def __init__(self, kind: str, types: dict[int, Any], **fixed: int) -> None:
        self.kind, self.types = kind, types
        self.fixed = fixed
        self.values: dict[int, Any] = {}

    def get(self, attribute: int, otherwise: Any = 0) -> Any:
        return self.values.get(attribute, otherwise)


_MATMUL = {3: ctypes.c_int32, 4: ctypes.c_int32, 7: ctypes.c_uint32, 8: _P, 11: _P,
           12: ctypes.c_int64}
_LAYOUT = {5: ctypes.c_int32, 6: ctypes.c_int64}
_PREFERENCE = {1: _U, 3: ctypes.c_uint32, **dict.fromkeys(range(5, 9), ctypes.c_uint32)}
_objects: Handles[LtObject] = Handles()


class ChosenAlgorithm(ctypes.Structure):
    """The 64 bytes of cublasLtMatmulAlgo_t."""

    _fields_ = [(name, _U) for name in (
        "magic", "m", "n", "k", "epilogue", "alignment", "workspace", "batch")]


class HeuristicAnswer(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = [("algorithm", ChosenAlgorithm), ("workspace", _Z), ("state", _I),
                ("waves", ctypes.c_float), ("reserved", _I * 4)]


class ProductSize(NamedTuple):
    """The sizes of a product."""

    m: int
    n: int
    k: int


def _new(to: int | None, made: LtObject) -> int:
    if not to:
        return _INVALID
    _objects.add(made, to)
    return _SUCCESS


def _define(name: str, types: dict[int, Any], *arguments: Any) -> None:
    """Create, Destroy and SetAttribute of one kind of descriptor."""
    names = {"MatmulDesc": ("compute", "scale"), "MatrixLayout": ("type", "rows", "columns", "ld"),
             "MatmulPreference": (), "": ()}[name]

    def create(to: int | None, *values: int) -> int:
        if name == "MatrixLayout" and values[0] not in DTYPES:
            return _INVALID
        return _new(to, LtObject(name, types, **dict(zip(names, values))))

    def destroy(number: int | None) -> int:
        return _SUCCESS if _objects.pop(number or 0, None) else _INVALID

    def put(number: int | None, attribute: int, source: int | None, size: int) -> int:
        made, ctype = _objects.get(number or 0), types.get(attribute)
        if made is None or ctype is None or not source or size != ctypes.sizeof(ctype):
            return _INVALID
        made.values[attribute] = ctype.from_address(source).value
        return _SUCCESS

    library.function(f"{name}Create", _P, *arguments)(create)
    library.function(f"{name}Destroy", _P)(destroy)
    if name:
        library.function(f"{name}SetAttribute", _P, _I, _P, _Z)(put)


_define("", {})  # the handle
_define("MatmulDesc", _MATMUL, _I, _I)
_define("MatrixLayout", _LAYOUT, _I, _U, _U, ctypes.c_int64)
_define("MatmulPreference", _PREFERENCE)


@library.function("GetVersion", returns=_Z)
def _version() -> int:
    return 130000


@library.function("GetStatusName", _I, returns=_P)
def _status_name(status: int) -> int:
    text = _NAMES.get(status, b"CUBLAS_STATUS_INTERNAL_ERROR")
    return ctypes.cast(ctypes.c_char_p(text), _P).value or 0


# ------------------------------------------------------------------ what is forbidden


def _checked(desc: LtObject, a: LtObject, b: LtObject, c: LtObject) -> tuple[int, ProductSize]:
    """The status, and the sizes where it is success."""
    none = ProductSize(0, 0, 0)
    kind = a.fixed["type"]
    for layout in (a, b, c):
        rows, columns = layout.fixed["rows"], layout.fixed["columns"]
        if not rows or not columns or layout.fixed["ld"] < rows or layout.get(5, 1) < 1:
            return _INVALID, none
        if layout.fixed["type"] != kind or layout.get(5, 1) != c.get(5, 1):
            return _INVALID, none
        if max(rows, columns) > 2**31 - 1:
            return _NOT_SUPPORTED, none
    (m, k), (kb, n) = _size(a, desc.get(3)), _size(b, desc.get(4))
    if k != kb or (c.fixed["rows"], c.fixed["columns"]) != (m, n):
        return _INVALID, none
    if desc.fixed["scale"] != (_F64 if kind == _F64 else _F32):
        return _INVALID, none
    computes = {_F64: (_COMPUTE_64F,), _F32: (_COMPUTE_32F, _COMPUTE_TF32)}
    if desc.fixed["compute"] not in computes.get(kind, (_COMPUTE_32F,)):
        return _INVALID, none
    return _epilogue_status(desc, c, m), ProductSize(m, n, k)


def _size(layout: LtObject, transposed: int) -> tuple[int, int]:
    size = layout.fixed["rows"], layout.fixed["columns"]
    return (size[1], size[0]) if transposed else size


def _epilogue_status(desc: LtObject, c: LtObject, m: int) -> int:
    epilogue, bias, aux = desc.get(7, 1), desc.get(8), desc.get(11)
    if epilogue not in _EPILOGUES:
        return _INVALID
    wants_bias = bool(epilogue & (_BIAS | _BGRAD | _BGRADA | _BGRADB))
    if wants_bias != bool(bias) or bool(epilogue & _AUX) != bool(aux):
        return _INVALID
    if c.get(5, 1) > 1 and epilogue & (_AUX | _BGRAD | _BGRADA | _BGRADB):
        return _INVALID
    # cublasLt.h: "BGRADA: ... only works with a non-transposed A", and "transposed B" for BGRADB.
    if (epilogue & _BGRADA and desc.get(3)) or (epilogue & _BGRADB and not desc.get(4)):
        return _NOT_SUPPORTED
    if epilogue & _AUX:
        if desc.get(12) < m:
            return _INVALID
        if desc.get(12) % (128 if epilogue & (_RELU | _DRELU) else 8) or aux % 16:
            return _NOT_SUPPORTED
    return _SUCCESS


@library.function("MatmulAlgoGetHeuristic", *[_P] * 7, _I, _P, _P)
def _heuristic(handle: int, desc: int, a: int, b: int, c: int, d: int, preference: int, wanted: int,
               results: int, found: int) -> int:
    if not all((handle, desc, a, b, c, d, preference, results, found)) or wanted <= 0:
        return _INVALID
    _I.from_address(found).value = 0
    asked, out, wish = _objects[desc], _objects[c], _objects[preference]
    status, problem = _checked(asked, _objects[a], _objects[b], out)
    if status:
        return status
    if DTYPES[out.fixed["type"]].itemsize == 2 and wish.get(3, 7) != 2:
        return _INVALID  # sums of parts must not be rounded to 16 bits
    # The first asks for more memory than allowed, the second cannot run, the third is right.
    for i, workspace in enumerate((wish.get(1) + 1, 0, _WORKSPACE)[:wanted]):
        result = HeuristicAnswer.from_address(results + i * ctypes.sizeof(HeuristicAnswer))
        # 256 bytes: what the header assumes where no alignment is asked for.
        result.algorithm = ChosenAlgorithm(_MAGIC, *problem, asked.get(7, 1), wish.get(5, 256),
                                           workspace, out.get(5, 1))
        result.workspace, result.waves = workspace, 1.0
        result.state = _NOT_SUPPORTED if i == 1 else _SUCCESS
        _I.from_address(found).value = i + 1
    return _SUCCESS


# ------------------------------------------------------------------ the product


@library.function("Matmul", _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _Z, _P)
def _matmul(handle: int, desc: int, alpha: int, a: int, la: int, b: int, lb: int, beta: int, c: int,
            lc: int, d: int, ld: int, algorithm: int, workspace: int | None, size: int,
            stream: int | None) -> int:
    if not all((handle, desc, alpha, a, la, b, lb, beta, c, lc, d, ld, algorithm)):
        return _INVALID
    asked, layouts = _objects[desc], (_objects[la], _objects[lb], _objects[lc])
    status, problem = _checked(asked, *layouts)
    if status:
        return status
    chosen, out = ChosenAlgorithm.from_address(algorithm), layouts[2]
    epilogue, bias, aux = asked.get(7, 1), asked.get(8) or 0, asked.get(11) or 0
    if c != d or chosen.magic != _MAGIC or (chosen.m, chosen.n, chosen.k) != problem or (
            chosen.epilogue, chosen.batch) != (epilogue, out.get(5, 1)):
        return _INVALID
    if size < chosen.workspace or (size and (not workspace or workspace % 256)):
        return _INVALID
    if any(p % chosen.alignment for p in (a, b, c, bias, aux)) or any(
            x.get(5, 1) > 1 and x.get(6) * DTYPES[x.fixed["type"]].itemsize % chosen.alignment
            for x in layouts):
        return _NOT_SUPPORTED
    kind = np.dtype(np.float64 if asked.fixed["scale"] == _F64 else np.float32)
    # Now: numbers of the host may be gone when the stream runs.
    by, plus = (float(host_array(p, (), kind)[()]) for p in (alpha, beta))
    call = _Call(asked, ProductSize(*problem), DTYPES[out.fixed["type"]], bias, aux)
    starts, flags = (a, b, c), (asked.get(3), asked.get(4), 0)

    def run() -> None:
        for i in range(out.get(5, 1)):
            left, right, result = (_matrix(p, x, flag, i)
                                   for p, x, flag in zip(starts, layouts, flags))
            call.run(left, right, result, by, plus)

    return _FAILED if later(stream, run) else _SUCCESS


def _matrix(address: int, layout: LtObject, transposed: int, batch: int) -> ColumnMajor:
    kind = DTYPES[layout.fixed["type"]]
    return ColumnMajor(address + batch * layout.get(6) * kind.itemsize, kind, layout.fixed["ld"],
                  transposed)


def _gelu(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """gelu in its tanh form, and its slope."""
    c0, c1 = 0.7978845608028654, 0.044715  # sqrt(2 / pi); Hendrycks and Gimpel's (1606.08415)
    t = np.tanh(c0 * (x + c1 * x**3))
    return 0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c0 * (1 + 3 * c1 * x * x)


class _Call:
    """One product with its epilogue, as a stream runs it."""

    def __init__(self, desc: LtObject, problem: ProductSize, kind: np.dtype, bias: int,
                 aux: int) -> None:
        self.problem, self.kind = problem, kind
        self.epilogue, self.bias, self.aux = desc.get(7, 1), bias, aux
        self.aux_ld = desc.get(12)

    def run(self, a: ColumnMajor, b: ColumnMajor, c: ColumnMajor, alpha: float, beta: float,
            ) -> None:
        m, n, k = self.problem
        left, right = (x.astype(np.float64) for x in (a.read(m, k), b.read(k, n)))
        with np.errstate(all="ignore"):
            z = alpha * (left @ right)
            if beta:  # else C is not read: it may hold NaN
                z = z + beta * array(c.address, (m, n), c.dtype, (1, c.ld)).astype(np.float64)
            z = self._activated(z)
            array(c.address, (m, n), c.dtype, (1, c.ld), written=True)[...] = z.astype(c.dtype)
            for bit, sums in ((_BGRAD, lambda: z.sum(1)), (_BGRADA, lambda: left.sum(1)),
                              (_BGRADB, lambda: right.sum(0))):
                if self.epilogue & bit:
                    values = sums()
                    array(self.bias, values.shape, self.kind, written=True)[...] = values.astype(
                        self.kind)

    def _activated(self, z: np.ndarray) -> np.ndarray:
        e, (m, n) = self.epilogue, z.shape
        if e & _BIAS:
            z = z + array(self.bias, (m,), self.kind).astype(np.float64)[:, None]
        if e & _RELU:
            if e & _AUX:
                self._mask(n, written=True)[:] = _packed(z > 0, self.aux_ld)
            return np.where((z > 0) | np.isnan(z), z, 0.0)
        if e & _GELU:
            if e & _AUX:
                self._inputs(m, n, written=True)[...] = z.astype(self.kind)
            return _gelu(z)[0]
        if e & _DRELU:
            bits = np.unpackbits(self._mask(n), axis=-1, bitorder="little")[:, :m]
            return np.where(bits.T, z, 0.0)
        if e & _DGELU:
            return z * _gelu(self._inputs(m, n).astype(np.float64))[1]
        return z

    def _mask(self, n: int, written: bool = False) -> np.ndarray:
        return array(self.aux, (n, self.aux_ld // 8), np.uint8, written=written)

    def _inputs(self, m: int, n: int, written: bool = False) -> np.ndarray:
        return array(self.aux, (m, n), self.kind, (1, self.aux_ld), written=written)


def _packed(positive: np.ndarray, ld: int) -> np.ndarray:
    """relu's mask: a bit for each row, in columns `ld` bits apart."""
    columns = np.zeros((positive.shape[1], ld), bool)
    columns[:, :positive.shape[0]] = positive.T
    return np.packbits(columns, axis=-1, bitorder="little")

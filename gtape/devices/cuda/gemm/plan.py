"""ProductPlan: a matrix product prepared once, so that a call writes pointers and launches.

A plan belongs to one thread: its argument objects are rewritten by every call.
"""

from __future__ import annotations

from ctypes import byref, c_size_t, c_void_p
from typing import NamedTuple

from gtape.devices.cuda.gemm.blaslt import (
    BlasLt,
    Compute,
    Descriptor,
    Epilogue,
    Operation,
    Precision,
    ReductionScheme,
)
from gtape.devices.cuda.gemm.layout import ProductGeometry


class ProductRequest(NamedTuple):
    """What a plan depends on, beside the geometry and the element type."""

    alpha: float
    beta: float
    epilogue: Epilogue
    tf32: bool
    #: Every pointer is a multiple of it.
    alignment: int
    #: Elements (gelu) or bits (relu) between the rows of aux.
    aux_ld: int


class ProductPlan:
    """C = epilogue(αAB + βC) in one geometry, with the algorithm that the library expects to be
    the fastest. Raises LookupError: the library has none."""

    __slots__ = ("_a", "_args", "_aux", "_b", "_bias", "_c", "_keep", "_matmul", "_offsets",
                 "_set_aux", "_set_bias", "_space", "_stream", "workspace")

    def __init__(self, lt: BlasLt, handle: object, precision: Precision, geometry: ProductGeometry,
                 request: ProductRequest, bias: int, aux: int, limit: int) -> None:
        desc = _description(lt, precision, geometry, request)
        self._set_bias = desc.setter("BIAS_POINTER")
        self._set_aux = desc.setter("EPILOGUE_AUX_POINTER")
        self._point(bias, aux)
        layouts = _layouts(lt, precision, geometry)
        preference = _preference(lt, precision, request, limit)
        algorithm = lt.heuristic(handle, desc, *layouts, preference, limit)
        if algorithm is None:
            raise LookupError("cuBLASLt has no algorithm for this product")
        #: Bytes of scratch memory that the algorithm needs.
        self.workspace = algorithm.workspace
        self._offsets = tuple((x * precision.itemsize, y * precision.itemsize,
                               z * precision.itemsize) for x, y, z in geometry.offsets)
        self._a, self._b, self._c = c_void_p(), c_void_p(), c_void_p()
        self._space, self._stream = c_void_p(), c_void_p()
        alpha, beta = precision.number(request.alpha), precision.number(request.beta)
        left, right, result = [layout.handle for layout in layouts]
        # Made once: a call writes addresses into these objects and passes the same 16 arguments,
        # 0.8 us on the host. To convert them each time would take longer than the library does.
        self._args = (handle, desc.handle, byref(alpha), self._b, left, self._a, right,
                      byref(beta), self._c, result, self._c, result,
                      byref(algorithm, type(algorithm).algo.offset), self._space,
                      c_size_t(algorithm.workspace), self._stream)
        self._keep = (desc, layouts, alpha, beta, algorithm)
        self._matmul = lt.matmul

    def run(self, a: int, b: int, c: int, bias: int, aux: int, space: int, stream: int) -> int:
        """Launch on a stream; the library's status. All but `stream` are addresses, 0 where there
        is none; `space` is that of the scratch memory."""
        # Addresses of epilogues are attributes of the descriptor; each costs a call of the library
        # to set, and in steady training the pool gives the same memory again.
        if bias != self._bias or aux != self._aux:
            self._point(bias, aux)
        self._space.value, self._stream.value = space, stream
        for over_a, over_b, over_c in self._offsets:
            self._a.value, self._b.value, self._c.value = a + over_a, b + over_b, c + over_c
            status = self._matmul(*self._args)
            if status:
                return status
        return 0

    def _point(self, bias: int, aux: int) -> None:
        if bias:
            self._set_bias(bias)
        if aux:
            self._set_aux(aux)
        self._bias, self._aux = bias, aux


def _description(lt: BlasLt, precision: Precision, geometry: ProductGeometry,
                 request: ProductRequest) -> Descriptor:
    compute = precision.compute
    if request.tf32 and compute == Compute.F32 and precision.itemsize == 4:
        compute = Compute.F32_FAST_TF32
    description = lt.matmul_desc(compute, precision.scale)
    description.set(TRANSA=Operation.T if geometry.b.transposed else Operation.N,
                    TRANSB=Operation.T if geometry.a.transposed else Operation.N,
                    EPILOGUE=request.epilogue)
    if request.epilogue.has_aux:
        description.set(EPILOGUE_AUX_LD=request.aux_ld)
    return description


def _layouts(lt: BlasLt, precision: Precision, g: ProductGeometry,
             ) -> tuple[Descriptor, Descriptor, Descriptor]:
    """The library's A (our b), B (our a) and C."""
    count, step_a, step_b, step_c = g.batch
    layouts = []
    for transposed, ld, rows, columns, step in (
            (g.b.transposed, g.b.ld, g.n, g.k, step_b),
            (g.a.transposed, g.a.ld, g.k, g.m, step_a), (False, g.ldc, g.n, g.m, step_c)):
        if transposed:
            rows, columns = columns, rows
        layout = lt.matrix_layout(precision.matrix, rows, columns, ld)
        if count > 1:
            layout.set(BATCH_COUNT=count, STRIDED_BATCH_OFFSET=step)
        layouts.append(layout)
    return layouts[0], layouts[1], layouts[2]


def _preference(lt: BlasLt, precision: Precision, request: ProductRequest, limit: int,
                ) -> Descriptor:
    preference = lt.preference()
    # Parts of a sum that is split over multiprocessors are added in float32 too.
    scheme = ReductionScheme.COMPUTE_TYPE if precision.itemsize == 2 else ReductionScheme.MASK
    preference.set(MAX_WORKSPACE_BYTES=limit, REDUCTION_SCHEME_MASK=scheme,
                   **{f"MIN_ALIGNMENT_{x}_BYTES": request.alignment for x in "ABCD"})
    return preference

"""Matrix products on a GPU by cuBLASLt, with what belongs before and after them in one launch.

A product is prepared once per thread, shapes, strides, dtypes, alignment and epilogue
(`ProductPlan`), and then costs the host a look-up, an allocation and the launch. Scratch memory is
allocated once per stream, so that a product can be captured into a CUDA graph after it ran once; a
captured graph uses the scratch memory of the stream on which it was captured, so launch it on that
stream.
"""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from gtape.core.errors import InternalError, UnavailableError
from gtape.core.modes import Modes
from gtape.devices.cuda.gemm import blaslt
from gtape.devices.cuda.gemm.blaslt import BlasLt, Epilogue
from gtape.devices.cuda.gemm.plan import ProductPlan, ProductRequest
from gtape.devices.cuda.gemm.problem import COPY, Key, Problem, extras, precision_of, rekeyed
from gtape.devices.cuda.runtime.executor import Executor
from gtape.devices.cuda.runtime.kernel import address

if TYPE_CHECKING:
    from gtape.core.device import Array

DEFAULT = Epilogue.DEFAULT
_MIB = 1 << 20
#: Problems that a thread keeps: the shapes of a program may never come again.
_LIMIT = 4096
#: cudaMalloc aligns to 256 bytes, and the library asks for no more.
_ALIGNMENT = 256
#: cudaStreamPerThread, which is another stream in each thread.
_STREAM_PER_THREAD = 2


class Gemm:
    """cuBLASLt on one GPU, which must be the current one. Threads may share it. Raises
    UnavailableError: the GPU cannot be used.

    Args:
        lt: the library.
        limit: bytes of scratch memory that an algorithm may use.
    """

    def __init__(self, lt: BlasLt, limit: int) -> None:
        self._lt = lt
        self._handle = lt.handle()
        self._limit = limit
        self._spaces: dict[tuple[int, int], tuple[Any, int]] = {}
        self._lock = threading.Lock()
        # Plans are rewritten by every call, so that each thread has its own; scratch memory is
        # shared, since a stream runs its products one after another.
        self._local = threading.local()
        self._told = False

    def matmul(self, gpu: Executor, a: Any, b: Any, key: Key, out: Any, request: tuple[Any, ...],
               bias: Any, aux: object) -> Any:
        """As the function `matmul`; `request` is (alpha, beta, epilogue, tf32)."""
        try:
            problem = self._local.problems[key]
        except (AttributeError, KeyError):
            problem = self._problem(key)
        if problem is COPY:
            return self._copied(gpu, a, b, key, out, request, bias, aux)
        if out is None:
            out = gpu.empty(problem.shape, a.dtype)
        at_a, at_b, at_c, at_bias, at_aux, aux_ld = address(a), address(b), address(out), 0, 0, 0
        if request[2] is not DEFAULT:
            more = extras(problem, request[2], a.dtype, bias, aux)
            if more is None:
                return None
            at_bias, at_aux, aux_ld = more
        # The library refuses matrices without elements, so that what they mean is said here.
        if problem.empty:
            return _emptied(out, bias, request[2], problem)
        if problem.hollow:
            return self._hollow(gpu, a, b, key, out, request, bias, aux)
        bits = (at_a | at_b | at_c | at_bias | at_aux | problem.distances) & (_ALIGNMENT - 1)
        # The lowest bit set anywhere: the largest power of 2 that divides all.
        asked = (request, bits & -bits, aux_ld)
        plan = problem.plans.get(asked)
        if plan is None:
            plan = problem.plans[asked] = self._planned(
                problem, _request(request, bits & -bits or _ALIGNMENT, aux_ld), at_bias, at_aux)
        if plan is False:
            return None
        current = gpu.stream()
        # CuPy's stream has `ptr`; stand-ins of tests give the number, or None.
        stream = getattr(current, "ptr", current) or 0
        status = plan.run(at_a, at_b, at_c, at_bias, at_aux,
                          self._space(gpu, stream) if plan.workspace else 0, stream)
        if status:
            self._lt.check("Matmul", status)
        return out

    def _problem(self, key: Key) -> Any:
        problems = self._local.__dict__.setdefault("problems", {})
        if len(problems) >= _LIMIT:
            problems.clear()
        problem = problems[key] = Problem.of(key)
        return problem

    def _planned(self, problem: Problem, request: ProductRequest, at_bias: int, at_aux: int,
                 ) -> ProductPlan | Literal[False]:
        try:
            assert problem.geometry is not None
            return ProductPlan(self._lt, self._handle, problem.precision, problem.geometry, request,
                               at_bias, at_aux, self._limit)
        except LookupError:
            if request.epilogue is DEFAULT:
                self._tell(f"has no algorithm for {problem}")
        except InternalError as error:
            # What an epilogue cannot be combined with is documented in parts; a product alone
            # has no such limits.
            if request.epilogue is DEFAULT:
                raise
            self._tell(f"refuses {request.epilogue.name} of {problem} ({error})")
        return False

    def _tell(self, what: str) -> None:
        if not self._told:
            self._told = True
            warnings.warn(f"cuBLASLt {what}; CuPy computes it, and others like it", stacklevel=2)

    def _space(self, gpu: Executor, stream: int) -> int:
        """The address of the scratch memory of a stream, whose products run one after another."""
        owner = (stream, threading.get_ident() if stream == _STREAM_PER_THREAD else 0)
        space = self._spaces.get(owner)
        if space is None:
            with self._lock:
                space = self._spaces.get(owner)
                if space is None:
                    memory = gpu.empty((self._limit + _ALIGNMENT,), "uint8")
                    at = -(-address(memory) // _ALIGNMENT) * _ALIGNMENT
                    space = self._spaces[owner] = (memory, at)
        return space[1]

    def _copied(self, gpu: Executor, a: object, b: object, key: Key, *rest: Any) -> Any:
        left, right = gpu.contiguous(a), gpu.contiguous(b)
        if left is a and right is b:
            return None
        return self.matmul(gpu, left, right, rekeyed(key, left, right), *rest)

    def _hollow(self, gpu: Executor, a: Array, b: Array, key: Key, *rest: Any) -> Array:
        """A sum over nothing: the same as over one product of zeros."""
        left = gpu.zeros(tuple(n or 1 for n in a.shape), a.dtype)
        right = gpu.zeros(tuple(n or 1 for n in b.shape), b.dtype)
        return self.matmul(gpu, left, right, rekeyed(key, left, right), *rest)


def _request(asked: tuple[Any, ...], alignment: int, aux_ld: int) -> ProductRequest:
    alpha, beta, epilogue, tf32 = asked
    return ProductRequest(alpha, beta, epilogue, tf32, alignment, aux_ld)


def _emptied(out: Array, bias: Any, epilogue: Epilogue, problem: Problem) -> Any:
    """`out`, which has no elements; the gradient of a bias is then a sum over nothing."""
    if epilogue.has_bias_gradient:
        if epilogue in (Epilogue.BGRADA, Epilogue.BGRADB) and problem.inner:
            return None
        bias.fill(0)
    return out


_gemms: WeakKeyDictionary[Executor, Gemm | None] = WeakKeyDictionary()
_gemms_lock = threading.Lock()


def install(gpu: Executor, gemm: Gemm | None) -> None:
    """Let `matmul` on `gpu` use this library; None: no library."""
    _gemms[gpu] = gemm


def _gemm_of(gpu: Executor) -> Gemm | None:
    try:
        return _gemms[gpu]
    except KeyError:
        with _gemms_lock:
            if gpu not in _gemms:
                install(gpu, _load(gpu))
        return _gemms[gpu]


def _load(gpu: Executor) -> Gemm | None:
    """The library for this GPU; None where there is none, or where the memory is no GPU's."""
    cuda: Any = getattr(gpu.xp, "cuda", None)
    if not hasattr(getattr(cuda, "runtime", None), "runtimeGetVersion"):
        return None
    try:
        lt = blaslt.find(cuda.runtime.runtimeGetVersion() // 1000)
        return Gemm(lt, _scratch(int(cuda.Device().compute_capability)))
    except UnavailableError as error:
        warnings.warn(f"{error}. Until then CuPy computes matrix products, without epilogues",
                      stacklevel=2)
        return None


def _scratch(capability: int) -> int:
    """Bytes of scratch memory: what NVIDIA's document "cuBLAS", section "cublasSetWorkspace()",
    recommends, and 8 MiB where that is 4."""
    if capability >= 120:
        return 12 * _MIB
    return (32 if capability >= 90 else 8) * _MIB


def matmul(gpu: Executor, a: Any, b: Any, *, transpose_a: bool = False, transpose_b: bool = False,
           out: Any = None, alpha: float = 1.0, beta: float = 0.0,
           epilogue: Epilogue = DEFAULT, bias: object = None, aux: object = None,
           tf32: bool | None = None) -> Any:
    """out = epilogue(alpha op(a) op(b) + beta out), batch axes broadcast. Raises
    InvalidArgumentError: bias or aux do not fit the epilogue; InternalError, UnavailableError: the
    library fails; its status is named.

    Args:
        a, b: arrays […, m, k] and […, k, n], or transposed ones with the flags, of one dtype:
            float32, float64, float16 or bfloat16. Two-byte floats are summed in float32. Views
            with transposed axes or gaps between rows are read as they are.
        out: an array [..., m, n], row-major; without it a new one is made, and beta must be 0.
        epilogue: with BIAS or the gradient of one, `bias` is an array [n] ([m] for BGRADB) that is
            read or written. With AUX and the D... ones, `aux` is an array as `auxiliary` makes.
        tf32: float32 factors may be rounded to TF32; None: as
            `tf.config.experimental.enable_tensor_float_32_execution` says.

    Returns:
        `out`; None where this is not served, and nothing was written: other dtypes, an epilogue
        beyond its limits (`epilogue`), a product the library has no algorithm for, no library.
    """
    gemm = _gemm_of(gpu)
    dtype = a.dtype
    if gemm is None or b.dtype != dtype or precision_of(dtype) is None:
        return None
    if beta and out is None:
        raise InternalError("matmul: beta scales the old content of out; pass out, or beta=0")
    if tf32 is None:
        tf32 = Modes.tensor_float_32
    key = (a.shape, a.strides, b.shape, b.strides, dtype, transpose_a, transpose_b,
           None if out is None else out.strides)
    return gemm.matmul(gpu, a, b, key, out, (alpha, beta, epilogue, tf32), bias, aux)

"""Matrix products by cuBLASLt: gtape's side of the library, proven on a stand-in for it."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from gtape.core.errors import InternalError, InvalidArgumentError, UnavailableError
from gtape.devices.cuda.gemm import blaslt, gemm, layout, plan
from gtape.devices.cuda.gemm.blaslt import Epilogue, Operation
from gtape.devices.cuda.gemm.contractions import linear_forward
from gtape.devices.cuda.gemm.problem import auxiliary
from gtape.kernelcheck.checks import gemm as product_checks
from gtape.kernelcheck.checks.bench import Bench, Wrong, drawn
from tests.fakes import fake_blaslt as fake
from tests.threads import together

_CHECKS = [*product_checks.checks()]


@pytest.fixture
def bench() -> Bench:
    return fake.host_bench(fake.host_executor())


@pytest.fixture(scope="module")
def shared() -> Bench:
    return fake.host_bench(fake.host_executor())


@pytest.mark.parametrize("check", _CHECKS, ids=[c.name for c in _CHECKS])
def test_check(check: Any, shared: Bench) -> None:
    check.run(shared)


# ---------------------------------------------------------------- the checks are checked
def _swapped(make: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(lt: Any, precision: Any, geometry: Any, request: Any) -> Any:
        made = make(lt, precision, geometry, request)
        made.set(TRANSA=Operation.N if geometry.b.transposed else Operation.T)
        return made

    return wrong


def _other_epilogue(make: Callable[..., Any]) -> Callable[..., Any]:
    other = {Epilogue.RELU: Epilogue.GELU, Epilogue.BGRADA: Epilogue.BGRADB,
             Epilogue.DGELU: Epilogue.DRELU}

    def wrong(lt: Any, precision: Any, geometry: Any, request: Any) -> Any:
        return make(lt, precision, geometry, request._replace(
            epilogue=other.get(request.epilogue, request.epilogue)))

    return wrong


def _one_batch(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda lt, precision, g: make(lt, precision, g._replace(batch=(g.batch[0], 0, 0, 0)))


def _one_launch(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda axes: make(axes)[:1]


def _dense_lines(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda inner, step, outer, stride: inner if make(inner, step, outer, stride) else 0


def _always_aligned(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda lt, precision, request, limit: make(
        lt, precision, request._replace(alignment=256), limit)


_FAULTS = [(plan, "_description", _swapped), (plan, "_description", _other_epilogue),
           (plan, "_layouts", _one_batch), (layout, "_offsets", _one_launch),
           (layout, "_leading", _dense_lines), (plan, "_preference", _always_aligned)]


@pytest.mark.filterwarnings("ignore:cuBLASLt refuses")
@pytest.mark.parametrize("module, name, fault", _FAULTS, ids=[f[2].__name__ for f in _FAULTS])
def test_a_planted_fault_is_found(module: Any, name: str, fault: Any, bench: Bench,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, name, fault(getattr(module, name)))
    found = 0
    for check in _CHECKS:
        if check.name.endswith("float32"):
            try:
                check.run(bench)
            except (Wrong, InternalError):
                found += 1
    assert found


# ---------------------------------------------------------------- what a call costs
def _arrays(*shapes: tuple[int, ...], dtype: str = "float32") -> list[np.ndarray]:
    return [drawn(s, i).astype(dtype) for i, s in enumerate(shapes)]


def test_a_product_is_planned_once_and_scratch_memory_allocated_once(bench: Bench) -> None:
    a, b, bias = _arrays((16, 8), (8, 24), (24,))
    allocated: list[tuple[int, ...]] = []

    def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        allocated.append(shape)
        return np.empty(shape, dtype)

    bench.gpu.empty = empty
    before = fake.count("heuristics"), fake.count("products")
    for _ in range(3):
        gemm.matmul(bench.gpu, a, b)
        gemm.matmul(bench.gpu, a, b, epilogue=Epilogue.BIAS, bias=bias)
    assert fake.count("heuristics") - before[0] == 2
    assert fake.count("products") - before[1] == 6
    assert sorted(allocated) == [(16, 24)] * 6 + [(fake.SCRATCH + 256,)]
    allocated.clear()
    out = np.empty((16, 24), np.float32)
    # What a captured call may not do: allocate.
    gemm.matmul(bench.gpu, a, b, out=out)
    gemm.matmul(bench.gpu, a, b, out=out)
    assert not allocated


def test_each_stream_has_its_own_scratch_memory(bench: Bench) -> None:
    installed = gemm._gemms[bench.gpu]
    assert installed is not None
    first, second = installed._space(bench.gpu, 1), installed._space(bench.gpu, 2)
    assert first != second
    assert installed._space(bench.gpu, 1) == first
    assert first % 256 == 0
    mine, other = installed._space(bench.gpu, gemm._STREAM_PER_THREAD), []
    thread = threading.Thread(
        target=lambda: other.append(installed._space(bench.gpu, gemm._STREAM_PER_THREAD)))
    thread.start()
    thread.join()
    assert other != [mine]


def test_another_bias_is_read(bench: Bench) -> None:
    a, b, one, two = _arrays((4, 3), (3, 5), (5,), (5,))
    for bias in (one, two, one):
        made = gemm.matmul(bench.gpu, a, b, epilogue=Epilogue.BIAS, bias=bias)
        np.testing.assert_allclose(made, a @ b + bias, rtol=1e-5, atol=1e-6)


def test_threads_share_the_library(bench: Bench) -> None:
    a, b = _arrays((32, 16), (16, 8))
    wrong: list[int] = []

    def work(seed: int) -> None:
        bias = np.full(8, seed, np.float32)
        for _ in range(200):
            made = gemm.matmul(bench.gpu, a, b, epilogue=Epilogue.BIAS, bias=bias)
            if not np.allclose(made, a @ b + seed, atol=1e-4):
                wrong.append(seed)

    together(*[partial(work, i) for i in range(4)])
    assert not wrong


def test_what_the_library_made_is_destroyed() -> None:
    gc.collect()
    before = fake.count("handles"), fake.count("descriptors")
    gpu = fake.host_executor()
    gemm.matmul(gpu, *_arrays((3, 4), (4, 5)))
    assert fake.count("handles") == before[0] + 1
    assert fake.count("descriptors") == before[1] + 4  # the preference is gone already
    del gpu
    gc.collect()
    assert (fake.count("handles"), fake.count("descriptors")) == before


# ---------------------------------------------------------------- what is not served
@pytest.mark.parametrize("dtype", ["int32", "bool", "complex64", "uint8"])
def test_other_dtypes_are_not_served(dtype: str, bench: Bench) -> None:
    a, b = _arrays((3, 4), (4, 5), dtype=dtype)
    assert gemm.matmul(bench.gpu, a, b) is None


def test_arrays_of_two_dtypes_are_not_served(bench: Bench) -> None:
    a, b = _arrays((3, 4), (4, 5))
    assert gemm.matmul(bench.gpu, a, b.astype("float64")) is None


class _Huge:
    """Shape and strides of an array that no memory holds."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.dtype = shape, np.dtype("float32")
        self.strides = tuple(4 * s for s in layout.contiguous(shape).strides)
        self.data = type("Memory", (), {"ptr": 256})


def test_what_the_library_has_no_algorithm_for_is_said_once(bench: Bench) -> None:
    huge = _Huge((2**31 + 8, 1))
    bench.gpu.empty = lambda shape, dtype: _Huge(shape)
    with pytest.warns(UserWarning, match=r"no algorithm for \[2147483656, 1\] @ \[1, 8\] in R_32F"):
        assert gemm.matmul(bench.gpu, huge, _Huge((1, 8))) is None
    assert gemm.matmul(bench.gpu, huge, _Huge((1, 16))) is None


def test_an_epilogue_that_the_library_refuses_is_not_served(
        bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise InternalError("CUBLAS_STATUS_INVALID_VALUE")

    monkeypatch.setattr(blaslt.BlasLt, "heuristic", refuse)
    a, b, bias = _arrays((3, 4), (4, 5), (5,))
    with pytest.warns(UserWarning, match=r"refuses BIAS of \[3, 4\] @ \[4, 5\] in R_32F"):
        assert gemm.matmul(bench.gpu, a, b, epilogue=Epilogue.BIAS, bias=bias) is None
    with pytest.raises(InternalError, match="INVALID_VALUE"):
        gemm.matmul(bench.gpu, a, b)


def test_more_elements_than_an_int_counts_are_addressed() -> None:
    found = layout.geometry(*[layout.contiguous(s) for s in (
        (2, 3, 2**20, 2**11), (2, 1, 2**11, 8), (2, 3, 2**20, 8))])
    assert found is not None
    # One launch for the two b's, whose a's are 3 · 2³¹ elements apart, with all rows of each.
    assert (found.m, found.batch, found.offsets) == (
        3 * 2**20, (2, 3 * 2**31, 2**14, 3 * 2**23), ((0, 0, 0),))


def test_without_the_library_cupy_computes_and_this_is_said_once(
        bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(major: int) -> blaslt.BlasLt:
        raise UnavailableError("cuBLASLt was not found")

    runtime = type("Runtime", (), {"runtimeGetVersion": staticmethod(lambda: 13000)})
    bench.gpu.xp = type("Cupy", (), {"cuda": type("Cuda", (), {"runtime": runtime})})
    del gemm._gemms[bench.gpu]
    monkeypatch.setattr(blaslt, "find", missing)
    with pytest.warns(UserWarning, match="CuPy computes matrix products"):
        assert gemm.matmul(bench.gpu, *_arrays((3, 4), (4, 5))) is None
    assert gemm.matmul(bench.gpu, *_arrays((3, 4), (4, 5))) is None


def test_memory_that_is_no_gpus_is_left_alone() -> None:
    gpu = fake.host_executor()
    del gemm._gemms[gpu]
    assert gemm.matmul(gpu, *_arrays((3, 4), (4, 5))) is None


def test_aux_beyond_the_librarys_limits_is_not_served(bench: Bench) -> None:
    a, b, z, odd = _arrays((4, 3), (3, 7), (4, 7), (2, 4, 3))
    assert gemm.matmul(bench.gpu, a, b, epilogue=Epilogue.DGELU, aux=z) is None
    aux = auxiliary(bench.gpu, Epilogue.GELU_AUX, 4, 7, a.dtype)
    assert gemm.matmul(bench.gpu, a, b, epilogue=Epilogue.GELU_AUX, aux=aux) is not None
    off = bench.array(np.zeros((4, 8)), "float32", misaligned=True)
    assert gemm.matmul(bench.gpu, a, b, epilogue=Epilogue.GELU_AUX, aux=off) is None
    batch = auxiliary(bench.gpu, Epilogue.RELU_AUX, 8, 7, a.dtype)
    pair = np.stack([b, b])
    assert gemm.matmul(bench.gpu, odd, pair, epilogue=Epilogue.RELU_AUX, aux=batch) is None


# ---------------------------------------------------------------- errors
def test_what_an_epilogue_needs_is_asked_for(bench: Bench) -> None:
    a, b, bias = _arrays((4, 3), (3, 8), (7,))
    with pytest.raises(InvalidArgumentError, match="the epilogue BIAS takes a bias"):
        gemm.matmul(bench.gpu, a, b, epilogue=Epilogue.BIAS)
    with pytest.raises(InvalidArgumentError, match=r"float32 array \[8\]; got float32 \[7\]"):
        gemm.matmul(bench.gpu, a, b, epilogue=Epilogue.BIAS, bias=bias)
    with pytest.raises(InvalidArgumentError, match="GELU_AUX takes an aux"):
        gemm.matmul(bench.gpu, a, b, epilogue=Epilogue.GELU_AUX)
    with pytest.raises(InvalidArgumentError, match="uint8 array of 4 rows"):
        gemm.matmul(bench.gpu, a, b, epilogue=Epilogue.RELU_AUX, aux=np.empty((4, 8), "float32"))
    with pytest.raises(InternalError, match="pass out"):
        gemm.matmul(bench.gpu, a, b, beta=1.0)


def test_a_status_is_named() -> None:
    lt = fake.library()
    with pytest.raises(InternalError, match="says CUBLAS_STATUS_INVALID_VALUE"):
        lt.check("Matmul", 7)
    with pytest.raises(UnavailableError, match="CUBLAS_STATUS_NOT_INITIALIZED"):
        lt.check("Create", 1)
    with pytest.raises(InternalError, match="MatrixLayoutCreate"):
        lt.matrix_layout(99, 4, 4, 4)  # type: ignore[arg-type]


def test_tf32_is_asked_for_only_when_allowed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    import gtape as tf

    asked: list[bool] = []
    made = plan._description

    def seen(lt: Any, precision: Any, geometry: Any, request: Any) -> Any:
        asked.append(request.tf32)
        return made(lt, precision, geometry, request)

    monkeypatch.setattr(plan, "_description", seen)
    switch = tf.config.experimental
    assert not switch.tensor_float_32_execution_enabled()
    a, b = _arrays((4, 3), (3, 8))
    gemm.matmul(bench.gpu, a, b)
    switch.enable_tensor_float_32_execution(True)
    try:
        gemm.matmul(bench.gpu, a, b)
        assert switch.tensor_float_32_execution_enabled()
    finally:
        switch.enable_tensor_float_32_execution(False)
    gemm.matmul(bench.gpu, a, b)
    assert asked == [False, True]


# ---------------------------------------------------------------- the dense layer
def test_a_layer_of_no_inputs_is_its_bias(bench: Bench) -> None:
    x, w, b = _arrays((4, 0), (0, 8), (8,))
    made = linear_forward(bench.gpu, x, w, b, "relu")
    assert made is not None
    np.testing.assert_array_equal(made[0], np.maximum(np.broadcast_to(b, (4, 8)), 0))


def test_gelus_input_is_not_saved_where_its_rows_would_not_fit(bench: Bench) -> None:
    x, w, b = _arrays((6, 5), (5, 7), (7,))
    assert linear_forward(bench.gpu, x, w, b, "gelu_tanh") is None
    assert linear_forward(bench.gpu, x, w, b, "gelu_tanh", save=False) is not None

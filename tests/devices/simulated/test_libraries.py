"""CUDA's libraries behind the simulated GPU, through CuPy: their results are NumPy's."""

from __future__ import annotations

import os

import numpy as np
import pytest

from gtape.devices import probe

pytestmark = pytest.mark.gpu
if os.environ.get("GTAPE_DEVICE") != "simulated":
    pytest.skip("needs GTAPE_DEVICE=simulated", allow_module_level=True)
probe.probe()
cupy = pytest.importorskip("cupy")
cupyx = pytest.importorskip("cupyx")

DTYPES = ["f4", "f8", "c8", "c16"]
SIZES = [1, 2, 5, 8]


def numbers(*shape: int, dtype: str = "f8", seed: int = 0) -> np.ndarray:
    draws = np.random.default_rng([seed, *shape])
    values = draws.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * draws.standard_normal(shape)
    return np.asarray(values, dtype)


def definite(*shape: int, dtype: str) -> np.ndarray:
    a = numbers(*shape, dtype=dtype)
    return a @ a.conj().swapaxes(-1, -2) + 2 * np.eye(shape[-1], dtype=dtype)


def close(found, expected, factor: float = 1.0) -> None:
    expected = np.asarray(expected)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    tolerance = factor * (2e-4 if expected.dtype.char in "fF" else 1e-9)
    np.testing.assert_allclose(found.get(), expected, rtol=tolerance, atol=tolerance)


@pytest.fixture
def raising():
    with cupyx.errstate(linalg="raise"):
        yield


# ------------------------------------------------------------------ cuSOLVER, cuBLAS


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (3, 4, 4), (2, 3, 2, 2), (0, 3, 3)])
def test_cholesky(dtype, shape, raising):
    a = definite(*shape, dtype=dtype)
    close(cupy.linalg.cholesky(cupy.asarray(a)), np.linalg.cholesky(a))


def test_cholesky_of_an_indefinite_matrix(raising):
    a = np.diag([1.0, 2.0, -1.0, 4.0])
    with pytest.raises(np.linalg.LinAlgError, match=r"devInfo = \[3\]"):
        cupy.linalg.cholesky(cupy.asarray(a))
    batch = np.stack([np.eye(4), a])
    with pytest.raises(np.linalg.LinAlgError, match=r"\[0 3\]"):
        cupy.linalg.cholesky(cupy.asarray(batch))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_systems(dtype, n, raising):
    a, b = numbers(n, n, dtype=dtype), numbers(n, 3, dtype=dtype, seed=1)
    on_gpu = cupy.asarray(a)
    close(cupy.linalg.solve(on_gpu, cupy.asarray(b)), np.linalg.solve(a, b), 10)
    close(cupy.linalg.solve(on_gpu, cupy.asarray(b[:, 0])), np.linalg.solve(a, b[:, 0]), 10)
    close(cupy.linalg.inv(on_gpu), np.linalg.inv(a), 10)
    close(cupy.linalg.det(on_gpu), np.linalg.det(a), 10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_systems_in_batches(dtype, raising):
    a, b = numbers(3, 4, 4, dtype=dtype), numbers(3, 4, 2, dtype=dtype, seed=1)
    close(cupy.linalg.solve(cupy.asarray(a), cupy.asarray(b)), np.linalg.solve(a, b), 10)
    close(cupy.linalg.inv(cupy.asarray(a)), np.linalg.inv(a), 10)
    close(cupy.linalg.det(cupy.asarray(a)), np.linalg.det(a), 10)
    close(cupy.linalg.inv(cupy.asarray(a[:0])), np.linalg.inv(a[:0]))


def test_systems_of_a_singular_matrix(raising):
    a = np.ones((3, 3))
    with pytest.raises(np.linalg.LinAlgError, match=r"devInfo = \[2\]"):
        cupy.linalg.solve(cupy.asarray(a), cupy.ones(3))
    with pytest.raises(np.linalg.LinAlgError):
        cupy.linalg.inv(cupy.asarray(a))
    with pytest.raises(np.linalg.LinAlgError):
        cupy.linalg.inv(cupy.asarray(np.stack([np.eye(3), a])))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (6, 4), (4, 6), (5, 5), (2, 5, 3)])
def test_qr(dtype, shape, raising):
    a = numbers(*shape, dtype=dtype)
    for mode in ("reduced", "complete"):
        q, r = cupy.linalg.qr(cupy.asarray(a), mode)
        expected = np.linalg.qr(a, mode)
        assert q.shape == expected[0].shape and r.shape == expected[1].shape
        close(q @ r, a)
        close(abs(r), abs(expected[1]))
        close(q.conj().swapaxes(-1, -2) @ q,
              np.broadcast_to(np.eye(q.shape[-1], dtype=dtype), (*shape[:-2], *[q.shape[-1]] * 2)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (6, 4), (4, 6), (2, 5, 3), (2, 40, 3), (3, 0)])
@pytest.mark.parametrize("full", [False, True])
def test_svd(dtype, shape, full, raising):
    a = numbers(*shape, dtype=dtype)
    u, s, vh = cupy.linalg.svd(cupy.asarray(a), full_matrices=full)
    expected = np.linalg.svd(a, full_matrices=full)
    assert (u.shape, vh.shape) == (expected[0].shape, expected[2].shape)
    close(s, expected[1])
    k = s.shape[-1]
    close(u[..., :k] * s[..., None, :].astype(dtype) @ vh[..., :k, :], a)
    close(cupy.linalg.svd(cupy.asarray(a), compute_uv=False), expected[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (3, 4, 4)])
@pytest.mark.parametrize("triangle", "LU")
def test_eigenvalues_of_hermitian_matrices(dtype, shape, triangle, raising):
    a = numbers(*shape, dtype=dtype)
    w, v = cupy.linalg.eigh(cupy.asarray(a), triangle)
    close(w, np.linalg.eigh(a, triangle)[0])
    close(cupy.linalg.eigvalsh(cupy.asarray(a), triangle), np.linalg.eigvalsh(a, triangle))
    other = np.tril(a, -1) if triangle == "L" else np.triu(a, 1)
    full = other + other.conj().swapaxes(-1, -2) + np.eye(shape[-1]) * a.real
    close(v * w[..., None, :].astype(dtype) @ v.conj().swapaxes(-1, -2), full.astype(dtype), 4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 5])
def test_eigenvalues_of_general_matrices(dtype, n, raising):
    a = cupy.asarray(numbers(n, n, dtype=dtype))
    w, v = cupy.linalg.eig(a)
    close(a.astype(v.dtype) @ v, (v * w).get(), 10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_other_solvers_of_cusolver(dtype):
    from cupyx import cusolver

    a, b = numbers(6, 4, dtype=dtype), numbers(6, 2, dtype=dtype, seed=1)
    close(cusolver.gels(cupy.asarray(a), cupy.asarray(b)), np.linalg.lstsq(a, b)[0], 10)
    close(cusolver.gesv(cupy.asarray(a[:4]), cupy.asarray(b[:4])),
          np.linalg.solve(a[:4], b[:4]), 10)
    for method in (cusolver.gesvdj, cusolver.gesvda):
        u, s, v = method(cupy.asarray(a))
        close(u[:, :4] * s.astype(dtype) @ v[:, :4].conj().T, a)
    singular = cupy.ones((3, 3), dtype)
    with pytest.raises(RuntimeError, match="gesv has failed"):
        cusolver.gesv(singular, singular[:, :1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangular_systems(dtype):
    linalg = pytest.importorskip("cupyx.scipy.linalg")
    expected = pytest.importorskip("scipy.linalg")
    a, b = numbers(5, 5, dtype=dtype) + 4 * np.eye(5, dtype=dtype), numbers(5, 2, dtype=dtype)
    for lower in (False, True):
        for trans in range(3):
            close(linalg.solve_triangular(cupy.asarray(a), cupy.asarray(b), trans, lower),
                  expected.solve_triangular(a, b, trans, lower), 4)
    factors = linalg.lu_factor(cupy.asarray(a))
    for trans in range(3):
        close(linalg.lu_solve(factors, cupy.asarray(b), trans),
              expected.lu_solve(expected.lu_factor(a), b, trans), 4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_more_of_cublas(dtype):
    from cupy import cublas

    a, x = numbers(4, 3, dtype=dtype), numbers(4, dtype=dtype)
    y = numbers(3, dtype=dtype, seed=1)
    on_gpu, column, row = cupy.asarray(a), cupy.asarray(x), cupy.asarray(y)
    moduli = abs(x.real) + abs(x.imag)
    close(cublas.asum(column), moduli.sum())
    assert int(cublas.iamax(column)) == moduli.argmax() + 1
    assert int(cublas.iamin(column)) == moduli.argmin() + 1
    close(cublas.dgmm("L", on_gpu, column), np.diag(x) @ a)
    close(cublas.dgmm("R", on_gpu, row), a @ np.diag(y))
    close(cupy.tril(cublas.syrk("N", on_gpu, lower=True)), np.tril(a @ a.T))
    close(cupy.triu(cublas.syrk("T", on_gpu, lower=False)), np.triu(a.T @ a))
    for name, other in (("ger", y),) if on_gpu.dtype.kind == "f" else (
            ("geru", y), ("gerc", y.conj())):
        target = cupy.asarray(a, order="F")
        getattr(cublas, name)(2.0, column, row, target)
        close(target, a + 2 * np.outer(x, other))


# ------------------------------------------------------------------ cuFFT


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (7,), (8, 5), (3, 4, 5), (2, 3, 4, 6)])
def test_transforms(dtype, shape):
    a = numbers(*shape, dtype=dtype)
    on_gpu = cupy.asarray(a)
    for name in ("fft", "ifft"):
        for axis in range(len(shape)):
            close(getattr(cupy.fft, name)(on_gpu, axis=axis), getattr(np.fft, name)(a, axis=axis))
    axes = tuple(range(len(shape)))[-3:]
    for name in ("fftn", "ifftn"):
        for norm in ("backward", "ortho", "forward"):
            close(getattr(cupy.fft, name)(on_gpu, axes=axes, norm=norm),
                  getattr(np.fft, name)(a, axes=axes, norm=norm), 10)
    close(cupy.fft.fftn(cupy.asfortranarray(on_gpu), axes=axes), np.fft.fftn(a, axes=axes), 10)
    close(cupy.fft.fft(on_gpu, 11), np.fft.fft(a, 11))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(2,), (7,), (8, 5), (3, 4, 6)])
def test_transforms_of_real_numbers(dtype, shape):
    a = numbers(*shape, dtype=dtype)
    spectrum = cupy.fft.rfftn(cupy.asarray(a))
    close(spectrum, np.fft.rfftn(a), 10)
    close(cupy.fft.irfftn(spectrum, shape), a)
    half = cupy.fft.rfft(cupy.asarray(a))
    close(half, np.fft.rfft(a))
    close(cupy.fft.irfft(half, shape[-1]), a)
    close(cupy.fft.hfft(half, shape[-1]), np.fft.hfft(np.fft.rfft(a), shape[-1]), 10)


def test_transforms_in_place_are_not_normalised():
    from cupy.cuda import cufft

    a = numbers(3, 8, dtype="c16")
    found, plan = cupy.asarray(a), cufft.Plan1d(8, cufft.CUFFT_Z2Z, 3)
    plan.fft(found, found, cufft.CUFFT_FORWARD)
    close(found, np.fft.fft(a))
    plan.fft(found, found, cufft.CUFFT_INVERSE)
    close(found, 8 * a)


def test_transforms_with_strides():
    from cupy.cuda import cufft

    a = numbers(4, 6, 3, dtype="c8")
    # Each last index is one transform of the 4 x 6 numbers before it.
    plan = cufft.PlanNd((4, 6), (4, 6), 3, 1, (4, 6), 3, 1, cufft.CUFFT_C2C, 3, "C", 1, None)
    found = cupy.zeros_like(cupy.asarray(a))
    plan.fft(cupy.asarray(a), found, cufft.CUFFT_FORWARD)
    close(found, np.fft.fftn(a, axes=(0, 1)), 4)


def test_bad_transforms():
    from cupy.cuda import cufft

    with pytest.raises(cufft.CuFFTError, match="INVALID_SIZE"):
        cufft.Plan1d(-1, cufft.CUFFT_C2C, 1)
    with pytest.raises(cufft.CuFFTError, match="INVALID_TYPE"):
        cufft.Plan1d(4, 7, 1)


# ------------------------------------------------------------------ cuRAND


METHODS = [100, 101, 121, 141, 142, 161]


@pytest.mark.parametrize("method", METHODS)
def test_random_states(method):
    def draw(seed):
        state = cupy.random.RandomState(seed, method)
        return [state.random_sample(5), state.standard_normal(5), state.lognormal(size=4),
                state.randint(0, 1000, 7), state.random_sample((2, 3), "f4")]

    first, again, other = draw(3), draw(3), draw(4)
    for a, b, c in zip(first, again, other):
        np.testing.assert_array_equal(a.get(), b.get())
        assert (a != c).any()


def test_moments_of_random_states():
    state = cupy.random.RandomState(0)
    for dtype in ("f4", "f8"):
        uniform, normal = state.random_sample(20000, dtype), state.standard_normal(20000, dtype)
        assert uniform.dtype == normal.dtype == dtype
        assert float(uniform.min()) >= 0 and float(uniform.max()) < 1
        assert abs(float(uniform.mean()) - 0.5) < 0.01
        assert abs(float(normal.mean())) < 0.03 and abs(float(normal.std()) - 1) < 0.03
        assert abs(float(cupy.log(state.lognormal(1, 2, 20000, dtype)).mean()) - 1) < 0.06
    assert abs(float(state.poisson(3.0, 20000).mean()) - 3) < 0.06


def test_generators_of_curand():
    from cupy_backends.cuda.libs import curand

    generator = curand.createGenerator(curand.CURAND_RNG_PSEUDO_PHILOX4_32_10)
    out = cupy.empty(4, "u4")
    curand.generatePoisson(generator, out.data.ptr, 4, 2.0)
    assert int(out.max()) < 100
    with pytest.raises(curand.CURANDError, match="TYPE_ERROR"):
        curand.generateLongLong(generator, out.data.ptr, 2)
    with pytest.raises(curand.CURANDError, match="OUT_OF_RANGE"):
        curand.generatePoisson(generator, out.data.ptr, 4, -1.0)
    curand.destroyGenerator(generator)
    with pytest.raises(curand.CURANDError, match="TYPE_ERROR"):
        curand.createGenerator(7)


DISTRIBUTIONS = [
    ("random", (), 0.5), ("standard_normal", (), 0), ("exponential", (2.0,), 2),
    ("beta", (2.0, 3.0), 0.4), ("poisson", (3.0,), 3), ("binomial", (10, 0.3), 3),
    ("geometric", (0.5,), 2), ("hypergeometric", (5, 15, 4), 1), ("logseries", (0.5,), 1.4427),
    ("gamma", (2.0, 1.5), 3), ("integers", (0, 11), 5), ("integers", (0, 2**40), 2**39)]


@pytest.mark.parametrize("name, parameters, mean", DISTRIBUTIONS)
def test_distributions_of_generators(name, parameters, mean):
    def draw(seed):
        return getattr(cupy.random.default_rng(seed), name)(*parameters, size=(4000, 2))

    first = draw(1)
    np.testing.assert_array_equal(first.get(), draw(1).get())
    assert (first != draw(2)).any() and len(cupy.unique(first)) > 2
    assert abs(float(first.mean()) - mean) < max(0.1, 0.05 * mean)


def test_parameters_of_generators_are_arrays():
    found = cupy.random.default_rng(0).standard_gamma(cupy.asarray([[1.0], [1e6]]), (2, 3))
    assert float(found[0].max()) < 100 and abs(float(found[1].min()) - 1e6) < 1e5


def test_choice_without_replacement():
    found = cupy.random.choice(10, 4, replace=False).get()
    assert len(set(found)) == 4 and set(found) <= set(range(10))
    assert sorted(cupy.random.permutation(20).tolist()) == list(range(20))


# ------------------------------------------------------------------ NVML


def test_nvml():
    pynvml = pytest.importorskip("pynvml")
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() == cupy.cuda.runtime.getDeviceCount()
    handle = pynvml.nvmlDeviceGetHandleByPciBusId(cupy.cuda.runtime.deviceGetPCIBusId(0))
    assert pynvml.nvmlDeviceGetIndex(handle) == 0
    assert pynvml.nvmlDeviceGetName(handle) == "gtape simulated GPU (kernels run on the CPU)"
    before = pynvml.nvmlDeviceGetMemoryInfo(handle)
    assert before.total == before.free + before.used == cupy.cuda.runtime.memGetInfo()[1]
    kept = cupy.cuda.runtime.malloc(1 << 20)
    assert pynvml.nvmlDeviceGetMemoryInfo(handle).used == before.used + (1 << 20)
    cupy.cuda.runtime.free(kept)
    for read in (pynvml.nvmlDeviceGetPowerUsage, pynvml.nvmlDeviceGetUtilizationRates):
        with pytest.raises(pynvml.NVMLError, match="Not Supported"):
            read(handle)
    with pytest.raises(pynvml.NVMLError, match="Invalid Argument"):
        pynvml.nvmlDeviceGetHandleByIndex(99)
    pynvml.nvmlShutdown()


def test_a_function_that_is_missing_names_itself(capfd):
    from cupy_backends.cuda.libs import cusparse

    with pytest.raises(cusparse.CuSparseError, match="NOT_SUPPORTED"):
        cusparse.create()
    assert "cusparseCreate is not simulated" in capfd.readouterr().err

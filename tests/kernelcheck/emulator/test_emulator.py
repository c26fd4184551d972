"""The emulator runs correct kernels right in every schedule."""

from __future__ import annotations

import numpy as np
import pytest

from gtape.core.errors import InternalError
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.devices.kernel_source import expand
from gtape.kernelcheck.emulator.executor import EmulatedExecutor, Emulator, emulated_executor

TEXT = expand(r"""
#include "gtape.cuh"

template <typename T, int V>
__global__ void scale(const T* x, T* y, long long n, double factor) {
    using C = compute_t<T>;
    bool wide = aligned16(x, y);
    for (long long i = grid_index() * V; i < n; i += grid_size() * V) {
        if (wide && i + V <= n) {
            Vec<T, V> loaded = *reinterpret_cast<const Vec<T, V>*>(x + i);
#pragma unroll
            for (int j = 0; j < V; ++j) loaded.v[j] = T(C(loaded.v[j]) * C(factor));
            *reinterpret_cast<Vec<T, V>*>(y + i) = loaded;
        } else {
            for (long long j = i; j < n && j < i + V; ++j) y[j] = T(C(x[j]) * C(factor));
        }
    }
}

template <typename T, typename R>
__global__ void reduce_rows(const T* x, T* y, long long n) {
    using C = compute_t<T>;
    __shared__ C scratch[32];
    C value = R::template identity<C>();
    for (long long i = threadIdx.x; i < n; i += blockDim.x)
        value = R::combine(value, C(x[blockIdx.x * n + i]));
    value = block_reduce<R>(value, scratch);
    if (threadIdx.x == 0) y[blockIdx.x] = T(value);
}

__global__ void reverse(float* x, long long n) {
    DYNAMIC_SHARED(float, kept);
    for (long long i = threadIdx.x; i < n; i += blockDim.x) kept[i] = x[i];
    __syncthreads();
    for (long long i = threadIdx.x; i < n; i += blockDim.x) x[i] = kept[n - 1 - i];
}

__global__ void histogram(const int* x, int* counts, float* total, long long n) {
    long long i = grid_index();
    if (i >= n) return;
    atomicAdd(counts + x[i], 1);
    atomicAdd(total, (float)x[i]);
}

__global__ void votes(const int* x, unsigned* y) {
    int value = x[threadIdx.x], lane = threadIdx.x & 31, *none = nullptr;
    unsigned bits = __ballot_sync(FULL_WARP, value > 0);
    unsigned odd = lane & 1 ? __ballot_sync(0xaaaaaaaau, value > 0) : 0u;
    int any = __syncthreads_or(value > 7), all = __syncthreads_and(value < 9);
    int count = __syncthreads_count(value > 0);
    unsigned same = __match_any_sync(FULL_WARP, value);
    unsigned* row = y + threadIdx.x * 10;
    row[0] = bits;
    row[1] = odd;
    row[2] = any;
    row[3] = all;
    row[4] = count;
    row[5] = same;
    row[6] = __shfl_up_sync(FULL_WARP, value, 1);
    row[7] = __shfl_down_sync(FULL_WARP, value, 2, 8);
    row[8] = __shfl_sync(FULL_WARP, value, 5, 16);
    row[9] = __shfl_xor_sync(FULL_WARP, value, 3) + __popc(bits) + (none == nullptr);
}

__global__ void last_block(const float* x, float* partial, unsigned* done, float* y, long long n) {
    __shared__ float scratch[32];
    __shared__ bool last;
    float value = 0;
    for (long long i = grid_index(); i < n; i += grid_size()) value += x[i];
    value = block_reduce<Sum>(value, scratch);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = value;
        __threadfence();
        last = atomicAdd(done, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    value = threadIdx.x < gridDim.x ? partial[threadIdx.x] : 0;
    value = block_reduce<Sum>(value, scratch);
    if (threadIdx.x == 0) *y = value;
}

__global__ void places(int* x) {
    long long block = blockIdx.x + gridDim.x * (blockIdx.y + (long long)gridDim.y * blockIdx.z);
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    x[block * blockDim.x * blockDim.y * blockDim.z + thread] += (int)block * 1000 + thread;
}

__global__ void take_turns(int* turn, int* x) {
    while (atomicAdd(turn, 0) != (int)threadIdx.x) __nanosleep(100);
    x[threadIdx.x] = *turn;
    atomicAdd(turn, 1);
}
""", "test.cu")


def run(gpu: EmulatedExecutor, entry: str, grid: int, block: int, *args: object,
        smem: int = 0) -> None:
    gpu.launch(Kernel(TEXT, entry), (grid, 1, 1), (block, 1, 1), args, smem)


@pytest.mark.parametrize("n", [1, 3, 31, 33, 1000, 4096])
@pytest.mark.parametrize("offset", [0, 1])
def test_map(gpu: EmulatedExecutor, n: int, offset: int) -> None:
    x, y = gpu.empty(n + offset, np.float32)[offset:], gpu.empty(n + offset, np.float32)[offset:]
    x[...] = np.arange(n)
    run(gpu, "scale<float, 4>", 3, 64, x, y, n, 3.0)
    np.testing.assert_array_equal(y, x * 3)


@pytest.mark.parametrize("entry, function", [("Sum", np.sum), ("Max", np.max), ("Min", np.min)])
@pytest.mark.parametrize("threads", [32, 256, 1024])
def test_block_reduction(gpu: EmulatedExecutor, entry: str, function: object,
                         threads: int) -> None:
    x, y = gpu.empty((5, 700), np.float64), gpu.empty(5, np.float64)
    x[...] = np.random.default_rng(1).integers(-99, 99, x.shape)
    run(gpu, f"reduce_rows<double, {entry}>", 5, threads, x, y, 700)
    np.testing.assert_array_equal(y, function(x, axis=1))


def test_shared_memory_given_at_launch(gpu: EmulatedExecutor) -> None:
    n = 227 * 1024 // 4
    x = gpu.empty(n, np.float32)
    x[...] = np.arange(n)
    run(gpu, "reverse", 1, 512, x, n, smem=4 * n)
    np.testing.assert_array_equal(x, np.arange(n)[::-1])


def test_atomics(gpu: EmulatedExecutor) -> None:
    x, counts, total = gpu.empty(999, np.int32), gpu.zeros(10, np.int32), gpu.zeros(1, np.float32)
    x[...] = np.random.default_rng(2).integers(0, 10, 999)
    run(gpu, "histogram", 4, 256, x, counts, total, 999)
    np.testing.assert_array_equal(counts, np.bincount(x, minlength=10))
    assert total[0] == x.sum()


def test_votes_and_shuffles(gpu: EmulatedExecutor) -> None:
    x, y = gpu.empty(64, np.int32), gpu.empty((64, 10), np.uint32)
    x[...] = np.random.default_rng(3).integers(-9, 9, 64)
    run(gpu, "votes", 1, 64, x, y)
    lane = np.arange(32)
    for first in (0, 32):
        warp, rows = x[first:first + 32], y[first:first + 32].astype(np.int64)
        bits = int(((warp > 0) << lane).sum())
        assert (rows[:, 0] == bits).all()
        assert (rows[:, 1] == np.where(lane & 1, bits & 0xaaaaaaaa, 0)).all()
        assert (rows[:, 2] == (x > 7).any()).all() and (rows[:, 3] == (x < 9).all()).all()
        assert (rows[:, 4] == (x > 0).sum()).all()
        assert (rows[:, 5] == ((warp[:, None] == warp) << lane).sum(1)).all()
        signed = rows[:, 6:].astype(np.uint32).view(np.int32)
        assert (signed[:, 0] == warp[np.maximum(lane - 1, 0)]).all()
        assert (signed[:, 1] == warp[np.where(lane % 8 < 6, lane + 2, lane)]).all()
        assert (signed[:, 2] == warp[lane // 16 * 16 + 5]).all()
        assert (signed[:, 3] == warp[lane ^ 3] + bits.bit_count() + 1).all()


def test_the_last_block_finishes(gpu: EmulatedExecutor) -> None:
    x, partial, y = gpu.empty(5000, np.float32), gpu.empty(6, np.float32), gpu.empty(1, np.float32)
    x[...] = np.arange(5000) % 7
    done = gpu.zeros(1, np.uint32)
    run(gpu, "last_block", 6, 128, x, partial, done, y, 5000)
    assert y[0] == x.sum()


def test_every_thread_of_every_block_runs_once(gpu: EmulatedExecutor) -> None:
    x = gpu.zeros((2 * 3 * 4, 3 * 5 * 2), np.int32)
    gpu.launch(Kernel(TEXT, "places"), (4, 3, 2), (5, 3, 2), (x,))
    np.testing.assert_array_equal(x, np.arange(24)[:, None] * 1000 + np.arange(30))


def test_a_thread_may_wait_for_another(gpu: EmulatedExecutor) -> None:
    turn, x = gpu.zeros(1, np.int32), gpu.zeros(64, np.int32)
    run(gpu, "take_turns", 1, 64, turn, x)
    np.testing.assert_array_equal(x, np.arange(64))


@pytest.mark.parametrize("n, factor, wanted", [(4.0, 1.0, "n must be a Python int; got float"),
                                               (4, 2, "factor must be a Python float; got int")])
def test_numbers_are_passed_as_what_they_are(emulator: None, n: object, factor: object,
                                             wanted: str) -> None:
    gpu = emulated_executor()
    x = gpu.zeros((4,), np.float32)
    scale = gpu.function(Kernel(TEXT, "scale<float, 4>"))
    with pytest.raises(InternalError, match=wanted):
        scale((1, 1, 1), (32, 1, 1), (x, x, n, factor), 0, None)


def test_no_blocks_no_launch(gpu: EmulatedExecutor) -> None:
    run(gpu, "scale<float, 4>", 0, 64, gpu.empty(0, np.float32), gpu.empty(0, np.float32), 0, 1.0)


def test_prepared_kernels_are_one_library(emulator: None) -> None:
    loader = Emulator()
    kernels = [Kernel(TEXT, f"scale<{name}, {v}>") for name in ("float", "half") for v in (1, 8)]
    loader.prepare(kernels)
    assert len({id(built) for built in loader._prepared.values()}) == 1
    assert callable(loader.load(kernels[0]))


def test_a_seed_draws_the_same_schedule_again(emulator: None) -> None:
    def order(seed: int) -> np.ndarray:
        gpu = emulated_executor("random", seed)
        x, counts, total = gpu.zeros(64, np.int32), gpu.zeros(1, np.int32), gpu.empty(1, np.float32)
        total[...] = 1
        kernel = Kernel(expand("""
__global__ void arrive(int* x, int* counts, float* total) {
    x[threadIdx.x] = atomicAdd(counts, 1);
    total[0] *= 2;
}
""", "arrive.cu"), "arrive")
        gpu.launch(kernel, (1, 1, 1), (64, 1, 1), (x, counts, total))
        return x

    assert (order(1) == order(1)).all() and (order(1) != order(2)).any()
    assert sorted(order(1)) == list(range(64))

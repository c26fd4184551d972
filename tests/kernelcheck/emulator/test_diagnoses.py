"""Planted bugs: each is caught by the emulator, and explained."""

from __future__ import annotations

import numpy as np
import pytest

from gtape.core.errors import InternalError, InvalidArgumentError, KernelError
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.devices.kernel_source import expand
from gtape.kernelcheck.checks.bench import Bench, Wrong
from gtape.kernelcheck.emulator import build
from gtape.kernelcheck.emulator.executor import (
    SCHEDULES,
    EmulatedExecutor,
    Emulator,
    emulated_bench,
    emulated_executor,
)

TEXT = expand(r"""
#include "gtape.cuh"

__global__ void neighbours(float* x) {
    __shared__ float kept[64];
    kept[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = kept[(threadIdx.x + 1) % 64];
}

__global__ void rotated_in_place(float* x) {
    DYNAMIC_SHARED(float, kept);
    kept[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    float right = kept[(threadIdx.x + 1) % 64];
    kept[threadIdx.x] = right;
    __syncthreads();
    x[threadIdx.x] = kept[threadIdx.x];
}

__global__ void lockstep(float* x) {
    __shared__ float kept[32];
    kept[threadIdx.x] = x[threadIdx.x];
    for (int d = 16; d; d >>= 1) kept[threadIdx.x] += kept[threadIdx.x ^ d];
    x[threadIdx.x] = kept[threadIdx.x];
}

__global__ void store(float* x, long long at) { x[at] = 1; }

__global__ void store_by_table(const unsigned long long* table, void* any, long long at) {
    reinterpret_cast<float*>(table[0])[at] = 1;
}

__global__ void wide_copy(const float* x, float* y) {
    *reinterpret_cast<Vec<float, 4>*>(y) = *reinterpret_cast<const Vec<float, 4>*>(x);
}

__global__ void outside_an_array(float* x, long long at) {
    __shared__ float kept[64];
    kept[threadIdx.x + at] = x[threadIdx.x];
}

__global__ void outside_dynamic_memory(float* x, long long at) {
    DYNAMIC_SHARED(float, kept);
    kept[at] = x[0];
}

__global__ void two_barriers(float* x) {
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}

__global__ void barrier_or_shuffle(float* x) {
    if (threadIdx.x % 32 == 0) __syncthreads();
    else x[0] = __shfl_xor_sync(FULL_WARP, 1.0f, 1);
}

__global__ void left_in_a_warp(float* x) {
    if (threadIdx.x == 5) return;
    x[threadIdx.x] = warp_reduce<Sum>(1.0f);
}

__global__ void two_shuffles(float* x) {
    float value = threadIdx.x;
    if (threadIdx.x & 1) value = __shfl_xor_sync(FULL_WARP, value, 1);
    else value = __shfl_xor_sync(FULL_WARP, value, 1);
    x[threadIdx.x] = value;
}

__global__ void two_masks(float* x) {
    unsigned mask = threadIdx.x & 1 ? FULL_WARP : 0x55555555u | 2u;
    x[threadIdx.x] = __shfl_sync(mask, 1.0f, 0);
}

__global__ void foreign_mask(float* x) { x[threadIdx.x] = __shfl_sync(0xffffu, 1.0f, 0); }

__global__ void foreign_lane(float* x) {
    if (threadIdx.x < 16) x[threadIdx.x] = __shfl_sync(0xffffu, 1.0f, 20);
}

__global__ void partial_warp(float* x) { x[threadIdx.x] = warp_reduce<Sum>(1.0f); }

__global__ void endless(volatile float* x) { while (x[0] == 0) {} }

__global__ void trap(float* x) { if (threadIdx.x == 3) __trap(); }

__global__ void divide(float* x, long long by) { x[0] = 7 / (int)by; }

__global__ void recursive(float* x, long long depth) {
    volatile float deep[16384];
    for (int i = 0; i < 16384; ++i) deep[i] = x[0];
    for (int i = 0; i < 16384; ++i) x[0] += deep[(i * depth) % 16384];
}

__global__ void nothing(float* x) {}
""", "planted.cu")


def run(gpu: EmulatedExecutor, entry: str, *args: object, grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (64, 1, 1), smem: int = 0) -> None:
    gpu.launch(Kernel(TEXT, entry), grid, block, args, smem)


def zeros(gpu: EmulatedExecutor, n: int = 64) -> np.ndarray:
    return gpu.zeros(n, np.float32)


def line_of(text: str) -> int:
    """The line of the kernel text, as compilers count it, on which `text` stands first."""
    lines = TEXT[TEXT.rindex('#line'):].splitlines()
    return int(lines[0].split()[1]) + next(i for i, ln in enumerate(lines[1:]) if text in ln)


# ---------------------------------------------------------------- barriers that are missing


@pytest.mark.parametrize("entry", ["neighbours", "rotated_in_place"])
def test_a_missing_block_barrier_gives_a_wrong_result(emulator: None, entry: str) -> None:
    wrong = []
    for schedule in SCHEDULES:
        bench = emulated_bench(schedule)
        x = bench.array(np.arange(64), "float32")
        run(bench.gpu, entry, x, smem=256)
        try:
            bench.same(entry, x, np.roll(np.arange(64.0), -1))
        except Wrong:
            wrong.append(schedule)
    assert "random" in wrong and len(wrong) >= 2, wrong


def test_threads_of_a_warp_do_not_run_in_lockstep(bench: Bench) -> None:
    x = bench.array(np.arange(32), "float32")
    run(bench.gpu, "lockstep", x, block=(32, 1, 1))
    with pytest.raises(Wrong):
        bench.same("lockstep", x, np.full(32, 496.0))


# ---------------------------------------------------------------- memory


@pytest.mark.parametrize("at, byte", [(10, 40), (-1, -4), (73, 292), (-64, -256)])
def test_a_store_outside_an_array(gpu: EmulatedExecutor, at: int, byte: int) -> None:
    with pytest.raises(KernelError, match=rf"store.*outside the array x: byte {byte} of an array "
                                          rf"of 40 bytes"):
        run(gpu, "store", zeros(gpu, 10), at)


def test_a_store_outside_a_view_of_an_array(gpu: EmulatedExecutor) -> None:
    x = zeros(gpu, 12).reshape(3, 4)[1:]
    run(gpu, "store", x, 7)
    with pytest.raises(KernelError, match="outside the array x: byte 48"):
        run(gpu, "store", x, 8)


def test_a_store_through_a_table_of_pointers(gpu: EmulatedExecutor) -> None:
    x, table = zeros(gpu, 10), gpu.empty(1, np.uint64)
    table[0] = x.ctypes.data
    run(gpu, "store_by_table", table, table, 9)
    with pytest.raises(KernelError, match="an array that is no argument: byte 40"):
        run(gpu, "store_by_table", table, table, 10)


def test_arrays_are_nan_until_they_are_written(gpu: EmulatedExecutor) -> None:
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        assert np.isnan(gpu.empty((3, 5), dtype).astype(np.float64)).all()
    assert gpu.empty((), np.float32).shape == ()


def test_memory_that_is_not_there(gpu: EmulatedExecutor) -> None:
    x = zeros(gpu)
    with pytest.raises(KernelError, match=r"store.*touched memory that is not there, at the "
                                          r"address 0x\w+ \(thread"):
        run(gpu, "store", x, -(x.ctypes.data // 4))
    run(gpu, "store", x, 0)
    assert x[0] == 1


@pytest.mark.parametrize("offsets", [(1, 0), (0, 1), (2, 2)])
def test_a_misaligned_wide_access(gpu: EmulatedExecutor, offsets: tuple[int, int]) -> None:
    if "clang" in build._compiler().version:
        pytest.skip("clang does not check the alignment of copied structures")
    x, y = zeros(gpu, 8)[offsets[0]:], zeros(gpu, 8)[offsets[1]:]
    with pytest.raises(KernelError, match=rf"wide_copy.*aligned to 16 bytes, at the address 0x\w+, "
                                          rf"planted.cu:{line_of('Vec<float, 4>*>(y)')}"):
        run(gpu, "wide_copy", x, y, block=(1, 1, 1))
    run(gpu, "wide_copy", zeros(gpu, 8)[4:], zeros(gpu, 4), block=(1, 1, 1))


@pytest.mark.parametrize("at", [1, -1])
def test_an_index_outside_static_shared_memory(gpu: EmulatedExecutor, at: int) -> None:
    index, line = 64 if at > 0 else -1, line_of("kept[threadIdx.x + at]")
    with pytest.raises(KernelError, match=f"index {index} is outside the array, planted.cu:{line}"):
        run(gpu, "outside_an_array", zeros(gpu), at)


@pytest.mark.parametrize("at", [-1, 16])
def test_an_index_outside_dynamic_shared_memory(gpu: EmulatedExecutor, at: int) -> None:
    run(gpu, "outside_dynamic_memory", zeros(gpu), 15, smem=64)
    with pytest.raises(KernelError, match=f"outside its dynamic shared memory, at byte {4 * at}"):
        run(gpu, "outside_dynamic_memory", zeros(gpu), at, smem=64)


def test_too_much_local_memory(gpu: EmulatedExecutor) -> None:
    run(gpu, "recursive", zeros(gpu), 3, block=(1, 1, 1))


def test_division_by_zero(gpu: EmulatedExecutor) -> None:
    with pytest.raises(KernelError, match="divided an integer by zero"):
        run(gpu, "divide", zeros(gpu), 0)


# ---------------------------------------------------------------- barriers that do not match


def test_threads_at_different_barriers(gpu: EmulatedExecutor) -> None:
    line = line_of("if (threadIdx.x < 32)") + 1
    with pytest.raises(KernelError, match=rf"different barriers: thread 0 at __syncthreads, "
                                          rf"planted.cu:{line}; thread 32 at __syncthreads, "
                                          rf"planted.cu:{line + 2}"):
        run(gpu, "two_barriers", zeros(gpu))
    run(gpu, "two_barriers", zeros(gpu), block=(32, 1, 1))


def test_a_deadlock(gpu: EmulatedExecutor) -> None:
    with pytest.raises(KernelError, match=r"deadlock.*thread 0 waits at __syncthreads, planted.cu:"
                                          r".*; thread 1 waits at a shuffle, planted.cu:"):
        run(gpu, "barrier_or_shuffle", zeros(gpu))


def test_a_thread_that_left_its_warp(gpu: EmulatedExecutor) -> None:
    with pytest.raises(KernelError, match=r"left the kernel while thread \d+ waits for it at a "
                                          r"shuffle, gtape.cuh:|waits for lane 5, which has left"):
        run(gpu, "left_in_a_warp", zeros(gpu))


@pytest.mark.parametrize("entry, message", [
    ("two_shuffles", "lanes of a warp met at different operations: thread . at a shuffle, planted"),
    ("two_masks", "different masks to a shuffle|met at different|deadlock"),
    ("foreign_mask", "the thread is not in the mask 0x0000ffff it gave to a shuffle"),
    ("foreign_lane", "reads lane 20 in a shuffle that the lane takes no part in")])
def test_wrong_lanes(gpu: EmulatedExecutor, entry: str, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        run(gpu, entry, zeros(gpu), block=(32, 1, 1))


def test_a_warp_that_is_not_whole(gpu: EmulatedExecutor) -> None:
    with pytest.raises(KernelError, match="lane 16, which has left the kernel or is not part of"):
        run(gpu, "partial_warp", zeros(gpu), block=(48, 1, 1))


def test_a_launch_without_end(emulator: None) -> None:
    gpu = EmulatedExecutor(Emulator(seconds=1))
    with pytest.raises(KernelError, match=r"endless.*did not end in the time given"):
        run(gpu, "endless", zeros(gpu))
    run(gpu, "nothing", zeros(gpu))


def test_a_trap(gpu: EmulatedExecutor) -> None:
    with pytest.raises(KernelError, match=rf"__trap\(\), planted.cu:{line_of('__trap')} \(thread 3 "
                                          rf"of block \(0, 0, 0\)\)"):
        run(gpu, "trap", zeros(gpu))


# ---------------------------------------------------------------- launches that a GPU refuses


@pytest.mark.parametrize("block", [(1056, 1, 1), (32, 33, 1), (1, 1, 65), (0, 1, 1)])
def test_a_block_too_large(gpu: EmulatedExecutor, block: tuple[int, int, int]) -> None:
    with pytest.raises(KernelError, match="a block has 1 to 1024 threads"):
        run(gpu, "nothing", zeros(gpu), block=block)


def test_a_grid_too_large(gpu: EmulatedExecutor) -> None:
    with pytest.raises(KernelError, match="a grid has 1 to 2147483647 blocks in x and 1 to 65535"):
        run(gpu, "nothing", zeros(gpu), grid=(1, 65536, 1))


def test_too_much_shared_memory(gpu: EmulatedExecutor) -> None:
    with pytest.raises(KernelError, match="at most 227 KB"):
        run(gpu, "nothing", zeros(gpu), smem=227 * 1024 + 1)


@pytest.mark.parametrize("args", [(), (1,), ("x", 1), ("x", "y")])
def test_wrong_arguments(gpu: EmulatedExecutor, args: tuple[object, ...]) -> None:
    given = tuple(zeros(gpu) if a == "x" else gpu.zeros(3, np.int32) if a == "y" else a
                  for a in args)
    with pytest.raises(InvalidArgumentError, match="the kernel nothing"):
        run(gpu, "nothing", *given)
    with pytest.raises(InvalidArgumentError, match="x must be an array of float32; got int32"):
        run(gpu, "nothing", gpu.zeros(3, np.int32))


def test_a_declaration_read_wrongly(emulator: None) -> None:
    gpu = emulated_executor()
    kernel = Kernel("typedef double word;\n__global__ void f(long long n) {}\n", "f")
    kernel.text = kernel.text.replace("long long n", "word n")
    with pytest.raises(InternalError, match="was read as 'q', and the compiler found 'd'"):
        gpu.launch(kernel, (1, 1, 1), (32, 1, 1), (1,))

"""Run by test_sanitized.py in a process of its own: one launch with the sanitizers."""

from __future__ import annotations

import sys

import numpy as np

from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.devices.kernel_source import expand
from gtape.kernelcheck.emulator.executor import SCHEDULES, emulated_executor

TEXT = expand(r"""
#include "gtape.cuh"
__global__ void sum(const float* x, float* y, long long n) {
    __shared__ float scratch[32];
    DYNAMIC_SHARED(float, kept);
    kept[threadIdx.x] = threadIdx.x < n ? x[threadIdx.x] : 0;
    __syncthreads();
    float value = block_reduce<Sum>(kept[blockDim.x - 1 - threadIdx.x], scratch);
    if (threadIdx.x == 0) y[blockIdx.x] = value;
}
__global__ void load(const float* x, float* y, long long at) { y[0] = x[at]; }
__global__ void store(float* y, long long at) { y[at] = 1; }
__global__ void shared(float* y, long long at) {
    __shared__ float kept[32], other[32];
    float* into = at < 32 ? kept : other - 32;
    into[at] = y[0];
    kept[threadIdx.x + at] = 1;
}
__global__ void overflow(float* y, long long by) { y[0] = (float)((int)by * 1000000); }
__global__ void misaligned(float* y, long long at) {
    *reinterpret_cast<Vec<float, 4>*>(y + at) = {};
}
""", "sanitized.cu")


def main(entry: str, at: int) -> None:
    for schedule in SCHEDULES:
        gpu = emulated_executor(schedule, sanitize=True)
        x, y = gpu.zeros(100, np.float32), gpu.zeros(10, np.float32)
        x[...] = 1
        args = {"sum": (x, y, at), "load": (x, y, at)}.get(entry, (y, at))
        gpu.launch(Kernel(TEXT, entry), (3, 1, 1), (128, 1, 1), args, 512)
        print(y[:3].tolist())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

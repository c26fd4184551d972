"""Matrix products in float32: gtape's own, NumPy's (OpenBLAS) and torch's (MKL).

Run `python -m benchmarks.cpu_gemm` or `python benchmarks/cpu_gemm.py`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from math import prod
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import GTAPE, NUMPY, TORCH, measure
from benchmarks.programs.program import Program, require_close, to_numpy
from benchmarks.report import Row, publish

COLUMNS = (GTAPE, NUMPY, TORCH)
# (batch, m, k, n) and which operands are transposed, from the training steps W3, W4 and W8.
PRODUCTS = {
    "1024 cubed": ((1, 1024, 1024, 1024), ""),
    "W4 forward": ((1, 128, 784, 512), ""),
    "W4 forward, second": ((1, 128, 512, 512), ""),
    "W4 dW": ((1, 784, 128, 512), "a"),
    "W4 dX": ((1, 128, 512, 512), "b"),
    "W8 qkv": ((1, 1024, 128, 384), ""),
    "W8 feed-forward": ((1, 1024, 512, 128), ""),
    "W8 dW": ((1, 128, 1024, 512), "a"),
    "W8 scores": ((64, 64, 32, 64), "b"),
    "W8 values": ((64, 64, 64, 32), ""),
    "W6 scores": ((32, 128, 64, 128), "b"),
    "W3 forward": ((1, 32, 64, 32), ""),
    "W4 logits": ((1, 128, 512, 10), ""),
    "matrix and vector": ((1, 2048, 2048, 1), ""),
}

REMARKS = (
    "GFLOPS; (batch, m, k, n) with a or b where that operand is transposed in memory. The result "
    "goes to memory that is there already (numpy: out=, torch: out=).",
    "x gtape: the time as a multiple of gtape's, above 1 is slower than gtape.",
)


def name_of(label: str) -> str:
    shape, transposed = PRODUCTS[label]
    return f"{label} {shape}{transposed and ' ' + transposed}"


def operands(label: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    (batch, m, k, n), transposed = PRODUCTS[label]
    random = np.random.default_rng(0)

    def made(rows: int, columns: int, name: str) -> np.ndarray:
        shape = (batch, columns, rows) if name in transposed else (batch, rows, columns)
        values = random.standard_normal(shape).astype(np.float32)
        return values.swapaxes(1, 2) if name in transposed else values

    return made(m, k, "a"), made(k, n, "b"), np.empty((batch, m, n), np.float32)


def by_numpy(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Callable[[], object]:
    if len(c) == 1:
        a, b, c = a[0], b[0], c[0]
    return lambda: np.matmul(a, b, out=c)


def by_torch(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Callable[[], object]:
    import torch

    left, right, out = map(torch.from_numpy, (a, b, c))
    if len(c) == 1:
        return lambda: torch.mm(left[0], right[0], out=out[0])
    return lambda: torch.bmm(left, right, out=out)


def by_gtape(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Callable[[], object]:
    from gtape.devices.cpu.toolchain import runtime

    gemm, number = runtime().gtape_gemm_batched_f32, ctypes.c_long
    sizes = map(number, (a.shape[1], b.shape[2], a.shape[2]))
    strided = [(ctypes.c_void_p(x.ctypes.data), *(number(s // 4) for s in x.strides[1:]))
               for x in (a, b)]
    offsets = [np.arange(len(x), dtype=np.int_) * (x.strides[0] // 4) for x in (a, b, c)]
    arguments = (*sizes, *strided[0], *strided[1], ctypes.c_void_p(c.ctypes.data),
                 number(c.shape[2]), 0, number(len(a)),
                 *(ctypes.c_void_p(x.ctypes.data) for x in offsets))

    def run(_kept: object = (a, b, c, offsets)) -> None:
        gemm(*arguments)

    return run


WAYS = {GTAPE.column: by_gtape, NUMPY.column: by_numpy, TORCH.column: by_torch}


def program(peer: str, label: str) -> Program:
    a, b, c = operands(label)
    run = WAYS[peer](a, b, c)

    def check() -> None:
        c.fill(np.nan)
        run()
        require_close(to_numpy(c), a.astype(np.float64) @ b, label)

    return Program(run, check)


def programs(peer: str) -> dict[str, Program]:
    """Every program of this benchmark that `peer` has."""
    return {name_of(label): program(peer, label) for label in PRODUCTS}


def main() -> int:
    rows = [Row(name_of(label), "GFLOPS", 2e-9 * prod(shape), rate=True)
            for label, (shape, _) in PRODUCTS.items()]
    samples = measure("cpu_gemm", COLUMNS)
    return publish("cpu_gemm", "Matrix products in float32", samples, rows, COLUMNS, REMARKS)


if __name__ == "__main__":
    sys.exit(main())

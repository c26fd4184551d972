"""W7's convolutions and poolings one by one: gtape's C++ kernels and torch's, channels last.

Run `python -m benchmarks.cpu_convolution` or `python benchmarks/cpu_convolution.py`.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import GTAPE, TORCH, measure
from benchmarks.programs.program import Program, require_close, to_numpy
from benchmarks.report import Row, publish
from gtape.numerics import convolution, pooling

BATCH, SIZES = 64, (8, 28)
ONE, TWO, PADS = (1, 1), (2, 2), ((0, 0), (0, 0))
REMARKS = (
    (
        "Batch 64, nothing padded. conv 1: 3x3, 1 to 16 channels; conv 2: 3x3, 16 to 32 channels;"
        " pool: 2x2 maxima of conv 2. The gradient of conv 1 in the image is not needed. torch's"
        " pool saves where the maxima are, and its gradient reads that."
    ),
    "x gtape: the time as a multiple of gtape's, above 1 is slower than gtape.",
)


@dataclass(frozen=True)
class Layer:
    """A convolution of square images, and a pooling after it, with arrays for both."""

    name: str
    size: int
    channels: int
    features: int

    def arrays(self) -> dict[str, np.ndarray]:
        """x and k, the result y, cotangents of y and of the pooled result; float32."""
        random = np.random.default_rng(self.size)
        outs, half = self.size - 2, self.size // 2 - 1
        shapes = {
            "x": (BATCH, self.size, self.size, self.channels),
            "k": (3, 3, self.channels, self.features),
            "y": (BATCH, outs, outs, self.features),
            "gy": (BATCH, outs, outs, self.features),
            "gp": (BATCH, half, half, self.features),
        }
        return {name: random.normal(size=s).astype(np.float32) for name, s in shapes.items()}

    def expected(self, a: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What every program computes, by NumPy in float64."""
        a = {name: value.astype(float) for name, value in a.items()}
        x, k, y, gy = a["x"], a["k"], a["y"], a["gy"]
        pooled = pooling.max_pool(np, y, TWO, TWO, ONE, PADS)
        found = pooling.winners(np, y, pooled, TWO, TWO, ONE, PADS)
        return {
            "forward": convolution.conv_forward(np, x, k, ONE, ONE, PADS),
            "input gradient": convolution.conv_input_grad(np, gy, k, x.shape, ONE, ONE, PADS),
            "filter gradient": convolution.conv_filter_grad(np, x, gy, (3, 3), ONE, ONE, PADS),
            "pool": pooled,
            "pool gradient": pooling.unpool(np, a["gp"], found, y.shape, TWO, TWO, ONE, PADS),
        }


LAYERS = tuple(
    layer
    for size in SIZES
    for layer in (Layer(f"{size}x{size} conv 1", size, 1, 16),
                  Layer(f"{size}x{size} conv 2", size - 2, 16, 32))
)
KINDS = {layer: ("forward", "filter gradient") if layer.channels == 1
         else ("forward", "input gradient", "filter gradient", "pool", "pool gradient")
         for layer in LAYERS}

_PROGRAM = """
#include "cpu_convolution.h"
#include "cpu_convolution_filter.h"
#include "cpu_pooling.h"
struct Conv {{
    static constexpr long N = {n}, H = {s}, W = {s}, C = {c}, P = 3, Q = 3, O = {o}, SH = 1, SW = 1,
                          DH = 1, DW = 1, TOP = 0, LEFT = 0, OH = {s} - 2, OW = {s} - 2;
}};
struct Pool {{
    static constexpr long N = {n}, H = {s} - 2, W = {s} - 2, C = {o}, P = 2, Q = 2, SH = 2,
                          SW = 2, DH = 1, DW = 1, TOP = 0, LEFT = 0, OH = H / 2, OW = W / 2;
}};
typedef const float* In;
GTAPE_EXPORT void forward(In x, In k, float* y, float* scratch) {{
    convolution<float, Conv>(x, k, y, scratch);
}}
GTAPE_EXPORT void input_gradient(In gy, In k, float* gx, float* scratch) {{
    convolution_input_grad<float, Conv>(gy, k, gx, scratch);
}}
GTAPE_EXPORT void filter_gradient(In x, In gy, float* gk, float* scratch) {{
    convolution_filter_grad<float, Conv>(x, gy, gk, scratch);
}}
GTAPE_EXPORT void pool(In y, float* p) {{ max_pool<float, Pool>(y, p); }}
GTAPE_EXPORT void pool_gradient(In gp, In y, In p, float* gy) {{
    max_pool_grad<float, Pool>(gp, y, p, gy);
}}
"""
SCRATCH = 1 << 20


def native_calls(layer: Layer, a: dict[str, np.ndarray]) -> dict[str, Callable[[], Any]]:
    """The generated program's functions; each call returns its result."""
    from gtape.devices.cpu.toolchain import library, runtime

    program = library(_PROGRAM.format(n=BATCH, s=layer.size, c=layer.channels, o=layer.features))
    runtime().gtape_set_threads(len(os.sched_getaffinity(0)))
    made = {name: np.empty_like(value) for name, value in a.items()}
    pooled = pooling.max_pool(np, a["y"], TWO, TWO, ONE, PADS)
    scratch = np.empty(SCRATCH, np.float32)

    def call(name: str, result: np.ndarray, *arguments: np.ndarray) -> Callable[[], np.ndarray]:
        function = program[name]
        addresses = [array.ctypes.data_as(ctypes.c_void_p) for array in arguments]

        def run() -> np.ndarray:
            function(*addresses)
            return result

        return run

    x, k, y, gy, gp = (a[name] for name in ("x", "k", "y", "gy", "gp"))
    return {
        "forward": call("forward", made["y"], x, k, made["y"], scratch),
        "input gradient": call("input_gradient", made["x"], gy, k, made["x"], scratch),
        "filter gradient": call("filter_gradient", made["k"], x, gy, made["k"], scratch),
        "pool": call("pool", made["gp"], y, made["gp"]),
        "pool gradient": call("pool_gradient", made["gy"], gp, y, pooled, made["gy"]),
    }


def torch_calls(layer: Layer, a: dict[str, np.ndarray]) -> dict[str, Callable[[], Any]]:
    """The functions that torch's own tape calls; each call returns its result, channels last."""
    import torch

    ops = torch.ops.aten
    x, y, gy, gp = (torch.from_numpy(a[n]).permute(0, 3, 1, 2) for n in ("x", "y", "gy", "gp"))
    k = torch.from_numpy(a["k"]).permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    window = ([2, 2], [2, 2], [0, 0], [1, 1], False)
    where = ops.max_pool2d_with_indices(y, *window)[1]

    def gradient(which: int) -> Any:
        mask = [index == which for index in range(3)]
        return ops.convolution_backward(gy, x, k, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1,
                                        mask)[which]

    return {
        "forward": lambda: torch.conv2d(x, k).permute(0, 2, 3, 1),
        "input gradient": lambda: gradient(0).permute(0, 2, 3, 1),
        "filter gradient": lambda: gradient(1).permute(2, 3, 1, 0),
        "pool": lambda: ops.max_pool2d_with_indices(y, *window)[0].permute(0, 2, 3, 1),
        "pool gradient": lambda: ops.max_pool2d_with_indices_backward(
            gp, y, *window, where).permute(0, 2, 3, 1),
    }


def program(run: Callable[[], Any], expected: np.ndarray, what: str) -> Program:
    return Program(run, lambda: require_close(to_numpy(run()), expected, what))


def programs(peer: str) -> dict[str, Program]:
    """Every kernel of every layer, as `peer` has it."""
    found = {}
    for layer in LAYERS:
        arrays = layer.arrays()
        expected = layer.expected(arrays)
        calls = (torch_calls if peer == TORCH.column else native_calls)(layer, arrays)
        for kind in KINDS[layer]:
            name = f"{layer.name} {kind}"
            found[name] = program(calls[kind], expected[kind], name)
    return found


def main() -> int:
    rows = [Row(f"{layer.name} {kind}", "us", 1e6) for layer in LAYERS for kind in KINDS[layer]]
    samples = measure("cpu_convolution", (GTAPE, TORCH))
    return publish("cpu_convolution", "Convolution and pooling in C++", samples, rows,
                   (GTAPE, TORCH), REMARKS)


if __name__ == "__main__":
    sys.exit(main())

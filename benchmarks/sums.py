"""Sums and what is made of them: what accuracy costs.

Run `python -m benchmarks.sums` or `python benchmarks/sums.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import GTAPE, NUMPY, TENSORFLOW, TORCH, Peer, measure
from benchmarks.programs.program import Program, require_close
from benchmarks.report import Row, publish

FUNCTION = Peer("gtape function", "gtape")
COLUMNS = (NUMPY, GTAPE, FUNCTION, TORCH, TENSORFLOW)
#: The mean of the numbers is far from 0, so that a running sum loses the last digits of each.
OFFSET = 1000.0
SHAPES = {"64": (64,), "32x32": (32, 32), "128x512": (128, 512), "1000x1000": (1000, 1000),
          "1e6x10": (1_000_000, 10), "1e7": (10_000_000,)}
ROWS = [
    ("sum of all", "64"), ("sum of all", "1000x1000"), ("sum of all", "1e7"),
    ("sums of columns", "32x32"), ("sums of columns", "128x512"), ("sums of columns", "1000x1000"),
    ("sums of columns", "1e6x10"), ("sums of rows", "128x512"), ("sums of rows", "1e6x10"),
    ("means of columns", "1e6x10"), ("variances of columns", "1e6x10"), ("running sum", "1e7"),
    ("squared norm", "1e7"), ("sums of segments", "1e6x10"),
]
#: The error allowed, as a multiple of the largest result: gtape's, and what a peer that adds one
#: number after another reaches. The variance it then gives of a column is a thousand times off.
OWN, OTHERS = 1e-6, {"variances of columns": 1e4}
SEGMENTS = 4

REMARKS = (
    f"float32, uniform in [{OFFSET:g}, {OFFSET + 1:g}). gtape: eager. torch, TensorFlow: eager.",
    "x gtape: the time as a multiple of gtape's eager, above 1 is slower.",
)


def inputs(shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (OFFSET + rng.random(shape)).astype(np.float32)


def segment_ids(rows: int) -> np.ndarray:
    return np.sort(np.random.default_rng(1).integers(0, SEGMENTS, rows)).astype(np.int32)


def numpy_work(name: str, x: np.ndarray) -> Callable[[], Any]:
    ids = segment_ids(len(x))
    starts = np.searchsorted(ids, np.arange(SEGMENTS))
    return {
        "sum of all": lambda: x.sum(),
        "sums of columns": lambda: x.sum(0),
        "sums of rows": lambda: x.sum(-1),
        "means of columns": lambda: x.mean(0),
        "variances of columns": lambda: x.var(0),
        "running sum": lambda: np.cumsum(x),
        "squared norm": lambda: np.vdot(x, x) / 2,
        "sums of segments": lambda: np.add.reduceat(x, starts),
    }[name]


def tape_work(tf: Any, name: str, x: Any) -> Callable[[], Any]:
    """As users of gtape and TensorFlow write it."""
    ids = tf.constant(segment_ids(len(x)))
    return {
        "sum of all": lambda: tf.reduce_sum(x),
        "sums of columns": lambda: tf.reduce_sum(x, 0),
        "sums of rows": lambda: tf.reduce_sum(x, -1),
        "means of columns": lambda: tf.reduce_mean(x, 0),
        "variances of columns": lambda: tf.math.reduce_variance(x, 0),
        "running sum": lambda: tf.cumsum(x),
        "squared norm": lambda: tf.nn.l2_loss(x),
        "sums of segments": lambda: tf.math.segment_sum(x, ids),
    }[name]


def traced_work(tf: Any, name: str, x: Any) -> Callable[[], Any]:
    """The same in a `tf.function` of its input."""
    traced = tf.function(lambda x: tape_work(tf, name, x)())
    return lambda: traced(x)


def torch_work(name: str, x: Any) -> Callable[[], Any]:
    import torch

    ids = torch.from_numpy(segment_ids(len(x)).astype(np.int64))
    return {
        "sum of all": lambda: x.sum(),
        "sums of columns": lambda: x.sum(0),
        "sums of rows": lambda: x.sum(-1),
        "means of columns": lambda: x.mean(0),
        "variances of columns": lambda: x.var(0, correction=0),
        "running sum": lambda: torch.cumsum(x, 0),
        "squared norm": lambda: torch.dot(x, x) / 2,
        "sums of segments": lambda: torch.zeros(SEGMENTS, x.shape[1]).index_add_(0, ids, x),
    }[name]


def work(peer: str, name: str, x: np.ndarray) -> Callable[[], Any]:
    if peer == NUMPY.column:
        return numpy_work(name, x)
    if peer == TORCH.column:
        import torch

        return torch_work(name, torch.from_numpy(x))
    tf = import_module(TENSORFLOW.package if peer == TENSORFLOW.column else GTAPE.package)
    return (traced_work if peer == FUNCTION.column else tape_work)(tf, name, tf.constant(x))


def program(peer: str, name: str, shape: str) -> Program:
    x = inputs(SHAPES[shape])
    run = work(peer, name, x)

    def check() -> None:
        own = peer in (GTAPE.column, FUNCTION.column)
        expected = numpy_work(name, x.astype(np.float64))()
        require_close(run(), expected, name, OWN if own else OTHERS.get(name, 0.1))

    return Program(run, check)


def programs(peer: str) -> dict[str, Program]:
    """Every program of this benchmark that `peer` has."""
    return {f"{name}, {shape}": program(peer, name, shape) for name, shape in ROWS}


def main() -> int:
    rows = [Row(f"{name}, {shape}", "us", 1e6) for name, shape in ROWS]
    samples = measure("sums", COLUMNS)
    return publish("sums", "Sums and what is made of them", samples, rows, COLUMNS, REMARKS)


if __name__ == "__main__":
    sys.exit(main())

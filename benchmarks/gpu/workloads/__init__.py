"""The workloads in the order of the tables."""

from __future__ import annotations

from benchmarks.gpu.workload import Workload
from benchmarks.gpu.workloads.adamw import AdamWStep
from benchmarks.gpu.workloads.chain import Chain
from benchmarks.gpu.workloads.cross_entropy import CrossEntropy
from benchmarks.gpu.workloads.dense import DenseLayer
from benchmarks.gpu.workloads.gelu import Gelu
from benchmarks.gpu.workloads.layer_norm import LayerNorm
from benchmarks.gpu.workloads.perceptron import Perceptron, PerceptronTf32

WORKLOADS: dict[str, type[Workload]] = {
    w.number: w
    for w in (
        Chain,
        Gelu,
        LayerNorm,
        CrossEntropy,
        Perceptron,
        PerceptronTf32,
        AdamWStep,
        DenseLayer,
    )
}

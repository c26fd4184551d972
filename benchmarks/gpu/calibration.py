"""G0: what the card and its driver can do, which everything else is measured by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from benchmarks.gpu.data import normal
from benchmarks.gpu.peers.gtape_peer import KernelPeer
from benchmarks.gpu.workload import COPY

#: Elements of the arrays that are copied, and the side of the matrices that are multiplied.
COPIED, SIDE = 1 << 28, 8192
#: The name of the measured speed of products in bfloat16, by which others are judged.
BFLOAT16_PRODUCT = "product, bfloat16"
NODES = (10, 100, 1000)
CALLS, ROUNDS = 1000, 5

#: A kernel with the parameters of an elementwise operation of two arrays, and next to no work.
TEXT = """
extern "C" __global__ void little(const float* x, const float* y, float* z, long long n) {
    if (threadIdx.x < n) z[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x];
}
"""


class Measure(NamedTuple):
    """`value` in `unit`; the beginning of the name says of what."""

    name: str
    value: float
    unit: str


def measures(peer: KernelPeer) -> Iterator[Measure]:
    """Everything that is measured beforehand, one by one."""
    yield from copies(peer)
    yield from products(peer)
    yield from host_costs(peer)
    yield from graphs(peer)


def bandwidth(found: list[Measure]) -> float | None:
    """Bytes per second, read and written together, of the best copy; None: not measured."""
    rates = [m.value * 1e12 for m in found if m.name.startswith(COPY)]
    return max(rates, default=None)


def copies(peer: KernelPeer) -> Iterator[Measure]:
    """Reading and writing 1 GiB each: by a map of gtape, and by the driver."""
    import cupy

    import gtape as tf

    x = cupy.ones(COPIED, np.float32)
    y = cupy.empty_like(x)
    tensor = tf.experimental.from_dlpack(x)
    moved = 2 * x.nbytes
    for name, run in (
        ("a map of gtape, x * 1", lambda turn: tf.multiply(tensor, 1.0)),
        ("the driver", lambda turn: cupy.copyto(y, x)),
    ):
        timing = peer.clock.measure(run)
        yield Measure(f"{COPY} by {name}", moved / timing.median / 1e12, "TB/s")


def products(peer: KernelPeer) -> Iterator[Measure]:
    """Square matrix products of random numbers through gtape."""
    import gtape as tf

    flops = 2 * SIDE**3
    for name, dtype, tf32 in (
        (BFLOAT16_PRODUCT, "bfloat16", False),
        ("product, TF32", "float32", True),
        ("product, float32", "float32", False),
    ):
        peer.allow_tf32(tf32)
        a, b = (tf.constant(normal((SIDE, SIDE), i, dtype)) for i in (0, 1))

        def run(turn: int, a: Any = a, b: Any = b) -> Any:
            return tf.matmul(a, b)

        timing = peer.clock.measure(run)
        yield Measure(f"{name}, {SIDE} x {SIDE}", flops / timing.median / 1e12, "TFLOP/s")
    peer.allow_tf32(False)


def little(gpu: Any) -> Callable[[], None]:
    """One launch of the kernel that does next to nothing."""
    from gtape.devices.cuda.runtime.kernel import Kernel

    function = gpu.function(Kernel(TEXT, "little"))
    x, y, z = (gpu.zeros((32,), np.dtype(np.float32)) for _ in range(3))

    def launch() -> None:
        function((1, 1, 1), (32, 1, 1), (x, y, z, 32), 0, gpu.stream())

    return launch


def per_call(run: Callable[[], Any], wait: Callable[[], None]) -> float:
    """Seconds of the host per call, in the fastest round; the device's work is waited for after
    the clock has stopped."""
    best = float("inf")
    for _ in range(ROUNDS):
        wait()
        start = perf_counter()
        for _ in range(CALLS):
            run()
        best = min(best, (perf_counter() - start) / CALLS)
    wait()
    return best


def host_costs(peer: KernelPeer) -> Iterator[Measure]:
    """What Python and the driver take for a launch and an allocation."""
    import cupy

    gpu, dtype = peer.gpu, np.dtype(np.float32)
    wait = cupy.cuda.runtime.deviceSynchronize
    launch = per_call(little(gpu), wait)
    yield Measure("launch of a kernel, 3 arrays and a number", launch * 1e6, "us")
    allocate = per_call(lambda: cupy.ndarray((1024,), dtype), wait)
    yield Measure("allocation, cupy.ndarray((1024,), float32)", allocate * 1e6, "us")


def graphs(peer: KernelPeer) -> Iterator[Measure]:
    """CUDA graphs of small kernels in a row: the host's cost of a launch, and the device's time."""
    import cupy

    launch = little(peer.gpu)
    launch()
    wait = cupy.cuda.runtime.deviceSynchronize
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        for nodes in NODES:
            stream.begin_capture()
            for _ in range(nodes):
                launch()
            graph = stream.end_capture()
            graph.upload(stream)
            name = f"graph launch, {nodes} nodes"
            # Few launches for long graphs: a full queue would make the host wait.
            host = graph_host_cost(graph, stream, wait, max(10, CALLS // nodes))
            yield Measure(f"{name}, host", host * 1e6, "us")

            def run(turn: int, graph: Any = graph) -> None:
                graph.launch(stream)

            timing = peer.clock.measure(run)
            yield Measure(f"{name}, device", timing.median * 1e6, "us")


def graph_host_cost(graph: Any, stream: Any, wait: Callable[[], None], calls: int) -> float:
    """Seconds of the host per launch, in the fastest round."""
    best = float("inf")
    for _ in range(ROUNDS):
        wait()
        start = perf_counter()
        for _ in range(calls):
            graph.launch(stream)
        best = min(best, (perf_counter() - start) / calls)
    wait()
    return best

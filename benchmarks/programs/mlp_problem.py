"""W3 and W4: what is trained, and the same training step in plain NumPy.

The NumPy step in float64 is the reference; in float32 it is a column of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, pairwise
from typing import Any

import numpy as np

RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-7

Step = Callable[[], object]


@dataclass(frozen=True)
class Problem:
    """A multilayer perceptron with relu between its layers, and batches to train it on.

    `xs`: (batches, rows, inputs) float32. `ys`: with `classes` the int32 class indices
    (batches, rows) for softmax cross entropy, otherwise float32 (batches, rows, outputs) for the
    mean squared error. Both are noise, in many batches: nothing is learnt by heart, so gradients
    stay ordinary numbers however long the clock runs.
    `parameters`: kernel (inputs, outputs) and bias (outputs,) of every layer in turn, float32.
    """

    sizes: tuple[int, ...]
    xs: np.ndarray
    ys: np.ndarray
    classes: bool
    parameters: tuple[np.ndarray, ...]

    def batches(self, convert: Callable[[np.ndarray], Any]) -> Iterator[tuple[Any, Any]]:
        """The batches in a peer's own arrays, made beforehand, over and over again."""
        return cycle([(convert(x), convert(y)) for x, y in zip(self.xs, self.ys, strict=True)])


def initial_parameters(sizes: tuple[int, ...], rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Kernels uniform in +-sqrt(6 / (in + out)) (Glorot and Bengio, AISTATS 2010); biases 0."""
    parameters: list[np.ndarray] = []
    for rows, columns in pairwise(sizes):
        limit = np.sqrt(6 / (rows + columns))
        parameters.append(rng.uniform(-limit, limit, (rows, columns)).astype(np.float32))
        parameters.append(np.zeros(columns, np.float32))
    return tuple(parameters)


def regression() -> Problem:
    """W3: 10-64-32-1, batch 32."""
    rng = np.random.default_rng(3)
    sizes = (10, 64, 32, 1)
    xs = rng.normal(size=(64, 32, 10)).astype(np.float32)
    ys = rng.normal(size=(64, 32, 1)).astype(np.float32)
    return Problem(sizes, xs, ys, False, initial_parameters(sizes, rng))


def classification() -> Problem:
    """W4: 784-512-512-10, batch 128."""
    rng = np.random.default_rng(4)
    sizes = (784, 512, 512, 10)
    xs = rng.uniform(size=(64, 128, 784)).astype(np.float32)
    ys = rng.integers(0, 10, (64, 128)).astype(np.int32)
    return Problem(sizes, xs, ys, True, initial_parameters(sizes, rng))


def mean_squared_error(out: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean loss of the batch, and its derivative by the network's output."""
    error = out - y
    return np.mean(error * error), error * out.dtype.type(2 / error.size)


def cross_entropy(out: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean loss of the batch, and its derivative by the network's output."""
    shifted = out - out.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    total = exponentials.sum(axis=1, keepdims=True)
    rows = np.arange(len(out))
    loss = np.mean(np.log(total[:, 0]) - shifted[rows, labels])
    slope = exponentials / total
    slope[rows, labels] -= 1
    return loss, slope / out.dtype.type(len(out))


def gradients(
    loss_and_slope: Callable[..., Any], x: np.ndarray, y: np.ndarray, parameters: list[np.ndarray]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The loss, and its derivative by every parameter, in the dtype of the parameters."""
    inputs, last = [x], len(parameters) - 2
    for i in range(0, len(parameters), 2):
        out = inputs[-1] @ parameters[i] + parameters[i + 1]
        inputs.append(np.maximum(out, 0) if i < last else out)
    loss, g = loss_and_slope(inputs[-1], y)
    found: list[np.ndarray] = []
    for i in range(last, -1, -2):
        h = inputs[i // 2]
        found = [h.T @ g, g.sum(axis=0), *found]
        if i:
            g = (g @ parameters[i].T) * (h > 0)
    return loss, found


class Adam:
    """Adam on NumPy arrays, in place (Kingma and Ba, arXiv:1412.6980).

    `late`: epsilon is added after the bias correction, as in the paper's algorithm 1 and torch;
    otherwise before it, as in the paper's section 2, TensorFlow and Keras.
    """

    def __init__(self, parameters: list[np.ndarray], *, late: bool = False) -> None:
        self.parameters = parameters
        self.means = [np.zeros_like(p) for p in parameters]
        self.squares = [np.zeros_like(p) for p in parameters]
        self.late = late
        self.steps = 0

    def update(self, slopes: list[np.ndarray]) -> None:
        self.steps += 1
        correction = float(np.sqrt(1 - BETA2**self.steps))
        rate = RATE * correction / (1 - BETA1**self.steps)
        epsilon = EPSILON * correction if self.late else EPSILON
        for p, m, v, g in zip(self.parameters, self.means, self.squares, slopes, strict=True):
            m += (g - m) * (1 - BETA1)
            v += (g * g - v) * (1 - BETA2)
            p -= rate * m / (np.sqrt(v) + epsilon)


def numpy_step(problem: Problem, dtype: type = np.float32, *, late: bool = False) -> Step:
    """Forward, backward and Adam written by hand; the step returns the loss before it."""
    parameters = [p.astype(dtype) for p in problem.parameters]
    batches = problem.batches(lambda a: a if a.dtype == np.int32 else a.astype(dtype))
    loss_and_slope = cross_entropy if problem.classes else mean_squared_error
    adam = Adam(parameters, late=late)

    def step() -> np.ndarray:
        loss, slopes = gradients(loss_and_slope, *next(batches), parameters)
        adam.update(slopes)
        return loss

    return step


def reference_losses(problem: Problem, steps: int, *, late: bool) -> np.ndarray:
    """The losses of the first steps in float64; `late` as in Adam."""
    step = numpy_step(problem, np.float64, late=late)
    return np.array([step() for _ in range(steps)], np.float64)

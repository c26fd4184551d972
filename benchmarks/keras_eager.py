"""What eager Keras costs beside its arithmetic: calls of layers, and updates of optimizers.

Run `python -m benchmarks.keras_eager` or `python benchmarks/keras_eager.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import GTAPE, JAX, TENSORFLOW, TORCH, Peer
from benchmarks.programs.keras_models import keras_of
from benchmarks.programs.program import Program, require_close
from benchmarks.report import Row, one_by_one

#: torch's own layers and optimizers, without Keras.
PLAIN_TORCH = Peer("torch.nn, torch.optim", "torch")
COLUMNS = (GTAPE, TENSORFLOW, JAX, TORCH, PLAIN_TORCH)

CALLS = ("Dense call", "three layers", "mean squared error")
RULES = ("SGD", "Adam", "AdamW", "RMSprop", "Lion")
SHAPES = {"6 variables": [(64, 64), (64,), (64, 32), (32,), (32, 10), (10,)],
          "200 variables": [(64, 64)] * 200}
RATE, DECAY = 1e-3, 4e-3
#: gtape's program of an update takes over after a hundred calls.
FIRST_CALLS = 110

REMARKS = (
    "float32. Dense call: 64 to 32 units of 32 samples; three layers: 64-64-32-10 with relu, "
    "Sequential. Updates: optimizer.apply of all variables, of 64 x 64 where they are 200.",
    "gtape, tensorflow, jax, torch: Keras 3 on that engine, called eagerly. The last column is "
    "torch alone, which has no Lion.",
    f"First call: the first {FIRST_CALLS} calls, with what they compile, with empty caches.",
)


def drawn(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def gradient(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Far enough from 0 that what is added to denominators does not show."""
    made = drawn(shape, seed)
    return made + np.copysign(np.float32(0.5), made)


def first_step(rule: str, g: np.ndarray) -> np.ndarray:
    """What the first update subtracts from variables of zeros."""
    if rule == "SGD":
        return RATE * g
    return RATE * np.sign(g) / (np.sqrt(0.1) if rule == "RMSprop" else 1)


def _timed(run: Callable[[], Any]) -> Callable[[], float]:
    def first() -> float:
        start = perf_counter()
        for _ in range(FIRST_CALLS):
            run()
        return perf_counter() - start

    return first


# ---------------------------------------------------------------------- updates


def keras_update(keras: Any, rule: str, shapes: list[tuple[int, ...]]) -> tuple[Any, list[Any]]:
    """(a function that updates, the variables)"""
    named = {"weight_decay": DECAY} if rule == "AdamW" else {}
    optimizer = getattr(keras.optimizers, rule)(RATE, **named)
    variables = [keras.Variable(np.zeros(s, np.float32)) for s in shapes]
    grads = [keras.ops.convert_to_tensor(gradient(s, i)) for i, s in enumerate(shapes)]
    return lambda: optimizer.apply(grads, variables), variables


def torch_update(rule: str, shapes: list[tuple[int, ...]]) -> tuple[Any, list[Any]]:
    import torch

    variables = [torch.nn.Parameter(torch.zeros(s)) for s in shapes]
    for i, variable in enumerate(variables):
        variable.grad = torch.from_numpy(gradient(tuple(variable.shape), i))
    named = {"AdamW": {"weight_decay": DECAY}, "RMSprop": {"alpha": 0.9}}.get(rule, {})
    return getattr(torch.optim, rule)(variables, RATE, **named).step, variables


def update(column: str, rule: str, shapes: list[tuple[int, ...]]) -> Program:
    if column == PLAIN_TORCH.column:
        run, variables = torch_update(rule, shapes)
    else:
        run, variables = keras_update(keras_of(column), rule, shapes)
    run()
    made = [np.array(v.detach() if hasattr(v, "detach") else v) for v in variables]

    def check() -> None:
        for i, (value, shape) in enumerate(zip(made, shapes)):
            require_close(value, -first_step(rule, gradient(shape, i)), rule, 2e-3)

    return Program(run, check, _timed(run))


# ---------------------------------------------------------------------- calls


def _layers(sizes: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(drawn(pair, i), drawn(pair[1:], i + 9))
            for i, pair in enumerate(pairwise(sizes))]


def _expected(x: np.ndarray, weights: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    for i, (w, b) in enumerate(weights):
        x = x @ w + b
        if i < len(weights) - 1:
            x = np.maximum(x, 0)
    return x


def _keras_call(keras: Any, weights: list[tuple[np.ndarray, np.ndarray]]) -> Any:
    layers = [keras.layers.Dense(w.shape[1], activation="relu" if i < len(weights) - 1 else None)
              for i, (w, _) in enumerate(weights)]
    model = layers[0] if len(layers) == 1 else keras.Sequential(layers)
    model.build((None, len(weights[0][0])))
    model.set_weights([a for pair in weights for a in pair])
    return model


def _torch_call(weights: list[tuple[np.ndarray, np.ndarray]]) -> Any:
    import torch

    parts: list[Any] = []
    for w, b in weights:
        layer = torch.nn.Linear(*w.shape)
        layer.load_state_dict({"weight": torch.from_numpy(w.T.copy()), "bias": torch.from_numpy(b)})
        parts += [layer, torch.nn.ReLU()]
    return parts[0] if len(weights) == 1 else torch.nn.Sequential(*parts[:-1])


def call(column: str, name: str) -> Program:
    if name == CALLS[2]:
        return _loss(column)
    x, weights = drawn((32, 64)), _layers((64, 32) if name == CALLS[0] else (64, 64, 32, 10))
    if column == PLAIN_TORCH.column:
        import torch

        made, given = _torch_call(weights), torch.from_numpy(x)
    else:
        keras = keras_of(column)
        made, given = _keras_call(keras, weights), keras.ops.convert_to_tensor(x)

    def check() -> None:
        require_close(made(given), _expected(x.astype(np.float64), weights), name)

    return Program(lambda: made(given), check)


def _loss(column: str) -> Program:
    x, y = drawn((32, 10)), drawn((32, 10), 1)
    if column == PLAIN_TORCH.column:
        import torch

        made, given = torch.nn.MSELoss(), [torch.from_numpy(a) for a in (x, y)]
    else:
        keras = keras_of(column)
        made, given = keras.losses.MeanSquaredError(), [keras.ops.convert_to_tensor(a)
                                                        for a in (x, y)]

    def check() -> None:
        require_close(made(*given), np.mean((x.astype(np.float64) - y) ** 2), CALLS[2])

    return Program(lambda: made(*given), check)


# ---------------------------------------------------------------------- all of them


def names() -> list[str]:
    return [*CALLS, *(f"{rule}, {count}" for count in SHAPES for rule in RULES)]


def programs(column: str, name: str) -> dict[str, Program]:
    """The program of this row, where the column has it."""
    if name in CALLS:
        return {name: call(column, name)}
    rule, _, count = name.partition(", ")
    if rule == "Lion" and column == PLAIN_TORCH.column:
        return {}
    return {name: update(column, rule, SHAPES[count])}


def main() -> int:
    """All rows, or those whose names contain one of the arguments."""
    wanted = [name for name in names()
              if len(sys.argv) < 2 or any(part in name for part in sys.argv[1:])]
    rows = [Row(name, "us", 1e6) for name in wanted]
    return one_by_one("keras_eager", "Eager Keras", rows, COLUMNS, REMARKS,
                      rounds=7, turn_seconds=0.05)


if __name__ == "__main__":
    sys.exit(main())

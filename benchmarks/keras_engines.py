"""Keras on its engines: gtape, TensorFlow, JAX and torch, the same models and data.

Run `python -m benchmarks.keras_engines` or `python benchmarks/keras_engines.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import GTAPE, JAX, TENSORFLOW, TORCH
from benchmarks.programs import keras_models as models
from benchmarks.programs.keras_steps import step
from benchmarks.programs.program import Program, WrongResult
from benchmarks.report import Row, one_by_one

COLUMNS = (GTAPE, TENSORFLOW, JAX, TORCH)
#: Samples of an epoch: at batch 32 some hundred steps, so that what an epoch costs beside its
#: steps weighs as it does for users.
SAMPLES = 8192
#: Epochs before those that are timed: gtape's program takes over within so many steps, and is
#: compiled within so many seconds.
WARM_STEPS, WARM_SECONDS, MOST_SECONDS = 1000, 4.0, 16.0
FITS = {"MLP 64-128-10": models.MLP, "two convolutions, 8x8": models.CONV,
        "Embedding + LSTM": models.LSTM}
BATCHES = (32, 256)
STEPS = {"MLP 10-64-32-1": (models.SMALL, 32), "MLP 784-512-512-10": (models.LARGE, 128),
         "two convolutions, 28x28": (models.IMAGES, 32), "LSTM": (models.LSTM, 32),
         "transformer": (models.ATTENTION, 32)}

REMARKS = (
    "fit: samples a second of an epoch of model.fit with Adam, cross entropy and accuracy, "
    f"{SAMPLES} samples in NumPy arrays, shuffled. step: a custom step with Adam, compiled where "
    "the engine compiles (tf.function, jax.jit); torch runs eagerly, as Keras does on it.",
    "First calls: an epoch, or a step, in a fresh process with empty caches.",
)


def fit_program(column: str, problem: models.Problem, batch: int) -> Program:
    keras = models.keras_of(column)
    keras.utils.set_random_seed(0)
    x, y = problem.data(SAMPLES)
    model = problem.build(keras)
    model.compile(keras.optimizers.Adam(1e-3), problem.loss(keras),
                  metrics=list(problem.metrics))

    def run() -> Any:
        return model.fit(x, y, batch_size=batch, epochs=1, verbose=0)

    def losses() -> tuple[float, float]:
        before = model.evaluate(x, y, batch_size=256, verbose=0)[0]
        start, steps = perf_counter(), 0
        while True:
            after = run().history["loss"][0]
            steps += SAMPLES // batch
            seconds = perf_counter() - start
            if seconds > MOST_SECONDS or (seconds > WARM_SECONDS and steps >= WARM_STEPS):
                return before, after

    return Program(run, lambda: _learns(losses), _timed(run))


def step_program(column: str, problem: models.Problem, batch: int) -> Program:
    run = step(column, problem, batch)

    def losses() -> tuple[float, float]:
        before = float(run())
        return before, [float(run()) for _ in range(20)][-1]

    return Program(run, lambda: _learns(losses), _timed(run))


def _timed(run: Callable[[], Any]) -> Callable[[], float]:
    def first() -> float:
        start = perf_counter()
        run()
        return perf_counter() - start

    return first


def _learns(losses: Callable[[], tuple[float, float]]) -> None:
    before, after = losses()
    if not after < before:
        raise WrongResult(f"the loss was {before:.4g} and is {after:.4g}: it does not learn")


def named() -> dict[str, Callable[[str], Program]]:
    """Every program by the name of its row."""
    fits = {f"fit {name}, batch {batch}": (fit_program, problem, batch)
            for name, problem in FITS.items() for batch in BATCHES}
    steps = {f"step {name}": (step_program, *of) for name, of in STEPS.items()}
    return {name: lambda column, of=of: of[0](column, *of[1:])
            for name, of in {**fits, **steps}.items()}


def programs(column: str, name: str) -> dict[str, Program]:
    """The program of this row."""
    return {name: named()[name](column)}


def main() -> int:
    """All rows, or those whose names contain one of the arguments."""
    wanted = [name for name in named()
              if len(sys.argv) < 2 or any(part in name for part in sys.argv[1:])]
    rows = [Row(name, "samples/s", SAMPLES, rate=True) if name.startswith("fit")
            else Row(name, "us", 1e6) for name in wanted]
    return one_by_one("keras_engines", "Keras on its engines", rows, COLUMNS, REMARKS,
                      rounds=5, turn_seconds=0.5)


if __name__ == "__main__":
    sys.exit(main())

"""W10: a step of gradient descent on those rows of a large table that a batch names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np

from benchmarks.programs.compiled.check import checked
from benchmarks.programs.compiled.columns import Compile, Run, Writers
from benchmarks.programs.program import Program, require_close, to_numpy

ROWS, WIDTH, BATCH, BATCHES = 1_000_000, 64, 4096, 64
RATE = 0.005 * BATCH  # a step takes a hundredth of every row it meets
CHECKED_STEPS = 3


@dataclass(frozen=True)
class Descent:
    """`step()` gives the loss; `rows(ids)` reads the table."""

    step: Run
    rows: Callable[[np.ndarray], Any]


def batches() -> np.ndarray:
    """Row numbers, int32 (batches, batch); some come twice in a batch."""
    rng = np.random.default_rng(10)
    return rng.integers(0, ROWS, (BATCHES, BATCH), np.int32)


def start() -> np.ndarray:
    return np.random.default_rng(11).standard_normal((ROWS, WIDTH), np.float32)


def tape(tf: Any, function: Compile) -> Descent:
    table = tf.Variable(start())
    optimizer = tf.keras.optimizers.SGD(RATE)
    optimizer.build([table])
    ids = cycle([tf.constant(batch) for batch in batches()])

    @function
    def step(ids: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.gather(table, ids))) / BATCH
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])
        return loss

    return Descent(lambda: step(next(ids)), lambda some: tf.gather(table, some))


def torch(compile: Compile | None) -> Descent:
    """Eager: the module and the optimizer for it; compiled: gather, gradient and scatter."""
    import torch

    ids = cycle([torch.tensor(batch).long() for batch in batches()])

    def loss_of(rows: Any) -> Any:
        return rows.square().sum() / BATCH

    if compile is None:
        embedding = torch.nn.Embedding.from_pretrained(
            torch.from_numpy(start()), freeze=False, sparse=True
        )
        optimizer = torch.optim.SGD(embedding.parameters(), RATE)

        def eager() -> Any:
            optimizer.zero_grad()
            loss = loss_of(embedding(next(ids)))
            loss.backward()
            optimizer.step()
            return loss

        return Descent(eager, lambda some: embedding.weight[torch.tensor(some)])

    table = torch.from_numpy(start())

    @compile
    def step(table: Any, ids: Any) -> Any:
        gradient, loss = torch.func.grad_and_value(loss_of)(table[ids])
        table.index_add_(0, ids, gradient, alpha=-RATE)
        return loss

    return Descent(lambda: step(table, next(ids)), lambda some: table[torch.tensor(some)])


def jax() -> Descent:
    """The table is donated; the gradient is taken by the gathered rows."""
    import jax
    import jax.numpy as jnp

    def update(table: Any, ids: Any) -> Any:
        loss, gradient = jax.value_and_grad(lambda rows: jnp.sum(rows**2) / BATCH)(table[ids])
        return loss, table.at[ids].add(-RATE * gradient)

    compiled = jax.jit(update, donate_argnums=0)
    table = jnp.array(start())
    ids = cycle([jnp.asarray(batch) for batch in batches()])

    def step() -> Any:
        nonlocal table
        loss, table = compiled(table, next(ids))
        jax.block_until_ready(table)
        return loss

    return Descent(step, lambda some: table[some])


def reference() -> tuple[list[float], np.ndarray, np.ndarray]:
    """The losses of the first steps, the rows that they meet, and how these change; float64."""
    steps = batches()[:CHECKED_STEPS]
    met = np.unique(steps)
    before = start()[met].astype(np.float64)
    table, losses = before.copy(), []
    for ids in steps:
        places = np.searchsorted(met, ids)
        rows = table[places]
        losses.append(np.sum(rows * rows) / BATCH)
        np.subtract.at(table, places, RATE * 2 / BATCH * rows)
    return losses, met, table - before


def program(column: str, _name: str) -> Program:
    descent = Writers(tape, torch, jax).run_of(column)
    losses, met, change = reference()

    def check(results: list[Any]) -> None:
        require_close(np.array(results), losses, f"the losses of {CHECKED_STEPS} steps")
        after = to_numpy(descent.rows(met))
        require_close(after - start()[met], change, "the change of the table", 1e-3)

    return checked(descent.step, check, CHECKED_STEPS)

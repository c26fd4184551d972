"""Pipelines that feed a training loop: records and images shuffled, mapped and batched.

Run `python -m benchmarks.data_pipelines` or `python benchmarks/data_pipelines.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import GTAPE, TENSORFLOW, TORCH, Peer, measure
from benchmarks.programs.program import Program, WrongResult, require_close
from benchmarks.report import Row, publish

TORCH_BATCHES = Peer("torch by batches", "torch")
COLUMNS = (GTAPE, TENSORFLOW, TORCH, TORCH_BATCHES)
RECORDS, WIDTH, CLASSES, IMAGES, SIDE = 1_000_000, 16, 10, 4000, 64
BATCH, BUFFER = 32, 10_000

#: What each pipeline does before its elements are batched.
ROWS = {
    "records: batch": "records", "records: shuffle, batch": "records",
    "records: shuffle, map, batch": "records", "records: shuffle, batch, map": "records",
    "images: shuffle, map, batch": "images", "images: shuffle, random flip, batch": "images",
    "a generator: batch": "generator",
}

REMARKS = (
    f"Records: {RECORDS:,} of {WIDTH} float32 and a label; map scales them and makes the label "
    f"one-hot. Images: {IMAGES:,} of {SIDE} x {SIDE} x 3 bytes; map makes them float32 of [0, 1]. "
    f"Batches of {BATCH}; shuffle by a buffer of {BUFFER:,}. Endless pipelines: a call takes the "
    f"next batch.",
    "gtape and TensorFlow: the same text, with AUTOTUNE for map and prefetch. torch: DataLoader "
    "without worker processes over a Dataset of single elements, in a random order of all; by "
    "batches: over a Dataset that gathers and maps whole batches, which users write by hand. "
    "TensorFlow's threads go on between its turns: the first batches of a turn are ready.",
    "x gtape: the time as a multiple of gtape's, above 1 is slower.",
)


def records() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.random((RECORDS, WIDTH), np.float32)
    x[:, 0] = np.arange(RECORDS)  # says which record it is; a float32 holds the number exactly
    return x, (np.arange(RECORDS) % CLASSES).astype(np.int32)


def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 255, (IMAGES, SIDE, SIDE, 3), np.uint8)


def numbers() -> Iterator[np.ndarray]:
    value = np.arange(WIDTH, dtype=np.float32)
    while True:
        yield value


def tape_pipeline(tf: Any, name: str) -> Any:
    """As users of gtape and TensorFlow write it."""
    tune = tf.data.AUTOTUNE
    if ROWS[name] == "generator":
        dataset = tf.data.Dataset.from_generator(
            numbers, output_signature=tf.TensorSpec([WIDTH], tf.float32))
        return dataset.batch(BATCH).prefetch(tune)
    steps = name.partition(": ")[2].split(", ")
    data = records() if ROWS[name] == "records" else images()
    dataset = tf.data.Dataset.from_tensor_slices(data)
    made = {"records": scaled, "images": floated}[ROWS[name]](tf)
    for step in steps:
        if step == "shuffle":
            dataset = dataset.shuffle(BUFFER)
        elif step == "map":
            dataset = dataset.map(made, num_parallel_calls=tune)
        elif step == "random flip":
            dataset = dataset.map(flipped(tf), num_parallel_calls=tune)
        else:
            dataset = dataset.batch(BATCH)
    return dataset.prefetch(tune)


def scaled(tf: Any) -> Callable[..., Any]:
    return lambda x, y: (x * 2.0 - 1.0, tf.one_hot(y, CLASSES))


def floated(tf: Any) -> Callable[..., Any]:
    return lambda x: tf.cast(x, tf.float32) / 255.0


def flipped(tf: Any) -> Callable[..., Any]:
    def flip(x: Any) -> Any:
        x = tf.cast(x, tf.float32) / 255.0
        return tf.cond(tf.random.uniform([]) < 0.5, lambda: tf.image.flip_left_right(x), lambda: x)

    return flip


def torch_pipeline(name: str, by_batches: bool) -> Any:
    """A DataLoader of single elements, or of whole batches."""
    import torch
    from torch.utils.data import DataLoader, Dataset, IterableDataset

    if ROWS[name] == "generator":
        class Numbers(IterableDataset[Any]):
            def __iter__(self) -> Any:
                return (torch.from_numpy(x) for x in numbers())

        return DataLoader(Numbers(), batch_size=BATCH)
    data = records() if ROWS[name] == "records" else (images(),)
    tensors = [torch.from_numpy(a) for a in data]
    after = name.endswith("map")

    def mapped(*row: Any) -> Any:
        if ROWS[name] == "images":
            x = row[0].to(torch.float32) / 255.0
            if "flip" not in name:
                return x
            if x.ndim == 3:
                return x.flip(1) if torch.rand(()) < 0.5 else x
            turned = torch.rand(len(x)) < 0.5
            x[turned] = x[turned].flip(2)
            return x
        if "map" not in name:
            return row
        return row[0] * 2.0 - 1.0, torch.nn.functional.one_hot(
            row[1].long(), CLASSES).to(torch.float32)

    class Elements(Dataset[Any]):
        def __len__(self) -> int:
            return len(tensors[0])

        def __getitem__(self, at: int) -> Any:
            row = [t[at] for t in tensors]
            return tuple(row) if after else mapped(*row)

    class Batches(Elements):
        def __getitems__(self, at: list[int]) -> Any:
            index = torch.tensor(at)
            return mapped(*[t[index] for t in tensors])

    if by_batches:
        return DataLoader(Batches(), BATCH, shuffle="shuffle" in name, collate_fn=lambda x: x)
    loader = DataLoader(Elements(), BATCH, shuffle="shuffle" in name)
    return (mapped(*row) for row in loader) if after else loader


class Endless:
    """The batches of a pipeline, over and over."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._batches = iter(make())

    def __call__(self) -> Any:
        batch = next(self._batches, None)
        if batch is None:
            self._batches = iter(self._make())
            batch = next(self._batches)
        return batch


def check(name: str, batch: Any) -> None:
    """The batch is what NumPy makes of the records, or of an image, that it says it has."""
    if ROWS[name] == "images":
        if batch.shape != (BATCH, SIDE, SIDE, 3) or not 0 < float(batch[0].numpy().max()) <= 1:
            raise WrongResult(f"{name}: {batch.shape}")
        return
    if ROWS[name] == "generator":
        require_close(batch, np.tile(next(numbers()), (BATCH, 1)), name)
        return
    x, y = (np.asarray(part) for part in batch)
    number = x[:, 0].astype(np.int64)
    if "map" in name:
        number = ((x[:, 0].astype(np.float64) + 1) / 2).round().astype(np.int64)
        y = y.argmax(1)
    if "shuffle" not in name and list(number) != list(range(BATCH)):
        raise WrongResult(f"{name}: the records come in another order")
    if list(y) != list(number % CLASSES):
        raise WrongResult(f"{name}: the labels are other records'")
    expected = records()[0][number]
    require_close(x, expected * 2 - 1 if "map" in name else expected, name)


def program(peer: str, name: str) -> Program:
    if peer in (TORCH.column, TORCH_BATCHES.column):
        made = torch_pipeline(name, peer == TORCH_BATCHES.column)
        make: Callable[[], Any] = lambda: made
    else:
        tf = import_module(TENSORFLOW.package if peer == TENSORFLOW.column else GTAPE.package)
        dataset = tape_pipeline(tf, name)
        make = lambda: dataset
    run = Endless(make)
    return Program(run, lambda: check(name, run()))


def programs(peer: str) -> dict[str, Program]:
    """Every program of this benchmark that `peer` has."""
    return {name: program(peer, name) for name in ROWS
            if peer != TORCH_BATCHES.column or ROWS[name] != "generator"}


def main() -> int:
    rows = [Row(f"{name}", "us", 1e6) for name in ROWS]
    samples = measure("data_pipelines", COLUMNS, turn_seconds=0.2)
    return publish("data_pipelines", "Pipelines that feed a training loop", samples, rows, COLUMNS,
                   REMARKS)


if __name__ == "__main__":
    sys.exit(main())

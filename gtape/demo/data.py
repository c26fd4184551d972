"""The handwritten digits that scikit-learn ships: 1797 grey images of 8 x 8 pixels.

Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
Repository, 1998, doi:10.24432/C50P49.
"""

from __future__ import annotations

import gzip
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gtape.demo.environment import DemoError, require

SIDE = 8
CLASSES = 10
_PACKAGED = Path("datasets", "data", "digits.csv.gz")
_MAX_GREY = 16


@dataclass(frozen=True)
class Samples:
    """Images float32 [n, 8, 8, 1] in [0, 1] and their labels int32 [n] in [0, 10)."""

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


def packaged_file() -> Path:
    """Where scikit-learn keeps the digits. Finding it does not import scikit-learn.

    Raises:
        DemoError: scikit-learn is not installed, or its digits are not where they should be.
    """
    require("sklearn", "the digits come with scikit-learn")
    spec = importlib.util.find_spec("sklearn")
    folders = (spec.submodule_search_locations if spec else None) or []
    for folder in folders:
        file = Path(folder) / _PACKAGED
        if file.is_file():
            return file
    raise DemoError(f"scikit-learn is installed without its data file {_PACKAGED.as_posix()}; "
                    f"run: pip install --force-reinstall scikit-learn")


def read(file: Path) -> Samples:
    """All digits of the file: rows of 64 grey values in [0, 16] and a label.

    Raises:
        DemoError: the file holds something else.
    """
    try:
        with gzip.open(file, "rt", encoding="ascii") as lines:
            table = np.loadtxt(lines, delimiter=",", dtype=np.float32, ndmin=2)
    except (OSError, EOFError, ValueError) as error:
        raise DemoError(f"cannot read the digits in {file}: {error}") from error
    pixels = SIDE * SIDE
    if table.shape[1] != pixels + 1 or not np.isin(table[:, pixels], np.arange(CLASSES)).all():
        raise DemoError(f"{file} must hold rows of {pixels} grey values and a label in "
                        f"[0, {CLASSES}); got an array of shape {table.shape}")
    images = table[:, :pixels].reshape(-1, SIDE, SIDE, 1) / np.float32(_MAX_GREY)
    return Samples(images, table[:, pixels].astype(np.int32))


def split(samples: Samples, held_out: float, seed: int) -> tuple[Samples, Samples]:
    """(training samples, held-out samples): a shuffle of all, then a cut; disjoint."""
    order = np.random.default_rng(seed).permutation(len(samples))
    cut = len(samples) - round(held_out * len(samples))
    train, test = order[:cut], order[cut:]
    return (Samples(samples.images[train], samples.labels[train]),
            Samples(samples.images[test], samples.labels[test]))


def batches(samples: Samples, size: int, rng: np.random.Generator) -> Iterator[Samples]:
    """One epoch of full batches in a new order; the rest that fills none is left out."""
    order = rng.permutation(len(samples))
    for start in range(0, len(order) - size + 1, size):
        chosen = order[start:start + size]
        yield Samples(samples.images[chosen], samples.labels[chosen])

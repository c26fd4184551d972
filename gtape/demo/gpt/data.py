"""The text that Python's own help pages are made of: `pydoc_data.topics`, about 370 000 characters.

Many pages repeat parts of others, so every paragraph is kept once: what is held out is nowhere in
what is trained on.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gtape.demo.environment import DemoError

#: With this order of the pages, characters are about as hard to guess in both parts.
_SPLIT_SEED = 5


@dataclass(frozen=True)
class Text:
    """Training and held-out text as character numbers int32, and what the numbers mean."""

    characters: str
    train: np.ndarray
    held_out: np.ndarray

    def numbers(self, text: str) -> np.ndarray:
        """A text as numbers int32. Raises ValueError for a character that the pages lack."""
        known = {character: i for i, character in enumerate(self.characters)}
        strange = sorted(set(text) - known.keys())
        if strange:
            raise ValueError(f"the pages do not have the characters {strange}")
        return np.array([known[character] for character in text], np.int32)

    def text(self, numbers: np.ndarray) -> str:
        """The text of numbers."""
        return "".join(self.characters[i] for i in numbers)

    @property
    def fingerprint(self) -> int:
        """Equal for equal texts; versions of Python differ in theirs."""
        return zlib.crc32(self.held_out.tobytes(), zlib.crc32(self.train.tobytes()))


def packaged() -> Mapping[str, str]:
    """The help pages by topic.

    Raises:
        DemoError: this Python came without them.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise DemoError("the text is Python's own help, the module pydoc_data of the standard "
                        "library, which this Python lacks; install the full standard library"
                        ) from error
    return topics


def _distinct(pages: Mapping[str, str]) -> list[str]:
    """The pages, long ones first, without paragraphs that an earlier one has."""
    seen: set[str] = set()
    kept = []
    for topic in sorted(pages, key=lambda topic: (-len(pages[topic]), topic)):
        fresh = []
        for paragraph in pages[topic].split("\n\n"):
            words = " ".join(paragraph.split())
            if words and words not in seen:
                seen.add(words)
                fresh.append(paragraph.strip("\n"))
        if fresh:
            kept.append("\n\n".join(fresh) + "\n\n\n")
    return kept


def prepared(pages: Mapping[str, str], held_out: float = 0.1) -> Text:
    """Whole pages in random order, of which about the share `held_out` is set aside."""
    distinct = _distinct(pages)
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(distinct))
    enough = held_out * sum(map(len, distinct))
    ends = np.cumsum([len(distinct[i]) for i in order])
    cut = int(np.searchsorted(ends, enough)) + 1
    aside, train = ("".join(distinct[i] for i in part) for part in (order[:cut], order[cut:]))
    characters = "".join(sorted(set(aside + train)))
    empty = np.array([], np.int32)
    text = Text(characters, empty, empty)
    return Text(characters, text.numbers(train), text.numbers(aside))


def windows(numbers: np.ndarray, starts: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs int32 [n, length] beginning at `starts`, and targets: the characters that follow."""
    at = starts[:, None] + np.arange(length)
    return numbers[at], numbers[at + 1]


def batch(numbers: np.ndarray, size: int, length: int, seed: int, step: int,
          ) -> tuple[np.ndarray, np.ndarray]:
    """Windows at random places, a function of seed and step alone, so that a run can go on."""
    rng = np.random.default_rng([seed, step])
    return windows(numbers, rng.integers(0, len(numbers) - length, size), length)

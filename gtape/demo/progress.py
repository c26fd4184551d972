"""Training progress: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Protocol

_PLAIN_LINES = 10


class Progress(Protocol):
    """Is told of every step, and of what is to be shown besides the loss."""

    def step(self, number: int, loss: float) -> None: ...

    def note(self, text: str) -> None: ...


class PlainLines:
    """About ten lines in all, for logs and pipes."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._every = max(1, steps // _PLAIN_LINES)
        self._note = ""

    def __enter__(self) -> PlainLines:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def step(self, number: int, loss: float) -> None:
        if number % self._every == 0 or number == self._steps:
            print(f"step {number}/{self._steps}  loss {loss:.4f}{self._note}", flush=True)

    def note(self, text: str) -> None:
        self._note = f"  {text}"


class LiveBar:
    """One line that redraws itself, by rich."""

    def __init__(self, steps: int) -> None:
        from rich import progress

        self._bar = progress.Progress(
            progress.TextColumn("training"), progress.BarColumn(), progress.MofNCompleteColumn(),
            progress.TextColumn("loss {task.fields[loss]:.4f}"),
            progress.TextColumn("{task.fields[note]}"), progress.TimeElapsedColumn())
        self._task = self._bar.add_task("", total=steps, loss=float("nan"), note="")

    def __enter__(self) -> LiveBar:
        self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._bar.stop()

    def step(self, number: int, loss: float) -> None:
        self._bar.update(self._task, completed=number, loss=loss)

    def note(self, text: str) -> None:
        self._bar.update(self._task, note=text)


def progress(steps: int) -> AbstractContextManager[Progress]:
    """The display that suits standard output."""
    return LiveBar(steps) if sys.stdout.isatty() else PlainLines(steps)

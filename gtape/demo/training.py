"""What both demonstrations train with: a device, a folder, one training step written out with
GradientTape, Ctrl-C between steps, and progress: a live bar on a terminal, else plain lines."""

from __future__ import annotations

import importlib.util
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from platform import python_version
from types import FrameType
from typing import Any, Self

import numpy as np

import gtape as tf
from gtape.core.tensor import Tensor


class DemoError(RuntimeError):
    """A demonstration cannot run; the message says what to do about it."""


def require(module: str, purpose: str) -> None:
    """Raise DemoError with the install command when `module` is not installed."""
    # Found, not imported: a missing package is said before anything is trained.
    if importlib.util.find_spec(module) is None:
        raise DemoError(f'{purpose}, which is not installed; run: pip install "gtape[demo]"')


def scope(device: str | None) -> AbstractContextManager[object]:
    """`tf.device(device)`; None leaves the choice to gtape."""
    return nullcontext() if device is None else tf.device(device)


def require_device(device: str | None) -> None:
    """Raise DemoError when no tensor can be made on the device."""
    # By making one tensor: a device may be listed and still fail at its first allocation.
    try:
        with scope(device):
            tf.zeros(1)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        asked = "the default device" if device is None else f"--device {device}"
        raise DemoError(f"{asked} cannot be used: {error}\n"
                        f"python -m gtape info lists the devices") from error


def writable_folder(folder: Path) -> Path:
    """Make `folder` if it is missing. Raises DemoError: it cannot be made or written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DemoError(f"--out must name a folder that can be made; {folder}: "
                        f"{error.strerror}") from error
    # Now, and not after minutes of training.
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DemoError(f"--out must name a folder that can be written to; {folder} cannot")
    return folder


class Interrupts:
    """Ctrl-C between steps, never within one, so that what is saved fits together. Inside the
    block, the first Ctrl-C sets `asked`; the next one interrupts as usual."""

    def __init__(self) -> None:
        self.asked = False
        self._before: object = None

    def __enter__(self) -> Interrupts:
        # Python lets no other thread set a handler.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        # A step that hangs must be stoppable.
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(self, *exc: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]


def mean_loss(model: Any, inputs: Tensor, targets: Tensor) -> Tensor:
    """Mean softmax cross entropy of the model's logits, in nats: a scalar tensor."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=model(inputs))
    return tf.reduce_mean(losses)


def command_line(name: str, out: Path, device: str | None, eager: bool, *words: str) -> str:
    """The command that would give the same run again."""
    return " ".join([f"python -m gtape demo {name}", f"--out {shlex.quote(str(out))}", *words,
                     *([f"--device {device}"] if device else []), *(["--eager"] if eager else [])])


def versions() -> str:
    """Of what a run depends on."""
    return f"gtape {tf.__version__}, NumPy {np.__version__}, Python {python_version()}"


def make_step(model: Any, optimizer: Any, eager: bool) -> Callable[[Any, Any], Any]:
    """A function of inputs and targets that updates the model and gives the loss before it."""
    def train_step(inputs: Tensor, targets: Tensor) -> Tensor:
        with tf.GradientTape() as tape:
            loss = mean_loss(model, inputs, targets)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    # Without an input signature: all batches have one shape, and so there is one trace.
    return train_step if eager else tf.function(train_step)


_PLAIN_LINES = 10


class Progress:
    """Is told of every step, and of what is to be shown besides the loss, within a block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Nothing is left to show."""

    def step(self, number: int, loss: float) -> None:
        raise NotImplementedError

    def note(self, text: str) -> None:
        raise NotImplementedError


class PlainLines(Progress):
    """About ten lines in all, for logs and pipes."""

    def __init__(self, steps: int) -> None:
        self._steps, self._note = steps, ""
        self._every = max(1, steps // _PLAIN_LINES)

    def step(self, number: int, loss: float) -> None:
        if number % self._every == 0 or number == self._steps:
            # Flushed: a pipe would keep the lines until the end.
            print(f"step {number}/{self._steps}  loss {loss:.4f}{self._note}", flush=True)

    def note(self, text: str) -> None:
        self._note = f"  {text}"


class LiveBar(Progress):
    """One line that redraws itself, by rich."""

    def __init__(self, steps: int) -> None:
        # Here, since Keras brings it, and only a terminal shows it.
        from rich import progress

        text = progress.TextColumn
        self._bar = progress.Progress(
            text("training"), progress.BarColumn(), progress.MofNCompleteColumn(),
            text("loss {task.fields[loss]:.4f}"), text("{task.fields[note]}"),
            progress.TimeElapsedColumn())
        self._task = self._bar.add_task("", total=steps, loss=float("nan"), note="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        # After an error too: without it the terminal's cursor stays hidden.
        self._bar.stop()

    def step(self, number: int, loss: float) -> None:
        self._bar.update(self._task, completed=number, loss=loss)

    def note(self, text: str) -> None:
        self._bar.update(self._task, note=text)


def progress(steps: int) -> Progress:
    """The display that suits standard output."""
    return LiveBar(steps) if sys.stdout.isatty() else PlainLines(steps)

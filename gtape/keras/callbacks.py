"""Callbacks: what happens around epochs and batches of `Model.fit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Callback:
    """Base class: override the moments of interest. `model` and `params` are set by `fit`."""

    model: Any = None
    params: dict[str, Any]

    def set_model(self, model: Any) -> None:
        self.model = model

    def set_params(self, params: dict[str, Any]) -> None:
        self.params = params

    def on_train_begin(self, logs: Any = None) -> None:
        """Before the first epoch."""

    def on_train_end(self, logs: Any = None) -> None:
        """After the last epoch."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Before an epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """After an epoch; `logs` holds the loss and the metrics."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch."""


class History(Callback):
    """`history` lists the loss and the metrics of every epoch, `epoch` their numbers."""

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: list[int] = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class LambdaCallback(Callback):
    """Functions as callbacks: LambdaCallback(on_epoch_end=lambda epoch, logs: ...)."""

    def __init__(self, **moments: Callable[..., Any]) -> None:
        for name, function in moments.items():
            if not hasattr(Callback, name):
                raise ValueError(f"there is no moment '{name}'")
            setattr(self, name, function)


class EarlyStopping(Callback):
    """Stop when `monitor` has not got better for `patience` epochs.

    Args:
        min_delta: what counts as better.
        mode: 'min', 'max' or 'auto', which takes 'max' for accuracies and areas.
        restore_best_weights: go back to the weights of the best epoch.
    """

    def __init__(self, monitor: str = "val_loss", min_delta: float = 0, patience: int = 0,
                 verbose: int = 0, mode: str = "auto", baseline: float | None = None,
                 restore_best_weights: bool = False, start_from_epoch: int = 0) -> None:
        if mode == "auto":
            upward = ("acc", "auc", "precision", "recall", "f1", "iou", "r2")
            mode = "max" if any(word in monitor for word in upward) else "min"
        self.monitor, self.min_delta, self.patience = monitor, abs(min_delta), patience
        self.sign = -1.0 if mode == "max" else 1.0
        self.baseline, self.start_from_epoch = baseline, start_from_epoch
        self.restore_best_weights = restore_best_weights

    def on_train_begin(self, logs: Any = None) -> None:
        self.best = np.inf if self.baseline is None else self.sign * self.baseline
        self.wait = self.stopped_epoch = 0
        self._weights: Any = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch < self.start_from_epoch:
            return
        if self.monitor not in (logs or {}):
            raise ValueError(f"EarlyStopping: there is no '{self.monitor}'; fit reports "
                             f"{', '.join(logs or {})}")
        now = self.sign * float(logs[self.monitor])
        if now < self.best - self.min_delta:
            self.best, self.wait = now, 0
            if self.restore_best_weights:
                self._weights = self.model.get_weights()
            return
        self.wait += 1
        if self.wait >= max(self.patience, 1):
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def on_train_end(self, logs: Any = None) -> None:
        if self._weights is not None:
            self.model.set_weights(self._weights)


class CallbackList:
    """The callbacks of one `fit`, and its History."""

    def __init__(self, callbacks: Any, model: Any, params: dict[str, Any]) -> None:
        given = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
        self._all = [c for c in given if c is not None]
        found = [c for c in self._all if isinstance(c, History)]
        self.history = found[0] if found else History()
        if not found:
            self._all.append(self.history)
        for callback in self._all:
            callback.set_model(model)
            callback.set_params(params)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if not name.startswith("on_"):
            raise AttributeError(name)

        def call(*args: Any) -> None:
            for callback in self._all:
                getattr(callback, name)(*args)

        return call


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"gtape.keras.callbacks has no '{name}'; it has Callback, EarlyStopping, History, "
        f"LambdaCallback. Write a subclass of Callback: on_epoch_begin(self, epoch, logs) may set "
        f"self.model.optimizer.learning_rate, or self.model.stop_training")

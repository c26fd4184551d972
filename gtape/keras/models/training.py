"""The training loop of models: compile, fit, evaluate, predict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gtape.core.nest import flatten, map_structure
from gtape.core.state import paused
from gtape.core.tape import GradientTape
from gtape.core.tensor import Tensor
from gtape.keras.callbacks import CallbackList, History
from gtape.keras.metrics.means import Mean
from gtape.keras.metrics.metric import host
from gtape.keras.models.compiled import CompiledMetrics
from gtape.keras.models.data import batches, split_validation, unpacked, validation_parts
from gtape.keras.models.progress import Progress


class Trainer:
    """What `Model` adds to `Layer`. `train_step`, `test_step` and `predict_step` may be
    overridden; they get one batch, (x, y) or (x, y, sample_weight)."""

    def _start_training_state(self) -> None:
        self.optimizer: Any = None
        self.loss: Any = None
        self._weighed_loss: Any = None
        self.stop_training = False
        self._loss_tracker: Any = None
        self._compiled_metrics: Any = None

    def compile(self, optimizer: Any = "rmsprop", loss: Any = None, loss_weights: Any = None,
                metrics: Any = None, weighted_metrics: Any = None, run_eagerly: bool = False,
                steps_per_execution: int = 1, jit_compile: Any = "auto",
                auto_scale_loss: bool = True) -> None:
        """Choose the optimizer, the loss and the metrics of `fit` and `evaluate`.

        Raises:
            ValueError: unknown names; loss_weights, which need several outputs.
        """
        from gtape.keras import losses, optimizers
        from gtape.keras.losses.loss import Loss, LossFunctionWrapper

        if loss_weights is not None:
            raise ValueError("compile: loss_weights needs several outputs; weigh the losses in "
                             "your own train_step")
        self.optimizer = optimizers.get(optimizer)
        self.loss = self._weighed_loss = losses.get(loss)
        if self.loss is not None and not isinstance(self.loss, Loss):
            self._weighed_loss = LossFunctionWrapper(
                self.loss, dtype=self.dtype)  # type: ignore[attr-defined]
        self._loss_tracker = Mean(name="loss")
        self._compiled_metrics = CompiledMetrics(metrics, weighted_metrics, self.loss)

    def _check_compiled(self, what: str) -> None:
        if self._loss_tracker is None:
            raise ValueError(f"call model.compile(optimizer, loss) before model.{what}")

    @property
    def metrics(self) -> list[Any]:
        """The metrics, the mean loss first."""
        if self._loss_tracker is None:
            return []
        return [self._loss_tracker, *self._compiled_metrics.metrics]

    @property
    def metrics_names(self) -> list[str]:
        return [m.name for m in self.metrics]

    def reset_metrics(self) -> None:
        """Forget the batches seen by the metrics."""
        for metric in self.metrics:
            metric.reset_state()

    # ------------------------------------------------------------------ one batch

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None,
                     sample_weight: Any = None, training: bool = True) -> Any:
        """The loss of a batch, with the penalties of `losses`.

        Raises:
            ValueError: neither a loss was compiled nor do the layers add any, or several outputs
                come with weights of examples.
        """
        total = None
        if self.loss is not None and y is not None:
            if isinstance(y_pred, Tensor):
                values = self._weighed_loss(y, y_pred, sample_weight=sample_weight)
            elif sample_weight is None:
                values = self.loss(y, y_pred)
            else:
                raise ValueError("sample_weight and class_weight need a model with one output")
            if values.ndim:
                from gtape.ops.reductions import reduce_mean

                values = reduce_mean(values)
            total = values
        for extra in self.losses:  # type: ignore[attr-defined]
            total = extra if total is None else total + extra
        if total is None:
            raise ValueError("there is nothing to minimise: give compile a loss, or add_loss in a "
                             "layer")
        return total

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None,
                        ) -> dict[str, Any]:
        """Add a batch to the metrics, and give their results."""
        if y is not None:
            self._compiled_metrics.update(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def get_metrics_result(self) -> dict[str, Any]:
        """The results of all metrics, by name."""
        return {m.name: m.result() for m in self.metrics}

    def train_step(self, data: Any) -> dict[str, Any]:
        """Update the weights from one batch."""
        x, y, sample_weight = unpacked(data)
        with GradientTape() as tape:
            y_pred = self(x, training=True)  # type: ignore[operator]
            loss = self.compute_loss(x, y, y_pred, sample_weight)
            scaled = self.optimizer.scale_loss(loss)
        self._loss_tracker.update_state(loss, sample_weight=len(flatten(x)[0]))
        weights = self.trainable_variables  # type: ignore[attr-defined]
        self.optimizer.apply(tape.gradient(scaled, weights), weights)
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def test_step(self, data: Any) -> dict[str, Any]:
        """Add one batch to the loss and the metrics."""
        x, y, sample_weight = unpacked(data)
        y_pred = self(x, training=False)  # type: ignore[operator]
        if y is not None:
            loss = self.compute_loss(x, y, y_pred, sample_weight, training=False)
            self._loss_tracker.update_state(loss, sample_weight=len(flatten(x)[0]))
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def predict_step(self, data: Any) -> Any:
        """The predictions for one batch."""
        return self(unpacked(data)[0], training=False)  # type: ignore[operator]

    def train_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None,
                       return_dict: bool = False) -> Any:
        """`train_step` of one batch: the loss, or a list of the loss and the metrics."""
        self._check_compiled("train_on_batch")
        return self._answer(self.train_step((x, y, sample_weight)), return_dict)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None,
                      return_dict: bool = False) -> Any:
        """`test_step` of one batch."""
        self._check_compiled("test_on_batch")
        with paused():
            return self._answer(self.test_step((x, y, sample_weight)), return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """The predictions for one batch, as NumPy arrays."""
        with paused():
            return map_structure(host, self.predict_step((x,)))

    @staticmethod
    def _answer(logs: dict[str, Any], return_dict: bool) -> Any:
        numbers = {name: _number(value) for name, value in logs.items()}
        if return_dict:
            return numbers
        return next(iter(numbers.values())) if len(numbers) == 1 else list(numbers.values())

    # ------------------------------------------------------------------ many batches

    def fit(self, x: Any = None, y: Any = None, batch_size: int | None = None, epochs: int = 1,
            verbose: Any = "auto", callbacks: Any = None, validation_split: float = 0.0,
            validation_data: Any = None, shuffle: bool = True, class_weight: Any = None,
            sample_weight: Any = None, initial_epoch: int = 0,
            steps_per_epoch: int | None = None, validation_steps: int | None = None,
            validation_batch_size: int | None = None, validation_freq: int = 1) -> History:
        """Train for `epochs` passes over arrays, or over an iterable of batches.

        Gives a History, whose `history` lists the loss and the metrics of every epoch.

        Raises:
            ValueError: not compiled, or arrays of different lengths.
        """
        self._check_compiled("fit")
        if validation_split:
            (x, y, sample_weight), validation_data = split_validation(
                x, y, sample_weight, validation_split)
        calls = CallbackList(callbacks, self, {"epochs": epochs, "verbose": verbose})
        self.stop_training = False
        calls.on_train_begin()
        logs: dict[str, Any] = {}
        for epoch in range(initial_epoch, epochs):
            calls.on_epoch_begin(epoch)
            data = batches(x, y, sample_weight, class_weight, batch_size, shuffle)
            logs = self._epoch(data, steps_per_epoch, calls, Progress(verbose, epoch, epochs))
            if validation_data is not None and (epoch + 1) % validation_freq == 0:
                size = validation_batch_size or batch_size
                found = self._evaluated(*validation_parts(validation_data), size,
                                        validation_steps)
                logs |= {f"val_{name}": value for name, value in found.items()}
            calls.on_epoch_end(epoch, logs)
            Progress(verbose, epoch, epochs).line(logs)
            if self.stop_training:
                break
        calls.on_train_end(logs)
        return calls.history

    def _epoch(self, data: Iterable[Any], limit: int | None, calls: CallbackList,
               progress: Progress) -> dict[str, Any]:
        self.reset_metrics()
        logs: dict[str, Any] = {}
        for step, batch in enumerate(data):
            if step == limit:
                break
            calls.on_train_batch_begin(step)
            logs = self.train_step(batch)
            calls.on_train_batch_end(step, logs)
            progress.step(step, logs)
        return {name: _number(value) for name, value in logs.items()}

    def _evaluated(self, x: Any, y: Any, weight: Any, batch_size: int | None,
                   steps: int | None) -> dict[str, Any]:
        self.reset_metrics()
        logs: dict[str, Any] = {}
        with paused():
            for step, batch in enumerate(batches(x, y, weight, None, batch_size, False)):
                if step == steps:
                    break
                logs = self.test_step(batch)
        return {name: _number(value) for name, value in logs.items()}

    def evaluate(self, x: Any = None, y: Any = None, batch_size: int | None = None,
                 verbose: Any = "auto", sample_weight: Any = None, steps: int | None = None,
                 callbacks: Any = None, return_dict: bool = False) -> Any:
        """The loss and the metrics on arrays, or on an iterable of batches."""
        self._check_compiled("evaluate")
        logs = self._evaluated(x, y, sample_weight, batch_size, steps)
        Progress(verbose, None, None).line(logs)
        return self._answer(logs, return_dict)

    def predict(self, x: Any, batch_size: int | None = None, verbose: Any = "auto",
                steps: int | None = None, callbacks: Any = None) -> Any:
        """The predictions for arrays, or for an iterable of batches, as NumPy arrays."""
        made = []
        with paused():
            for step, batch in enumerate(batches(x, None, None, None, batch_size, False)):
                if step == steps:
                    break
                made.append(map_structure(host, self.predict_step(batch)))
        if not made:
            raise ValueError("predict needs at least one batch of data; got none")
        return map_structure(lambda *parts: np.concatenate(parts), *made)


def _number(value: Any) -> Any:
    found = host(value)
    return float(found) if not found.ndim else found

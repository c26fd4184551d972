"""Train on handwritten digits, report, and save what was learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import median

import numpy as np

import gtape as tf
from gtape.core.atomic_files import write_whole
from gtape.demo import digits_model as data
from gtape.demo import page, training

_HELD_OUT = 0.2
#: The split is the same for every `DigitsOptions.seed`, so that runs can be compared.
_SPLIT_SEED = 0
_MOST_MISTAKES = 12


@dataclass(frozen=True)
class DigitsOptions:
    """How to train. `steps` overrides `epochs`; `device` None leaves the choice to gtape; `eager`
    runs the step op by op."""

    out: Path = Path("gtape-demo")
    epochs: int = 20
    steps: int | None = None
    batch_size: int = 64
    learning_rate: float = 3e-3
    seed: int = 0
    device: str | None = None
    eager: bool = False


@dataclass(frozen=True)
class DigitsOutcome:
    """What a run achieved and where it is written."""

    accuracy: float
    mistakes: int
    held_out: int
    device: str
    step_seconds: float
    steps: int
    batch_size: int
    report: Path
    checkpoint: Path


class _DigitsRun:
    """A model in training and what has been seen of it."""

    def __init__(self, options: DigitsOptions) -> None:
        samples = data.read(data.packaged_file())
        self.train, self.test = data.split(samples, _HELD_OUT, _SPLIT_SEED)
        self.options = options
        self.per_epoch = data.steps_per_epoch(self.train, options.batch_size)
        self.total = options.steps or options.epochs * self.per_epoch
        self.model = data.DigitsNet(options.seed)
        self.steps: list[data.TrainingStep] = []
        #: Held-out evaluations by the number of the step that they follow.
        self.evaluations: dict[int, data.Evaluation] = {}

    def fit(self) -> data.Evaluation:
        """Train to the end; the evaluation of the trained model."""
        options = self.options
        steps = data.train(self.model, self.train, steps=self.total, batch_size=options.batch_size,
                           learning_rate=options.learning_rate, seed=options.seed,
                           eager=options.eager)
        with training.progress(self.total) as show:
            for step in steps:
                self.steps.append(step)
                if step.number % self.per_epoch == 0 or step.number == self.total:
                    seen = self.evaluations[step.number] = data.evaluate(self.model, self.test)
                    show.note(f"held-out {seen.accuracy:.1%}")
                show.step(step.number, step.loss)
        return self.evaluations[self.total]

    @property
    def step_seconds(self) -> float:
        return median(step.seconds for step in self.steps)


def _verify(file: Path, expected: data.Evaluation) -> None:
    """The model that the checkpoint gives must compute the same probabilities."""
    loaded = data.evaluate(data.load(file), expected.samples)
    # Equal bit by bit: the same program on the same device computes nothing else.
    if not np.array_equal(loaded.probabilities, expected.probabilities):
        raise training.DemoError(
            f"the checkpoint {file} does not give back the model: accuracy "
            f"{loaded.accuracy:.4f} after loading, {expected.accuracy:.4f} before")


def readable_bytes(count: int) -> str:
    """'512 B', '1.5 KiB', '3.2 MiB'."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def _curves(run: _DigitsRun) -> str:
    accuracy = {number: seen.accuracy for number, seen in run.evaluations.items()}
    return page.section(
        "Training", "Cross entropy of every batch (thin), its running mean (thick); accuracy "
        "on the held-out digits, which no step ever saw, after every pass over the training set.",
        page.row([page.figure(page.loss_curve([step.loss for step in run.steps]),
                              "training loss, on a logarithmic scale"),
                  page.figure(page.accuracy_curve(accuracy), "held-out accuracy")]))


def _mistake(evaluation: data.Evaluation, index: int) -> str:
    truth = int(evaluation.samples.labels[index])
    guess = int(evaluation.predicted[index])
    chances = evaluation.probabilities[index]
    drawing = page.picture(evaluation.samples.images[index, :, :, 0], 12,
                           f"a {truth} read as {guess}")
    return page.figure(drawing, f"{truth} read as {guess}: gave {chances[guess]:.0%} to {guess}, "
                                f"{chances[truth]:.0%} to {truth}")


def _mistakes(evaluation: data.Evaluation) -> str:
    wrong = evaluation.mistakes
    if not len(wrong):
        return page.section("Worst mistakes", "None: every held-out digit was read right.", "")
    shown = [_mistake(evaluation, int(i)) for i in wrong[:_MOST_MISTAKES]]
    return page.section(
        "Worst mistakes", f"{len(wrong)} of {len(evaluation.samples)} held-out digits were "
        f"misread. The ones whose true label got the least probability come first.",
        page.row(shown))


def _bill_row(held: data.HeldBytes, largest: int) -> str:
    width = 100 * held.bytes / (largest or 1)
    return (f"<tr><td><code>{escape(held.op)}</code></td>"
            f"<td><code>{escape(held.source)}</code></td>"
            f"<td>{escape(held.place)}</td><td class=\"n\">{readable_bytes(held.bytes)}</td>"
            f'<td class="bar"><i style="width:{width:.1f}%"></i></td></tr>')


def _bill(rows: Sequence[data.HeldBytes], batch_size: int) -> str:
    largest = max((row.bytes for row in rows), default=0)
    total = sum(row.bytes for row in rows)
    body = "".join(_bill_row(row, largest) for row in rows)
    table = (f'<div class="scroll"><table><thead><tr><th>operation</th><th>source</th>'
             f'<th>line</th><th class="n">kept</th><th></th></tr></thead><tbody>{body}</tbody>'
             f'<tfoot><tr><td colspan="3">{len(rows)} operations</td>'
             f'<td class="n">{readable_bytes(total)}</td><td></td></tr></tfoot></table></div>')
    return page.section(
        "The tape of one step", f"What GradientTape recorded for one batch of {batch_size} "
        f"images, in order, and the bytes each operation keeps for its gradient.", table)


def _page(run: _DigitsRun, evaluation: data.Evaluation, outcome: DigitsOutcome) -> str:
    options, size = run.options, run.options.batch_size
    length = f"--steps {options.steps}" if options.steps else f"--epochs {options.epochs}"
    numbers = [("held-out accuracy", f"{outcome.accuracy:.1%}"), ("device", outcome.device),
               ("per step", f"{outcome.step_seconds * 1e3:.2f} ms"),
               ("parameters", f"{data.parameter_count(run.model):,}")]
    details = [
        ("command", training.command_line("digits", options.out, options.device, options.eager,
                                          f"--seed {options.seed}", length)),
        ("data", f"{len(run.train)} training and {len(run.test)} held-out digits, shuffled"),
        ("optimizer", f"Adam, learning rate {options.learning_rate:g} falling to 0"),
        ("steps", f"{outcome.steps} of {size} images, "
                  f"{sum(step.seconds for step in run.steps):.1f} s in all"),
        ("versions", training.versions()),
        ("checkpoint", f"{outcome.checkpoint.name}: loaded back, same probabilities")]
    first = data.Samples(run.train.images[:size], run.train.labels[:size])
    return page.document("handwritten digits", "".join([
        "<h1>Handwritten digits</h1>",
        "<p>A small convolutional network, trained by a written-out GradientTape loop.</p>",
        page.tiles(numbers),
        _curves(run),
        page.section("Confusion", "How often each digit was read as each other one.", page.row([
            page.figure(page.confusion_matrix(evaluation.confusion), "held-out digits")])),
        _mistakes(evaluation),
        page.section("First layer", "The 3 x 3 filters that the first convolution learned.",
                     page.row(page.filters(run.model.kernel1.numpy()), "row filters")),
        _bill(data.bill(run.model, first), size),
        page.facts(details)]))


def run(options: DigitsOptions) -> DigitsOutcome:
    """Train, save the checkpoint, prove that it loads back, write the report. Raises DemoError: a
    package, the folder or the device cannot be used; nothing was trained."""
    training.require_device(options.device)
    folder = training.writable_folder(options.out)
    with training.scope(options.device):
        trained = _DigitsRun(options)
        evaluation = trained.fit()
        outcome = DigitsOutcome(
            evaluation.accuracy, len(evaluation.mistakes), len(trained.test),
            tf.constant(0.0).device, trained.step_seconds, trained.total, options.batch_size,
            folder / "report.html", folder / "digits.safetensors")
        # Before the report, which says that the file gives the model back.
        data.save(trained.model, outcome.checkpoint)
        _verify(outcome.checkpoint, evaluation)
        report = _page(trained, evaluation, outcome)
    write_whole(outcome.report, report.encode())
    return outcome

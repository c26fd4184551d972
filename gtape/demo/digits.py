"""Train on handwritten digits, report, and save what was learned."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from platform import python_version
from statistics import median

import numpy as np

import gtape as tf
from gtape.core.atomic_files import write_whole
from gtape.demo import data
from gtape.demo.environment import DemoError, require_device, scope, writable_folder
from gtape.demo.evaluation import Evaluation, evaluate
from gtape.demo.model import DigitsNet, load, parameter_count, save
from gtape.demo.progress import progress
from gtape.demo.report import Findings, page
from gtape.demo.training import TrainingStep, bill, steps_per_epoch, train

_HELD_OUT = 0.2
#: The split is the same for every `DigitsOptions.seed`, so that runs can be compared.
_SPLIT_SEED = 0


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
        self.per_epoch = steps_per_epoch(self.train, options.batch_size)
        self.total = options.steps or options.epochs * self.per_epoch
        self.model = DigitsNet(options.seed)
        self.steps: list[TrainingStep] = []
        #: Held-out evaluations by the number of the step that they follow.
        self.evaluations: dict[int, Evaluation] = {}

    def fit(self) -> Evaluation:
        """Train to the end; the evaluation of the trained model."""
        options = self.options
        steps = train(self.model, self.train, steps=self.total, batch_size=options.batch_size,
                      learning_rate=options.learning_rate, seed=options.seed,
                      eager=options.eager)
        with progress(self.total) as show:
            for step in steps:
                self.steps.append(step)
                if step.number % self.per_epoch == 0 or step.number == self.total:
                    found = evaluate(self.model, self.test)
                    self.evaluations[step.number] = found
                    show.note(f"held-out {found.accuracy:.1%}")
                show.step(step.number, step.loss)
        return self.evaluations[self.total]

    @property
    def step_seconds(self) -> float:
        return median(step.seconds for step in self.steps)


def _verify(file: Path, expected: Evaluation) -> None:
    """The model that the checkpoint gives must compute the same probabilities."""
    loaded = evaluate(load(file), expected.samples)
    if not np.array_equal(loaded.probabilities, expected.probabilities):
        raise DemoError(f"the checkpoint {file} does not give back the model: accuracy "
                        f"{loaded.accuracy:.4f} after loading, {expected.accuracy:.4f} before")


def _command(options: DigitsOptions) -> str:
    words = ["python -m gtape demo digits", f"--out {shlex.quote(str(options.out))}",
             f"--seed {options.seed}"]
    words.append(f"--steps {options.steps}" if options.steps else f"--epochs {options.epochs}")
    if options.device:
        words.append(f"--device {options.device}")
    if options.eager:
        words.append("--eager")
    return " ".join(words)


def _findings(run: _DigitsRun, evaluation: Evaluation, outcome: DigitsOutcome) -> Findings:
    size = run.options.batch_size
    first = data.Samples(run.train.images[:size], run.train.labels[:size])
    tiles = [("held-out accuracy", f"{outcome.accuracy:.1%}"), ("device", outcome.device),
             ("per step", f"{outcome.step_seconds * 1e3:.2f} ms"),
             ("parameters", f"{parameter_count(run.model):,}")]
    facts = [("command", _command(run.options)),
             ("data", f"{len(run.train)} training and {len(run.test)} held-out digits, shuffled"),
             ("optimizer", f"Adam, learning rate {run.options.learning_rate:g} falling to 0"),
             ("steps", f"{outcome.steps} of {size} images, "
                       f"{sum(step.seconds for step in run.steps):.1f} s in all"),
             ("versions", f"gtape {tf.__version__}, NumPy {np.__version__}, "
                          f"Python {python_version()}"),
             ("checkpoint", f"{outcome.checkpoint.name}: loaded back, same probabilities")]
    return Findings(
        [step.loss for step in run.steps],
        {number: found.accuracy for number, found in run.evaluations.items()}, evaluation,
        bill(run.model, first), size, run.model.kernel1.numpy(), tiles, facts)


def run(options: DigitsOptions) -> DigitsOutcome:
    """Train, save the checkpoint, prove that it loads back, write the report.

    Raises:
        DemoError: a package, the folder or the device cannot be used; nothing was trained.
    """
    require_device(options.device)
    folder = writable_folder(options.out)
    with scope(options.device):
        training = _DigitsRun(options)
        evaluation = training.fit()
        outcome = DigitsOutcome(
            evaluation.accuracy, len(evaluation.mistakes), len(training.test),
            tf.constant(0.0).device, training.step_seconds, training.total, options.batch_size,
            folder / "report.html", folder / "digits.safetensors")
        save(training.model, outcome.checkpoint)
        _verify(outcome.checkpoint, evaluation)
        report = page(_findings(training, evaluation, outcome))
    write_whole(outcome.report, report.encode())
    return outcome

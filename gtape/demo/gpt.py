"""Train a character-level GPT on Python's own documentation, save, resume, and let it write."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from statistics import median
from time import perf_counter

import gtape as tf
from gtape.core.atomic_files import write_whole
from gtape.demo import gpt_model, page, training
from gtape.demo.gpt_model import GPT, Size, Text, TrainingPlan, TrainingRecord

_NAME = "gpt"
_KEPT = 2
_START = "The "
#: Steps whose median time is shown while training.
_RECENT = 20
#: For tests: seconds instead of minutes.
SMALL = TrainingPlan(steps=20, size=Size(blocks=2, features=16, heads=2, context=16), batch=4,
                     held_out_batches=2, sample=40)


@dataclass(frozen=True)
class GptOptions:
    """How to train. What is None is as planned, or as saved where a run is resumed."""

    out: Path = Path("gtape-demo")
    steps: int | None = None
    seed: int | None = None
    resume: bool = False
    eager: bool = False
    device: str | None = None
    base: TrainingPlan = field(default_factory=TrainingPlan)


@dataclass(frozen=True)
class GptOutcome:
    """What a run achieved and where it is written; no report when it was interrupted."""

    steps: int
    loss: float
    held_out: float
    #: None where no step was left to run.
    tokens_per_second: float | None
    device: str
    sample: str
    checkpoint: Path
    report: Path | None


class _GptRun:
    """A model in training, its checkpoints, and what has been seen of it."""

    def __init__(self, plan: TrainingPlan, text: Text, folder: Path, eager: bool) -> None:
        self.plan, self.text, self.eager = plan, text, eager
        self.model = GPT(len(text.characters), plan.size, plan.seed)
        optimizer = gpt_model.make_optimizer(self.model, plan.steps)
        self.step = training.make_step(self.model, optimizer, eager)
        self.evaluate = gpt_model.make_evaluation(
            self.model, text.held_out, batches=plan.held_out_batches, size=plan.batch, eager=eager)
        self.record = TrainingRecord(plan)
        checkpoint = tf.train.Checkpoint(model=self.model, optimizer=optimizer, record=self.record)
        self.manager = tf.train.CheckpointManager(checkpoint, folder, _KEPT, checkpoint_name=_NAME)
        # Not part of the record: another machine, or a resumed run, has other times.
        self.seconds: list[float] = []

    @property
    def done(self) -> int:
        return len(self.record.losses)

    @property
    def tokens_per_second(self) -> float | None:
        if not self.seconds:
            return None
        return self.plan.batch * self.plan.size.context / median(self.seconds)

    def restore(self, path: str) -> None:
        """Go on where a checkpoint was saved."""
        self.manager.checkpoint.restore(path).assert_consumed()

    def fit(self) -> bool:
        """Train to the end, or to Ctrl-C; whether it was the end."""
        with training.Interrupts() as interrupts, training.progress(self.plan.steps) as show:
            while self.done < self.plan.steps and not interrupts.asked:
                self._one_step(show)
                # At the other steps `_one_step` has saved already.
                if interrupts.asked and self.done % self.plan.every:
                    self.manager.save(self.done)
        return self.done == self.plan.steps

    def _one_step(self, show: training.Progress) -> None:
        plan, record = self.plan, self.record
        inputs, targets = gpt_model.batch(self.text.train, plan.batch, plan.size.context, plan.seed,
                                     self.done)
        start = perf_counter()
        record.losses.append(float(self.step(tf.constant(inputs), tf.constant(targets))))
        self.seconds.append(perf_counter() - start)
        if self.done % plan.every == 0 or self.done == plan.steps:
            # Before the save, so that a resumed run has every measurement once.
            record.held_out[self.done] = self.evaluate()
            self.manager.save(self.done)
        show.note(self._note())
        show.step(self.done, record.losses[-1])

    def _note(self) -> str:
        tokens = self.plan.batch * self.plan.size.context
        rate = tokens / median(self.seconds[-_RECENT:])
        held_out = [*self.record.held_out.values()]
        return f"{rate:,.0f} tokens/s" + (f"  held-out {held_out[-1]:.4f}" if held_out else "")

    def sample(self) -> str:
        return gpt_model.write(self.model, self.text, _START, self.plan.sample,
                              seed=self.plan.seed, eager=self.eager)


def _planned(options: GptOptions, text: Text, latest: str | None) -> TrainingPlan:
    """The plan of the options, or the saved one, which they may not contradict."""
    # The text is part of the plan: pages differ between versions of Python.
    base = replace(options.base, fingerprint=text.fingerprint)
    if not options.resume:
        return replace(base, **{name: value for name in ("steps", "seed")
                                if (value := getattr(options, name)) is not None})
    if latest is None:
        raise training.DemoError(f"--resume needs a checkpoint in {options.out}; there is none. "
                                 f"Leave --resume out to begin a run")
    record = TrainingRecord()
    try:
        tf.train.Checkpoint(record=record).restore(latest).expect_partial(
            ).assert_existing_objects_matched()
    except (tf.errors.OpError, AssertionError, OSError) as error:
        raise _refused(error, latest) from error
    saved = record.plan
    for name in ("steps", "seed"):
        wanted = getattr(options, name)
        if wanted not in (None, getattr(saved, name)):
            raise training.DemoError(f"--resume continues a run that was begun with --{name} "
                                     f"{getattr(saved, name)}, on which all its steps depend; got "
                                     f"--{name} {wanted}. Leave it out, or choose another --out")
    if saved.fingerprint != text.fingerprint:
        raise training.DemoError(f"the run in {options.out} was begun on the documentation of "
                                 f"another version of Python; resume it with that one")
    return saved


def _page(options: GptOptions, run: _GptRun, held_out: float, sample: str) -> str:
    plan, text, record = run.plan, run.text, run.record
    numbers = [("held-out loss", f"{held_out:.3f}"),
               ("bits per character", f"{held_out / math.log(2):.2f}"),
               ("parameters", f"{run.model.count_params():,}")]
    if run.tokens_per_second is not None:
        numbers.append(("tokens/s", f"{run.tokens_per_second:,.0f}"))
    details = [
        ("command", training.command_line("gpt", options.out, options.device, options.eager,
                                          f"--seed {plan.seed}", f"--steps {plan.steps}")),
        ("text", f"{len(text.train):,} characters to train on, {len(text.held_out):,} held "
                 f"out, {len(text.characters)} different ones"),
        ("model", f"{plan.size.blocks} blocks, {plan.size.features} features, "
                  f"{plan.size.heads} heads, {plan.size.context} characters of context"),
        ("optimizer", "AdamW with warm-up and half a cosine, gradients limited to norm 1"),
        ("steps", f"{plan.steps} of {plan.batch * plan.size.context:,} characters"),
        ("versions", training.versions())]
    return page.document("a GPT on Python's documentation", "".join([
        "<h1>A GPT on Python's own documentation</h1>",
        "<p>A transformer that reads characters, trained by a written-out GradientTape loop.</p>",
        page.tiles(numbers),
        page.section("Training", "Cross entropy of the next character in nats: every batch (thin), "
                     "the running mean (thick), and text that no step ever saw (dots).",
                     page.row([page.figure(page.loss_curve(record.losses, record.held_out),
                                           "loss by step")])),
        page.section("What it writes", "One character after another, drawn from its probabilities.",
                     f"<pre>{escape(sample)}</pre>"),
        page.facts(details)]))


def run(options: GptOptions) -> GptOutcome:
    """Train, or go on training; write checkpoints, a sample and the report. Raises DemoError: a
    package, the folder, the device or the checkpoint cannot be used; nothing was trained."""
    training.require_device(options.device)
    folder = training.writable_folder(options.out)
    text = gpt_model.prepared(gpt_model.packaged())
    with training.scope(options.device):
        latest = _latest(folder) if options.resume else None
        trained = _GptRun(_planned(options, text, latest), text, folder, options.eager)
        if latest is not None:
            try:
                trained.restore(latest)
            except (tf.errors.OpError, AssertionError, OSError) as error:
                raise _refused(error, latest) from error
        finished = trained.fit()
        record = trained.record
        # A run stopped before its first measurement has none.
        held_out = [*record.held_out.values()][-1] if record.held_out else float("nan")
        sample = trained.sample() if finished else ""
        report = None
        if finished:
            report = folder / "gpt.html"
            write_whole(report, _page(options, trained, held_out, sample).encode())
        return GptOutcome(trained.done, record.losses[-1], held_out, trained.tokens_per_second,
                          tf.constant(0.0).device, sample,
                          Path(str(trained.manager.latest_checkpoint)), report)


def _saved(folder: Path) -> list[str]:
    return tf.train.CheckpointManager(tf.train.Checkpoint(), folder, None,
                                      checkpoint_name=_NAME).checkpoints


def _latest(folder: Path) -> str | None:
    return next(reversed(_saved(folder)), None)


def _refused(error: Exception, latest: str) -> training.DemoError:
    """The error of a checkpoint that cannot be used, with the way out where it is damaged."""
    text = f"cannot resume: {error}"
    # Only a damaged file can be got round; what does not fit will not fit before either.
    if isinstance(error, tf.errors.DataLossError):
        *before, _ = _saved(Path(latest).parent)
        text += (f". Delete that file to go on from the one before, {before[-1]}" if before else
                 ". No other is left: delete that file, and leave --resume out to begin a run")
    return training.DemoError(text)

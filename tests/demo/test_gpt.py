"""The GPT demo: its text, its training, resuming, what it writes, its command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.cli import main as gtape
from gtape.core import safetensors_files
from gtape.demo import gpt, gpt_model, training
from gtape.demo.gpt_model import GPT, Size
from gtape.demo.training import DemoError, Interrupts

_PAGES = {"a": "One two.\n\nThree\nfour.", "b": "Other words.\n\nThree four.", "c": "ab " * 40}


def _options(out: Path, **options: Any) -> gpt.GptOptions:
    return gpt.GptOptions(**{"out": out, "base": gpt.SMALL, "eager": True, **options})


def _arrays(folder: Path) -> dict[str, np.ndarray]:
    return safetensors_files.read(Path(str(gpt._latest(folder))), "the checkpoint")[1]


@pytest.fixture(scope="module")
def text() -> gpt_model.Text:
    return gpt_model.prepared(gpt_model.packaged())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> gpt.GptOutcome:
    return gpt.run(_options(tmp_path_factory.mktemp("gpt")))


# ---------------------------------------------------------------- text

def test_the_text_is_pythons_documentation(text: gpt_model.Text) -> None:
    assert len(text.train) > 200_000 and 0.05 < len(text.held_out) / len(text.train) < 0.3
    assert "statement" in text.text(text.train)


def test_no_paragraph_is_kept_twice() -> None:
    whole = gpt_model.prepared(_PAGES, held_out=0.3)
    both = whole.text(whole.train) + whole.text(whole.held_out)
    assert both.count("Three") == both.count("four") == 1
    assert both.count("Other words.") == both.count("One two.") == 1


def test_nothing_held_out_is_trained_on(text: gpt_model.Text) -> None:
    train, aside = text.text(text.train), text.text(text.held_out)
    paragraphs = [p for p in aside.split("\n\n") if len(p) > 80]
    assert len(paragraphs) > 20
    assert not [p for p in paragraphs if p in train]


def test_numbers_and_text_are_inverse(text: gpt_model.Text) -> None:
    assert text.text(text.numbers("def f(x):")) == "def f(x):"
    with pytest.raises(ValueError, match="☃"):
        text.numbers("a ☃")


def test_a_batch_depends_on_seed_and_step_alone() -> None:
    numbers = np.arange(100, dtype=np.int32)
    inputs, targets = gpt_model.batch(numbers, 5, 8, seed=1, step=2)
    assert inputs.shape == targets.shape == (5, 8)
    np.testing.assert_array_equal(targets, inputs + 1)
    np.testing.assert_array_equal(gpt_model.batch(numbers, 5, 8, 1, 2)[0], inputs)
    assert (gpt_model.batch(numbers, 5, 8, 1, 3)[0] != inputs).any()


# ---------------------------------------------------------------- model

def test_the_future_is_not_seen() -> None:
    model = GPT(10, Size(2, 16, 2, 8), seed=0)
    numbers = np.arange(8, dtype=np.int32)[None]
    other = numbers.copy()
    other[0, 5:] = 9
    before, after = (model(tf.constant(n)).numpy() for n in (numbers, other))
    np.testing.assert_array_equal(before[0, :5], after[0, :5])
    assert (before[0, 5:] != after[0, 5:]).any()


def test_gains_and_biases_are_not_decayed() -> None:
    model = GPT(10, Size(1, 16, 2, 8), seed=0)
    optimizer = gpt_model.make_optimizer(model, 100)
    decayed = [v for v in model.trainable_variables if optimizer._use_weight_decay(v)]
    assert decayed and all(len(v.shape) == 2 for v in decayed)
    assert len(decayed) == sum(len(v.shape) == 2 for v in model.trainable_variables)


def test_what_is_drawn(text: gpt_model.Text) -> None:
    model = GPT(len(text.characters), Size(1, 16, 2, 8), seed=0)
    favourite = text.characters.index("z")
    model.head.bias.assign(np.eye(len(text.characters), dtype=np.float32)[favourite] * 50)
    assert gpt_model.write(model, text, "The ", 12, eager=True) == "The " + "z" * 12
    model.head.bias.assign(tf.zeros_like(model.head.bias))
    drawn = {gpt_model.write(model, text, "The ", 12, seed=seed, eager=True)
             for seed in (1, 1, 2)}
    assert len(drawn) == 2
    greedy = {gpt_model.write(model, text, "The ", 12, top_k=1, seed=seed, eager=True)
              for seed in (1, 2)}
    assert len(greedy) == 1


# ---------------------------------------------------------------- training

def test_it_learns(trained: gpt.GptOutcome) -> None:
    assert trained.steps == 20
    assert trained.held_out < 4.5 < np.log(103)
    assert trained.sample.startswith("The ") and len(trained.sample) == 44


def test_compiled_losses_are_the_eager_ones(tmp_path: Path, trained: gpt.GptOutcome) -> None:
    compiled = gpt.run(_options(tmp_path, eager=False))
    assert compiled.loss == pytest.approx(trained.loss, abs=2e-4)
    assert compiled.held_out == pytest.approx(trained.held_out, abs=2e-4)


def test_a_resumed_run_is_the_same_bit_by_bit(tmp_path: Path, trained: gpt.GptOutcome,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    asked_at = 7

    class AfterSeven(Interrupts):
        @property
        def asked(self) -> bool:
            return len(seen) >= asked_at

        @asked.setter
        def asked(self, value: bool) -> None:
            pass

    seen: list[int] = []
    drawn = gpt_model.batch
    monkeypatch.setattr(gpt_model, "batch", lambda *a: seen.append(1) or drawn(*a))
    monkeypatch.setattr(training, "Interrupts", AfterSeven)
    stopped = gpt.run(_options(tmp_path))
    assert (stopped.steps, stopped.report) == (7, None)
    assert stopped.checkpoint.name == "gpt-7.safetensors"

    monkeypatch.undo()
    resumed = gpt.run(_options(tmp_path, resume=True))
    assert (resumed.loss, resumed.held_out, resumed.sample) == (
        trained.loss, trained.held_out, trained.sample)
    expected, found = _arrays(trained.checkpoint.parent), _arrays(tmp_path)
    for name in expected.keys() - {"save_counter"}:
        np.testing.assert_array_equal(found[name], expected[name])


def test_resuming_a_finished_run_writes_the_report_again(trained: gpt.GptOutcome) -> None:
    report = trained.report
    assert report is not None
    report.unlink()
    again = gpt.run(_options(report.parent, resume=True))
    assert again.report == report and report.exists()
    assert again.sample == trained.sample and again.tokens_per_second is None


def test_only_these_files_are_left(trained: gpt.GptOutcome) -> None:
    assert sorted(p.name for p in trained.checkpoint.parent.iterdir()) == [
        "checkpoint", "gpt-18.safetensors", "gpt-20.safetensors", "gpt.html"]


def test_the_report_needs_nothing_else(trained: gpt.GptOutcome) -> None:
    assert trained.report is not None
    page = trained.report.read_text("utf-8")
    assert page.count("<svg") == 1 and page.count("<pre>") == 1
    assert "http" not in page and "<script" not in page
    assert not re.search(r"\bnan\b|\binf\b", page)


# ---------------------------------------------------------------- what is refused

def test_resume_needs_the_same_run(tmp_path: Path, trained: gpt.GptOutcome) -> None:
    folder = trained.checkpoint.parent
    with pytest.raises(DemoError, match="there is none"):
        gpt.run(_options(tmp_path, resume=True))
    with pytest.raises(DemoError, match="--steps 20"):
        gpt.run(_options(folder, resume=True, steps=21))
    with pytest.raises(DemoError, match="--seed 0"):
        gpt.run(_options(folder, resume=True, seed=1))


def test_a_damaged_checkpoint_is_refused(tmp_path: Path, trained: gpt.GptOutcome) -> None:
    content = trained.checkpoint.read_bytes()
    (tmp_path / "gpt-20.safetensors").write_bytes(content[:-3])
    with pytest.raises(DemoError, match=r"cannot resume.*damaged"):
        gpt.run(_options(tmp_path, resume=True))


def test_another_text_is_refused(trained: gpt.GptOutcome,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpt_model, "packaged", lambda: _PAGES)
    with pytest.raises(DemoError, match="another version of Python"):
        gpt.run(_options(trained.checkpoint.parent, resume=True))


def test_options_of_the_other_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, text in ((["gpt", "--epochs", "2"], "--steps"),
                        (["digits", "--resume"], "demo gpt --resume")):
        assert gtape(["demo", *words, "--out", str(tmp_path)]) == 2
        assert text in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- command

def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gtape(["demo", "gpt", "--small", "--eager", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    steps = [line for line in lines if line.startswith("step ")]
    assert len(steps) == 10
    assert re.fullmatch(r"step 2/20  loss \d\.\d{4}  [\d,]+ tokens/s  held-out \d\.\d{4}",
                        steps[0])
    assert [line.split()[0] for line in lines[-3:]] == ["loss", "device", "speed"]


@pytest.mark.skipif(os.name != "posix", reason="needs SIGINT")
def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gtape", "demo", "gpt", "--small", "--eager", "--out",
               str(tmp_path), "--steps", "2000"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline().startswith("step 200/2000")
    child.send_signal(signal.SIGINT)
    output, _ = child.communicate(timeout=120)
    assert child.returncode == 130
    assert f"go on with python -m gtape demo gpt --resume --out {tmp_path}" in output
    stopped = re.findall(r"stopped after step (\d+); wrote (\S+)", output)
    assert stopped == [(stopped[0][0], str(tmp_path / f"gpt-{stopped[0][0]}.safetensors"))]
    assert 200 <= int(stopped[0][0]) < 2000


def test_a_second_ctrl_c_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        assert not interrupts.asked
        signal.raise_signal(signal.SIGINT)
        assert interrupts.asked
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before

"""The digits demo: its data, its training, its report and its checkpoint."""

from __future__ import annotations

import gzip
import importlib.util
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the demo extra is not installed")

import gtape as tf
from gtape.cli import main as gtape
from gtape.core import atomic_files, safetensors_files
from gtape.demo import digits, page
from gtape.demo import digits_model as data
from gtape.demo.digits import readable_bytes
from gtape.demo.digits_model import Evaluation, evaluate, load
from gtape.demo.training import DemoError


@pytest.fixture(scope="module")
def samples() -> data.Samples:
    return data.read(data.packaged_file())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> digits.DigitsOutcome:
    return digits.run(digits.DigitsOptions(out=tmp_path_factory.mktemp("demo") / "new" / "folder"))


class Page(HTMLParser):
    """Collects the attributes and counts the tags of a page whose tags must be balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.attributes: list[tuple[str, str | None]] = []
        self.tags: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.handle_startendtag(tag, attrs)
        if tag != "meta":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes.extend(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


# ---------------------------------------------------------------- data

def test_the_digits_are_those_of_scikit_learn(samples: data.Samples) -> None:
    from sklearn.datasets import load_digits

    expected = load_digits()
    np.testing.assert_array_equal(samples.images[..., 0] * 16, expected.images)
    np.testing.assert_array_equal(samples.labels, expected.target)


def test_the_split_is_shuffled_disjoint_and_complete(samples: data.Samples) -> None:
    numbered = data.Samples(samples.images, np.arange(len(samples)))
    train, test = data.split(numbered, 0.2, seed=3)
    assert len(test) == 359
    assert sorted([*train.labels, *test.labels]) == list(range(len(samples)))
    assert not (np.diff(test.labels) > 0).all()
    _, again = data.split(numbered, 0.2, seed=3)
    _, other = data.split(numbered, 0.2, seed=4)
    np.testing.assert_array_equal(test.labels, again.labels)
    assert set(test.labels) != set(other.labels)


def test_an_epoch_has_every_sample_once(samples: data.Samples) -> None:
    numbered = data.Samples(samples.images[:64], np.arange(64))
    found = list(data.batches(numbered, 10, np.random.default_rng(0)))
    seen = np.concatenate([batch.labels for batch in found])
    assert [len(batch) for batch in found] == [10] * 6
    assert len(set(seen)) == 60


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DemoError, match=r'scikit-learn.*pip install "gtape\[demo\]"'):
        data.packaged_file()


@pytest.mark.parametrize("text", ["1,2,3\n", "a,b\n", "", ",".join(["0"] * 64 + ["12"]) + "\n"])
@pytest.mark.filterwarnings("ignore:loadtxt")
def test_a_wrong_data_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "digits.csv.gz"
    file.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(DemoError, match=r"digits\.csv\.gz"):
        data.read(file)


def test_a_damaged_data_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "digits.csv.gz"
    file.write_bytes(data.packaged_file().read_bytes()[:5000])
    with pytest.raises(DemoError, match="cannot read"):
        data.read(file)


# ---------------------------------------------------------------- training

def test_it_reads_held_out_digits(trained: digits.DigitsOutcome) -> None:
    assert trained.accuracy >= 0.97
    assert trained.held_out == 359
    assert trained.mistakes == round((1 - trained.accuracy) * 359)


def test_a_seed_repeats_a_run(tmp_path: Path) -> None:
    files_of = [digits.run(digits.DigitsOptions(out=tmp_path / name, steps=3, seed=seed)).checkpoint
                for name, seed in (("a", 1), ("b", 1), ("c", 2))]
    first, again, other = (file.read_bytes() for file in files_of)
    assert first == again != other


def test_compiled_losses_are_the_eager_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                            ) -> None:
    printed = []
    for words in ([], ["--eager"]):
        assert gtape(["demo", "--steps", "10", "--out", str(tmp_path), *words]) == 0
        printed.append([float(loss) for loss in
                        re.findall(r"^step \d+/10  loss (\S+)", capsys.readouterr().out, re.M)])
    compiled, eager = printed
    assert len(eager) == 10
    np.testing.assert_allclose(compiled, eager, atol=2e-4)


def test_an_evaluation_counts() -> None:
    labels = np.array([0, 1, 1, 2], np.int32)
    chances = np.full((4, 10), 0.01, np.float32)
    chances[[0, 1, 2, 3], [0, 1, 2, 1]] = [0.9, 0.9, 0.5, 0.9]
    chances[2, 1] = 0.4
    found = Evaluation(data.Samples(np.zeros((4, 8, 8, 1), np.float32), labels), chances)
    assert found.accuracy == 0.5
    assert found.mistakes.tolist() == [3, 2]
    assert found.confusion[1, 2] == found.confusion[2, 1] == found.confusion[0, 0] == 1
    assert found.confusion.sum() == 4


# ---------------------------------------------------------------- checkpoint

def test_the_checkpoint_gives_back_the_model(trained: digits.DigitsOutcome,
                                             samples: data.Samples) -> None:
    assert safetensors_files.read(trained.checkpoint, "the checkpoint")[1].keys() == {
        "kernel1", "bias1", "kernel2", "bias2", "weight", "bias"}
    assert evaluate(load(trained.checkpoint), samples).accuracy > 0.97


@pytest.mark.parametrize("variables", [
    {"other": tf.Variable(1.0)}, {"bias": tf.Variable(np.zeros(10, np.float32))},
    {"weight": tf.Variable(np.zeros(3, np.float64))}], ids=lambda held: "".join(held))
def test_a_foreign_checkpoint_is_refused(tmp_path: Path, variables: dict[str, Any]) -> None:
    path = tf.train.Checkpoint(**variables).write(tmp_path / "other")
    with pytest.raises(DemoError, match=r"cannot load.*(not in the file|does not fit)"):
        load(Path(path))


def test_a_damaged_checkpoint_is_refused(trained: digits.DigitsOutcome, tmp_path: Path) -> None:
    file = tmp_path / "half.safetensors"
    file.write_bytes(trained.checkpoint.read_bytes()[:-8])
    with pytest.raises(DemoError, match="cannot load"):
        load(file)


# ---------------------------------------------------------------- report

def test_the_report_is_whole_and_needs_nothing_else(trained: digits.DigitsOutcome) -> None:
    text = trained.report.read_text("utf-8")
    parsed = Page(text)
    assert not [name for name, _ in parsed.attributes if name in ("src", "href", "srcset")]
    assert "http" not in text and "@import" not in text and "<script" not in text
    assert not re.search(r"\bnan\b|\binf\b", text)
    assert parsed.tags.count("svg") == 3 + min(trained.mistakes, 12) + 16


def test_the_report_shows_the_tape_with_its_lines(trained: digits.DigitsOutcome) -> None:
    text = trained.report.read_text("utf-8")
    assert "tf.nn.conv2d(images, self.kernel1" in text
    assert re.search(r"digits_model\.py:\d+", text) and re.search(r"training\.py:\d+", text)


def test_only_the_two_files_are_left(trained: digits.DigitsOutcome) -> None:
    assert sorted(file.name for file in trained.report.parent.iterdir()) == [
        "digits.safetensors", "report.html"]


def test_a_perfect_model_has_a_report_too() -> None:
    text = page.confusion_matrix(np.diag([5] * 10))
    Page(text)
    assert text.count('class="count"') == 10


def test_curves_of_one_step() -> None:
    Page(page.loss_curve([2.0]))
    Page(page.accuracy_curve({1: 0.1}))


def test_the_running_mean() -> None:
    np.testing.assert_allclose(page.smoothed([1, 3, 5, 7], 2), [1, 2, 4, 6])


@pytest.mark.parametrize("count, text", [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"),
                                         (5 << 20, "5.0 MiB"), (3 << 30, "3.0 GiB")])
def test_bytes_are_readable(count: int, text: str) -> None:
    assert readable_bytes(count) == text


# ---------------------------------------------------------------- files

def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                            ) -> None:
    file = tmp_path / "report.html"
    atomic_files.write_whole(file, b"old")

    def fail(*paths: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(atomic_files.os, "replace", fail)
    with pytest.raises(OSError, match="the disk is gone"):
        atomic_files.write_whole(file, b"new")
    assert [(f.name, f.read_bytes()) for f in tmp_path.iterdir()] == [("report.html", b"old")]


def test_out_must_be_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    assert gtape(["demo", "--steps", "1", "--out", str(taken)]) == 2
    assert "--out must name a folder" in capsys.readouterr().err


def test_an_unknown_device_is_refused_before_training(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gtape(["demo", "--steps", "1", "--out", str(tmp_path), "--device", "TPU:0"]) == 2
    assert "TPU:0" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- command

@pytest.fixture
def short_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    assert gtape(["demo", "digits", "--steps", "4", "--out", str(tmp_path), "--device",
                  "CPU:0"]) == 0
    yield capsys.readouterr().out.splitlines()


def test_the_command_ends_with_four_lines(short_run: list[str]) -> None:
    words = [line.split()[0] for line in short_run[-4:]]
    assert words == ["accuracy", "device", "step", "next"]
    assert "python -m gtape" in short_run[-1]


def test_plain_lines_show_progress_in_a_pipe(short_run: list[str]) -> None:
    assert [line.split("  ")[0] for line in short_run[:4]] == [f"step {i}/4" for i in range(1, 5)]

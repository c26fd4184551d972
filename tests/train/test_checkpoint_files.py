"""Files of checkpoints: damaged ones are noticed, and a failed write leaves the old one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.core import atomic_files

safetensors = pytest.importorskip("safetensors.numpy")
Checkpoint = tf.train.Checkpoint


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    objects = {"v": tf.Variable([1.0, 2.0]), "rng": np.random.default_rng(1)}
    return Path(Checkpoint(**objects).write(tmp_path / "whole"))


def _read(path: Path) -> Any:
    return Checkpoint(v=tf.Variable([0.0, 0.0]), rng=np.random.default_rng(2)).restore(path)


def test_every_cut_is_noticed(whole: Path) -> None:
    content = whole.read_bytes()
    for length in range(0, len(content), 7):
        whole.write_bytes(content[:length])
        with pytest.raises(tf.errors.DataLossError, match=r"whole\.safetensors"):
            _read(whole)
    whole.write_bytes(content)
    _read(whole).assert_consumed()


def test_every_changed_byte_is_noticed(whole: Path) -> None:
    content = whole.read_bytes()
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        whole.write_bytes(damaged)
        with pytest.raises(tf.errors.DataLossError):
            _read(whole)


def test_every_bit_of_the_values_counts(whole: Path) -> None:
    content = whole.read_bytes()
    for bit in range(64):
        damaged = bytearray(content)
        damaged[len(content) - 8 + bit // 8] ^= 1 << bit % 8
        whole.write_bytes(damaged)
        with pytest.raises(tf.errors.DataLossError, match="values of v"):
            _read(whole)


def test_a_foreign_safetensors_file_is_refused(tmp_path: Path) -> None:
    safetensors.save_file({"v": np.zeros(2, np.float32)}, tmp_path / "other.safetensors")
    with pytest.raises(tf.errors.DataLossError, match="no checkpoint of"):
        _read(tmp_path / "other")


def test_a_missing_file_names_those_that_are_there(whole: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match=r"absent.*holds whole\.safetensors"):
        _read(whole.with_name("absent"))


def test_a_failed_write_leaves_the_old_checkpoint(whole: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    content = whole.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_files.os, "fsync", full)
    checkpoint = Checkpoint(v=tf.Variable([5.0, 5.0]))
    with pytest.raises(OSError, match=r"No space left.*whole\.safetensors") as error:
        checkpoint.write(whole)
    assert (error.value.errno, error.value.filename) == (28, str(whole))
    with pytest.raises(OSError, match=r"No space left.*ck-1\.safetensors"):
        checkpoint.save(whole.with_name("ck"))
    assert int(checkpoint.save_counter) == 0
    assert [p.name for p in whole.parent.iterdir()] == [whole.name]
    assert whole.read_bytes() == content


def test_a_folder_that_cannot_be_written_to(tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(atomic_files, "open", refuse, raising=False)
    with pytest.raises(tf.errors.PermissionDeniedError, match="can be written to"):
        Checkpoint(v=tf.Variable(1.0)).write(tmp_path / "new" / "x")


def test_a_full_disk_is_an_error_of_the_system() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with pytest.raises(OSError):
        Checkpoint(v=tf.Variable(1.0)).write("/dev/full/x")


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(FileExistsError, match="taken"):
        Checkpoint(v=tf.Variable(1.0)).write(tmp_path / "taken" / "x")


@pytest.mark.parametrize("path", ["", ".", "..", "run/", "run/.", Path("."), Path("/")], ids=repr)
@pytest.mark.parametrize("use", ["write", "save", "read", "restore"])
def test_a_path_without_a_name(use: str, path: Any, tmp_path: Path,
                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint = Checkpoint(v=tf.Variable(1.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="such as 'folder/ckpt'; got "):
        getattr(checkpoint, use)(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", [None, 3, b"ck"], ids=repr)
@pytest.mark.parametrize("use", ["write", "save", "read"])
def test_a_path_that_is_none(use: str, path: Any, tmp_path: Path,
                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint = Checkpoint(v=tf.Variable(1.0))
    with pytest.raises(TypeError, match=r"must be text or a pathlib\.Path"):
        getattr(checkpoint, use)(path)
    assert not list(tmp_path.iterdir())

"""CheckpointManager and latest_checkpoint: numbering, order, keeping, and processes killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import gtape as tf
from gtape import train

#: Two large variables that always hold the number of the step, saved as fast as can be.
_ENDLESS = """
import sys
import numpy as np
import gtape as tf
from gtape import train

a, b = (tf.Variable(np.zeros(500_000, np.float32)) for _ in range(2))
step = tf.Variable(0)
manager = train.CheckpointManager(train.Checkpoint(a=a, b=b, step=step), sys.argv[1], 2)
if manager.restore_or_initialize():
    assert (a.numpy() == int(step)).all() and (b.numpy() == int(step)).all()
print("ready", flush=True)
while True:
    for variable in (a, b, step):
        variable.assign_add(tf.ones_like(variable))
    manager.save()
    print("saved", flush=True)
"""


def _manager(folder: Path, value: float = 0.0, **options: Any) -> tuple[Any, Any]:
    variable = tf.Variable(value)
    options = {"max_to_keep": 2, **options}
    return variable, train.CheckpointManager(train.Checkpoint(v=variable), folder, **options)


def _names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    variable, manager = _manager(folder)
    assert manager.latest_checkpoint is None and manager.restore_or_initialize() is None
    for i in range(4):
        variable.assign(float(i))
        assert manager.save() == str(folder / f"ckpt-{i + 1}.safetensors")
    assert _names(folder) == ["checkpoint", "ckpt-3.safetensors", "ckpt-4.safetensors"]
    assert manager.checkpoints == [str(folder / f"ckpt-{i}.safetensors") for i in (3, 4)]

    other, again = _manager(folder)
    assert again.restore_or_initialize() == manager.latest_checkpoint
    assert float(other) == 3
    assert again.save().endswith("ckpt-5.safetensors")
    assert train.latest_checkpoint(folder) == again.latest_checkpoint


@pytest.mark.parametrize("keep, left", [(None, 5), (5, 5), (9, 5), (1, 1)])
def test_how_many_are_kept(keep: int | None, left: int, tmp_path: Path) -> None:
    _, manager = _manager(tmp_path, max_to_keep=keep)
    for _ in range(5):
        manager.save()
    assert len(manager.checkpoints) == left


def test_given_numbers_order_by_time_not_by_size(tmp_path: Path) -> None:
    _, manager = _manager(tmp_path, max_to_keep=3)
    for number in (100, 9, 20):
        manager.save(checkpoint_number=number)
    assert [Path(p).stem for p in manager.checkpoints] == ["ckpt-100", "ckpt-9", "ckpt-20"]
    manager.save(checkpoint_number=100)
    assert [Path(p).stem for p in manager.checkpoints] == ["ckpt-9", "ckpt-20", "ckpt-100"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"checkpoints": 3}',
                                  '{"checkpoints": ["../x", 5, "ckpt-7.safetensors"]}'])
def test_a_damaged_list_falls_back_to_the_numbers(text: str, tmp_path: Path) -> None:
    _, manager = _manager(tmp_path, max_to_keep=None)
    for _ in range(11):
        manager.save()
    (tmp_path / "checkpoint").write_text(text)
    assert Path(manager.latest_checkpoint).stem == "ckpt-11"


def test_a_negative_number_is_refused(tmp_path: Path) -> None:
    _, manager = _manager(tmp_path)
    with pytest.raises(ValueError, match="0 or more; got -1"):
        manager.save(-1)
    assert not list(tmp_path.iterdir())
    assert Path(manager.save(0)).stem == "ckpt-0"
    assert int(manager.checkpoint.save_counter) == 1


def test_a_checkpoint_not_yet_listed_is_the_latest(tmp_path: Path) -> None:
    _, manager = _manager(tmp_path, max_to_keep=None)
    manager.save(checkpoint_number=50)
    manager.checkpoint.write(tmp_path / "ckpt-7")
    assert Path(manager.latest_checkpoint).stem == "ckpt-7"


def test_two_names_share_a_folder(tmp_path: Path) -> None:
    _, first = _manager(tmp_path, max_to_keep=1, checkpoint_name="a")
    _, second = _manager(tmp_path, max_to_keep=1, checkpoint_name="a-b")
    for manager in (first, second, first):
        manager.save()
    assert _names(tmp_path) == ["a-2.safetensors", "a-b-1.safetensors", "checkpoint"]
    assert train.latest_checkpoint(tmp_path) == first.latest_checkpoint
    listed = json.loads((tmp_path / "checkpoint").read_text())["checkpoints"]
    assert listed == ["a-b-1.safetensors", "a-2.safetensors"]


def test_the_interval_and_the_first_call(tmp_path: Path) -> None:
    step, started = tf.Variable(0), []
    variable = tf.Variable(1.0)
    manager = train.CheckpointManager(
        train.Checkpoint(v=variable), tmp_path, None, step_counter=step, checkpoint_interval=5,
        init_fn=lambda: started.append(1))
    manager.restore_or_initialize()
    saved = []
    for _ in range(12):
        step.assign_add(1)
        if manager.save():
            saved.append(int(step))
    assert (started, saved) == ([1], [1, 6, 11])
    assert manager.save(check_interval=False)


def test_arguments_are_checked(tmp_path: Path) -> None:
    for options in ({"max_to_keep": 0}, {"checkpoint_name": "a/b"}, {"checkpoint_interval": 3}):
        with pytest.raises(ValueError):
            _manager(tmp_path, **options)


def test_no_folder_has_no_checkpoint(tmp_path: Path) -> None:
    assert train.latest_checkpoint(tmp_path / "absent") is None
    assert train.latest_checkpoint(tmp_path) is None


def test_at_every_point_of_a_save_the_latest_is_known(tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(change: Any) -> Any:
        def changed(*args: Any, **kwargs: Any) -> None:
            change(*args, **kwargs)
            seen.append(Path(str(train.latest_checkpoint(tmp_path))).stem)

        return changed

    _, manager = _manager(tmp_path, max_to_keep=1)
    manager.save()
    monkeypatch.setattr(os, "replace", watched(os.replace))
    monkeypatch.setattr(os, "unlink", watched(os.unlink))
    monkeypatch.setattr(Path, "unlink", watched(Path.unlink))
    manager.save()
    assert len(seen) >= 3 and set(seen) == {"ckpt-2"}


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_killed_process_leaves_a_checkpoint(tmp_path: Path) -> None:
    rng = random.Random(1)
    reached, pace = 0, 0.05
    for saves in (0, 1, 0, 3, 2, 1):
        child = subprocess.Popen([sys.executable, "-c", _ENDLESS, str(tmp_path)],
                                 stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        start = time.monotonic()
        for _ in range(saves):
            assert child.stdout.readline() == "saved\n"
            pace = (time.monotonic() - start) / saves
        # Somewhere in the next save, or in the one after it, however slow the disk is.
        time.sleep(rng.uniform(0.0, 2.0 * pace))
        child.send_signal(signal.SIGKILL)
        child.communicate()
        step = _consistent(tmp_path)
        assert step >= reached + saves
        reached = step
    _, manager = _manager(tmp_path)
    (tmp_path / f".ckpt-9.safetensors.elsewhere.{os.getpid()}-1.part").write_text("")
    manager.save(checkpoint_number=10**6)
    parts = [p.name for p in tmp_path.iterdir() if p.name.endswith(".part")]
    assert parts == [f".ckpt-9.safetensors.elsewhere.{os.getpid()}-1.part"]


def _consistent(folder: Path) -> int:
    """The step of the latest checkpoint, all parts of which belong to it."""
    latest = train.latest_checkpoint(folder)
    if latest is None:
        return 0
    a, b = (tf.Variable(tf.zeros(500_000)) for _ in range(2))
    step = tf.Variable(0)
    train.Checkpoint(a=a, b=b, step=step).restore(latest).assert_consumed()
    assert (a.numpy() == int(step)).all() and (b.numpy() == int(step)).all()
    return int(step)


def test_what_a_dead_process_left_is_swept_up(tmp_path: Path) -> None:
    import platform

    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    host = platform.node().replace(".", "-")
    dead = tmp_path / f".ckpt-1.safetensors.{host}.{child.pid}-5.part"
    alive = tmp_path / f".ckpt-1.safetensors.{host}.{os.getppid()}-5.part"
    other = tmp_path / f".more-1.safetensors.{host}.{child.pid}-5.part"
    for part in (dead, alive, other):
        part.write_text("half")
    _, manager = _manager(tmp_path)
    manager.save()
    assert not dead.exists() and alive.exists() and other.exists()

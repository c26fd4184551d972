"""Saves that are interrupted or killed at every line of them, by threads at once, beside forks."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import gtape as tf
from gtape import train
from gtape.core import atomic_files, safetensors_files
from gtape.train import checkpoint, manager, stored
from tests import forking
from tests.faults import settings, stops

MODULES = (atomic_files, safetensors_files, checkpoint, manager, stored)
posix = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL and fork")


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is forced to the disk, which takes long: what a killed process wrote is there."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def objects(folder: Path, keep: int = 1) -> tuple[Any, Any]:
    """Two variables that always hold the same, and what saves them."""
    both = [tf.Variable(tf.zeros(3)) for _ in range(2)]
    return both, train.CheckpointManager(train.Checkpoint(both=both), folder, keep)


def fill(both: Any, value: float) -> None:
    for variable in both:
        variable.assign(tf.fill([3], value))


def newest(folder: Path) -> float:
    """What the latest checkpoint holds, each one being whole."""
    values = {}
    for path in train.CheckpointManager(train.Checkpoint(), folder, None).checkpoints:
        both, _ = objects(folder)
        train.Checkpoint(both=both).restore(path).assert_consumed()
        (values[path],) = {float(x) for variable in both for x in variable.numpy()}
    return values[str(train.latest_checkpoint(folder))]


def left(folder: Path) -> list[str]:
    return [p.name for p in folder.iterdir() if p.name.endswith(".part")]


@posix
def test_killed_at_every_line(memory: None, tmp_path: Path) -> None:
    """What was saved before stays until the new one is whole; what is left is swept later."""
    (number, apart), seen = settings.LINES, set()
    while True:
        folder = tmp_path / str(number)
        both, saving = objects(folder)
        fill(both, 1.0)
        saving.save()
        fill(both, 2.0)

        def work(number: int = number, saving: Any = saving) -> None:
            with stops.at_line(number, stops.die, *MODULES):
                saving.save()

        if not stops.killed(work):
            break
        seen.add(newest(folder))
        fill(both, 3.0)
        assert Path(saving.save()).stem == "ckpt-2"
        assert newest(folder) == 3 and not left(folder) and len(saving.checkpoints) == 1
        shutil.rmtree(folder)
        number += apart
    assert seen == {1, 2} and number > 50


@posix
def test_interrupted_at_every_line(memory: None, tmp_path: Path) -> None:
    (number, apart), seen = settings.LINES, set()
    while True:
        folder = tmp_path / str(number)
        both, saving = objects(folder)
        fill(both, 1.0)
        saving.save()
        fill(both, 2.0)
        try:
            with stops.at_line(number, stops.interrupt, *MODULES) as lines:
                saving.save()
            if len(lines) <= number:
                break
        except KeyboardInterrupt:
            pass
        seen.add(newest(folder))
        assert int(saving.checkpoint.save_counter) <= newest(folder), lines
        assert len(left(folder)) <= 1
        fill(both, 3.0)
        saving.save()
        assert newest(folder) == 3 and len(saving.checkpoints) == 1
        number += apart
    assert seen == {1, 2} and number > 50


_ENDLESS = """
import sys
import gtape as tf
from gtape import train

both = [tf.Variable(tf.zeros(500_000)) for _ in range(2)]
manager = train.CheckpointManager(train.Checkpoint(both=both), sys.argv[1], 1)
manager.restore_or_initialize()
value = float(both[0][0])
print("ready", flush=True)
while True:
    value += 1.0
    for variable in both:
        variable.assign(tf.fill([500_000], value))
    manager.save()
"""


@posix
def test_killed_at_any_moment(tmp_path: Path) -> None:
    """Between lines, too: while the system writes. The folder keeps one checkpoint."""
    rng, reached = random.Random(settings.SEED), 0.0
    for _ in range(4 * settings.TIMES):
        process = subprocess.Popen([sys.executable, "-c", _ENDLESS, str(tmp_path)],
                                   stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if train.latest_checkpoint(tmp_path) is None:
            continue
        both = [tf.Variable(tf.zeros(500_000)) for _ in range(2)]
        train.Checkpoint(both=both).restore(train.latest_checkpoint(tmp_path)).expect_partial()
        assert {len(set(v.numpy().tolist())) for v in both} == {1}
        assert float(both[0][0]) == float(both[1][0]) >= reached
        reached = float(both[0][0])
    assert reached


def test_threads_that_save_at_once(tmp_path: Path) -> None:
    both, saving = objects(tmp_path / "run", keep=2)
    single = train.Checkpoint(both=both)
    with ThreadPoolExecutor(4) as threads:
        paths = list(threads.map(lambda _: saving.save(), range(40)))
        others = list(threads.map(lambda _: single.save(tmp_path / "single" / "x"), range(20)))
        same = list(threads.map(lambda _: single.write(tmp_path / "same" / "x"), range(20)))
    assert sorted(paths) == sorted(str(tmp_path / "run" / f"ckpt-{n}.safetensors")
                                   for n in range(1, 41))
    assert len({*others}) == 20 and len({*same}) == 1
    assert [Path(p).stem for p in saving.checkpoints] == ["ckpt-39", "ckpt-40"]
    assert newest(tmp_path / "run") == 0
    for folder in ("run", "single", "same"):
        assert not left(tmp_path / folder)
    train.Checkpoint(both=both).restore(same[0]).expect_partial()


@posix
def test_a_fork_while_a_thread_saves(tmp_path: Path) -> None:
    _, saving = objects(tmp_path / "run")
    number = [0]

    def child() -> bool:
        number[0] += 1
        other = train.CheckpointManager(saving.checkpoint, tmp_path / f"child-{number[0]}", 1)
        other.save()
        saving.save()
        return newest(tmp_path / f"child-{number[0]}") == 0

    with forking.beside(saving.save):
        for i in range(5):
            number[0] = i
            assert forking.child(child)
    assert newest(tmp_path / "run") == 0


_SHORT_OF_MEMORY = """
import os, resource, sys
import numpy as np
import gtape as tf
from gtape import train

os.fsync = lambda _: None
variable = tf.Variable(np.ones(10_000_000, np.float32))
checkpoint = train.Checkpoint(v=variable)
path = checkpoint.write(sys.argv[1])
checkpoint.restore(path)
pages = int(open("/proc/self/statm").read().split()[0])

def limit(more):
    used = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more if more else resource.RLIM_INFINITY,
                                            resource.RLIM_INFINITY))

limit(5_000_000)
print(checkpoint.write(path) == path)  # no copy is made of what is saved
try:
    checkpoint.restore(path)
except MemoryError:
    print("no memory")
limit(0)
print(float(variable[0]), checkpoint.restore(path).assert_consumed() is not None)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_out_of_memory(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _SHORT_OF_MEMORY, str(tmp_path / "x")], text=True,
                          capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "True\nno memory\n1.0 True\n"), done.stderr

"""Commands of the system: what ends them, and that nothing of them stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gtape.core.errors import PassingError
from gtape.devices.compiler import Finished, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sessions and signals of POSIX")


def shell(text: str, seconds: float = 60) -> Finished:
    return run(["sh", "-c", text], seconds)


def appears(path: Path) -> str:
    """The text of a file that another process writes."""
    for _ in range(6000):
        if path.exists() and path.read_text().endswith("\n"):
            return path.read_text().strip()
        time.sleep(0.01)
    raise AssertionError(f"{path} did not appear")


def gone(process: int) -> bool:
    for _ in range(6000):
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], text=True, check=False,
                               stdout=subprocess.PIPE).stdout.strip()
        if state[:1] in ("", "Z"):
            return True
        time.sleep(0.01)
    return False


def test_what_it_printed() -> None:
    assert shell("echo one; echo two >&2; exit 3") == (3, "one\n", "two\n")
    assert shell("cat") == (0, "", "")  # nothing is typed to it


def test_text_that_is_not_utf_8() -> None:
    assert shell(r"printf 'a\377b'") == (0, "a\ufffdb", "")


def test_it_is_not_watched_by_the_sanitizers_of_this_process(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/gcc/12/libasan.so libubsan.so.1:/opt/libsan.so "
                       "/usr/lib/libclang_rt.tsan-x86_64.so")
    assert shell('echo "$LD_PRELOAD"').printed == "/opt/libsan.so\n"


def test_one_that_is_stopped_is_started_once_more(tmp_path: Path) -> None:
    marker = tmp_path / "started"
    assert shell(f"test -e {marker} || {{ touch {marker}; kill -9 $$; }}; echo made") == (
        0, "made\n", "")
    counted = tmp_path / "count"
    with pytest.raises(PassingError, match=r"^sh was stopped by signal 9$"):
        shell(f"echo >> {counted}; kill -9 $$")
    assert counted.read_text() == "\n\n"


def test_one_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(PassingError, match=r"missing cannot be started: .*No such file"):
        run([str(tmp_path / "missing")], 1)


def test_one_that_hangs_is_stopped_with_what_it_started(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    with pytest.raises(PassingError, match=r"did not end within 0.5 seconds, and was stopped"):
        shell(f"sleep 1000 & echo $! > {inner}; wait", 0.5)
    assert gone(int(appears(inner)))


def test_an_error_of_the_caller_stops_it(tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    inner = tmp_path / "inner"
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            shell(f"sleep 1000 & echo $! > {inner}; wait")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert gone(int(appears(inner)))


def test_ctrl_c_does_not_reach_it(tmp_path: Path) -> None:
    started, handled = tmp_path / "started", tmp_path / "handled"
    waits = f"echo >> {started}; until test -e {handled}; do sleep 0.05; done; echo made"
    script = ("import pathlib, signal\n"
              "from gtape.devices.compiler import run\n"
              f"handled = pathlib.Path({str(handled)!r})\n"
              "signal.signal(signal.SIGINT, lambda *_: handled.touch())\n"
              f"print(run(['sh', '-c', {waits!r}], 60))\n")
    with subprocess.Popen([sys.executable, "-c", script], text=True, stdout=subprocess.PIPE,
                          start_new_session=True) as process:
        appears(started)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        assert process.communicate(timeout=120)[0] == (
            "Finished(status=0, printed='made\\n', errors='')\n")
    assert started.read_text() == "\n"

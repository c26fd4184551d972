"""`python -m gtape run`: TensorFlow and Keras programs, unedited."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import sys
import tensorflow as tf
import keras
from tensorflow.keras import layers
from tensorflow.keras.models import Sequential

model = Sequential([layers.Dense(1, use_bias=False, kernel_initializer="ones")])
x = tf.constant([[1.0, 2.0]])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(model(x) ** 2)
print(tape.gradient(loss, model.trainable_variables)[0].numpy().tolist())
print(sys.argv[1:], __name__, keras.layers.Dense is layers.Dense)
"""


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "gtape", "run", *arguments], cwd=cwd,
                          capture_output=True, text=True, timeout=120, check=False)


def test_a_program_runs_unedited_with_its_arguments(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    done = run(str(program), "a", "--steps", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[[6.0], [12.0]]", "['a', '--steps', '3'] __main__ True"]


def test_a_module_runs_too(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "part.py").write_text(_PROGRAM)
    done = run("-m", "package.part", "b", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == "['b'] __main__ True"


def test_the_traceback_begins_in_the_program(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import tensorflow as tf\n\ndef main():\n    tf.saved_modle\n\nmain()\n")
    done = run(str(program))
    lines = done.stderr.splitlines()
    assert done.returncode == 1
    assert lines[0].startswith("Traceback")
    assert lines[1] == f'  File "{program}", line 6, in <module>'
    assert "AttributeError" in lines[-1] and "saved_modle" in lines[-1]


def test_the_status_of_a_program_is_its_own(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys\nsys.exit(7)\n")
    assert run(str(program)).returncode == 7


def test_a_program_that_is_not_there_is_named() -> None:
    done = run("no_such_program.py")
    assert done.returncode == 2 and "no_such_program.py is not a file" in done.stderr

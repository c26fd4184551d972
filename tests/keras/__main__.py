"""`python -m tests.keras`: Keras' own tests on gtape.

Without arguments the folders below, which take some minutes on two processors; `--whole` all of
Keras; else the folders that are named, as `layers/rnn`. What pytest knows may follow `--`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What meets the most of gtape in the shortest time.
QUICK = ("activations", "losses", "metrics", "optimizers", "initializers", "regularizers",
         "constraints", "random", "tree", "layers/activations", "layers/core", "layers/merging",
         "layers/normalization", "layers/regularization", "layers/rnn", "layers/attention",
         "callbacks", "trainers")
WHOLE = ("activations", "backend", "callbacks", "constraints", "dtype_policies", "export",
         "initializers", "layers", "legacy", "losses", "metrics", "models", "ops", "optimizers",
         "quantizers", "random", "regularizers", "saving", "trainers", "tree", "utils",
         "visualization", "wrappers")


def tests_of(folders: list[str]) -> list[str]:
    spec = find_spec("keras")
    if spec is None or spec.origin is None:
        sys.exit("Keras is not installed")
    source = Path(spec.origin).parent / "src"
    missing = [f for f in folders if not (source / f).exists()]
    if missing:
        sys.exit(f"Keras has no tests in {', '.join(missing)}")
    return [str(source), *(str(source / f) for f in folders)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.keras", description=__doc__)
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--whole", action="store_true", help="all of Keras' tests")
    parser.add_argument("-n", default="2", help="processes")
    options, passed_on = parser.parse_known_args()
    source, *folders = tests_of(options.folders or list(WHOLE if options.whole else QUICK))
    command = [sys.executable, "-m", "pytest", "-p", "tests.keras.suite_plugin", "-c", os.devnull,
               "--rootdir", source, "-p", "no:cacheprovider", "-q", "--timeout", "300", "-n",
               options.n, "--disable-warnings", *(a for a in passed_on if a != "--"), *folders]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path},
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.keras`: Keras' own tests on gtape, a process a folder.

Without arguments the folders below, which take some minutes on two processors; `--whole` all of
Keras; else the folders that are named, as `layers/rnn`. What pytest knows may follow `--`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What meets the most of gtape in the shortest time.
QUICK = ("layers/core", "optimizers", "layers/rnn", "metrics", "trainers", "losses",
         "layers/attention", "layers/normalization", "layers/merging", "layers/activations",
         "callbacks", "models", "random", "activations", "initializers", "regularizers",
         "constraints", "tree")
#: The longest first, so that the last processes are short ones.
WHOLE = ("ops", "layers/preprocessing", "layers/convolutional", "layers/core", "layers/reshaping",
         "layers/pooling", "layers/rnn", "layers/attention", "layers/normalization",
         "layers/merging", "layers/activations", "layers/regularization", "layers/layer_test.py",
         "optimizers", "trainers", "metrics", "backend", "models",
         "saving", "utils", "export", "callbacks", "quantizers", "losses", "random",
         "activations", "initializers", "regularizers", "constraints", "dtype_policies", "legacy",
         "tree", "wrappers", "distillation", "distribution", "datasets", "testing")
#: pytest's statuses of success, and of a folder in which nothing can run here.
_FINE = (0, 5)
_COUNTS = re.compile(r"(\d+) (failed|passed|skipped|xfailed|xpassed|errors?)")


def source() -> Path:
    spec = find_spec("keras")
    if spec is None or spec.origin is None:
        sys.exit("Keras is not installed")
    return Path(spec.origin).parent / "src"


def run(folder: str, passed_on: list[str]) -> tuple[str, subprocess.CompletedProcess[str]]:
    """The tests of one folder."""
    root = source()
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "pytest", "-p", "tests.keras.suite_plugin", "-c", os.devnull,
               "--rootdir", str(root), "-p", "no:cacheprovider", "-p", "no:xdist", "-q",
               "--timeout", "300", "--continue-on-collection-errors", "--disable-warnings",
               "--tb", "short", *passed_on, str(root / folder)]
    return folder, subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path},
                                  capture_output=True, text=True, check=False)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.keras", description=__doc__)
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--whole", action="store_true", help="all of Keras' tests")
    parser.add_argument("-n", type=int, default=2, help="processes at a time")
    given = sys.argv[1:]
    at = given.index("--") if "--" in given else len(given)
    options, passed_on = parser.parse_args(given[:at]), given[at + 1:]
    folders = options.folders or list(WHOLE if options.whole else QUICK)
    missing = [folder for folder in folders if not (source() / folder).exists()]
    if missing:
        parser.error(f"Keras has no tests in {', '.join(missing)}")
    total: Counter[str] = Counter()
    failed = False
    with ThreadPoolExecutor(options.n) as pool:
        for folder, done in pool.map(lambda folder: run(folder, passed_on), folders):
            last = (done.stdout.strip().splitlines() or [done.stderr.strip()[-200:]])[-1]
            total.update({kind.rstrip("s") if kind.startswith("error") else kind: int(n)
                          for n, kind in _COUNTS.findall(last)})
            print(f"{folder}: {last}", flush=True)
            if done.returncode not in _FINE:
                failed = True
                print(done.stdout, done.stderr, flush=True)
    print(", ".join(f"{n} {kind}" for kind, n in sorted(total.items())))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

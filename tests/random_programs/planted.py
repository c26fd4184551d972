"""Run by test_sanitized.py in a process with the sanitizers: tf.cumsum with a defect in it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import gtape as tf
from gtape.compile.ir.nodes import LibraryCall
from gtape.ops.reductions.cumulative import cumsum_

from . import sanitized


def planted(b: Any, x: Any, attrs: Any, specs: Any) -> Any:
    """cumsum by a kernel over `x`, `y` and `n`, whose text is an argument of the process."""
    def emit(program: Any, node: Any) -> str:
        (v,), (out,) = node.inputs, node.outputs
        return (f"{{ float* x = {program.pointer(v)}; float* y = {program.pointer(out)}; "
                f"volatile long n = {out.size}; {sys.argv[1]} }}")

    node = LibraryCall("planted", [b.compact(x[0])], "", (), emit)
    return b.library(node, [(x[0].shape, x[0].dtype)])[0]


if __name__ == "__main__":
    sanitized.install()
    cumsum_.lower = planted
    x, v = tf.range(5.0), tf.Variable(tf.range(5.0))
    wrap = {"arena": lambda x: tf.cumsum(x * 2.0) * 3.0, "result": lambda x: tf.cumsum(x * 2.0),
            "argument": tf.cumsum, "cell": lambda x: v.assign(tf.cumsum(x * 2.0))}[sys.argv[2]]
    print(np.asarray(tf.function(wrap)(x)).tolist())

"""A program as a script that runs alone and prints what it gives in every way."""

from __future__ import annotations

import inspect

import numpy as np

from .elaborate import _PATTERN, Elaborated, dense, measured, slope_of
from .running import Setting

_SCRIPT = '''"""{title}"""

from __future__ import annotations

import os

import numpy as np

import gtape as tf

inf, nan = np.inf, np.nan
{helpers}

{tensors}


{text}

arguments = [{arguments}]
variables = [{variables}]
start = [v.numpy() for v in variables]
for way in ("eager", "native", "numpy"):
    os.environ["GTAPE_NATIVE"] = "0" if way == "numpy" else "1"
    for variable, value in zip(variables, start):
        variable.assign(value)
    run = program if way == "eager" else tf.function(program)
    try:
        print(way, run(*arguments), *(v.numpy() for v in variables), sep="\\n    ")
    except (ValueError, tf.errors.InvalidArgumentError) as error:
        print(way, type(error).__name__, error, sep="\\n    ")
'''


def script(made: Elaborated, title: str) -> str:
    """The text of a program with all that it needs."""
    setting = Setting(made)
    helpers = [f"_PATTERN = {_PATTERN}"] if "measured(" in made.text else []
    helpers += [inspect.getsource(f).rstrip() for f in (measured, dense, slope_of)
                if f"{f.__name__}(" in made.text or (f is measured and "slope_of" in made.text)]
    if "generator." in made.text:
        helpers.append("generator = tf.random.Generator.from_seed(1)")
    tensors = []
    for given in made.given:
        value = _numbers(setting.array(given), given.dtype)
        name = f"{given.name}_array" if given.role == "literal" else given.name
        kind = {"variable": "tf.Variable", "literal": "np.asarray"}.get(given.role, "tf.constant")
        dtype = f"tf.{given.dtype}" + (".as_numpy_dtype" if given.role == "literal" else "")
        tensors.append(f"{name} = {kind}({value}, dtype={dtype})")

    def names(role: str) -> str:
        return ", ".join(g.name for g in made.given if g.role == role)

    return _SCRIPT.format(title=title.replace('"""', "'''"), helpers="\n\n".join(["", *helpers]),
                          tensors="\n".join(tensors), text=made.text,
                          arguments=names("argument"), variables=names("variable"))


def _numbers(array: np.ndarray, dtype: str) -> str:
    """An array as Python text: a list, or its recipe where it is long."""
    if array.size <= 64 and array.size:
        listed = array.astype("complex128" if dtype.startswith("complex") else
                              "float64" if array.dtype.kind not in "iub" else array.dtype)
        return repr(listed.tolist())
    return f"np.resize(np.{np.asarray(array).astype('float64').ravel()[:64]!r}, {array.shape})" if (
        array.size and array.dtype.kind != "c") else f"np.zeros({array.shape})"

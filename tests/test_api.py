"""The public names: they resolve, are documented, and take TensorFlow's parameters."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from typing import Any

import pytest

import gtape as tf
from gtape import _names, _stub

_NAMESPACES = [name for name in _names.MODULES if importlib.util.find_spec(f"gtape.{name}")]

#: TensorFlow's parameter names, in order, of what programs use most; `name` may follow.
_PARAMETERS = {
    "constant": "value dtype shape name",
    "convert_to_tensor": "value dtype dtype_hint name",
    "zeros": "shape dtype", "ones": "shape dtype", "fill": "dims value",
    "zeros_like": "input dtype", "ones_like": "input dtype",
    "eye": "num_rows num_columns batch_shape dtype",
    "linspace": "start stop num", "one_hot": "indices depth on_value off_value axis dtype",
    "identity": "input", "reshape": "tensor shape", "transpose": "a perm conjugate",
    "expand_dims": "input axis", "squeeze": "input axis", "concat": "values axis",
    "stack": "values axis", "unstack": "value num axis",
    "split": "value num_or_size_splits axis num", "tile": "input multiples",
    "repeat": "input repeats axis", "pad": "tensor paddings mode constant_values",
    "reverse": "tensor axis", "roll": "input shift axis", "broadcast_to": "input shape",
    "slice": "input_ begin size", "gather": "params indices validate_indices axis batch_dims",
    "gather_nd": "params indices batch_dims", "scatter_nd": "indices updates shape",
    "boolean_mask": "tensor mask axis", "where": "condition x y", "cast": "x dtype",
    "shape": "input out_type", "size": "input out_type", "rank": "input",
    "stop_gradient": "input", "add": "x y", "multiply": "x y", "maximum": "x y", "pow": "x y",
    "abs": "x", "exp": "x", "square": "x", "sqrt": "x", "sigmoid": "x", "tanh": "x",
    "matmul": "a b transpose_a transpose_b", "tensordot": "a b axes", "einsum": "equation inputs",
    "reduce_sum": "input_tensor axis keepdims", "reduce_mean": "input_tensor axis keepdims",
    "reduce_max": "input_tensor axis keepdims", "reduce_prod": "input_tensor axis keepdims",
    "reduce_logsumexp": "input_tensor axis keepdims",
    "argmax": "input axis output_type", "sort": "values axis direction", "cumsum": "x axis",
    "norm": "tensor ord axis keepdims", "clip_by_value": "t clip_value_min clip_value_max",
    "clip_by_norm": "t clip_norm axes", "clip_by_global_norm": "t_list clip_norm use_norm",
    "math.log": "x", "math.reduce_std": "input_tensor axis keepdims",
    "math.top_k": "input k sorted", "math.segment_sum": "data segment_ids",
    "nn.relu": "features", "nn.softmax": "logits axis", "nn.leaky_relu": "features alpha",
    "nn.conv2d": "input filters strides padding data_format dilations",
    "nn.max_pool2d": "input ksize strides padding data_format",
    "nn.softmax_cross_entropy_with_logits": "labels logits axis",
    "nn.sparse_softmax_cross_entropy_with_logits": "labels logits",
    "nn.sigmoid_cross_entropy_with_logits": "labels logits",
    "nn.dropout": "x rate noise_shape seed", "nn.moments": "x axes shift keepdims",
    "nn.embedding_lookup": "params ids max_norm",
    "linalg.inv": "input adjoint", "linalg.solve": "matrix rhs adjoint",
    "random.normal": "shape mean stddev dtype seed",
    "random.uniform": "shape minval maxval dtype seed",
}


@pytest.mark.parametrize("name", sorted(_names.ROOT))
def test_every_root_name_resolves(name: str) -> None:
    found = getattr(tf, name)
    assert found is not None
    assert getattr(tf, name) is found


@pytest.mark.parametrize("name", _names.MODULES)
def test_every_namespace_is_there_and_lists_what_it_has(name: str) -> None:
    module = getattr(tf, name)
    assert (module.__doc__ or "").strip(), f"gtape.{name} has no documentation"
    names = getattr(module, "__all__", None)
    if names is None:
        return
    assert len(set(names)) == len(names)
    missing = [n for n in names if not hasattr(module, n)]
    assert not missing, f"gtape.{name} lists names it has not: {missing}"


def _documented(owner: Any, names: list[str]) -> list[str]:
    bare = []
    for name in names:
        value = getattr(owner, name)
        if (inspect.isroutine(value) or inspect.isclass(value)) and not (
                inspect.getdoc(value) or "").strip():
            bare.append(name)
    return bare


def test_every_root_name_is_documented() -> None:
    assert not _documented(tf, sorted(_names.ROOT))


@pytest.mark.parametrize("name", _NAMESPACES)
def test_every_name_of_a_namespace_is_documented(name: str) -> None:
    module = getattr(tf, name)
    own = [n for n in dir(module) if not n.startswith("_") and str(
        getattr(getattr(module, n), "__module__", "")).startswith("gtape")]
    assert not _documented(module, list(getattr(module, "__all__", own)))


def test_dir_and_all_list_the_same_names() -> None:
    assert set(tf.__all__) <= set(dir(tf))
    assert set(_names.ROOT) <= set(tf.__all__)
    assert {"GradientTape", "Variable", "math", "nn", "keras"} <= set(dir(tf))
    assert tf.newaxis is None
    assert tf.__version__.count(".") >= 1


@pytest.mark.parametrize("path", sorted(_PARAMETERS))
def test_parameters_are_tensorflows(path: str) -> None:
    found: Any = tf
    for part in path.split("."):
        found = getattr(found, part)
    names = [p for p in _signature(found) if p != "self"]
    wanted = _PARAMETERS[path].split()
    assert names[: len(wanted)] == wanted
    if path not in ("zeros_like", "ones_like", "einsum"):
        assert "name" in names or "kwargs" in names


def _signature(function: Any) -> list[str]:
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__"):
        return list(inspect.signature(function).parameters)
    flags = (code.co_flags & 4 > 0) + (code.co_flags & 8 > 0)
    return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags])


def test_the_tapes_parameters_are_tensorflows() -> None:
    assert list(inspect.signature(tf.GradientTape).parameters) == [
        "persistent", "watch_accessed_variables"]
    assert list(inspect.signature(tf.GradientTape.gradient).parameters)[1:5] == [
        "target", "sources", "output_gradients", "unconnected_gradients"]
    assert list(inspect.signature(tf.GradientTape.jacobian).parameters)[1:] == [
        "target", "sources", "unconnected_gradients", "parallel_iterations",
        "experimental_use_pfor"]
    assert list(inspect.signature(tf.GradientTape.batch_jacobian).parameters)[1:] == [
        "target", "source", "unconnected_gradients", "parallel_iterations",
        "experimental_use_pfor"]


# -------------------------------------------------------------------------- unknown names


@pytest.mark.parametrize("name, advice", [
    ("reduce_summ", "reduce_sum"), ("Gradienttape", "GradientTape"),
    ("Session", "call the functions"),
    ("lite", "export"), ("placeholder", "argument")])
def test_an_unknown_name_says_what_to_use(name: str, advice: str) -> None:
    with pytest.raises(AttributeError, match=advice):
        getattr(tf, name)
    assert not hasattr(tf, name)


@pytest.mark.parametrize("name", _NAMESPACES)
def test_an_unknown_name_of_a_namespace_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        getattr(tf, name).nonsense


def test_what_is_left_out_is_not_there() -> None:
    present = [name for name in _names.ABSENT if name in _names.ROOT or name in _names.MODULES]
    assert not present


@pytest.mark.parametrize("name, advice", [
    ("T", "transpose"), ("astype", "cast"), ("mean", "reduce_mean"), ("assign", "Variable"),
    ("item", "numpy")])
def test_numpy_habits_on_tensors_are_pointed_at_the_function(name: str, advice: str) -> None:
    with pytest.raises(AttributeError, match=advice):
        getattr(tf.constant([1.0]), name)


# -------------------------------------------------------------------------- importing


def _fresh(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=60, check=True)
    return done.stdout.strip()


def test_importing_gtape_loads_next_to_nothing() -> None:
    loaded = _fresh("import sys, gtape; print(sorted(m for m in sys.modules if 'gtape.' in m "
                    "or m in ('numpy', 'cupy', 'scipy', 'sklearn')))")
    assert loaded == "['gtape._names', 'gtape._version']"


def test_a_program_on_the_cpu_loads_neither_keras_nor_the_demo_nor_cupy() -> None:
    loaded = _fresh("import os; os.environ['GTAPE_DEVICE'] = 'cpu'\n"
                    "import sys, gtape as tf\nx = tf.Variable(3.0)\n"
                    "with tf.GradientTape() as t:\n    y = x * x\n"
                    "t.gradient(y, x)\n"
                    "print([m for m in sys.modules if m.startswith(('gtape.keras', 'gtape.demo', "
                    "'cupy', 'scipy', 'rich', 'sklearn'))])")
    assert loaded == "[]"


@pytest.mark.parametrize("first", ["gtape.math", "gtape.nn", "gtape.linalg", "gtape.keras",
                                   "gtape.random", "gtape.errors", "gtape.autodiff.tape",
                                   "gtape.ops.elementwise.scalars", "gtape.testing"])
def test_any_module_can_be_imported_first(first: str) -> None:
    assert _fresh(f"import {first}; print('ok')") == "ok"


def test_stubs_are_what_the_tables_say():
    for path, text in _stub.stubs():
        assert path.read_text(encoding="utf-8") == text, (
            f"{path.name}: run python -m gtape._stub")

"""How Keras is bound: privately, once a process, when it is first touched."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

import gtape as tf
from gtape.engine import binding

_FAKE = "class Tensor: pass\n__version__ = '0.fake'\n"


def run(text: str, path: Path | None = None, **variables: str) -> str:
    """What a fresh process prints; its standard error where it fails."""
    environment = os.environ | variables
    if path is not None:
        environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, (str(path), environment.get("PYTHONPATH"))))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True,
                          timeout=120, env=environment, check=False)
    return done.stdout.strip() or done.stderr.strip()


def test_importing_gtape_does_not_import_keras() -> None:
    assert run("import gtape, sys; gtape.constant(1.0); print('keras' in sys.modules)") == "False"


def test_tensorflow_is_no_module_of_the_process() -> None:
    assert run("import gtape, sys; gtape.keras.layers.Dense(2)(gtape.ones((1, 3))); "
               "print([m for m in sys.modules if m.split('.')[0] == 'tensorflow'])") == "[]"


def test_a_tensorflow_imported_later_stays_itself(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text(_FAKE)
    assert run("import gtape; k = gtape.keras; import tensorflow; "
               "x = k.layers.Dense(2)(gtape.ones((1, 3))); "
               "print(tensorflow.__version__, isinstance(x, gtape.Tensor))",
               tmp_path) == "0.fake True"


def test_keras_of_another_engine_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "keras.py").write_text(
        "class backend:\n    backend = staticmethod(lambda: 'jax')\n")
    said = run("import keras, gtape\ngtape.keras", tmp_path)
    assert "EngineError" in said and "with jax" in said and "python -m gtape run" in said


def test_the_backend_that_the_environment_asks_for_is_left_as_it_is() -> None:
    assert run("import gtape, os; gtape.keras; print(os.environ['KERAS_BACKEND'])",
               KERAS_BACKEND="jax") == "jax"


@pytest.mark.parametrize(("name", "asked"), [
    ("pandas", "import pandas; taken = can_slice_array(pandas.Series())"),
    ("sklearn", "taken = k.wrappers.SKLearnClassifier.__mro__[-2] is not k.wrappers")])
def test_what_few_programs_use_is_imported_when_it_is_asked_for(
        tmp_path: Path, name: str, asked: str) -> None:
    (tmp_path / f"{name}.py").write_text("class DataFrame: pass\nclass Series: pass\n")
    assert run("import gtape, sys; k = gtape.keras; from keras.src.trainers.data_adapters."
               "array_slicing import can_slice_array; "
               f"before = {name!r} in sys.modules, can_slice_array(object()); {asked}; "
               f"print(*before, {name!r} in sys.modules, taken, can_slice_array(object()))",
               tmp_path) == "False False True True False"


def test_the_names_are_those_of_keras() -> None:
    import gtape.keras.layers as layers
    from gtape.keras.layers import Dense

    import gtape.keras as keras

    real = import_module("keras")
    assert keras is tf.keras and layers is tf.keras.layers
    assert Dense is tf.keras.layers.Dense is real.layers.Dense
    assert tf.optimizers is tf.keras.optimizers and tf.losses is tf.keras.losses
    assert layers.__spec__.name.startswith("keras.")
    for name in ("activations", "applications.resnet50", "preprocessing.image"):
        found = import_module(f"gtape.keras.{name}")
        assert found is attrgetter(name)(tf.keras)
    with pytest.raises(ModuleNotFoundError, match=r"gtape\.keras\.nonsense"):
        import_module("gtape.keras.nonsense")


def test_names_that_gtape_lacks_are_attribute_errors_in_keras_too() -> None:
    from gtape.engine import namespace

    tensorflow = namespace.module("tensorflow")
    with pytest.raises(AttributeError, match="nonsense"):
        tensorflow.nonsense
    with pytest.raises(AttributeError, match=r"tensorflow\.python\.nonsense"):
        tensorflow.python.nonsense
    with pytest.raises(ModuleNotFoundError, match=r"tensorflow\.lite\.python"):
        namespace.module("tensorflow.lite.python")


@pytest.mark.parametrize(("found", "fits"), [
    ("3.15.0", True), ("3.15.9", True), ("3.15.1rc2", True), ("3.14.2", False), ("3.16.0", False),
    ("4.0", False)])
def test_versions_outside_the_tested_range_are_named(
        found: str, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding.metadata, "version", lambda name: found)
    if fits:
        assert binding.check_version() == found
        return
    with pytest.raises(tf.errors.EngineError, match=rf"this is {found}: pip install 'keras>="):
        binding.check_version()


#: What gtape amends in Keras or calls there, and the arguments it relies on.
_RELIED_ON = {
    ("keras.src.backend.tensorflow.trainer", "TensorFlowTrainer._make_function"):
        "self step_function",
    ("keras.src.backend.tensorflow.trainer", "TensorFlowTrainer.make_predict_function"):
        "self force",
    ("keras.src.backend.tensorflow.trainer", "concat"): "tensors axis",
    ("keras.src.backend.tensorflow.core", "compute_output_spec"): "fn args kwargs",
    ("keras.src.backend.tensorflow.rnn", "lstm"):
        "inputs initial_state_h initial_state_c mask kernel recurrent_kernel bias activation "
        "recurrent_activation return_sequences go_backwards unroll time_major",
    ("keras.src.backend.tensorflow.rnn", "gru"):
        "inputs initial_state mask kernel recurrent_kernel bias activation recurrent_activation "
        "return_sequences go_backwards unroll time_major reset_after",
    ("keras.src.backend.tensorflow.rnn", "_do_lstm_arguments_support_cudnn"):
        "activation recurrent_activation unroll use_bias",
    ("keras.src.backend.tensorflow.rnn", "_do_gru_arguments_support_cudnn"):
        "activation recurrent_activation unroll use_bias reset_after",
    ("keras.src.ops.operation", "Operation.__call__"): "self args kwargs",
    ("keras.src.backend.tensorflow.trainer", "TensorFlowTrainer._autoconvert_optionals"):
        "self step_func",
    ("keras.src.backend.tensorflow.core", "convert_to_tensor"): "x dtype sparse ragged",
    ("keras.src.backend.common.dtypes", "result_type"): "dtypes",
    ("keras.src.layers.layer", "Layer.__call__"): "self args kwargs",
    ("keras.src.layers.core.dense", "Dense.call"): "self inputs training",
    ("keras.src.layers.normalization.batch_normalization", "BatchNormalization.call"):
        "self inputs training mask",
    ("keras.src.ops.nn", "_layer_normalization"): "x gamma beta axis epsilon rms_scaling",
    ("keras.src.ops.nn", "_rms_normalization"): "x scale axis epsilon",
    ("keras.src.optimizers.base_optimizer", "BaseOptimizer.apply"):
        "self grads trainable_variables",
    ("keras.src.saving.saving_api", "load_weights"): "model filepath skip_mismatch kwargs",
    ("keras.src.utils.python_utils", "pythonify_logs"): "logs",
    ("keras.src.layers.preprocessing.index_lookup", "IndexLookup.call"): "self inputs",
}


@pytest.mark.parametrize(("module", "name"), _RELIED_ON)
def test_what_gtape_relies_on_in_keras_is_there(module: str, name: str) -> None:
    found = unamended(module, name)
    expected, given = _RELIED_ON[module, name], " ".join(found)
    assert given == expected, (
        f"{module}.{name} took ({expected}), and takes ({given}) in the Keras that is installed: "
        f"adapt what gtape.engine.amendments names for that module")


def unamended(module: str, name: str) -> list[str]:
    """The arguments of a function in Keras' own source."""
    import ast

    path = Path(inspect.getfile(import_module(module)))
    node: ast.AST = ast.parse(path.read_text(encoding="utf-8"))
    for part in name.split("."):
        node = next((n for n in ast.iter_child_nodes(node)
                     if getattr(n, "name", None) == part), node)
        assert getattr(node, "name", None) == part, f"{module} has no {name} any more"
    given = node.args  # type: ignore[attr-defined]
    return [a.arg for a in (*given.args, given.vararg, *given.kwonlyargs, given.kwarg) if a]

"""Keras' files: those of TensorFlow are read bit for bit, and bad ones change nothing.

`files/tensorflow.*` were written by Keras 3.15.1 on TensorFlow 2.21, one step of Adam after the
model was made; `tensorflow.npz` holds its values as NumPy arrays.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf

keras = tf.keras
FILES = Path(__file__).with_name("files")


def written() -> dict[str, np.ndarray]:
    with np.load(FILES / "tensorflow.npz", allow_pickle=False) as found:
        return dict(found)


def model_of_file() -> Any:
    return keras.models.load_model(FILES / "tensorflow.keras")


def _without_addresses(archive: zipfile.ZipFile) -> str:
    """The configuration without what differs from process to process."""
    return re.sub(r', "shared_object_id": \d+', "", archive.read("config.json").decode())


def require_same_state(model: Any, values: dict[str, np.ndarray]) -> None:
    for i, weight in enumerate(model.get_weights()):
        np.testing.assert_array_equal(weight, values[f"weight{i}"], strict=True)
    for i, slot in enumerate(model.optimizer.variables):
        np.testing.assert_array_equal(np.asarray(slot), values[f"slot{i}"])


def test_a_model_of_tensorflow_is_read_bit_for_bit_and_goes_on_training() -> None:
    values, model = written(), model_of_file()
    require_same_state(model, values)
    x = [values["a"], values["b"]]
    np.testing.assert_allclose(model.predict(x, verbose=0), values["predicted"], rtol=1e-5)
    model.fit(x, np.zeros(8), verbose=0)
    assert int(model.optimizer.iterations) == 2


def test_weights_of_tensorflow_are_read_bit_for_bit() -> None:
    values, model = written(), model_of_file()
    model.set_weights([np.zeros_like(w) for w in model.get_weights()])
    model.load_weights(FILES / "tensorflow.weights.h5")
    require_same_state(model, values)


def test_a_model_is_written_as_tensorflow_writes_it(tmp_path: Path) -> None:
    model_of_file().save(tmp_path / "own.keras")
    with zipfile.ZipFile(tmp_path / "own.keras") as own, zipfile.ZipFile(
            FILES / "tensorflow.keras") as theirs:
        assert own.namelist() == theirs.namelist()
        assert _without_addresses(own) == _without_addresses(theirs)
    require_same_state(keras.models.load_model(tmp_path / "own.keras"), written())


def test_a_model_goes_through_json_and_is_cloned() -> None:
    model = model_of_file()
    for made in (keras.models.model_from_json(model.to_json()), keras.models.clone_model(model)):
        made.set_weights(model.get_weights())
        x = [written()["a"], written()["b"]]
        np.testing.assert_array_equal(made.predict(x, verbose=0), model.predict(x, verbose=0))


def test_classes_of_users_are_read_as_custom_objects(tmp_path: Path) -> None:
    class Twice(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return 2.0 * x

    keras.Sequential([keras.Input((2,)), Twice()]).save(tmp_path / "model.keras")
    read = keras.models.load_model(tmp_path / "model.keras", custom_objects={"Twice": Twice})
    np.testing.assert_array_equal(read(tf.ones((1, 2))), [[2.0, 2.0]])
    with pytest.raises((TypeError, ValueError), match="Twice"):
        keras.models.load_model(tmp_path / "model.keras")


# ------------------------------------------------------------------ bad files


def test_weights_that_fail_half_way_leave_the_model_as_it_was(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    model, values = model_of_file(), written()
    damaged = tmp_path / "damaged.weights.h5"
    model.save_weights(damaged)
    with h5py.File(damaged, "r+") as file:
        kernels: list[Any] = []
        file.visititems(lambda name, found: kernels.append(found.name) if isinstance(
            found, h5py.Dataset) and found.shape == (5, 2) else None)
        del file[kernels[-1]]
        file[kernels[-1]] = np.ones((7, 7), np.float32)
    model.set_weights([w + 1 for w in model.get_weights()])
    with pytest.raises(ValueError, match=r"7|shape|mismatch"):
        model.load_weights(damaged)
    for weight, old in zip(model.get_weights(), (values[f"weight{i}"] for i in range(99))):
        np.testing.assert_array_equal(weight, old + 1)


@pytest.mark.parametrize("size", [0, 1, 100, 5_000, 30_000])
@pytest.mark.parametrize("name", ["tensorflow.keras", "tensorflow.weights.h5"])
def test_files_cut_short_are_errors_and_change_nothing(name: str, size: int,
                                                       tmp_path: Path) -> None:
    cut = tmp_path / name
    cut.write_bytes((FILES / name).read_bytes()[:size])
    model = model_of_file()
    with pytest.raises((OSError, ValueError, KeyError, zipfile.BadZipFile)):
        model.load_weights(cut)
    require_same_state(model, written())
    if name.endswith(".keras"):
        with pytest.raises((OSError, ValueError, zipfile.BadZipFile)):
            keras.models.load_model(cut)


def changed(tmp_path: Path, **members: bytes) -> Path:
    """The model's file with other members."""
    path = tmp_path / "changed.keras"
    with zipfile.ZipFile(FILES / "tensorflow.keras") as old, zipfile.ZipFile(path, "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, members.pop(info.filename, old.read(info)))
        for name, content in members.items():
            new.writestr(name, content)
    return path


def test_a_lambda_in_a_file_is_not_run(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Lambda(lambda x: x + 1)])
    model.save(tmp_path / "lambda.keras")
    with pytest.raises(ValueError, match="safe_mode"):
        keras.models.load_model(tmp_path / "lambda.keras")


def test_a_config_that_names_a_function_of_python_does_not_call_it(tmp_path: Path) -> None:
    config = json.loads(zipfile.ZipFile(FILES / "tensorflow.keras").read("config.json"))
    target = tmp_path / "made"
    config["config"]["layers"][0] = {
        "module": "os", "class_name": "mkdir", "config": {"path": str(target)},
        "registered_name": "mkdir", "name": "made", "inbound_nodes": []}
    with pytest.raises((TypeError, ValueError, KeyError)):
        keras.models.load_model(changed(tmp_path, **{"config.json": json.dumps(config).encode()}))
    assert not target.exists()


def test_a_bomb_in_a_file_is_refused(tmp_path: Path) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(FILES / "tensorflow.keras") as old, zipfile.ZipFile(
            bomb, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            content = b" " * 300_000_000 if info.filename == "config.json" else old.read(info)
            new.writestr(info.filename, content)
    path = tmp_path / "bomb.keras"
    path.write_bytes(bomb.getvalue())
    with pytest.raises((ValueError, zipfile.BadZipFile)):
        keras.models.load_model(path)


def test_members_that_lead_outside_write_nothing_there(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    path = changed(inner, **{"../../escaped.txt": b"out", "assets/../../escaped.txt": b"out"})
    with contextlib.suppress(OSError, ValueError):
        keras.models.load_model(path)
    assert not list(tmp_path.rglob("escaped.txt"))


def test_pickled_arrays_are_refused(tmp_path: Path) -> None:
    with pytest.raises((OSError, ValueError)):
        keras.models.load_model(changed(tmp_path, **{"model.weights.h5": b"\x80\x04\x95junk"}))


@pytest.mark.parametrize("file_format", ["tf_saved_model", "onnx", "openvino", "litert"])
def test_formats_of_other_libraries_are_refused_in_words(tmp_path: Path, file_format: str) -> None:
    path = tmp_path / "model.tflite"
    with pytest.raises(tf.errors.UnimplementedError, match=r"model\.save.*KERAS_BACKEND"):
        model_of_file().export(path, format=file_format)
    assert not path.exists()


def test_archives_and_layers_of_saved_models_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.UnimplementedError, match="SavedModel"):
        keras.export.ExportArchive()
    for refused in (lambda: keras.layers.TFSMLayer(tmp_path), lambda: tf.saved_model.load("x")):
        with pytest.raises(AttributeError, match=r"no 'saved_model'.*model\.save"):
            refused()

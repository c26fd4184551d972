"""`model.export`: what it writes, TensorFlow's own libraries write."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

from gtape.core.errors import UnimplementedError

_FORMATS = ("export_litert", "export_onnx", "export_openvino", "export_saved_model")


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise UnimplementedError(
        "Keras exports SavedModel, ONNX, OpenVINO and LiteRT with the libraries of TensorFlow, JAX "
        "or torch, which read their own graphs; gtape writes none of these. Write "
        "model.save('model.keras'), which holds the same bits for every engine, and in a process "
        "of its own, with KERAS_BACKEND=tensorflow and TensorFlow installed, "
        "keras.models.load_model('model.keras').export(...)")


def amend_export(module: ModuleType) -> None:
    """Let every format be refused before anything is traced or written."""
    vars(module).update(dict.fromkeys(_FORMATS, _refuse))


def amend_archive(module: ModuleType) -> None:
    """`keras.export.ExportArchive` too."""
    module.SavedModelExportArchive.__init__ = _refuse

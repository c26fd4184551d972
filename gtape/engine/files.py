"""Weights are read as a whole or not at all, and exports are refused."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

from gtape.core.errors import UnimplementedError
from gtape.engine.amendments import instead
from gtape.train.restoring import values_kept_on_failure

_EXPORTS = ("export_litert", "export_onnx", "export_openvino", "export_saved_model")


def amend_saving(module: ModuleType) -> None:
    """Let `load_weights` give the model its values back where it fails."""
    plain = module.load_weights

    @instead(module, "load_weights")
    def load_weights(model: Any, filepath: object, skip_mismatch: bool = False, **kwargs: object,
                     ) -> Any:
        variables = [*model.variables, *getattr(getattr(model, "optimizer", None), "variables", ())]
        with values_kept_on_failure(variables):
            return plain(model, filepath, skip_mismatch, **kwargs)


def _refuse(*args: object, **kwargs: object) -> NoReturn:
    raise UnimplementedError(
        "Keras exports SavedModel, ONNX, OpenVINO and LiteRT with the libraries of TensorFlow, JAX "
        "or torch, which read their own graphs; gtape writes none of these. Write "
        "model.save('model.keras'), which holds the same bits for every engine, and in a process "
        "of its own, with KERAS_BACKEND=tensorflow and TensorFlow installed, "
        "keras.models.load_model('model.keras').export(...)")


def amend_export(module: ModuleType) -> None:
    """Let every format be refused before anything is traced or written."""
    vars(module).update(dict.fromkeys(_EXPORTS, _refuse))


def amend_archive(module: ModuleType) -> None:
    """`keras.export.ExportArchive` too."""
    module.SavedModelExportArchive.__init__ = _refuse

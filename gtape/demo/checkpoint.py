"""The model's variables in a safetensors file."""

from __future__ import annotations

from pathlib import Path

from gtape.core.files import write_whole
from gtape.demo.errors import DemoError, require
from gtape.demo.model import DigitsNet, named_variables


def require_safetensors() -> None:
    require("safetensors", "checkpoints are written by safetensors")


def save(model: DigitsNet, file: Path) -> None:
    """Write every trainable variable under its name."""
    from safetensors.numpy import save as serialized

    arrays = {name: variable.numpy() for name, variable in named_variables(model).items()}
    write_whole(file, serialized(arrays, metadata={"model": type(model).__name__}))


def load(model: DigitsNet, file: Path) -> None:
    """Assign the variables of a checkpoint to `model`, all or none.

    Raises:
        DemoError: the file is no checkpoint of this model: other names, shapes or dtypes.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load as deserialized

    try:
        arrays = deserialized(file.read_bytes())
    except (OSError, SafetensorError) as error:
        raise DemoError(f"cannot load the checkpoint {file}: {error}") from error
    variables = named_variables(model)
    found = {name: (array.shape, array.dtype.name) for name, array in arrays.items()}
    needed = {name: (tuple(v.shape), v.dtype.name) for name, v in variables.items()}
    if found != needed:
        raise DemoError(f"the checkpoint {file} must hold {needed}; it holds {found}")
    for name, variable in variables.items():
        variable.assign(arrays[name])

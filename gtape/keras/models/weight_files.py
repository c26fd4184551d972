"""Weights in files: .npz by NumPy, .safetensors by that package. Nothing is unpickled."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from gtape.core.files import write_whole


def _named(model: Any) -> dict[str, Any]:
    """The weights under names that do not depend on how many models were made before."""
    if not model.built:
        raise ValueError(f"the model '{model.name}' has no weights yet; call it, or "
                         f"build(input_shape), first")
    return {f"{i:04d}/{v.name.removesuffix(':0')}": v for i, v in enumerate(model.weights)}


def _format(filepath: Any) -> tuple[Path, str]:
    path = Path(filepath)
    if path.suffix not in (".npz", ".safetensors"):
        raise ValueError(f"weights are stored in .npz or .safetensors files; got '{path}'")
    return path, path.suffix


def _npz(arrays: dict[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _safetensors(arrays: dict[str, np.ndarray]) -> bytes:
    from safetensors.numpy import save

    return save(arrays)


def save(model: Any, filepath: Any, overwrite: bool) -> None:
    """Write the weights of `model`."""
    path, kind = _format(filepath)
    if path.exists() and not overwrite:
        raise FileExistsError(f"'{path}' exists; pass overwrite=True to replace it")
    arrays = {name: np.asarray(v._resource_()._value._peek(), order="C")
              for name, v in _named(model).items()}
    if not arrays:
        raise ValueError(f"the model '{model.name}' has no weights to save")
    write_whole(path, _npz(arrays) if kind == ".npz" else _safetensors(arrays))


def _read(path: Path, kind: str) -> dict[str, np.ndarray]:
    if kind == ".npz":
        with np.load(path, allow_pickle=False) as stored:
            return dict(stored)
    from safetensors.numpy import load_file

    return load_file(path)


def load(model: Any, filepath: Any, skip_mismatch: bool) -> None:
    """Read the weights of `model`. Nothing is assigned when something does not fit."""
    path, kind = _format(filepath)
    wanted, arrays = _named(model), _read(path, kind)
    wrong = [f"{name}: the model has {tuple(v.shape)}, the file "
             f"{arrays[name].shape if name in arrays else 'nothing'}"
             for name, v in wanted.items()
             if name not in arrays or arrays[name].shape != tuple(v.shape)]
    wrong += [f"{name}: only in the file" for name in arrays if name not in wanted]
    if wrong and not skip_mismatch:
        raise ValueError(f"'{path}' does not fit the model '{model.name}': {'; '.join(wrong[:5])}")
    for name, variable in wanted.items():
        found = arrays.get(name)
        if found is not None and found.shape == tuple(variable.shape):
            variable.assign(found.astype(variable.dtype.np_dtype, copy=False))

"""Weights in files: .npz by NumPy, .safetensors. Nothing is unpickled."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gtape.core import tensor_files
from gtape.core.errors import DataLossError
from gtape.core.files import write_whole
from gtape.core.state import paused

#: Where the checksums are: an entry of the metadata, or an array of text. Another entry says that
#: there must be some, so that a damaged name does not pass for a file of another program.
_CHECKSUMS, _MAKER = "gtape.weights", "gtape"


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


def _npz(arrays: dict[str, np.ndarray], about: str) -> bytes:
    """The content of a file. NumPy's format has no bfloat16, which goes in as uint16."""
    plain = {name: array.view(np.uint16) if array.dtype.name == "bfloat16" else array
             for name, array in arrays.items()}
    file = io.BytesIO()
    np.savez(file, **plain, **{_CHECKSUMS: np.array(about)})  # type: ignore[arg-type]
    # A zip file ends with the length of a comment and the comment. That of all before is put there,
    # since zip itself has no checksum of its directory.
    content = file.getvalue()[:-2] + len(_comment(b"")).to_bytes(2, "little")
    return content + _comment(content)


def _comment(content: bytes) -> bytes:
    return f"{_MAKER} {zlib.crc32(content):08x}".encode()


def save(model: Any, filepath: Any, overwrite: bool) -> None:
    """Write the weights of `model`."""
    path, kind = _format(filepath)
    if path.exists() and not overwrite:
        raise FileExistsError(f"'{path}' exists; pass overwrite=True to replace it")
    arrays = {name: np.asarray(v._resource_()._value._peek(), order="C")
              for name, v in _named(model).items()}
    if not arrays:
        raise ValueError(f"the model '{model.name}' has no weights to save")
    about = json.dumps({name: [array.dtype.name, tensor_files.checksum(name, array)]
                        for name, array in arrays.items()})
    write_whole(path, *([_npz(arrays, about)] if kind == ".npz" else tensor_files.serialized(
        arrays, {_CHECKSUMS: about, _MAKER: "weights"})))


def _read(path: Path, kind: str) -> dict[str, np.ndarray]:
    about: Any
    if kind == ".npz":
        arrays, ours = _unpacked(path)
        about = arrays.pop(_CHECKSUMS, None)
    else:
        metadata, arrays = tensor_files.read(path, "the weight file")
        ours, about = metadata.get(_MAKER) == "weights", metadata.get(_CHECKSUMS)
    # A file of another program has no checksums.
    return arrays if about is None and not ours else _verified(path, arrays, str(about), ours)


def _unpacked(path: Path) -> tuple[dict[str, np.ndarray], bool]:
    """The arrays, and whether the file ends with its checksum."""
    content = path.read_bytes()
    length = len(_comment(b""))
    ours = content[-length:].startswith(_MAKER.encode())
    try:
        if ours and content[-length:] != _comment(content[:-length]):
            raise ValueError("the checksum is another one")
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            if not stored.files:
                raise ValueError("it holds nothing")
            return dict(stored), ours
    except Exception as error:  # zipfile and NumPy raise whatever a damaged header leads to
        raise DataLossError(f"the weight file '{path}' is damaged, cut short, or no .npz file: "
                            f"{error!r}") from error


def _verified(path: Path, arrays: dict[str, np.ndarray], about: str,
              ours: bool) -> dict[str, np.ndarray]:
    try:
        if not ours:
            raise ValueError("a mark that every such file has is missing")
        known = {name: (str(dtype), number) for name, (dtype, number) in json.loads(about).items()}
        if missing := sorted(known.keys() ^ arrays.keys()):
            raise ValueError(f"{missing[0]} is in the list or in the file alone")
        arrays = {name: _typed(array, known[name][0]) for name, array in arrays.items()}
        wrong = [name for name, array in arrays.items()
                 if tensor_files.checksum(name, array) != known[name][1]]
        if wrong:
            raise ValueError(f"the values of {', '.join(wrong[:5])} are not what was written")
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise DataLossError(f"the weight file '{path}' is damaged: {error}") from error
    return arrays


def _typed(array: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == array.dtype.name:
        return array
    if (dtype, array.dtype.name) != ("bfloat16", "uint16"):
        raise ValueError(f"{dtype} is in the list, {array.dtype.name} in the file")
    import ml_dtypes

    return array.view(ml_dtypes.bfloat16)


def load(model: Any, filepath: Any, skip_mismatch: bool) -> None:
    """Read the weights of `model`. Nothing is assigned when something does not fit."""
    path, kind = _format(filepath)
    wanted, arrays = _named(model), _read(path, kind)
    fitting = {name: v for name, v in wanted.items()
               if name in arrays and _spec(arrays[name]) == _spec(v)}
    wrong = [f"{name}: the model has {_spec(v)}, the file "
             f"{_spec(arrays[name]) if name in arrays else 'nothing'}"
             for name, v in wanted.items() if name not in fitting]
    wrong += [f"{name}: only in the file" for name in arrays if name not in wanted]
    if wrong and not skip_mismatch:
        raise ValueError(f"'{path}' does not fit the model '{model.name}': {'; '.join(wrong[:5])}")
    _assign(fitting, arrays)


def _spec(value: Any) -> str:
    return f"{value.dtype.name}{tuple(value.shape)}"


def _assign(variables: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """All of them; where one fails, or the program is interrupted, they are what they were."""
    before = {name: v._resource_()._value for name, v in variables.items()}
    with paused():
        try:
            for name, variable in variables.items():
                variable.assign(arrays[name], read_value=False)
        except BaseException:
            for name, variable in variables.items():
                variable.assign(before[name], read_value=False)
            raise

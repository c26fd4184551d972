"""The safetensors format: what is written, that package reads, and the other way round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gtape as tf
from gtape.core import safetensors_files

package = pytest.importorskip("safetensors.numpy")

ARRAYS: dict[str, np.ndarray] = {
    **{name: np.arange(-3, 3).astype(name).reshape(2, 3) for name in (
        "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
        "float16", "float32", "float64", "complex64")},
    "bfloat16": np.arange(5).astype(ml_dtypes.bfloat16), "scalar": np.array(2.5),
    "empty": np.zeros((0, 3), np.float32), "ä/\n\"💾": np.ones(3, np.int8), "": np.ones(1)}


def same(found: dict[str, Any]) -> bool:
    return found.keys() == ARRAYS.keys() and all(
        (a.dtype, a.shape, a.tobytes()) == (found[name].dtype, found[name].shape,
                                            found[name].tobytes())
        for name, a in ARRAYS.items())


def test_what_is_written_the_package_reads(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(b"".join(safetensors_files.serialized(ARRAYS, {"a": "ä\n", "b": ""})))
    assert same(package.load_file(path))
    with package.safe_open(path, framework="np") as file:
        assert file.metadata() == {"a": "ä\n", "b": ""}
    metadata, arrays = safetensors_files.read(path, "the file")
    assert metadata == {"a": "ä\n", "b": ""} and same(arrays)
    assert all(a.flags.writeable and a.flags.aligned for a in arrays.values())


@pytest.mark.parametrize("arrays", [ARRAYS, {}, {"x": np.ones((2, 3))}], ids=len)
def test_what_the_package_writes_is_read(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    path = tmp_path / "x.safetensors"
    for metadata in ({"format": "pt"}, None):
        path.write_bytes(package.save(arrays, metadata=metadata))
        about, found = safetensors_files.read(path, "the file")
        assert about == (metadata or {}) and found.keys() == arrays.keys()
        assert not arrays or arrays is not ARRAYS or same(found)


def test_nothing_is_copied() -> None:
    array = np.ones(1000, np.float32)
    parts = safetensors_files.serialized({"x": array}, {})
    assert np.shares_memory(np.frombuffer(parts[1], np.uint8), array)


def test_what_the_format_has_not() -> None:
    with pytest.raises(tf.errors.UnimplementedError, match="holds no complex128; it holds bool"):
        safetensors_files.serialized({"x": np.ones(1, complex)}, {})
    with pytest.raises(tf.errors.InvalidArgumentError, match="__metadata__"):
        safetensors_files.serialized({"__metadata__": np.ones(1)}, {})

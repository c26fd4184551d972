"""Files with flipped bits, cut files, and headers that are well-formed and wrong: each is refused,
by an error that says so, and nothing is changed by it."""

from __future__ import annotations

import copy
import json
import random
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import train
from gtape.train.graph import ObjectGraph
from gtape.train.restoring import Targets
from tests.faults import settings

REFUSED = (tf.errors.DataLossError, tf.errors.InvalidArgumentError)
FITTED = np.array([[1.0, 2.0]], np.float32)


def model() -> Any:
    made = tf.keras.Sequential([tf.keras.layers.Dense(3), tf.keras.layers.Dense(2)])
    made(FITTED)
    return made


def checkpoint(built: bool = True) -> Any:
    parts = model()
    optimizer = tf.keras.optimizers.Adam(1e-3)
    if built:
        optimizer.build(parts.trainable_variables)
    return train.Checkpoint(
        model=parts, optimizer=optimizer, step=tf.Variable(0), rng=np.random.default_rng(1),
        streams=train.RandomStreams(), generator=tf.random.Generator.from_seed(1),
        dropout=tf.keras.layers.Dropout(0.5))


def state(of: Any) -> tuple[dict[str, bytes], dict[str, str]]:
    stored = Targets(ObjectGraph(of._everything())).stored()
    return {name: array.tobytes() for name, array in stored.arrays.items()}, dict(stored.states)


def damaged(content: bytes, seed: int) -> Iterator[bytes]:
    """The content with one bit flipped, or cut, or with a page of zeros, at drawn places."""
    rng = random.Random(seed)
    for _ in range(settings.SAMPLES):
        at = rng.randrange(len(content))
        yield content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1:]
        yield content[:at]
        if any(content[at:at + 64]):
            yield content[:at] + bytes(len(content[at:at + 64])) + content[at + 64:]


@pytest.mark.parametrize("built", [True, False])
def test_checkpoints(tmp_path: Path, built: bool) -> None:
    path = Path(checkpoint().write(tmp_path / "whole"))
    target = checkpoint(built)
    before = state(target)
    for content in damaged(path.read_bytes(), settings.SEED):
        path.write_bytes(content)
        with pytest.raises(tf.errors.DataLossError, match="checkpoint"):
            target.restore(path)
    assert state(target) == before


# ---------------------------------------------------------------- headers

DEEP = "[" * 100_000 + "]" * 100_000
REMOVED = object()
VALUES: list[Any] = [
    None, True, -1, 0, 2, 1.5, 10**30, float("inf"), "", "x", "\ud800", [], {}, [[]], [None],
    {"a": 1}, "{}", "null", '{"seed": 1e999}', "F8_E4M3", "F4", "BF16", ["step"],
    ["model/layers/0/kernel"], ["model/layers/0/kernel"] * 2, ["optimizer/iterations"],
    ["optimizer/velocities/model/layers/0/bias"], REMOVED]


def places(tree: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield above
    items = tree.items() if isinstance(tree, dict) else (
        enumerate(tree) if isinstance(tree, list) else ())
    for key, value in items:
        yield from places(value, (*above, key))


def changed(tree: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value if value is not REMOVED else {}
    tree = copy.deepcopy(tree)
    inner = tree
    for key in place[:-1]:
        inner = inner[key]
    if value is REMOVED:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return tree


def taken_apart(content: bytes) -> tuple[Any, bytes]:
    """The header of a safetensors file, and its values."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8:8 + length]), content[8 + length:]


def packed(header: Any, values: bytes) -> bytes:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return len(text).to_bytes(8, "little") + text + values


class Parts:
    """A checkpoint taken apart: what a function makes of one part goes in with right checksums."""

    def __init__(self, content: bytes) -> None:
        self.header, self.values = taken_apart(content)
        self.own = json.loads(self.header["__metadata__"]["gtape.checkpoint"])
        self.python = json.loads(self.own["python"])
        self.state = json.loads(self.python["states"]["rng"])

    def with_header(self, header: Any) -> bytes:
        return packed(header, self.values)

    def with_own(self, own: Any) -> bytes:
        text = own if isinstance(own, str) else json.dumps(own)
        return self.with_header(changed(self.header, ("__metadata__", "gtape.checkpoint"), text))

    def with_python(self, python: Any) -> bytes:
        text = python if isinstance(python, str) else json.dumps(python)
        number = zlib.crc32(text.encode("utf-8", "surrogatepass"))
        return self.with_own({**self.own, "python": text, "python_checksum": number})

    def with_state(self, state: Any) -> bytes:
        text = state if isinstance(state, str) else json.dumps(state)
        return self.with_python(changed(self.python, ("states", "rng"), text))


def headers(content: bytes, seed: int) -> Iterator[tuple[str, bytes]]:
    """Files of which one place in a header was given another value."""
    parts, rng = Parts(content), random.Random(seed)
    for name in ("header", "own", "python", "state"):
        tree = getattr(parts, name)
        put: Callable[[Any], bytes] = getattr(parts, f"with_{name}")
        yield f"{name}: deep", put(DEEP)
        every = [(place, value) for place in places(tree) for value in VALUES]
        for place, value in rng.sample(every, min(len(every), settings.SAMPLES)):
            if changed(tree, place, value) != tree:
                yield f"{name}: {place} = {value!r:.40}", put(changed(tree, place, value))


@pytest.mark.parametrize("built", [True, False])
def test_headers_that_are_wrong(tmp_path: Path, built: bool) -> None:
    """A change with right checksums may make a file of other contents, which may be restored."""
    path = Path(checkpoint().write(tmp_path / "whole"))
    refused = 0
    target = checkpoint(built)
    before = state(target)
    for what, content in headers(path.read_bytes(), settings.SEED):
        path.write_bytes(content)
        try:
            target.restore(path).expect_partial()
        except REFUSED:
            refused += 1
            assert state(target) == before, what
        except Exception as error:
            raise AssertionError(f"{what} ends in {error!r}") from error
        else:
            target = checkpoint(built)
            before = state(target)
    assert refused > settings.SAMPLES


@pytest.mark.parametrize("shape", [[2**62, 0], [2**40, 0, 2**40], [0] * 70, [2**63, 2, 0]])
def test_shapes_that_no_array_has(tmp_path: Path, shape: list[int]) -> None:
    """They hold no element, so that the size of the file is right."""
    path = Path(train.Checkpoint(v=tf.Variable(tf.zeros([0]))).write(tmp_path / "x"))
    header, values = taken_apart(path.read_bytes())
    path.write_bytes(packed(changed(header, ("v", "shape"), shape), values))
    with pytest.raises(tf.errors.DataLossError, match="is damaged"):
        train.Checkpoint(v=tf.Variable(tf.zeros([0]))).restore(path)


@pytest.mark.parametrize("text", ["", "[]", "null", '"x"', "{", DEEP, '{"checkpoints": 1}', "\0",
                                  '{"checkpoints": [null, {}, "ckpt-1.safetensors"]}'])
def test_a_damaged_list(tmp_path: Path, text: str) -> None:
    manager = train.CheckpointManager(train.Checkpoint(v=tf.Variable(1.0)), tmp_path, None)
    for _ in range(2):
        manager.save()
    (tmp_path / "checkpoint").write_text(text)
    assert Path(str(train.latest_checkpoint(tmp_path))).stem == "ckpt-2"

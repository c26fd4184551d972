"""Checkpoint: named objects whose state is written to one file and read back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.locks import lock
from gtape.core.module import Module
from gtape.core.variable import Variable
from gtape.train import keras_objects, stored
from gtape.train.graph import ObjectGraph, ObjectHolder, children, is_trackable
from gtape.train.restoring import RestoreStatus, Targets, listed, restore

_COUNTER = "save_counter"


class Checkpoint(ObjectHolder):
    """Saves and restores the state of objects: models, optimizers, variables and random streams.
    Raises ValueError: something else, such as a Python number, which needs a tf.Variable; a list or
    dict that holds itself.

        checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=tf.Variable(0))
        path = checkpoint.save("folder/ckpt")
        checkpoint.restore(path).assert_consumed()

    A file holds every variable, every optimizer slot and average, the counters, and the positions
    of random streams, under the paths of attributes, such as 'model/dense/kernel'. It is a
    safetensors file that any program can read. Restoring into objects that were made anew in the
    same way, and going on, gives bit by bit what going on without a stop gives.

    Args:
        root: a module or dict whose parts are saved without a name before theirs.
        **kwargs: objects by name: `tf.Module` and `keras.Layer` objects, optimizers, Variables,
            metrics, `tf.random.Generator`, `numpy.random.Generator`, `tf.train.RandomStreams()`,
            `tf.train.experimental.PythonState`, other Checkpoints, and lists, tuples and dicts of
            these.
    """

    def __init__(self, root: object = None, **kwargs: object) -> None:
        self._objects: dict[str, Any] = {}
        self._root = root
        self._counter: Any = None
        # Numbers are given and files written in turns: two threads must not write one file.
        self._turn = lock()
        if not (root is None or isinstance(root, (Module, ObjectHolder, Mapping))
                or keras_objects.is_layer(root)):
            raise ValueError(f"the root of a Checkpoint must be a module or a dict; got a "
                             f"{type(root).__name__}. Write Checkpoint(name=object)")
        for name, value in kwargs.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        # Names with an underscore are the checkpoint's own, and are not saved.
        if not name.startswith("_"):
            _require_trackable(name, value)
            if hasattr(Checkpoint, name) or "/" in name:
                raise ValueError(f"a Checkpoint cannot hold an object called '{name}'; choose "
                                 f"another name")
            self._objects[name] = value
        object.__setattr__(self, name, value)

    def held(self) -> Mapping[str, Any]:
        """The objects by name."""
        of_root = {} if self._root is None else dict(children(self._root))
        both = sorted(of_root.keys() & self._objects.keys())
        if both:
            raise ValueError(f"the root has the attributes {', '.join(both)} too; choose other "
                             f"names")
        return {**of_root, **self._objects}

    @property
    def save_counter(self) -> Variable:
        """How often `save` was called, int64; saved with the rest."""
        # Made when it is asked for: `write` alone saves none, as TensorFlow's does not.
        if self._counter is None:
            self._counter = Variable(np.int64(0), trainable=False, name=_COUNTER)
        return self._counter

    def _everything(self) -> dict[str, object]:
        counted = {} if self._counter is None else {_COUNTER: self._counter}
        return {**self.held(), **counted}

    # ------------------------------------------------------------------ writing

    def write(self, file_prefix: object, options: object = None) -> str:
        """Write the present state to a file, whole or not at all; gives the file's path.

        '.safetensors' is added to `file_prefix` unless it ends so; missing folders are made. A
        file of that name is replaced only when the new one is safely on the disk.

        Raises:
            InvalidArgumentError: there is nothing to save, a layer is not built yet, or the path
                ends in no name.
            TypeError: the path is neither text nor a path.
            PermissionDeniedError: the folder may not be written to.
            OSError: anything else that the system reports, such as a full disk.
        """
        path = stored.with_suffix(file_prefix)
        if not self.held():
            raise InvalidArgumentError("there is nothing to save; write "
                                       "Checkpoint(model=model, …)")
        targets = Targets(ObjectGraph(self._everything()))
        self._require_built(targets.unbuilt_layers)
        stored.write(targets.stored(), path)
        return str(path)

    def save(self, file_prefix: object, options: object = None) -> str:
        """`write` to '<file_prefix>-<n>.safetensors', n counting the calls; gives the path."""
        prefix = stored.named(file_prefix)
        with self.counted() as number:
            return self.write(f"{prefix}-{number}{stored.SUFFIX}")

    @contextlib.contextmanager
    def counted(self) -> Iterator[int]:
        """A block that counts as one more save, if it succeeds. Threads take turns."""
        with self._turn:
            counter = self.save_counter
            before = int(counter)
            try:
                counter.assign(before + 1)
                yield before + 1
            # A save that failed, or was interrupted, does not count: its number is free again.
            except BaseException:
                counter.assign(before)
                raise

    def _require_built(self, inside: list[str]) -> None:
        unbuilt = [name for name, value in self._objects.items()
                   if keras_objects.is_layer(value) and not value.built
                   and not keras_objects.is_of_words_or_bins(value)]
        unbuilt = [*unbuilt, *(path for path in self._unbuilt(inside) if path not in unbuilt)]
        if unbuilt:
            also = f" (nor have {listed(unbuilt[1:])})" if unbuilt[1:] else ""
            raise InvalidArgumentError(f"'{unbuilt[0]}' has no variables to save yet{also}; build "
                                       f"it first: call it once, or build(input_shape)")

    def _unbuilt(self, inside: list[str]) -> list[str]:
        """The root, which has no path, before the layers inside."""
        root = keras_objects.is_layer(self._root) and keras_objects.lacks_weights(self._root)
        return ["root", *inside] if root else inside

    # ------------------------------------------------------------------ reading

    def read(self, save_path: object, options: object = None) -> RestoreStatus:
        """Assign the state in a file to the objects; the status says what matched.

        Names, shapes and dtypes are checked first, and Python objects that refuse their state are
        put back, so that each of these errors leaves everything as it was. Only where memory runs
        out, or the program is interrupted, once all has been checked, may optimizers be built and
        a part of the variables be assigned. An optimizer that was not built yet is built for the
        variables it had, so `exclude_from_weight_decay` comes before.

        Raises:
            NotFoundError: there is no such file.
            PermissionDeniedError: the file may not be read.
            OSError: the system cannot read it now.
            DataLossError: the file is damaged, or a Python object does not take its state.
            InvalidArgumentError: a shape or dtype differs, or the path ends in no name.
            TypeError: the path is neither text nor a path.
        """
        path = stored.with_suffix(save_path)
        state = stored.read(path)
        # A file that does not fit leaves no counter behind either.
        counter = self._counter
        if _COUNTER in state.arrays:
            _ = self.save_counter
        try:
            match = restore(self._everything(), state, path)
        except BaseException:
            self._counter = counter
            raise
        return RestoreStatus(str(path), match._replace(
            missing=[name for name in match.missing if name != _COUNTER],
            unbuilt=self._unbuilt(match.unbuilt)))

    def restore(self, save_path: object, options: object = None) -> RestoreStatus:
        """`read`; with None for a path nothing happens, as suits `latest_checkpoint`."""
        return RestoreStatus(None, None) if save_path is None else self.read(save_path)


def _require_trackable(name: str, value: object) -> None:
    # When it is given and not when it is saved: hours of training may lie between.
    if not is_trackable(value, name):
        raise ValueError(
            f"a Checkpoint cannot save '{name}': {type(value).__name__} {shown(value)}. It takes "
            f"modules, layers, optimizers, Variables, random generators and lists and dicts of "
            f"these; a number goes in a tf.Variable, other state in a subclass of "
            f"tf.train.experimental.PythonState")

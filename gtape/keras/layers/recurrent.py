"""Recurrent layers: a cell applied step by step along axis 1."""

from __future__ import annotations

from typing import Any

from gtape.core.text import shown
from gtape.keras.layers.arguments import check_rank
from gtape.keras.layers.layer import Layer
from gtape.keras.layers.noise import Dropout
from gtape.keras.layers.recurrent_cells import Cell, GRUCell, LSTMCell, SimpleRNNCell
from gtape.ops.creation import ones
from gtape.ops.layout import expand_dims
from gtape.ops.packing import stack, unstack
from gtape.ops.scalars import where


class RNN(Layer):
    """A cell applied to [batch, steps, features], one step after another.

    Args:
        cell: called as cell(x, states), gives (output, states); has `state_size` and, unless it
            is zeros, `get_initial_state(batch_size)`.
        return_sequences: give the outputs of all steps, [batch, steps, units].
        return_state: give the last states after the output.
        go_backwards: begin at the last step.
        stateful: begin where the last batch ended, until `reset_state`.
    """

    def __init__(self, cell: Any, return_sequences: bool = False, return_state: bool = False,
                 go_backwards: bool = False, stateful: bool = False, unroll: bool = False,
                 **kwargs: Any) -> None:
        kwargs.pop("zero_output_for_mask", None)
        super().__init__(**kwargs)
        if not hasattr(cell, "state_size") or not callable(cell):
            raise ValueError(f"RNN takes a cell with state_size and call(x, states); got "
                             f"{shown(cell)}")
        self.cell = cell
        self.return_sequences, self.return_state = bool(return_sequences), bool(return_state)
        self.go_backwards, self.stateful = bool(go_backwards), bool(stateful)
        self._kept: Any = None

    def build(self, input_shape: Any) -> None:
        if len(input_shape) != 3:
            raise ValueError(f"the layer '{self.name}' takes [batch, steps, features]; got shape "
                             f"{tuple(input_shape)}")
        if isinstance(self.cell, Layer) and not self.cell.built:
            self.cell.build((input_shape[0], input_shape[2]))

    def reset_state(self) -> None:
        """Begin with the cell's initial state again."""
        self._kept = None

    def _initial(self, batch: int, given: Any) -> list[Any]:
        if given is not None:
            return list(given) if isinstance(given, (list, tuple)) else [given]
        if self.stateful and self._kept is not None:
            return list(self._kept)
        if hasattr(self.cell, "get_initial_state"):
            found = self.cell.get_initial_state(batch_size=batch)
            return list(found) if isinstance(found, (list, tuple)) else [found]
        from gtape.ops.creation import zeros

        size = self.cell.state_size
        lengths = size if isinstance(size, (list, tuple)) else [size]
        return [zeros((batch, n), self._dtype) for n in lengths]

    def call(self, sequences: Any, initial_state: Any = None, mask: Any = None,
             training: Any = None) -> Any:
        check_rank(self, sequences, 3)
        states = self._initial(sequences.shape[0], initial_state)
        step, inputs = self._prepared(sequences, training)
        at = range(len(inputs))
        kept = None if mask is None else [expand_dims(m, 1) for m in unstack(mask, axis=1)]
        outputs: list[Any] = []
        for i in reversed(at) if self.go_backwards else at:
            output, new = step(inputs[i], states)
            if kept is not None:
                before = outputs[-1] if outputs else output * 0.0
                output = where(kept[i], output, before)
                new = [where(kept[i], n, s) for n, s in zip(new, states)]
            outputs.append(output)
            states = new
        if self.stateful:
            self._kept = tuple(states)
        made = stack(outputs, axis=1) if self.return_sequences else outputs[-1]
        return (made, *states) if self.return_state else made

    def _prepared(self, sequences: Any, training: Any) -> tuple[Any, list[Any]]:
        """(what to call at each step, its inputs)."""
        cell = self.cell
        if not isinstance(cell, Cell):
            def called(x: Any, states: list[Any]) -> Any:
                single = not isinstance(cell.state_size, (list, tuple))
                output, new = cell(x, states)
                return output, [new] if single and not isinstance(new, (list, tuple)) else list(new)

            return called, unstack(sequences, axis=1)
        scale = None
        if training and cell.dropout:
            sequences = self._dropout(cell.dropout)(
                ones((sequences.shape[0], 1, sequences.shape[2]), sequences.dtype),
                training=True) * sequences
        if training and cell.recurrent_dropout:
            scale = self._dropout(cell.recurrent_dropout)(
                ones((sequences.shape[0], cell.units), sequences.dtype), training=True)

        def advanced(x: Any, states: list[Any]) -> Any:
            if scale is not None:
                states = [states[0] * scale, *states[1:]]
            new = cell.advance(x, states)
            return new[0], new

        return advanced, unstack(cell.project(sequences), axis=1)

    def _dropout(self, rate: float) -> Dropout:
        if "_mask_layer" not in self.__dict__:
            self.__dict__["_mask_layer"] = Dropout(rate, name="dropout")
        layer: Dropout = self.__dict__["_mask_layer"]
        layer.rate = rate
        return layer

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Any:
        return previous_mask if self.return_sequences else None


_OWN = ("return_sequences", "return_state", "go_backwards", "stateful", "unroll", "name",
        "trainable", "activity_regularizer", "input_shape", "batch_input_shape", "input_dim",
        "zero_output_for_mask")


class _CellLayer(RNN):
    """An RNN that makes its cell: the cell's arguments, then those of `RNN`."""

    _cell: Any

    def __init__(self, units: int, *args: Any, **kwargs: Any) -> None:
        own = {name: kwargs.pop(name) for name in _OWN if name in kwargs}
        kwargs.pop("use_cudnn", None)
        kwargs.pop("implementation", None)
        dtype = kwargs.get("dtype")
        name = self._cell.__name__
        from gtape.keras.naming import snake_case

        super().__init__(self._cell(units, *args, name=snake_case(name), **kwargs), dtype=dtype,
                         **own)

    @property
    def units(self) -> int:
        return self.cell.units


class SimpleRNN(_CellLayer):
    """h = activation(x W + b + h U), along axis 1."""

    _cell = SimpleRNNCell


class LSTM(_CellLayer):
    """Long short-term memory, along axis 1; see `LSTMCell` and `RNN` for the arguments."""

    _cell = LSTMCell


class GRU(_CellLayer):
    """Gated recurrent units, along axis 1; see `GRUCell` and `RNN` for the arguments."""

    _cell = GRUCell

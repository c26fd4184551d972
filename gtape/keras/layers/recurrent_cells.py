"""Recurrent cells: one step of a simple, LSTM or GRU network.

A cell is called as cell(x, states) and gives (output, states). The cells here split the step into
`project`, which does not depend on the state and so is computed for all steps at once, and
`advance`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from gtape.keras import activations, constraints, initializers, regularizers
from gtape.keras.layers.arguments import axis_length, positive, share
from gtape.keras.layers.layer import Layer
from gtape.ops.packing import split
from gtape.ops.products import matmul
from gtape.ops.scalars import add


class Cell(Layer):
    """What the cells share: kernel [in, gates units], recurrent_kernel [units, gates units]."""

    gates: ClassVar[int]
    states: ClassVar[int] = 1

    def __init__(self, units: int, activation: Any = "tanh", use_bias: bool = True,
                 kernel_initializer: Any = "glorot_uniform",
                 recurrent_initializer: Any = "orthogonal", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
                 bias_regularizer: Any = None, kernel_constraint: Any = None,
                 recurrent_constraint: Any = None, bias_constraint: Any = None,
                 dropout: float = 0.0, recurrent_dropout: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = positive("units", units)
        self.activation = activations.get(activation)
        self.use_bias = bool(use_bias)
        self.initializers = tuple(map(initializers.get, (
            kernel_initializer, recurrent_initializer, bias_initializer)))
        self.regularizers = tuple(map(regularizers.get, (
            kernel_regularizer, recurrent_regularizer, bias_regularizer)))
        self.constraints = tuple(map(constraints.get, (
            kernel_constraint, recurrent_constraint, bias_constraint)))
        self.dropout = share("dropout", dropout)
        self.recurrent_dropout = share("recurrent_dropout", recurrent_dropout)

    @property
    def state_size(self) -> Any:
        return self.units if self.states == 1 else [self.units] * self.states

    def _weight(self, kind: int, shape: tuple[int, ...], name: str) -> Any:
        return self.add_weight(shape, self.initializers[kind],
                               regularizer=self.regularizers[kind],
                               constraint=self.constraints[kind], name=name)

    def build(self, input_shape: Any) -> None:
        wide = self.gates * self.units
        self.kernel = self._weight(0, (axis_length(self, input_shape, -1), wide), "kernel")
        self.recurrent_kernel = self._weight(1, (self.units, wide), "recurrent_kernel")
        self.bias = self._bias() if self.use_bias else None

    def _bias(self) -> Any:
        return self._weight(2, (self.gates * self.units,), "bias")

    def project(self, x: Any) -> Any:
        """The part of the step that does not depend on the state, for [..., in]."""
        y = matmul(x, self.kernel)
        return y if self.bias is None else add(y, self.bias)

    def advance(self, projected: Any, states: list[Any]) -> list[Any]:
        """The new states; the first is the output."""
        raise NotImplementedError

    def call(self, inputs: Any, states: Any, training: Any = None) -> Any:
        given = list(states) if isinstance(states, (list, tuple)) else [states]
        made = self.advance(self.project(inputs), given)
        return made[0], made

    def get_initial_state(self, batch_size: int) -> list[Any]:
        """Zeros."""
        from gtape.ops.creation import zeros

        return [zeros((batch_size, self.units), self._dtype) for _ in range(self.states)]


class SimpleRNNCell(Cell):
    """h = activation(x W + b + h U)."""

    gates = 1

    def advance(self, projected: Any, states: list[Any]) -> list[Any]:
        return [self.activation(add(projected, matmul(states[0], self.recurrent_kernel)))]


class LSTMCell(Cell):
    """Long short-term memory. Hochreiter & Schmidhuber 1997; gates in the order i, f, c, o.

    `unit_forget_bias` starts the bias of f at 1.
    """

    gates, states = 4, 2

    def __init__(self, units: int, activation: Any = "tanh",
                 recurrent_activation: Any = "sigmoid", use_bias: bool = True,
                 unit_forget_bias: bool = True, **kwargs: Any) -> None:
        super().__init__(units, activation, use_bias, **kwargs)
        self.recurrent_activation = activations.get(recurrent_activation)
        self.unit_forget_bias = bool(unit_forget_bias)

    def _bias(self) -> Any:
        bias = super()._bias()
        if self.unit_forget_bias:
            values = bias.numpy()
            values[self.units: 2 * self.units] = 1
            bias.assign(values)
        return bias

    def advance(self, projected: Any, states: list[Any]) -> list[Any]:
        h, c = states
        total = add(projected, matmul(h, self.recurrent_kernel))
        i, f, candidate, o = split(total, 4, axis=-1)
        gate = self.recurrent_activation
        c = gate(f) * c + gate(i) * self.activation(candidate)
        return [gate(o) * self.activation(c), c]


class GRUCell(Cell):
    """Gated recurrent unit. Cho et al. 2014, arXiv:1406.1078; gates in the order z, r, h.

    With `reset_after` the reset gate acts on h U, which then has a bias of its own: bias
    [2, 3 units].
    """

    gates = 3

    def __init__(self, units: int, activation: Any = "tanh",
                 recurrent_activation: Any = "sigmoid", use_bias: bool = True,
                 reset_after: bool = True, **kwargs: Any) -> None:
        super().__init__(units, activation, use_bias, **kwargs)
        self.recurrent_activation = activations.get(recurrent_activation)
        self.reset_after = bool(reset_after)

    def _bias(self) -> Any:
        wide = 3 * self.units
        return self._weight(2, (2, wide) if self.reset_after else (wide,), "bias")

    def project(self, x: Any) -> Any:
        y = matmul(x, self.kernel)
        if self.bias is None:
            return y
        return add(y, self.bias[0] if self.reset_after else self.bias)

    def advance(self, projected: Any, states: list[Any]) -> list[Any]:
        h = states[0]
        xz, xr, xh = split(projected, 3, axis=-1)
        gate = self.recurrent_activation
        if self.reset_after:
            inner = matmul(h, self.recurrent_kernel)
            if self.bias is not None:
                inner = add(inner, self.bias[1])
            hz, hr, hh = split(inner, 3, axis=-1)
            z, r = gate(xz + hz), gate(xr + hr)
            new = self.activation(xh + r * hh)
        else:
            uz, ur, uh = split(self.recurrent_kernel, 3, axis=-1)
            z, r = gate(xz + matmul(h, uz)), gate(xr + matmul(h, ur))
            new = self.activation(xh + matmul(r * h, uh))
        return [z * h + (1.0 - z) * new]

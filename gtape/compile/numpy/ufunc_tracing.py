"""Scalar ops as the ufuncs that they call.

A scalar op that NumPy lacks is spelled by a function of an array module, such as
1 / (1 + xp.exp(-x)). Called with a module that takes notes, it says which ufuncs it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.compile.numpy.values import ArrayFunction, ArrayValue, Cast, NumpyStep, Spread, UfuncStep

Number = bool | int | float | complex
_NUMBERS = (bool, int, float, complex)


class _Unknown(Exception):
    """The function asks for more than dtypes and ufuncs."""


class Maps:
    """Makes `UfuncStep`s, each once; `steps` collects all steps."""

    def __init__(self) -> None:
        self.steps: list[NumpyStep] = []
        self._made: dict[Any, ArrayValue] = {}
        self._functions: dict[Any, ArrayFunction] = {}
        self._constants: dict[Any, ArrayValue] = {}

    def add(self, step: NumpyStep) -> ArrayValue:
        self.steps.append(step)
        return step.outputs[0]

    def constant(self, array: Any) -> ArrayValue:
        """An array that is known now; numbers are shared."""
        array = np.asarray(array)
        if array.ndim or array.dtype.kind == "O":
            return ArrayValue(array.shape, array.dtype, None, ("constant", array))
        key = (array.dtype, array.tobytes())
        if key not in self._constants:
            self._constants[key] = ArrayValue((), array.dtype, None, ("constant", array))
        return self._constants[key]

    # ------------------------------------------------------------------ scalar ops

    def apply(self, op: Any, args: Sequence[ArrayValue | Number]) -> ArrayValue | Number:
        """A scalar op of values and numbers."""
        spelled = op._numpy
        start, made = len(self.steps), len(self._made)
        try:
            if isinstance(spelled, str):
                return _plain(_Module(self)._call(spelled, args))
            return _plain(spelled(_Module(self), *[_noted(self, a) for a in args]))
        except (_Unknown, TypeError, AttributeError, OverflowError):
            del self.steps[start:]
            while len(self._made) > made:
                self._made.popitem()
        return self._opaque(op, args)

    def _opaque(self, op: Any, args: Sequence[ArrayValue | Number]) -> ArrayValue | Number:
        """The op as one function, which computes what it asks for."""
        values = [a for a in args if isinstance(a, ArrayValue)]
        function = _filled(op.on(np), args)
        with np.errstate(all="ignore"):
            if not values:
                return np.asarray(op.on(np)(*[np.asarray(a)[()] for a in args])).item()
            made = np.asarray(function(*[np.ones((), v.dtype) for v in values]))
        key = (op, *(None if isinstance(a, ArrayValue) else repr(a) for a in args))
        found = self._functions.setdefault(key, ArrayFunction(op.name, function))
        return self._mapped(found, values, made.dtype)

    # ------------------------------------------------------------------ functions

    def ufunc(self, function: np.ufunc, args: Sequence[ArrayValue | Number]) -> ArrayValue | Number:
        """A ufunc of values and numbers; a number if there are numbers only."""
        if function.nout != 1 or function.nin != len(args):
            raise _Unknown
        values = [a for a in args if isinstance(a, ArrayValue)]
        if not values:
            with np.errstate(all="ignore"):
                return function(*args).item()
        simpler = self._power(function, args)
        if simpler is not None:
            return simpler
        typed = [a if isinstance(a, ArrayValue) else self._typed(a, values) for a in args]
        typed = self._one_type(function, typed)
        dtype = function.resolve_dtypes((*(v.dtype for v in typed), None))[-1]
        return self._mapped(self._function(function), typed, dtype)

    def _function(self, function: np.ufunc) -> ArrayFunction:
        return self._functions.setdefault(function, ArrayFunction(function.__name__, function,
                                                                  True))

    def _typed(self, number: Number, beside: Sequence[ArrayValue]) -> ArrayValue:
        """A Python number in the dtype that NumPy gives it beside arrays."""
        dtype = np.result_type(number, *(v.dtype for v in beside))
        return self.constant(np.asarray(number, dtype))

    def _one_type(self, function: np.ufunc, args: list[ArrayValue]) -> list[ArrayValue]:
        """A product of floats and bools is five times as slow as one of floats."""
        if function is not np.multiply:
            return args
        kinds = [v.dtype.kind for v in args]
        if sorted(kinds) != ["b", "f"]:
            return args
        dtype = args[kinds.index("f")].dtype
        return [self.cast(v, dtype) if v.dtype.kind == "b" else v for v in args]

    def _power(self, function: np.ufunc, args: Sequence[ArrayValue | Number],
               ) -> ArrayValue | Number | None:
        """The powers that NumPy's operator knows, which the ufunc does not."""
        if function is not np.power or isinstance(args[1], ArrayValue):
            return None
        base, exponent = args
        assert isinstance(base, ArrayValue)
        if exponent == 2:
            return self.ufunc(np.square, [base])
        if base.dtype.kind == "f" and exponent == -1:
            return self.ufunc(np.reciprocal, [base])
        return None

    def cast(self, value: ArrayValue, dtype: np.dtype) -> ArrayValue:
        """A value in another dtype."""
        if value.dtype == dtype:
            return value
        if value.number is not None:
            return self.constant(value.number.astype(dtype))
        value = base(value)
        key = ("cast", dtype, id(value))
        if key not in self._made:
            function = ArrayFunction("cast", dtype.type)
            self._made[key] = self.add(Cast(function, [value], value.shape, dtype))
        return self._made[key]

    def where(self, *args: ArrayValue | Number) -> ArrayValue:
        """NumPy's choice between two."""
        values = [a for a in args[1:] if isinstance(a, ArrayValue)]
        if not isinstance(args[0], ArrayValue) or args[0].dtype != bool:
            raise _Unknown
        typed = [args[0], *(a if isinstance(a, ArrayValue) else (
            self._typed(a, values) if values else self.constant(np.asarray(a))) for a in args[1:])]
        dtype = np.result_type(*(v.dtype for v in typed[1:]))
        function = self._functions.setdefault("where", ArrayFunction("where", np.where))
        return self._mapped(function, [typed[0], *(self.cast(v, dtype) for v in typed[1:])], dtype)

    def _mapped(self, function: ArrayFunction, args: Sequence[ArrayValue],
                dtype: np.dtype) -> ArrayValue:
        if any(v.dtype.kind == "O" for v in args) or dtype.kind == "O":
            raise _Unknown
        found = [base(v) for v in args]
        key = (function, *map(id, found))
        if key not in self._made:
            shape = np.broadcast_shapes(*(v.shape for v in found))
            self._made[key] = self.add(UfuncStep(function, found, shape, dtype))
        return self._made[key]


def base(value: ArrayValue) -> ArrayValue:
    """What was broadcast to the value."""
    while isinstance(value.step, Spread):
        value = value.step.inputs[0]
    return value


def _filled(function: Callable[..., Any], args: Sequence[Any]) -> Callable[..., Any]:
    """`function` with the numbers among its arguments in their places."""
    if all(isinstance(a, ArrayValue) for a in args):
        return function

    def call(*values: Any) -> Any:
        rest = iter(values)
        return function(*[next(rest) if isinstance(a, ArrayValue) else a for a in args])

    return call


def _plain(made: Any) -> ArrayValue | Number:
    return made.value if isinstance(made, _Noted) else made


def _noted(maps: Maps, arg: ArrayValue | Number) -> Any:
    return _Noted(maps, arg) if isinstance(arg, ArrayValue) else arg


class _Module:
    """An array module whose functions are noted."""

    def __init__(self, maps: Maps) -> None:
        self._maps = maps

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args: self._call(name, args)

    def _call(self, name: str, args: Sequence[Any]) -> Any:
        maps, plain = self._maps, [_plain(a) for a in args]
        if not all(isinstance(a, (ArrayValue, *_NUMBERS)) for a in plain):
            raise _Unknown
        if name == "where":
            return _noted(maps, maps.where(*plain))
        if name in ("zeros_like", "ones_like"):
            (like,) = plain
            if not isinstance(like, ArrayValue):
                raise _Unknown
            return _noted(maps, maps.constant(np.asarray(int(name == "ones_like"), like.dtype)))
        function = getattr(np, name)
        if not isinstance(function, np.ufunc):
            raise _Unknown
        return _noted(maps, maps.ufunc(function, plain))


class _Noted:
    """An array whose operators are noted."""

    __array_ufunc__ = None

    def __init__(self, maps: Maps, value: ArrayValue) -> None:
        self._maps, self.value = maps, value

    @property
    def dtype(self) -> np.dtype:
        return self.value.dtype

    def astype(self, dtype: Any) -> _Noted:
        return _Noted(self._maps, self._maps.cast(self.value, np.dtype(dtype)))

    def __bool__(self) -> bool:
        raise _Unknown


def _operator(function: Any, swapped: bool = False) -> Callable[..., Any]:
    def operator(self: _Noted, *others: Any) -> Any:
        args = [self.value, *map(_plain, others)]
        return _noted(self._maps, self._maps.ufunc(function, args[::-1] if swapped else args))

    return operator


for _name, _ufunc in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply),
                      ("truediv", np.divide), ("floordiv", np.floor_divide), ("pow", np.power),
                      ("mod", np.remainder), ("and", np.bitwise_and), ("or", np.bitwise_or)):
    setattr(_Noted, f"__{_name}__", _operator(_ufunc))
    setattr(_Noted, f"__r{_name}__", _operator(_ufunc, swapped=True))
for _name, _function in (("gt", np.greater), ("ge", np.greater_equal), ("lt", np.less),
                         ("le", np.less_equal), ("eq", np.equal), ("ne", np.not_equal),
                         ("neg", np.negative), ("invert", np.invert), ("abs", np.absolute)):
    setattr(_Noted, f"__{_name}__", _operator(_function))

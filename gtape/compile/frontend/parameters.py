"""Binding: how the arguments of a call find the parameters of a Python function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from gtape.compile.frontend.signature import fit_to_spec
from gtape.core import nest
from gtape.core.formatting import shown
from gtape.core.type_specs import TypeSpec

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Binding:
    """The parameters of a function, and of the method of an object where `bound` is true.

    Args:
        input_signature: nests of TensorSpecs for the first parameters, but for one named `self`:
            a method is decorated before it is bound.

    Raises:
        TypeError: the input_signature does not fit the parameters.
    """

    def __init__(self, function: Callable[..., Any], name: str, input_signature: Any,
                 bound: bool) -> None:
        self.name = name
        self.input_signature = input_signature
        try:
            signature = inspect.signature(function)
        # Some callables of C have no signature that Python can tell.
        except (TypeError, ValueError):
            signature = inspect.signature(lambda *args, **kwargs: None)
        parameters = list(signature.parameters.values())[int(bound):]
        self.signature = inspect.Signature(parameters)
        self._simple = len(parameters) if all(
            p.kind in _POSITIONAL for p in parameters) else -1
        #: How many of the first parameters the input_signature leaves out.
        self._left_out = int(input_signature is not None and bool(parameters)
                             and parameters[0].name == "self" and parameters[0].kind in _POSITIONAL)
        self._check_signature(parameters[self._left_out:])

    def _check_signature(self, parameters: Sequence[inspect.Parameter]) -> None:
        if self.input_signature is None:
            return
        if not isinstance(self.input_signature, (list, tuple)):
            raise TypeError(f"{self.name}: input_signature must be a list of TensorSpecs, one for "
                            f"each parameter; got {shown(self.input_signature)}")
        wrong = [s for s in nest.flatten(list(self.input_signature))
                 if not isinstance(s, TypeSpec)]
        if wrong:
            raise TypeError(f"{self.name}: input_signature must hold TensorSpecs, such as "
                            f"tf.TensorSpec([None, 3], tf.float32); got {shown(wrong[0])}")
        count = len(self.input_signature)
        named = [p for p in parameters if p.kind in _POSITIONAL]
        if count > len(named) and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
            raise TypeError(f"{self.name}{self.signature} has {len(named)} positional parameters; "
                            f"input_signature describes {count}")
        rest = [p.name for p in (*named[count:], *(p for p in parameters
                                                   if p.kind is p.KEYWORD_ONLY))
                if p.default is p.empty]
        if rest:
            raise TypeError(f"{self.name}: input_signature must describe every parameter without "
                            f"a default; it says nothing of {', '.join(rest)}")

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any],
                 ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments in one form however they were given: positional ones by position, with
        the defaults, and as tensors where the input_signature describes them.

        Raises:
            TypeError: they do not fit the parameters or the input_signature.
        """
        # The usual call: all parameters by position, and nothing to bind, which takes microseconds.
        if self.input_signature is None and not kwargs and len(args) == self._simple:
            return args, kwargs
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}{self.signature}: {error}") from None
        bound.apply_defaults()
        if self.input_signature is None:
            return bound.args, bound.kwargs
        return self._fitted(bound.args, bound.kwargs), bound.kwargs

    def _fitted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        names, count = self.names(len(args))[self._left_out:], len(self.input_signature)
        left_out, args = args[:self._left_out], args[self._left_out:]
        if len(args) < count:
            raise TypeError(f"{self.name}: input_signature describes {count} arguments; "
                            f"got {len(args)}")
        rest = dict(zip(names[count:], args[count:])) | kwargs
        extra = [name for name, value in rest.items() if value is not self._default(name)]
        if extra:
            raise TypeError(f"{self.name}: input_signature describes {count} arguments; got "
                            f"'{extra[0]}' as well")
        fit = [fit_to_spec(value, spec, name, self.name)
               for value, spec, name in zip(args, self.input_signature, names)]
        return (*left_out, *fit, *args[count:])

    def _default(self, name: str) -> Any:
        parameter = self.signature.parameters.get(name)
        return inspect.Parameter.empty if parameter is None else parameter.default

    def names(self, count: int) -> list[str]:
        """The names of `count` positional arguments."""
        names: list[str] = []
        for p in self.signature.parameters.values():
            if p.kind in _POSITIONAL:
                names.append(p.name)
            elif p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}[{i}]" for i in range(count - len(names))]
        return names[:count]

"""What objects of Keras hold, by name.

Keras is not imported for this: a program that has not touched it has no object of it to save.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from gtape.core.variable import is_variable
from gtape.train.python_states import Boundaries, Vocabulary

#: Attributes that list again what others hold, and those that `fit` begins anew.
_NOT_SAVED = frozenset((
    "_trainable_variables", "_non_trainable_variables", "_layers", "_metrics", "_seed_generators",
    "_losses", "_tracker", "_functional", "_operations", "_operations_by_depth", "_nodes",
    "_nodes_by_depth", "_inbound_nodes", "_outbound_nodes", "_compile_metrics", "_loss_tracker"))
#: Variables of lookup layers that say what their vocabulary says, or what `adapt` begins anew.
_OF_VOCABULARIES = frozenset(("idf_weights", "num_documents"))


def _keras() -> Any:
    """Keras on gtape, once it is there."""
    binding = sys.modules.get("gtape.engine.binding")
    return None if binding is None else binding.bound()


def is_layer(value: object) -> bool:
    """Whether `value` is a layer or a model."""
    keras = _keras()
    return keras is not None and isinstance(value, keras.layers.Layer)


def is_optimizer(value: object) -> bool:
    keras = _keras()
    return keras is not None and isinstance(value, keras.optimizers.Optimizer)


def has_state(value: object) -> bool:
    """Whether `value` is an object of Keras that has variables, or may have some later."""
    keras = _keras()
    return keras is not None and isinstance(value, (
        keras.layers.Layer, keras.optimizers.Optimizer, keras.metrics.Metric,
        keras.random.SeedGenerator))


def lacks_weights(layer: Any) -> bool:
    """Whether a layer has yet to run a `build` of its own; that of Sequential only builds others. A
    layer without such a method, such as Dropout, has no weights that could be missing."""
    build = type(layer).build
    return not (layer.built or getattr(build, "_is_default", False)
                or build is _keras().Sequential.build or is_of_words_or_bins(layer))


def is_of_words_or_bins(layer: object) -> bool:
    """Whether a layer has a vocabulary or limits of bins, and never any weights."""
    layers = _keras().layers
    return isinstance(layer, (layers.StringLookup, layers.IntegerLookup, layers.TextVectorization,
                              layers.Discretization))


def settle(layer: Any) -> None:
    """Let a layer whose variables were restored compute what it keeps beside them, as
    Normalization keeps its mean and variance."""
    finalize = getattr(layer, "finalize_state", None)
    if finalize is not None and layer.variables:
        finalize()


def attributes(value: Any) -> Mapping[str, object]:
    """What an object of Keras holds by its attributes, as they are called outside of it."""
    keras = _keras()
    if isinstance(value, keras.metrics.Metric):
        return {str(i): variable for i, variable in enumerate(value.variables)}
    if isinstance(value, keras.random.SeedGenerator):
        return {"state": value.state}
    # Not getattr of each: properties compute, and some of Keras' raise before a build.
    own = vars(value)
    shown = {public(name, own): held for name, held in own.items() if name not in _NOT_SAVED}
    if isinstance(value, (keras.layers.StringLookup, keras.layers.IntegerLookup)):
        shown = {name: held for name, held in shown.items() if name not in _OF_VOCABULARIES}
        shown["vocabulary"] = Vocabulary(value)
    if isinstance(value, keras.layers.Discretization):
        shown["bin_boundaries"] = Boundaries(value)
    # Sequential and functional models hold their layers in lists that are not saved.
    if "_functional" in own or "_operations" in own:
        shown["layers"] = value.layers
    return shown


def public(name: str, others: Mapping[str, object]) -> str:
    """`kernel` for the attribute `_kernel`, unless there is another of this name."""
    shown = name.lstrip("_")
    return name if not shown or shown in others else shown


def others(value: Any, attributes: Mapping[str, object], held: Mapping[int, object],
           ) -> dict[str, object]:
    """The weights of a layer and the layers in it that are not `held` by its attributes."""
    missed: dict[str, Any] = {}
    if is_layer(value):
        for variable in (*value._trainable_variables, *value._non_trainable_variables):
            if id(variable) not in held:
                # Keras gives several variables of a layer one name.
                name = variable.name
                while name in attributes or name in missed:
                    name += "_"
                missed[name] = variable
        if "layers" not in attributes:
            missed["layers"] = [layer for layer in value._layers if id(layer) not in held]
    return missed


def optimizers_in(optimizer: object) -> list[tuple[str, Any]]:
    """(name, optimizer) of those that an optimizer hands its variables to."""
    inner = []
    for name, value in sorted(vars(optimizer).items()):
        shown = public(name, vars(optimizer))
        if is_optimizer(value):
            inner.append((shown, value))
        elif isinstance(value, list) and value and all(is_optimizer(item) for item in value):
            inner += [(f"{shown}/{i}", item) for i, item in enumerate(value)]
    return inner


def optimizer_variables(optimizer: Any) -> list[tuple[str, int | None, Any]]:
    """(name, the position of the variable that it belongs to, variable) of an optimizer's own. An
    attribute with one of them for each variable is a slot; the rest belong to all."""
    own = {id(variable): i for i, variable in enumerate(optimizer._variables)}
    count = len(optimizer._trainable_variables)
    named: list[tuple[str, int | None, Any]] = []
    # Sorted, as everything in a file: attributes stand in the order in which they were set.
    for name, value in sorted(vars(optimizer).items()):
        shown = public(name, vars(optimizer))
        if name in _NOT_SAVED:
            continue
        # Popped, so that what two attributes hold has one name, the first in order.
        if is_variable(value) and own.pop(id(value), None) is not None:
            named.append((shown, None, value))
        elif isinstance(value, list) and len(value) == count:
            named += [(shown, i, item) for i, item in enumerate(value)
                      if own.pop(id(item), None) is not None]
    return named + [(f"variables/{i}", None, optimizer._variables[i]) for i in own.values()]

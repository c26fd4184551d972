"""Nests keep order and classes. Those without end are refused, deep ones serve: no hang, no full
stack, no lost memory."""

from __future__ import annotations

from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import gtape as tf

_Pair = namedtuple("_Pair", "x y")
_ITEMS = {"b": 1, "a": 2}


class _List(list[int]):
    pass


@pytest.mark.parametrize("mapping", [
    _ITEMS, OrderedDict(_ITEMS), defaultdict(int, _ITEMS), UserDict(_ITEMS),
    MappingProxyType(_ITEMS)], ids=lambda m: type(m).__name__)
def test_mappings_are_flattened_by_key_and_keep_their_order(mapping: Any) -> None:
    assert tf.nest.flatten(mapping) == [2, 1]
    mapped = tf.nest.map_structure(lambda x: 10 * x, mapping)
    assert list(mapped.items()) == [("b", 10), ("a", 20)]


@pytest.mark.parametrize("sequence", [_List([1, 2]), deque([1, 2]), _Pair(1, 2)],
                         ids=lambda s: type(s).__name__)
def test_sequences_keep_their_class(sequence: Any) -> None:
    assert tf.nest.flatten(sequence) == [1, 2]
    mapped = tf.nest.map_structure(lambda x: 10 * x, sequence)
    assert type(mapped) is type(sequence)
    assert list(mapped) == [10, 20]


def test_keys_that_cannot_be_sorted_are_refused() -> None:
    with pytest.raises(TypeError, match="must be sortable"):
        tf.nest.flatten({1: 1, "a": 2})


def _list() -> Any:
    made: list[Any] = []
    made.append(made)
    return made


def _pair() -> Any:
    made: list[Any] = [1.0]
    made += [(made, made)]
    return made


def _dict() -> Any:
    made: dict[str, Any] = {"x": 1.0}
    made["y"] = [made]
    return made


def _wide() -> Any:
    made: list[Any] = [1.0] * 1000
    made += [[made], [made], made]
    return made


def _gradient(target: Any, source: Any) -> Any:
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
    return tape.gradient(y if target is None else target, x if source is None else source)


_USES: dict[str, Callable[[Any], Any]] = {
    "nest.flatten": tf.nest.flatten,
    "nest.map_structure": lambda a: tf.nest.map_structure(lambda x: x, a),
    "nest.assert_same_structure": lambda a: tf.nest.assert_same_structure(a, a),
    "nest.pack_sequence_as": lambda a: tf.nest.pack_sequence_as(a, [1]),
    "target": lambda a: _gradient(a, None),
    "source": lambda a: _gradient(None, a),
    "map_fn": lambda a: tf.map_fn(lambda x: x, a),
    "map_fn's result": lambda a: tf.map_fn(lambda x: a, tf.ones([3])),
    "vectorized_map": lambda a: tf.vectorized_map(lambda x: x, a),
    "while_loop": lambda a: tf.while_loop(lambda x: False, lambda x: x, [a]),
    "function's argument": lambda a: tf.function(lambda x: 1.0)(a),
    "function's result": lambda a: tf.function(lambda x: a)(tf.ones([3])),
    "custom_gradient": lambda a: tf.custom_gradient(lambda x: (a, lambda g: g))(tf.ones([])),
    "recompute_grad": lambda a: tf.recompute_grad(lambda x: a)(tf.ones([])),
}

#: These take no dicts.
_OF_LISTS: dict[str, Callable[[Any], Any]] = {
    "constant": tf.constant,
    "convert_to_tensor": tf.convert_to_tensor,
    "Variable": tf.Variable,
    "an operand": lambda a: tf.ones([2]) + a,
    "stack": tf.stack,
    "concat": lambda a: tf.concat(a, 0),
    "a shape": tf.zeros,
    "an axis": lambda a: tf.reduce_sum(tf.ones([2]), a),
}


@pytest.mark.parametrize("make", [_list, _pair, _dict, _wide])
@pytest.mark.parametrize("name", _USES)
def test_structures_that_contain_themselves(name: str, make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="must not contain itself"):
        _USES[name](make())


@pytest.mark.parametrize("make", [_list, _pair, _wide])
@pytest.mark.parametrize("name", _OF_LISTS)
def test_lists_that_contain_themselves(name: str, make: Callable[[], Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        _OF_LISTS[name](make())


def test_one_container_twice_is_no_circle() -> None:
    inner = [1, 2]
    assert tf.nest.flatten([inner, inner, (inner, [inner])]) == [1, 2] * 4


def _deep(depth: int, wrap: Callable[[Any], Any], leaf: Any = 1.0) -> Any:
    for _ in range(depth):
        leaf = wrap(leaf)
    return leaf


@pytest.mark.parametrize("wrap", [lambda a: [a], lambda a: (a,), lambda a: {"k": a}])
def test_deep_structures_serve(wrap: Callable[[Any], Any]) -> None:
    deep = _deep(3000, wrap)
    assert tf.nest.flatten(deep) == [1.0]
    doubled = tf.nest.map_structure(lambda x: 2 * x, deep)
    assert tf.nest.flatten(doubled) == [2.0]
    tf.nest.assert_same_structure(deep, doubled)
    assert float(_gradient(None, _deep(1, wrap, tf.Variable(1.0))) is None) == 0.0


def test_tensors_and_arguments_have_a_depth() -> None:
    deep = _deep(1000, lambda a: [a])
    for use in _OF_LISTS.values():
        with pytest.raises((ValueError, TypeError)):
            use(deep)
    with pytest.raises(ValueError, match="64 deep"):
        tf.constant(deep)
    with pytest.raises(ValueError, match="200 deep"):
        tf.function(lambda x: 1.0)(deep)
    found = tf.function(tf.nest.flatten)(_deep(100, lambda a: [a], tf.ones([2])))
    np.testing.assert_array_equal(found[0], np.ones(2))


class _Sullen:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def test_messages_come_about_whatever_the_value() -> None:
    for value in (_Sullen(), [_Sullen()], _deep(5000, lambda a: [a]), list(range(10**6))):
        with pytest.raises((ValueError, TypeError)) as caught:
            tf.zeros([2], value)
        assert len(str(caught.value)) < 1000

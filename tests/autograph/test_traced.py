"""Choices and loops by traced values, against the same functions run eagerly."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.core import nest


def _same(fn: Any, *calls: tuple[Any, ...]) -> None:
    traced = tf.function(fn)
    for args in calls:
        tensors = [tf.constant(a) for a in args]
        expected, got = fn(*tensors), traced(*tensors)
        nest.assert_same_structure(expected, got)
        for a, b in zip(nest.flatten(expected), nest.flatten(got)):
            np.testing.assert_array_equal(b, a)


def test_choices() -> None:
    def f(x: Any) -> Any:
        y = x
        if x > 3.0:
            y = x * 2.0
            return y, 1.0
        if x < 0.0:
            y = -x
        return (y, 0.5) if not y > 1.0 or x < -2.0 else (x, 0.0)

    _same(f, (5.0,), (2.0,), (0.5,), (-1.5,), (-3.0,))


def test_logic_is_evaluated_only_where_python_would() -> None:
    def f(x: Any, y: Any) -> Any:
        return (x > 0 and y > 0, x > 0 or y > 0, not x > 0, 0 < x < y, 0 < x < y < 5.0,
                x > 0 and tf.reduce_sum(y) > 2.0 and True, False or x > 1.0, x and y, x or y)

    _same(f, (1.0, 2.0), (-1.0, 2.0), (0.0, -3.0), (4.0, 6.0))


def test_the_right_operand_runs_only_if_it_must() -> None:
    v = tf.Variable(0.0)

    def counted(x: Any) -> Any:
        v.assign_add(1.0)
        return x > 1.0

    @tf.function
    def f(x: Any) -> Any:
        return x > 0 and counted(x)

    assert [bool(f(tf.constant(x))) for x in (-1.0, 0.5, 2.0)] == [False, False, True]
    assert v == 2.0


def test_loops() -> None:
    def f(x: Any) -> Any:
        total, turns = 0.0, 0
        while x < 100.0:
            x = x * 2.0 + 1.0
            turns += 1
            if x > 50.0 and turns > 3:
                break
            if turns == 2:
                continue
            total += x
        else:
            total = -total
        return x, total, turns

    _same(f, (1.0,), (30.0,), (40.0,), (200.0,))


def test_for_over_rows_ranges_pairs_and_numbered_rows() -> None:
    def f(x: Any, n: Any) -> Any:
        s, k = 0.0, 0
        for row in x:
            if row[0] > 2.0:
                break
            s += tf.reduce_sum(row)
        for i in range(n):
            k += i * i
        for i in range(10, n, -3):
            k += 100 * i
        for i, (a, b) in enumerate(zip(x, x * 2.0), 1):
            s += a[0] * b[1] * tf.cast(i, tf.float32)
        return s, k

    _same(f, ([[1.0, 2.0], [2.0, 1.0], [3.0, 4.0]], 4), ([[9.0, 2.0], [2.0, 1.0], [3.0, 4.0]], 0))


def test_return_inside_loops() -> None:
    def f(x: Any) -> Any:
        for i in tf.range(4):
            if x > 20.0:
                return x, i
            x = x * 2.0 + 1.0
        while True:
            x -= 3.0
            if x < 2.0:
                return -x, -1

    _same(f, (30.0,), (7.0,), (0.0,), (-5.0,))


def test_return_inside_with_and_finally() -> None:
    def f(x: Any) -> Any:
        done = 0.0
        with tf.GradientTape() as tape:
            tape.watch(x)
            try:
                if x > 1.0:
                    return x * 5.0, done
                y = x * x * x
            finally:
                done += 1.0
        return tape.gradient(y, x), done

    _same(f, (3.0,), (0.5,))


def test_a_python_loop_that_a_traced_value_ends() -> None:
    def f(x: Any) -> Any:
        seen = [x]
        for k in [1.0, 2.0, 3.0]:
            if x > 5.0:
                break
            x = x * k + 1.0
        return x, seen

    _same(f, (0.0,), (3.0,), (9.0,))


def test_an_endless_python_loop_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import itertools

    from gtape.autograph import looping

    monkeypatch.setattr(looping, "_LONGEST", 20)

    @tf.function
    def f(x: Any) -> Any:
        for k in itertools.count():
            if x > 5.0:
                break
            x = x + k
        return x

    with pytest.raises(ValueError, match="gave more than 20"):
        f(tf.constant(1.0))


def test_attributes_and_items_are_joined() -> None:
    def f(x: Any) -> Any:
        box, table, row = SimpleNamespace(value=1.0, other="o"), {"k": 1.0}, [0.0, 0.0]
        if x > 0:
            box.value = x
            table["k"] += 1.0
        else:
            row[1] = x
        while x < 10.0:
            x = x * 2.0 + 5.0
            box.value += x
        return box.value, table, row

    _same(f, (3.0,), (-1.0,))


def test_items_at_a_computed_index_are_joined() -> None:
    def f(x: Any) -> Any:
        row, last = [0.0, 0.0, 0.0], 2
        if x > 0:
            row[last - 1] = x
        return row

    _same(f, (3.0,), (-1.0,))


def test_choices_in_choices_of_one_expression() -> None:
    _same(lambda x: 1.0 if x > 2.0 else (2.0 if x > 0 else 3.0) if x > -2.0 else 4.0,
          (3.0,), (1.0,), (-1.0,), (-3.0,))


def test_the_middle_of_a_chain_is_evaluated_once() -> None:
    v = tf.Variable(0.0)

    def counted(x: Any) -> Any:
        v.assign_add(1.0)
        return x

    f = tf.function(lambda x: 0.0 < counted(x) < 2.0)
    assert [bool(f(tf.constant(x))) for x in (-1.0, 1.0, 3.0)] == [False, True, False]
    assert v == 3.0


def test_choices_in_the_cases_of_a_match() -> None:
    def f(x: Any, n: int = 1) -> Any:
        match n:
            case 1:
                if x > 0:
                    return x
                x = x - 1.0
            case _:
                x = x * 100.0
        return x

    _same(f, (2.0,), (-2.0,))


def test_items_of_arrays_are_refused() -> None:
    @tf.function
    def f(x: Any) -> Any:
        a = np.zeros(3)
        if x > 0:
            a[0] = 1.0
        return a

    with pytest.raises(ValueError, match="items of a, a ndarray"):
        f(tf.constant(1.0))


def test_tensor_arrays() -> None:
    def f(x: Any, n: Any) -> Any:
        made = tf.TensorArray(tf.float32, 4, element_shape=())
        for i in range(n):
            made = made.write(i, x * tf.cast(i, tf.float32))
        if x > 0:
            made = made.write(3, 7.0)
        return made.stack()

    _same(f, (2.0, 3), (-2.0, 4), (1.0, 0))


def test_variables_are_conditions() -> None:
    n, flag = tf.Variable(3.0), tf.Variable(True)

    @tf.function
    def f() -> Any:
        while n > 0.0:
            n.assign_sub(1.0)
        return 1.0 if flag else 2.0

    assert f() == 1.0
    assert n == 0.0
    flag.assign(False)
    assert f() == 2.0


def test_gradients() -> None:
    @tf.function
    def f(x: Any) -> Any:
        y = x if x > 0 else x * -3.0
        while y < 20.0:
            y = y * x * x
        return y

    for value in (2.0, -1.5):
        x = tf.constant(value)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        with tf.GradientTape() as eager:
            eager.watch(x)
            z = f.python_function(x)
        assert y == z
        assert tape.gradient(y, x) == eager.gradient(z, x)


def test_casts_of_python() -> None:
    _same(lambda x: (float(x) * 0.5, int(x) + 1), (2.7,))
    assert tf.function(lambda x: float(x))(tf.constant(3)).dtype is tf.float32


def test_a_name_set_by_a_function_that_is_called() -> None:
    def f(x: Any) -> Any:
        count = 0.0

        def add() -> None:
            nonlocal count
            count += x

        if x > 1.0:
            add()
        else:
            count = -1.0
        return count

    _same(f, (3.0,), (0.5,))


def test_the_range_of_tensors() -> None:
    def f(x: Any, n: Any) -> Any:
        for i in tf.range(n):
            x += tf.cast(i, tf.float32)
        for i in tf.range(1, n, 2):
            x += tf.cast(i * 10, tf.float32)
        for _ in tf.range(limit=n, start=2):
            x += 100.0
        for i in tf.range(3):
            x += tf.cast(i, tf.float32)
        return x

    _same(f, (1.0, 2), (1.0, 3), (1.0, 6))
    traced = tf.function(f)
    for n in (3, 4, 5):
        traced(tf.constant(1.0), tf.constant(n))
    assert traced.experimental_get_tracing_count() == 1


def test_a_range_of_ones_own() -> None:
    odd = SimpleNamespace(range=lambda n: [n, n + 1])

    def f(x: Any) -> Any:
        for v in odd.range(x):
            x = x + v
        return x

    _same(f, (1.0,))


@pytest.mark.filterwarnings("error::gtape.core.errors.EagerFunctionWarning")
def test_a_range_outside_a_loop_has_no_length_yet() -> None:
    with pytest.raises(tf.errors.EagerFunctionWarning, match=r"for i in tf\.range"):
        tf.function(lambda n: tf.range(n))(tf.constant(3))

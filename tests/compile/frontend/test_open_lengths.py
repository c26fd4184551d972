"""Lengths that a trace leaves open: arithmetic, conditions, and every op at other lengths."""

from __future__ import annotations

import inspect
import itertools
import operator
import random
from collections import Counter

import numpy as np
import pytest

import gtape as tf
from gtape.core import convert as conversion
from gtape.core.convert import convert
from gtape.core.op import Bools, Case, Ints
from gtape.core.symbolic_dim import ConcreteDimNeeded, ShapeEnv, SymbolicDim, slice_length
from gtape.ops import every_module
from gtape.testing import call, declared, draw

every_module()


@pytest.fixture(autouse=True)
def _applied(monkeypatch):
    monkeypatch.setenv("GTAPE_NATIVE", "0")


# ---------------------------------------------------------------------- Length

_OPERATORS = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod,
              lambda a, b: max(a, b), lambda a, b: min(a, b), lambda a, b: a + 1 if a > b else b,
              lambda a, b: abs(a - b), lambda a, b: -a, lambda a, b: divmod(a, 3)[1] + b,
              lambda a, b: b if a == b else a * 2, lambda a, b: a if b else 5]


def _expression(rng, values):
    """A random function of two lengths, as a list of steps on a growing list of values."""
    made = list(values)
    for _ in range(5):
        made.append(rng.choice(_OPERATORS)(rng.choice(made), rng.choice(made)))
    return made


@pytest.mark.parametrize("seed", range(60))
def test_where_the_conditions_hold_the_polynomials_give_the_numbers(seed):
    env, trusted = ShapeEnv(), 0
    start = [env.length(0, 1009), env.length(1, 1113), 1, 3, 4]
    try:
        made = _expression(random.Random(seed), start)
    except ZeroDivisionError:
        return
    env.closed = True
    for n, m in itertools.product(range(7), [0, 1, 2, 5, 1009, 2000]):
        if not env.hold([n, m]):
            continue
        trusted += 1
        wanted = _expression(random.Random(seed), [n, m, 1, 3, 4])
        assert [v.at([n, m]) if type(v) is SymbolicDim else v for v in made] == wanted
    assert trusted or env.guards


def test_a_wrong_condition_would_be_noticed():
    env = ShapeEnv()
    n = env.length(0, 1009)
    assert max(n, 4) is n
    assert env.hold([7])
    assert not env.hold([3])
    env.guards.clear()
    assert env.hold([3])  # then n itself would stand where 4 is right


@pytest.mark.parametrize("use", [
    int, float, range, np.zeros, np.sqrt, np.array, operator.index, lambda n: n / 2,
    lambda n: 2.0 / n, lambda n: 0.5 * n, lambda n: n ** 2, lambda n: [0] * n, lambda n: "a" * n,
    lambda n: np.float32(2) * n, lambda n: np.ones(3) * n, chr, hex,
    lambda n: [1, 2, 3][:n], lambda n: n == 2.5, lambda n: n < 2.5, round, complex,
], ids=lambda f: getattr(f, "__name__", "f"))
def test_nothing_gets_the_number_in_silence(use):
    env = ShapeEnv()
    with pytest.raises(ConcreteDimNeeded):
        use(env.length(0, 1009))
    assert env.needed


def test_a_length_is_no_key_of_another_trace():
    first, second = ShapeEnv(), ShapeEnv()
    a, b = first.length(0, 1009), second.length(0, 1009)
    assert len({(a, 3): 1, (b, 3): 2}) == 2
    assert a == first.length(0, 1009)
    assert not first.guards
    first.closed = True
    assert a != 1009
    assert 1009 not in {a: 1}


def test_slices_of_open_axes():
    bounds = [None, 0, 1, 3, -1, -3, 7, -8]
    for start, stop, step in itertools.product(bounds, bounds, [None, 1, 2, 3, -1, -2]):
        env = ShapeEnv()
        made = slice_length(env.length(0, 1009), start, stop, step)
        for n in (*range(12), 1009):
            if env.hold([n]):
                value = made.at([n]) if type(made) is SymbolicDim else made
                assert value == len(range(n)[slice(start, stop, step)])
        assert env.hold([1009])


# ---------------------------------------------------------------------- functions


def _log():
    log = []

    def body(x, y):
        log.append((x.shape.as_list(), y.shape.as_list()))
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = tf.reduce_mean(tf.nn.softmax(x * 2.0)[:, 0] * y[:]) + tf.reduce_mean(x[1:] * 2.0)
        return z, tape.gradient(z, x), tf.concat([x, x], 0), x[:5]

    return log, body


def _same(got, wanted):
    for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(wanted)):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_one_run_of_python_serves_every_length_that_decides_nothing():
    log, body = _log()
    f = tf.function(body, input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None])])
    rng = np.random.default_rng(0)

    def check(n):
        x = tf.constant(rng.standard_normal((n, 3)), tf.float32)
        y = tf.constant(rng.standard_normal(n), tf.float32)
        got = f(x, y)
        runs = len(log)
        _same(got, body(x, y))
        del log[runs:]

    for n in (6, 7, 100, 6):
        check(n)
    assert log == [([None, 3], [None])]
    for n in (4, 2):  # x[:5] takes fewer
        check(n)
    assert log[1:] == [([4, 3], [4]), ([2, 3], [2])]
    check(1)  # a length of 1 stretches
    assert len(log) == 4
    assert f.experimental_get_tracing_count() == 1
    assert str(f.explain_cache()).startswith("body: 1 trace\n")


def test_a_function_that_needs_its_lengths_is_traced_for_each():
    log = []

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def f(x):
        log.append(x.shape.as_list())
        n = tf.shape(x)[0]
        return tf.reshape(tf.stack([x, x]), [2 * n]) * tf.cast(n, tf.float32) / float(len(x))

    for n in (3, 5, 3):
        np.testing.assert_array_equal(f(np.ones(n)), np.ones(2 * n))
    assert log == [[None], [3], [5]]
    seen = []

    @tf.function(input_signature=[tf.TensorSpec(None)])
    def g(x):
        seen.append(x.shape)
        return tf.zeros(x.shape) + x.shape[0]

    for shape in ((2,), (2, 3), (3,)):
        np.testing.assert_array_equal(g(np.ones(shape)), np.full(shape, shape[0]))
    assert g.experimental_get_tracing_count() == 1


def test_an_error_of_the_function_is_its_own():
    @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None])])
    def f(x, y):
        if x.shape[0] == 4:
            raise KeyError("four")
        return x + y

    np.testing.assert_array_equal(f([1.0, 2.0], [1.0, 2.0]), [2.0, 4.0])
    np.testing.assert_array_equal(f([1.0, 2.0, 3.0], [1.0]), [2.0, 3.0, 4.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="broadcast"):
        f([1.0, 2.0], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(f([1.0, 2.0], [1.0, 2.0]), [2.0, 4.0])


def test_a_variable_is_never_given_another_shape():
    v = tf.Variable([1.0, 2.0])

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def f(x):
        v.assign(x * 2.0)

    f([3.0, 4.0])
    with pytest.raises(ValueError, match="shape"):
        f([3.0, 4.0, 5.0])
    np.testing.assert_array_equal(v, [6.0, 8.0])


def test_retracing_less():
    log = []

    @tf.function(reduce_retracing=True)
    def f(x, k):
        log.append(x.shape.as_list())
        return tf.reduce_sum(x) * k

    for shape in ((1,), (2,), (3,), (4,), (1,), (2, 2), (3, 3), (5,)):
        assert float(f(tf.ones(shape), 2.0)) == 2.0 * np.prod(shape)
    assert log[:2] == [[1], [None]]
    assert [2] not in log
    assert f.experimental_get_tracing_count() == 3
    f(tf.ones((7,)), 3.0)
    assert f.experimental_get_tracing_count() == 4
    older = tf.function(lambda x: x, experimental_relax_shapes=True)
    for n in range(1, 6):
        older(tf.ones(n))
    assert older.experimental_get_tracing_count() == 2


def test_functions_inside_share_the_open_lengths():
    seen = []

    @tf.function
    def inner(x):
        seen.append(x.shape.as_list())
        return tf.reduce_mean(x, axis=0)

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def outer(x):
        return inner(x) + inner(tf.concat([x, x], 0)) + inner(x)

    for n in (2, 3, 5):
        x = np.random.default_rng(n).standard_normal((n, 2)).astype(np.float32)
        np.testing.assert_allclose(outer(x), 3 * x.mean(0), rtol=1e-5)
    assert seen == [[None, 2], [None, 2]]  # n and 2 n
    np.testing.assert_allclose(inner(tf.ones((4, 2))), [1.0, 1.0])


# ---------------------------------------------------------------------- every op


def _resized(item, length):
    """An input of a case with `length` applied to its first axis."""
    def first(shape):
        return (length(shape[0]), *shape[1:]) if shape else shape

    if isinstance(item, (Ints, Bools)):
        return item._replace(shape=first(item.shape))
    return first(item) if type(item) is tuple else item


def _body(op, case):
    def body(*xs):
        sources = [x for x in xs if x.dtype.is_differentiable]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            ys = call(op, xs, case)
            parts = [tf.reduce_mean(tf.cast(y * y, tf.float32)) for y in ys if y.dtype.is_floating]
            total = tf.add_n(parts) if parts else None
        if total is None or not sources:
            return ys
        return ys, [tf.convert_to_tensor(g) if g is not None else None
                    for g in tape.gradient(total, sources)]

    names = [inspect.Parameter(f"x{i}", inspect.Parameter.POSITIONAL_ONLY)
             for i in range(len(case.inputs))]
    body.__signature__ = inspect.Signature(names)
    return body


_LENGTHS = (lambda n: n, lambda n: n + 2, lambda n: 2 * n + 1, lambda n: max(n - 1, 1), lambda n: 1)
_CASES = {}
for _op, _case in declared():
    _CASES.setdefault(_op.name, []).append((_op, _case))


def _check(op, case: Case, served: Counter) -> None:
    dtype = "float32" if "float32" in case.dtypes else case.dtypes[0]
    arrays = [np.asarray(a) for a in draw(case, dtype)]
    if not any(a.ndim for a in arrays):
        return
    specs = [tf.TensorSpec([None, *a.shape[1:]] if a.ndim else [], convert(a).dtype)
             for a in arrays]
    body = _body(op, case)
    f = tf.function(body, input_signature=specs, autograph=False)
    # Arrays that a case gives keep their lengths, and those it draws have to fit them.
    given = any(not isinstance(i, tuple) and np.ndim(i) for i in case.inputs)
    for seed, length in enumerate(_LENGTHS[:1] if given else _LENGTHS):
        other = case._replace(inputs=tuple(_resized(item, length) for item in case.inputs))
        try:
            tensors = [convert(a) for a in draw(other, dtype, seed)]
            wanted = body(*tensors)
        except Exception:
            with pytest.raises(Exception):  # noqa: B017
                f(*tensors)
            continue
        # Under a tape the nodes are applied one by one: nothing is compiled.
        with tf.GradientTape():
            got = f(*tensors)
        for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(wanted)):
            assert (a is None) == (b is None)
            if a is not None:
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
    served["python again" if not f._cache.traces or not f._cache.traces[0]._templates
           else "one run"] += 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(_CASES))
def test_an_op_traced_for_one_length_is_right_for_others(name):
    served = Counter()
    for op, case in _CASES[name]:
        _check(op, case, served)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["tanh", "multiply", "reduce_mean_", "reduce_sum_", "concat_",
                                  "softmax_", "transpose_", "getitem_", "cumsum_"])
def test_common_ops_are_served_by_one_run(name):
    served = Counter()
    for op, case in _CASES.get(name, []):
        _check(op, case, served)
    assert served["one run"]
    assert not served["python again"]


def test_the_check_sees_a_length_that_is_not_carried_along(monkeypatch):
    op, case = _CASES["reduce_mean_"][0]
    _check(op, case, Counter())
    monkeypatch.setattr(type(conversion.dim_value), "reapply",
                        lambda self, inputs, attrs: (convert(2, attrs[1]),))
    with pytest.raises(AssertionError):
        _check(op, case, Counter())

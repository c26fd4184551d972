"""Optimizers on a device: the numbers of the CPU, and with kernels one launch for each update."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import gtape as tf
from gtape.devices.cuda.elementwise.joined import chunk_length
from gtape.devices.cuda.runtime.executor import Executor
from tests.fakes import fake_cupy

keras = tf.keras
SHAPES = [(), (3,), (5, 7), (0,), (33,), (16, 8)]

OPTIMIZERS = {
    "sgd": lambda **kw: keras.optimizers.SGD(0.1, **kw),
    "momentum": lambda **kw: keras.optimizers.SGD(0.1, momentum=0.9, **kw),
    "nesterov": lambda **kw: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True, **kw),
    "lion": lambda **kw: keras.optimizers.Lion(0.1, **kw),
    "adam": lambda **kw: keras.optimizers.Adam(0.1, **kw),
    "amsgrad": lambda **kw: keras.optimizers.Adam(0.1, amsgrad=True, **kw),
    "adamw": lambda **kw: keras.optimizers.AdamW(0.1, weight_decay=0.1, **kw),
    "adamax": lambda **kw: keras.optimizers.Adamax(0.1, **kw),
    "nadam": lambda **kw: keras.optimizers.Nadam(0.1, **kw),
    "adagrad": lambda **kw: keras.optimizers.Adagrad(0.1, **kw),
    "rmsprop": lambda **kw: keras.optimizers.RMSprop(0.1, **kw),
    "rmsprop momentum": lambda **kw: keras.optimizers.RMSprop(0.1, momentum=0.9, **kw),
    "rmsprop centered": lambda **kw: keras.optimizers.RMSprop(0.1, centered=True, **kw),
    "rmsprop both": lambda **kw: keras.optimizers.RMSprop(0.1, momentum=0.9, centered=True, **kw),
    "adadelta": lambda **kw: keras.optimizers.Adadelta(0.1, **kw),
    "ftrl": lambda **kw: keras.optimizers.Ftrl(0.1, **kw)}
SETTINGS = {
    "clipnorm": {"clipnorm": 0.5}, "clipvalue": {"clipvalue": 0.3},
    "global_clipnorm": {"global_clipnorm": 0.7}, "decay": {"weight_decay": 0.1},
    "average": {"use_ema": True, "ema_overwrite_frequency": 2},
    "loss scale": {"loss_scale_factor": 4.0},
    "loss scale, norm": {"loss_scale_factor": 4.0, "global_clipnorm": 0.2},
    "accumulation": {"gradient_accumulation_steps": 2, "clipnorm": 0.5}}


def trained(make, dtypes, steps=4):
    """The variables and the state after some updates; every third one is of some variables."""
    rng = np.random.default_rng(0)
    variables = [tf.Variable(rng.normal(size=shape).astype(np.float32), dtype=dtype)
                 for dtype in dtypes for shape in SHAPES]
    optimizer = make()
    for step in range(steps):
        pairs = [(tf.constant(rng.normal(size=v.shape).astype(np.float32), dtype=v.dtype), v)
                 for v in variables]
        optimizer.apply_gradients(pairs if step % 3 != 2 else pairs[1::2])
    return [*variables, *optimizer.variables[2:]]


def assert_alike(make, dtypes, tolerance):
    got = trained(make, dtypes)
    with tf.device("CPU:0"):
        wanted = trained(make, dtypes)
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a.numpy(), np.float64),
                                   np.asarray(b.numpy(), np.float64), tolerance, tolerance)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_equal_those_of_the_cpu(gpus, name):
    assert_alike(OPTIMIZERS[name], ("float32",), 2e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_mean_what_they_mean_on_the_cpu(gpus, name):
    assert_alike(lambda: OPTIMIZERS["adam"](**SETTINGS[name]), ("float32",), 2e-5)
    # One norm of all gradients asks for one dtype.
    dtypes = ("float32",) if "global_clipnorm" in SETTINGS[name] else ("float64", "float32")
    assert_alike(lambda: OPTIMIZERS["momentum"](**SETTINGS[name]), dtypes, 2e-5)


def test_short_floats(gpus):
    assert_alike(OPTIMIZERS["momentum"], ("float16", "float32"), 3e-2)


def test_an_unlimited_norm_makes_the_variables_nan(gpus):
    variables = [tf.Variable([1.0, 2.0]), tf.Variable([3.0])]
    optimizer = keras.optimizers.SGD(0.1, global_clipnorm=1.0)
    optimizer.apply_gradients(zip([tf.constant([np.inf, 1.0]), tf.constant([1.0])], variables))
    assert all(np.isnan(v.numpy()).all() for v in variables)


def test_values_that_were_read_stay(gpus):
    variables = [tf.Variable([1.0, 2.0]), tf.Variable([3.0])]
    optimizer = keras.optimizers.Adam(0.1)
    seen = []
    for _ in range(3):
        values = [tf.convert_to_tensor(v) for v in variables]
        seen.append((values, [v.numpy() for v in values]))
        optimizer.apply_gradients([(tf.ones_like(v), v) for v in variables])
    for tensors, numbers in seen:
        for tensor, number in zip(tensors, numbers):
            np.testing.assert_array_equal(tensor.numpy(), number)


@pytest.fixture
def launches(monkeypatch):
    """Counts launches by the name of the kernel."""
    counted: Counter[str] = Counter()
    launch = Executor.launch

    def counting(self, kernel, *args, **kwargs):
        counted[kernel.entry.partition("<")[0]] += 1
        return launch(self, kernel, *args, **kwargs)

    monkeypatch.setattr(Executor, "launch", counting)
    return counted


@pytest.mark.parametrize("make", [OPTIMIZERS["adam"], OPTIMIZERS["adamw"], OPTIMIZERS["rmsprop"],
                                  OPTIMIZERS["nesterov"], OPTIMIZERS["lion"],
                                  lambda: OPTIMIZERS["adam"](clipvalue=0.5)])
@pytest.mark.parametrize("gpus", ["kernels"], indirect=True)
def test_a_compiled_update_is_one_launch_for_all_tensors(gpus, launches, make):
    update, pairs = compiled(make)
    update(*pairs)
    fake_cupy.copies.clear()
    launches.clear()
    update(*pairs)
    # The scalar and the steps beside it go without tables.
    joined = {name: count for name, count in launches.items() if name.startswith("joined")}
    assert list(joined.values()) == [1]
    assert not [c for c in fake_cupy.copies if c[0] == "down"]


def compiled(make):
    """An update of variables as a compiled function of gradients, and gradients."""
    variables = [tf.Variable(np.ones(shape, np.float32)) for shape in SHAPES]
    optimizer = make()
    optimizer.build(variables)
    update = tf.function(lambda *g: optimizer.apply_gradients(zip(g, variables)))
    return update, [tf.ones_like(v) for v in variables]


def test_a_rule_of_the_users_own_is_followed(gpus):
    class Half(keras.optimizers.SGD):
        def update_step(self, gradient, variable, learning_rate):
            self.assign_sub(variable, 0.5 * learning_rate * gradient)

    variable = tf.Variable([1.0, 2.0])
    Half(1.0).apply_gradients([(tf.constant([1.0, 1.0]), variable)])
    np.testing.assert_array_equal(variable.numpy(), [0.5, 1.5])


def test_joined_launches_are_few_chunks_for_small_and_many_for_large_models():
    assert chunk_length(5001, 132) == 2048
    assert 500 < 10**8 / chunk_length(10**8, 4) < 2000

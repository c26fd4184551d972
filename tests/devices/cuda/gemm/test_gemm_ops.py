"""matmul, einsum and the dense layer through cuBLASLt's stand-in, on the fake GPUs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.devices.cuda.gemm import gemm
from gtape.ops.linalg.linear import linear
from tests.fakes import fake_blaslt


@pytest.fixture
def products(gpus: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the epilogues that were launched, "" where only CuPy's functions compute."""
    for device in gpus:
        if device.executor is not None:
            gemm.install(device.executor, gemm.Gemm(fake_blaslt.library(), fake_blaslt.SCRATCH))
    launched: list[str] = [] if gpus[0].executor is not None else [""]
    served = gemm.Gemm.matmul

    def counted(self: Any, gpu: Any, a: Any, b: Any, key: Any, out: Any, request: Any,
                *rest: Any) -> Any:
        made = served(self, gpu, a, b, key, out, request, *rest)
        launched.append(request[2].name if made is not None else "refused")
        return made

    monkeypatch.setattr(gemm.Gemm, "matmul", counted)
    return launched


def _numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


def _gradients(tape: tf.GradientTape, y: Any, sources: list[Any]) -> list[np.ndarray]:
    return [g.numpy() for g in tape.gradient(y, sources)]


def test_matmul_and_its_gradients(products: list[str]) -> None:
    x, y = tf.constant(_numbers(4, 3)), tf.constant(_numbers(5, 3))
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = tf.matmul(x, y, transpose_b=True)
    np.testing.assert_allclose(z.numpy(), x.numpy() @ y.numpy().T, rtol=1e-5)
    one = np.ones((4, 5), "float32")
    for got, wanted in zip(_gradients(tape, z, [x, y]), (one @ y.numpy(), one.T @ x.numpy())):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)
    assert products in ([""], ["DEFAULT"] * 3)


def test_integers_are_multiplied_by_cupy(products: list[str]) -> None:
    x = tf.constant(np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(tf.matmul(x, x, transpose_b=True).numpy(), [[5, 14], [14, 50]])
    assert products in ([""], [])


@pytest.mark.parametrize("equation, first, second", [
    ("ij,jk->ik", (4, 3), (3, 5)), ("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)),
    ("bhqk,bkhd->bqhd", (2, 4, 3, 6), (2, 6, 4, 5)), ("ijk,jkl->li", (2, 3, 4), (3, 4, 5)),
    ("bi,bi->b", (3, 4), (3, 4)), ("ij,j->i", (3, 4), (4,)),
    ("btn,nhd->bhtd", (2, 3, 4), (4, 2, 5)), ("ij,kj->ik", (0, 4), (3, 4))])
def test_a_contraction_of_two_is_one_product(equation: str, first: tuple[int, ...],
                                             second: tuple[int, ...], products: list[str]) -> None:
    x, y = _numbers(*first), _numbers(*second)
    made = tf.einsum(equation, tf.constant(x), tf.constant(y))
    np.testing.assert_allclose(made.numpy(), np.einsum(equation, x, y), rtol=1e-4, atol=1e-5)
    assert products in ([""], ["DEFAULT"])


@pytest.mark.parametrize("equation", ["ij,jk->i", "i,j->ij", "ii,i->i"])
def test_other_contractions_are_left_to_cupy(equation: str, products: list[str]) -> None:
    terms = equation.split("->")[0].split(",")
    x, y = [_numbers(*[3] * len(t)) for t in terms]
    made = tf.einsum(equation, tf.constant(x), tf.constant(y))
    np.testing.assert_allclose(made.numpy(), np.einsum(equation, x, y), rtol=1e-4, atol=1e-5)
    assert products in ([""], [])


@pytest.mark.parametrize("activation", [None, "relu", "gelu_tanh"])
@pytest.mark.parametrize("shape", [(6, 5), (2, 3, 5)])
def test_linear_and_its_gradients(activation: str | None, shape: tuple[int, ...],
                                  products: list[str]) -> None:
    values = [_numbers(*shape), _numbers(5, 8), _numbers(8)]
    names = {None: lambda z: z, "relu": tf.nn.relu,
             "gelu_tanh": lambda z: tf.nn.gelu(z, approximate=True)}

    def made(place: str) -> list[np.ndarray]:
        with tf.device(place):
            x, w, b = [tf.constant(v) for v in values]
        with tf.GradientTape() as tape:
            tape.watch([x, w, b])
            if place == "CPU:0":
                y = names[activation](tf.matmul(x, w) + b)
            else:
                y = linear(x, w, b, activation)
            total = tf.reduce_sum(y * y)
        return [y.numpy(), *_gradients(tape, total, [x, w, b])]

    for got, wanted in zip(made("GPU:0"), made("CPU:0")):
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=1e-4)
    forward = {None: "BIAS", "relu": "RELU_BIAS", "gelu_tanh": "GELU_AUX_BIAS"}[activation]
    assert products in ([""], [forward, "DEFAULT", "BGRADA"])


def test_linear_at_second_order(products: list[str]) -> None:
    x, w, b = tf.constant(_numbers(4, 3)), tf.constant(_numbers(3, 8)), tf.constant(_numbers(8))
    found = []
    for function in (lambda: linear(x, w, b, "gelu_tanh"),
                     lambda: tf.nn.gelu(tf.matmul(x, w) + b, approximate=True)):
        with tf.GradientTape() as outer:
            outer.watch(w)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(function() ** 2)
            slope = inner.gradient(y, x)
        found.append(outer.gradient(slope, w).numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("activation, epilogue", [
    (None, "BIAS"), ("relu", "RELU_BIAS"), (tf.nn.relu, "RELU_BIAS"), ("gelu", "BIAS"),
    (partial(tf.nn.gelu, approximate=True), "GELU_BIAS")])
@pytest.mark.parametrize("kind", [lambda f: f, tf.function], ids=["eager", "compiled"])
@pytest.mark.parametrize("shape", [(4,), (2, 5)])
def test_a_dense_layer_is_one_product(activation: Any, epilogue: str, shape: tuple[int, ...],
                                      kind: Any, products: list[str]) -> None:
    layer = tf.keras.layers.Dense(8, activation)
    x = tf.constant(_numbers(*shape, 3))
    layer.build(x.shape)
    y = kind(layer)(x)
    wanted = x.numpy() @ layer.kernel.numpy() + layer.bias.numpy()
    function = layer.activation
    np.testing.assert_allclose(y.numpy(), function(tf.constant(wanted)).numpy(), rtol=1e-4,
                               atol=1e-5)
    assert products in ([""], [epilogue])


def test_a_compiled_gradient_through_gelu_keeps_its_input(products: list[str]) -> None:
    x, w, b = map(tf.constant, (_numbers(4, 3), _numbers(3, 8), _numbers(8)))

    def slopes(x: Any, w: Any, b: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([w, b])
            y = tf.nn.gelu(tf.matmul(x, w) + b, approximate=True)
        return [y, *tape.gradient(y, [w, b])]

    found = tf.function(slopes)(x, w, b)
    assert products in ([""], ["GELU_AUX_BIAS", "BGRADA"])
    with tf.device("CPU:0"):
        wanted = slopes(*[tf.constant(v.numpy()) for v in (x, w, b)])
    for a, c in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), c.numpy(), rtol=1e-3, atol=1e-4)


def test_linear_refuses_what_does_not_fit() -> None:
    x, w = tf.constant(_numbers(4, 3)), tf.constant(_numbers(3, 8))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"the bias \[units\]"):
        linear(x, w, tf.constant(_numbers(7)))
    with pytest.raises(ValueError, match="activation must be None"):
        linear(x, w, tf.constant(_numbers(8)), "tanh")


def test_two_layers_learn_as_on_the_cpu(products: list[str]) -> None:
    def weights(place: str) -> list[np.ndarray]:
        tf.random.set_seed(1)
        with tf.device(place):
            model = tf.keras.Sequential([tf.keras.layers.Dense(8, "relu"),
                                         tf.keras.layers.Dense(8)])
            x, y = tf.constant(_numbers(16, 4)), tf.constant(_numbers(16, 8))
            model(x)
            for i, w in enumerate(model.trainable_variables):
                w.assign(_numbers(*w.shape) * 0.3 + i)

            @tf.function
            def step(x: Any, y: Any) -> None:
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(model(x) - y))
                found = tape.gradient(loss, model.trainable_variables)
                for w, g in zip(model.trainable_variables, found):
                    w.assign_sub(0.1 * g)

            for _ in range(2):
                products.clear()
                step(x, y)
            return [w.numpy() for w in model.trainable_variables]

    for got, wanted in zip(weights("GPU:0"), weights("CPU:0")):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    assert sorted(products) in ([], ["BGRADA", "BGRADA", "BIAS", "DEFAULT", "RELU_BIAS"])


@pytest.mark.parametrize("strides, products_made", [(1, 3), (2, 0)])
def test_a_convolution_of_one_cell_is_a_product(products: list[str], strides: int,
                                                products_made: int) -> None:
    def run() -> list[np.ndarray]:
        x, w = tf.constant(_numbers(2, 3, 4, 5)), tf.constant(_numbers(1, 1, 5, 6))
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = tf.nn.conv2d(x, w, strides, "VALID")
            z = tf.reduce_sum(y * y)
        return [y.numpy(), *_gradients(tape, z, [x, w])]

    found = run()
    with tf.device("CPU:0"):
        wanted = run()
    for got, reference in zip(found, wanted):
        np.testing.assert_allclose(got, reference, rtol=1e-4, atol=1e-4)
    assert products in ([""], ["DEFAULT"] * products_made)

"""Keras' objects where TensorFlow's take tensors and variables: tapes, modules, maps, devices."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf

layers = tf.keras.layers


@pytest.fixture
def x() -> Any:
    return tf.constant(np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32))


@pytest.fixture
def model() -> Any:
    made = tf.keras.Sequential([tf.keras.Input((3,)),
                                layers.Dense(4, activation="tanh", name="hidden"),
                                layers.Dense(2, name="out")], name="net")
    rng = np.random.default_rng(1)
    made.set_weights([rng.normal(size=w.shape) for w in made.get_weights()])
    return made


def loss_of(function: Any, x: Any) -> Any:
    return tf.reduce_sum(function(x) ** 2)


def by_hand(model: Any, x: Any) -> list[np.ndarray]:
    """The gradients of `loss_of`, in NumPy and float64."""
    k1, b1, k2, b2 = (w.astype(np.float64) for w in model.get_weights())
    h = np.tanh(x.numpy() @ k1 + b1)
    g = 2 * (h @ k2 + b2)
    back = (g @ k2.T) * (1 - h**2)
    return [x.numpy().T @ back, back.sum(0), h.T @ g, g.sum(0)]


def close(found: Any, wanted: Any) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------- tapes

def test_gradients_of_a_model(model: Any, x: Any) -> None:
    with tf.GradientTape() as tape:
        y = loss_of(model, x)
    assert [v.name for v in tape.watched_variables()] == [
        "net/hidden/kernel:0", "net/hidden/bias:0", "net/out/kernel:0", "net/out/bias:0"]
    close(tape.gradient(y, model.trainable_variables), by_hand(model, x))


def test_watching_variables_and_lists_of_weights(model: Any, x: Any) -> None:
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(model.layers[0].kernel)
        tape.watch(model.layers[1].trainable_weights)
        y = loss_of(model, x)
    asked = {"k1": model.layers[0].kernel, "b1": model.layers[0].bias,
             "k2": model.layers[1].kernel}
    found = tape.gradient(y, asked)
    assert found["b1"] is None
    wanted = by_hand(model, x)
    close([found["k1"], found["k2"]], [wanted[0], wanted[2]])


def test_a_frozen_layer_is_still_watched_and_averages_are_not(x: Any, model: Any) -> None:
    """As with TensorFlow: Keras' `trainable` says what an optimizer is given."""
    norm = layers.BatchNormalization()
    model.layers[0].trainable = False
    with tf.GradientTape() as tape:
        y = loss_of(lambda t: model(norm(t, training=True)), x)
    assert len(model.trainable_variables) == 2
    hidden, average = tape.gradient(y, [model.layers[0].kernel, norm.moving_mean])
    assert hidden is not None and average is None


def test_mixed_precision_gives_float32_gradients(x: Any) -> None:
    layer = layers.Dense(2, dtype="mixed_float16")
    with tf.GradientTape() as tape:
        y = layer(x)
    assert y.dtype == tf.float16
    assert [g.dtype for g in tape.gradient(y, layer.trainable_variables)] == [tf.float32] * 2


def test_an_embedding_has_indexed_slices() -> None:
    layer = layers.Embedding(4, 2)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(layer(tf.constant([1, 1, 3])))
    found = tape.gradient(y, layer.trainable_variables)[0]
    assert isinstance(found, tf.IndexedSlices)
    assert tf.convert_to_tensor(found).numpy().tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]]


def test_what_an_unconnected_weight_gets(model: Any, x: Any) -> None:
    other = layers.Dense(1)
    other.build((None, 3))
    with tf.GradientTape(persistent=True) as tape:
        y = model(x)
    zero = tape.gradient(y, other.kernel, unconnected_gradients="zero")
    assert zero.shape == (3, 1) and not np.any(zero)
    seeded = tape.gradient(y, model.layers[1].bias, output_gradients=3 * tf.ones((5, 2)))
    assert seeded.numpy().tolist() == [15, 15]


def test_second_derivatives_and_jacobians(model: Any, x: Any) -> None:
    kernel = model.layers[0].kernel
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = loss_of(model, x)
        slope = inner.gradient(y, kernel)
    hessian = tf.reshape(outer.jacobian(slope, kernel), (12, 12)).numpy()
    assert np.abs(hessian).max() > 0.1
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-3, atol=1e-4)

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = model(x)
    jacobians = tape.jacobian(y, model.trainable_variables)
    assert [j.shape.as_list() for j in jacobians] == [[5, 2, 3, 4], [5, 2, 4], [5, 2, 4, 2],
                                                      [5, 2, 2]]
    close([tf.einsum("bo,boij->ij", 2 * y, jacobians[0])], by_hand(model, x)[:1])
    by_row = tape.batch_jacobian(y, x)
    whole = tape.jacobian(y, x)
    close([by_row[2]], [whole[2, :, 2]])


@pytest.mark.parametrize("several", [False, True])
def test_forward_accumulation_along_weights(model: Any, x: Any, several: bool) -> None:
    weights = model.trainable_variables if several else [model.trainable_variables[0]]
    tangents = [tf.ones(w.shape) for w in weights]
    primals: Any = weights if several else weights[0]
    with tf.autodiff.ForwardAccumulator(primals, tangents if several else tangents[0]) as along:
        y = loss_of(model, x)
    wanted = sum(g.sum() for g in by_hand(model, x)[:len(weights)])
    np.testing.assert_allclose(along.jvp(y), wanted, rtol=1e-4)


def test_a_custom_gradient_around_a_model(model: Any, x: Any) -> None:
    @tf.custom_gradient
    def tripled(t: Any) -> Any:
        def grad(dy: Any, variables: Any = None) -> Any:
            return dy[:, :1] * tf.ones((1, 3)), [7 * tf.ones(v.shape) for v in variables]

        return 3 * model(t), grad

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tripled(x))
    np.testing.assert_allclose(y, 3 * np.sum(model(x)), rtol=1e-4)
    found = tape.gradient(y, [x, *model.trainable_variables])
    assert all(np.all(np.asarray(g) == n) for g, n in zip(found, [1, 7, 7, 7, 7]))


def test_recomputing_a_model_keeps_less_and_gives_the_same(model: Any, x: Any) -> None:
    with tf.GradientTape() as plain:
        loss_of(model, x)
    with tf.GradientTape() as tape:
        y = loss_of(tf.recompute_grad(model), x)
    assert tape.memory().total < plain.memory().total
    close(tape.gradient(y, model.trainable_variables), by_hand(model, x))


# ---------------------------------------------------------------- explanations and bills

def test_an_explanation_names_the_path(model: Any, x: Any) -> None:
    other = layers.Dense(2, name="other")
    other.build((None, 3))
    with tf.GradientTape() as tape:
        y = loss_of(model, x)
    assert "Variable 'other/kernel:0'" in tape.explain(y, other.kernel, show=False).text


def test_an_explanation_shows_the_users_line(model: Any, x: Any) -> None:
    stopped = tf.keras.Sequential([layers.Lambda(tf.stop_gradient)])
    with tf.GradientTape() as tape:
        y = loss_of(lambda t: stopped(model(t)), x)
    found = tape.explain(y, model.layers[0].kernel, show=False)
    assert found.cause == "STOP_GRADIENT"
    assert found.site is not None and Path(found.site.file) == Path(__file__)
    assert "stopped(model(t))" in found.site.text


def test_none_is_explained_where_it_is_asked_for(model: Any, x: Any) -> None:
    other = layers.Dense(2, name="other")
    other.build((None, 3))

    def gradient(how: str) -> Any:
        with tf.explain_none(how), tf.GradientTape() as tape:
            y = loss_of(model, x)
            return tape.gradient(y, [other.kernel])

    with pytest.warns(UserWarning, match="other/kernel"):
        assert gradient("warn") == [None]
    with pytest.raises(tf.errors.GradientNoneError, match="other/kernel"):
        gradient("raise")


def test_a_memory_bill_names_paths_and_the_users_line(model: Any, x: Any) -> None:
    with tf.GradientTape() as tape:
        loss_of(model, x)
    bill = tape.memory()
    assert {row.site.file for row in bill} == {__file__}
    assert [row.variables for row in bill if row.op == "linear"] == [
        ("net/hidden/kernel", "net/hidden/bias"), ("net/out/kernel", "net/out/bias")]


# ---------------------------------------------------------------- modules and variables

class Wrapper(tf.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.inner = {"nets": [model]}
        self.norm = layers.BatchNormalization(name="norm")
        self.scale = tf.Variable(2.0, name="scale")
        self.again = model.layers[0].kernel

    def __call__(self, x: Any) -> Any:
        return self.inner["nets"][0](self.norm(x)) * self.scale


def test_a_module_finds_the_variables_of_keras(model: Any, x: Any) -> None:
    module = Wrapper(model)
    module(x)
    names = [v._resource_().name.removesuffix(":0") for v in module.variables]
    assert sorted(names) == sorted([
        "net/hidden/kernel", "scale", "net/hidden/bias", "net/out/kernel", "net/out/bias",
        "norm/gamma", "norm/beta", "norm/moving_mean", "norm/moving_variance"])
    assert len(module.trainable_variables) == 7
    assert {v.path for v in module.non_trainable_variables} == {
        "norm/moving_mean", "norm/moving_variance"}
    found = module.submodules
    assert model in found and model.layers[1] in found and module.norm in found
    with tf.GradientTape() as tape:
        y = loss_of(module, x)
    assert all(g is not None for g in tape.gradient(y, module.trainable_variables))


def test_a_frozen_layer_has_no_trainable_variables_in_a_module(model: Any, x: Any) -> None:
    module = Wrapper(model)
    module(x)
    module.norm.trainable = False
    assert len(module.trainable_variables) == 5 and len(module.variables) == 9


def test_variables_of_keras_are_taken_for_tensors(model: Any, x: Any) -> None:
    kernel = model.layers[0].kernel
    wanted = model.get_weights()[0]
    assert tf.is_tensor(kernel) and not isinstance(kernel, tf.Variable)
    np.testing.assert_array_equal(tf.convert_to_tensor(kernel), wanted)
    np.testing.assert_allclose(tf.matmul(x, kernel), x.numpy() @ wanted, rtol=1e-5)
    np.testing.assert_allclose(2.0 * kernel + 1.0, 2 * wanted + 1, rtol=1e-6)
    np.testing.assert_array_equal(kernel[1], wanted[1])
    assert tf.nest.flatten({"a": [kernel]})[0] is kernel
    assert tf.shape(kernel).numpy().tolist() == [3, 4]
    kernel.assign_add(tf.ones((3, 4)))
    np.testing.assert_allclose(kernel.numpy(), wanted + 1, rtol=1e-6)


def test_optimizers_take_plain_variables() -> None:
    variable = tf.Variable([1.0, 2.0])
    optimizer = tf.optimizers.SGD(0.5)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(variable**2)
    optimizer.apply_gradients([(tape.gradient(y, variable), variable)])
    assert variable.numpy().tolist() == [0, 0]


# ---------------------------------------------------------------- maps, devices, functions

def test_a_model_on_every_row(model: Any, x: Any) -> None:
    close([tf.vectorized_map(lambda row: model(row[None])[0], x)], [model(x)])
    close([tf.map_fn(lambda row: model(row[None])[0], x)], [model(x)])


def test_gradients_for_every_row(model: Any, x: Any) -> None:
    def of_row(row: Any) -> Any:
        with tf.GradientTape() as tape:
            y = loss_of(model, row[None])
        return tape.gradient(y, model.trainable_variables)

    found = tf.vectorized_map(of_row, x)
    assert found[0].shape == (5, 3, 4)
    close([tf.reduce_sum(g, 0) for g in found], by_hand(model, x))


def test_a_device_scope(x: Any) -> None:
    with tf.device("CPU:0"):
        layer = layers.Dense(2)
        y = layer(x)
    assert y.device == "CPU:0" and layer.kernel.value.device == "CPU:0"


def test_the_step_as_a_function_is_the_step(x: Any) -> None:
    def trained(compiled: bool) -> list[np.ndarray]:
        layer = layers.Dense(2, kernel_initializer="ones")
        optimizer = tf.optimizers.Adam(0.1)

        def step(t: Any) -> Any:
            with tf.GradientTape() as tape:
                y = loss_of(layer, t)
            weights = layer.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(y, weights), weights))
            return y

        layer.build((None, 3))
        call = tf.function(step) if compiled else step
        losses = [float(call(x)) for _ in range(4)]
        assert losses[-1] < losses[0]
        return [np.array(losses), *layer.get_weights()]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close(trained(compiled=True), trained(compiled=False))


def _second(model: Any, x: Any) -> Any:
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = loss_of(model, x)
        slope = inner.gradient(y, model.trainable_variables[0])
    return outer.gradient(tf.reduce_sum(slope), model.trainable_variables,
                          unconnected_gradients="zero")


def _forward_over_reverse(model: Any, x: Any) -> Any:
    weights = model.trainable_variables
    with tf.autodiff.ForwardAccumulator(weights, [tf.ones(w.shape) for w in weights]) as along:
        with tf.GradientTape() as tape:
            y = loss_of(model, x)
        gradients = tape.gradient(y, weights)
    return [along.jvp(g) for g in gradients]


def _recomputed(model: Any, x: Any) -> Any:
    with tf.GradientTape() as tape:
        y = loss_of(tf.recompute_grad(model), x)
    return tape.gradient(y, model.trainable_variables)


def _jacobians(model: Any, x: Any) -> Any:
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = model(x)
    return [*tape.jacobian(y, model.trainable_variables), tape.batch_jacobian(y, x)]


def _by_row(model: Any, x: Any) -> Any:
    return [tf.vectorized_map(lambda row: model(row[None])[0], x)]


@pytest.mark.parametrize("asked", [_second, _forward_over_reverse, _recomputed, _jacobians,
                                   _by_row], ids=lambda asked: asked.__name__)
@pytest.mark.parametrize("kind", ["dense", "lstm", "attention"])
def test_a_function_gives_what_the_eager_program_gives(kind: str, asked: Any) -> None:
    made: Any = tf.keras.Sequential([tf.keras.Input((3, 4)), layers.Dense(4, activation="tanh")])
    if kind == "lstm":
        made.add(layers.LSTM(2))
    elif kind == "attention":
        given = tf.keras.Input((3, 4))
        made = tf.keras.Model(given, layers.MultiHeadAttention(2, 2)(given, given))
    x = tf.constant(np.random.default_rng(3).normal(size=(2, 3, 4)).astype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close(tf.function(lambda t: asked(made, t))(x), asked(made, x))


def test_a_cross_entropy_after_a_softmax_keeps_its_gradient() -> None:
    layer = layers.Dense(3, activation="softmax", kernel_initializer="identity")
    logits = tf.Variable([[30.0, 0.0, 0.0]])
    with tf.GradientTape() as tape:
        y = tf.losses.sparse_categorical_crossentropy(tf.constant([1]), layer(logits))
    assert y.numpy().tolist() == [30]
    np.testing.assert_allclose(tape.gradient(y, logits), [[1, -1, 0]], atol=1e-6)


def test_a_variable_without_its_value_is_a_tensor_to_a_custom_gradient() -> None:
    double = tf.custom_gradient(lambda x: (x * 2.0, lambda dy: dy * 2.0))
    with tf.keras.StatelessScope():
        later = tf.keras.Variable(lambda shape, dtype: tf.fill(shape, 3.0), shape=(2,))
        assert double(later).numpy().tolist() == [6, 6]

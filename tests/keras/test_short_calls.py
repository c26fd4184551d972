"""A built layer called again goes a short way, and nobody can tell but by the clock."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gtape as tf

keras = tf.keras
layers, ops = keras.layers, keras.ops

_CALLS = 4


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on, layers go Keras' way."""
    def switch() -> None:
        monkeypatch.setattr(keras.layers.Layer, "__call__", keras.layers.Layer.__call__.__wrapped__)
    return switch


def _x(*shape: int) -> Any:
    return tf.constant(np.random.default_rng(0).standard_normal(shape or (4, 6)).astype("float32"))


def _goes_short(layer: Any, x: Any) -> bool:
    way = layer.__dict__.get("_short_way_of_the_engine")
    return way is not None and (x._t, x._a.shape) in way.served


def _functional() -> Any:
    inputs = keras.Input((6,))
    x = layers.Dense(5, activation="relu")(inputs)
    return keras.Model(inputs, layers.Add()([layers.Dense(5)(x), x]))


class _Block(layers.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.drop = layers.Dense(6), layers.Dropout(0.5, seed=1)

    def build(self, shape: Any) -> None:
        self.dense.build(shape)
        self.built = True

    def call(self, x: Any) -> Any:
        return self.drop(self.dense(x)) + x


_LAYERS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "Dense": (lambda: layers.Dense(5, activation="relu"), (4, 6)),
    "Dense of rank 3": (lambda: layers.Dense(5), (4, 3, 6)),
    "Conv2D": (lambda: layers.Conv2D(2, 3), (2, 5, 5, 3)),
    "BatchNormalization": (layers.BatchNormalization, (8, 3)),
    "LayerNormalization": (layers.LayerNormalization, (8, 3)),
    "Dropout": (lambda: layers.Dropout(0.5, seed=1), (4, 6)),
    "GaussianNoise": (lambda: layers.GaussianNoise(0.5, seed=1), (4, 6)),
    "Flatten": (layers.Flatten, (4, 3, 2)),
    "LSTM": (lambda: layers.LSTM(3), (2, 4, 5)),
    "Bidirectional": (lambda: layers.Bidirectional(layers.GRU(3)), (2, 4, 5)),
    "TimeDistributed": (lambda: layers.TimeDistributed(layers.Dense(3)), (2, 4, 5)),
    "Sequential": (lambda: keras.Sequential([layers.Dense(5), layers.Dropout(0.5, seed=1),
                                             layers.BatchNormalization()]), (4, 6)),
    "a functional model": (_functional, (4, 6)),
    "a layer of layers": (_Block, (4, 6)),
}


@pytest.mark.parametrize("training", [None, True, False])
@pytest.mark.parametrize("name", _LAYERS)
def test_the_short_way_gives_what_keras_gives(name: str, training: Any, plain: Any) -> None:
    make, shape = _LAYERS[name]
    named = {} if training is None else {"training": training}

    def made() -> list[np.ndarray]:
        keras.utils.set_random_seed(0)
        layer, x = make(), _x(*shape)
        results = [layer(x, **named).numpy() for _ in range(_CALLS)]
        assert _goes_short(layer, x) is short
        return results + [v.numpy() for v in layer.variables]

    short = True
    ours = made()
    plain()
    short = False
    for a, b in zip(ours, made(), strict=True):
        np.testing.assert_array_equal(a, b)


# ---------------------------------------------------------------------- training


class _Asks(layers.Layer):
    """Gives back what `training` it was called with."""

    heard: Any = None

    def call(self, x: Any, training: Any = None) -> Any:
        self.heard = training
        return x


class _Keeps(layers.Layer):
    """Passes nothing on: the layer inside hears of `training` by the context."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def call(self, x: Any) -> Any:
        return self.inner(x)


@pytest.mark.parametrize("given", [None, True, False])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_training_goes_through_layers_that_do_not_pass_it(given: Any, depth: int) -> None:
    asks = layer = _Asks()
    for _ in range(depth):
        layer = _Keeps(layer)
    for _ in range(_CALLS):
        layer(_x(), **({} if given is None else {"training": given}))
        assert asks.heard is given
    layer(_x())
    assert asks.heard is None


def test_a_default_of_training_is_heard() -> None:
    class Trains(_Asks):
        def call(self, x: Any, training: Any = True) -> Any:
            self.heard = training
            return inner(x)

    inner, outer = _Asks(), Trains()
    for _ in range(_CALLS):
        outer(_x())
        assert outer.heard is True and inner.heard is True
    outer(_x(), training=False)
    assert outer.heard is False and inner.heard is False


def test_training_of_one_call_is_not_that_of_the_next() -> None:
    asks = _Asks()
    for training in (True, None, False, None, True, True, None):
        asks(_x(), **({} if training is None else {"training": training}))
        assert asks.heard is training


# ---------------------------------------------------------------------- what takes Keras' way


def test_masks_reach_the_layers_behind() -> None:
    class Hears(layers.Layer):
        supports_masking = True
        heard: Any = None

        def call(self, x: Any, mask: Any = None) -> Any:
            self.heard = mask
            return x

    embedding, between, hears = layers.Embedding(5, 3, mask_zero=True), layers.Dense(2), Hears()
    ids = tf.constant([[1, 2, 0]])
    for _ in range(_CALLS):
        hears(between(embedding(ids)))
        assert hears.heard.numpy().tolist() == [[True, True, False]]
    plain = _x(1, 3, 2)
    for _ in range(_CALLS):
        hears(plain)
        assert hears.heard is None


def test_a_layer_that_makes_a_mask_makes_one_in_every_call() -> None:
    masking, x = layers.Masking(), tf.constant([[[0.0, 0.0], [1.0, 0.0]]])
    for _ in range(_CALLS):
        assert masking(x)._keras_mask.numpy().tolist() == [[False, True]]


def test_other_dtypes_are_cast() -> None:
    layer = layers.Dense(2)
    for _ in range(_CALLS):
        assert layer(_x()).dtype is tf.float32
        assert layer(tf.cast(_x(), "float64")).dtype is tf.float32
        assert layer(np.ones((4, 6))).dtype is tf.float32
    assert not _goes_short(layer, tf.cast(_x(), "float64"))


def test_mixed_precision_computes_in_16_bits() -> None:
    layer = layers.Dense(2, dtype="mixed_bfloat16")
    for _ in range(_CALLS):
        assert layer(_x()).dtype is tf.bfloat16
    inner = layers.Dense(2)
    outer = _Keeps(inner)
    for _ in range(_CALLS):
        assert outer(_x()).dtype is tf.float32
    inner.dtype_policy = "mixed_bfloat16"
    for _ in range(_CALLS):
        assert inner(_x()).dtype is tf.bfloat16
        assert inner(tf.cast(_x(), "bfloat16")).dtype is tf.bfloat16


def test_an_outer_autocast_scope_counts() -> None:
    class Weighs(layers.Layer):
        def __init__(self) -> None:
            super().__init__(dtype="float32")
            self.w = self.add_weight(shape=(), initializer="ones")
            self.seen: list[str] = []

        def call(self, x: Any) -> Any:
            self.seen.append(self.w.dtype)
            return x

    class Casts(_Keeps):
        def call(self, x: Any) -> Any:
            return super().call(ops.cast(x, "float32"))

    weighs = Weighs()
    outer = Casts(weighs)
    outer.dtype_policy = "mixed_float16"
    for _ in range(_CALLS):
        weighs(_x())
        outer(_x())
    assert set(weighs.seen) == {"float32"}


def test_losses_of_activities_and_of_add_loss() -> None:
    class Adds(layers.Layer):
        def call(self, x: Any) -> Any:
            self.add_loss(ops.sum(x))
            return x

    layer = layers.Dense(2, activity_regularizer="l2")
    adds = _Keeps(Adds())
    for _ in range(_CALLS):
        layer(_x())
        adds(_x())
        assert len(layer.losses) == 1 and len(adds.losses) == 1
    late = layers.Dense(2)
    for _ in range(_CALLS):
        late(_x())
    late.activity_regularizer = keras.regularizers.L2(0.1)
    late(_x())
    assert len(late.losses) == 1


def test_a_tape_watches_the_short_way() -> None:
    layer, x = layers.Dense(2), _x()
    grads = []
    for _ in range(_CALLS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x) ** 2)
        grads.append([g.numpy() for g in tape.gradient(loss, layer.trainable_variables)])
    for later in grads[1:]:
        for a, b in zip(grads[0], later, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_function_around_traces_keras_own_way() -> None:
    layer, x = layers.Dense(2), _x()
    for _ in range(_CALLS):
        eager = layer(x)
    np.testing.assert_allclose(tf.function(layer)(x), eager, rtol=1e-6)


def test_symbolic_calls_make_nodes_after_eager_ones() -> None:
    layer, x = layers.Dense(2), _x()
    for _ in range(_CALLS):
        eager = layer(x)
    inputs = keras.Input((6,))
    model = keras.Model(inputs, layer(inputs))
    np.testing.assert_array_equal(model(x), eager)


def test_a_call_that_was_replaced_is_called() -> None:
    layer, x = layers.Dense(2), _x()
    for _ in range(_CALLS):
        layer(x)
    layer.call = lambda x: x + 1.0
    np.testing.assert_array_equal(layer(x), x + 1.0)


def test_a_model_that_grew() -> None:
    model, x = keras.Sequential([layers.Dense(6)]), _x()
    for _ in range(_CALLS):
        assert model(x).shape == (4, 6)
    model.add(layers.Dense(3))
    for _ in range(_CALLS):
        assert model(x).shape == (4, 3)
    model.pop()
    for _ in range(_CALLS):
        assert model(x).shape == (4, 6)


def test_lora_and_new_weights_count() -> None:
    layer, x = layers.Dense(2), _x()
    for _ in range(_CALLS):
        layer(x)
    layer.set_weights([np.zeros((6, 2)), np.ones(2)])
    np.testing.assert_array_equal(layer(x), np.ones((4, 2)))
    layer.enable_lora(2)
    layer.lora_kernel_b.assign(np.ones((2, 2)))
    assert np.abs(layer(x).numpy() - 1).max() > 0


def test_name_scopes_of_what_a_user_calls() -> None:
    class Scoped(layers.Layer):
        seen: Any = None

        def call(self, x: Any) -> Any:
            self.seen = tf.Variable(1.0, name="inside").name
            return x

    layer = Scoped(name="outer")
    for _ in range(_CALLS):
        layer(_x())
        assert layer.seen == "outer/inside:0"


# ---------------------------------------------------------------------- what is wrong


@pytest.fixture
def built() -> Iterator[Any]:
    layer = layers.Dense(2, name="dense_of_this_test")
    for _ in range(_CALLS):
        layer(_x())
    yield layer


def test_inputs_of_other_shapes_are_refused_as_by_keras(built: Any) -> None:
    for wrong in (_x(4, 5), _x(6)):
        for _ in range(_CALLS):
            with pytest.raises(ValueError, match="is incompatible with the layer"):
                built(wrong)
    assert built(_x(3, 6)).shape == (3, 2)


def test_a_new_input_spec_counts(built: Any) -> None:
    built.input_spec = keras.layers.InputSpec(shape=(7, 6))
    with pytest.raises(ValueError, match="expected shape"):
        built(_x())


def test_what_is_no_tensor_is_refused(built: Any) -> None:
    for _ in range(_CALLS):
        with pytest.raises(ValueError, match="Only input tensors may be passed"):
            built("text")
        with pytest.raises(TypeError):
            built(_x(), nothing=1)


def test_errors_of_call_say_what_keras_says(plain: Any) -> None:
    class Fails(layers.Layer):
        fails = False

        def call(self, x: Any, training: Any = None) -> Any:
            if self.fails:
                raise RuntimeError("what the user wrote")
            return x

    def said(layer: Any, **named: Any) -> str:
        with pytest.raises(RuntimeError) as caught:
            layer(_x(), **named)
        return str(caught.value)

    inner = Fails()
    outer = _Keeps(inner)
    for _ in range(_CALLS):
        outer(_x())
    inner.fails = True
    ours = [said(inner), said(outer), said(inner, training=True)]
    inner.fails = False
    assert outer(_x()).shape == (4, 6)
    inner.fails = True
    plain()
    assert ours == [said(inner), said(outer), said(inner, training=True)]
    assert "Exception encountered when calling Fails.call()" in ours[0]
    assert "what the user wrote" in ours[0]


def test_after_an_error_the_context_is_gone() -> None:
    class Fails(_Asks):
        fails = False

        def call(self, x: Any, training: Any = None) -> Any:
            super().call(x, training)
            if self.fails:
                raise ValueError
            return x

    layer = Fails()
    for _ in range(_CALLS):
        layer(_x())
    layer.fails = True
    with pytest.raises(ValueError):
        layer(_x(), training=True)
    layer.fails = False
    layer(_x())
    assert layer.heard is None


def test_a_mask_that_would_be_lost_is_told() -> None:
    class Loses(layers.Layer):
        def call(self, x: Any) -> Any:
            return x

    layer, x = Loses(), _x()
    for _ in range(_CALLS):
        layer(x)
    x._keras_mask = tf.constant([True] * 4)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        layer(x)
    assert any("does not support masking" in str(w.message) for w in told)


# ---------------------------------------------------------------------- dtypes and leaves


def test_dtypes_are_named_as_keras_names_them() -> None:
    name = keras.utils.standardize_dtype
    for _ in range(2):
        assert name(None) == keras.config.floatx()
        assert name("int") == "int64" and name(int) == "int64" and name(float) == "float32"
        assert name(tf.bfloat16) == "bfloat16" and name(np.float64) == "float64"
        with pytest.raises(ValueError, match="Invalid dtype"):
            name("float33")


def test_result_types_follow_floatx() -> None:
    result = keras.backend.result_type
    assert result("int32", float) == "float32" and result("float16", "bfloat16") == "float32"
    before = keras.config.floatx()
    keras.config.set_floatx("float16")
    try:
        assert result(int, float) == "float16"
    finally:
        keras.config.set_floatx(before)
    assert result(int, float) == "float32"
    assert result(tf.int64, tf.float64) == "float64"


def test_symbolic_tensors_are_found_wherever_they_are() -> None:
    x, symbol = _x(), keras.KerasTensor((4, 6))
    for _ in range(2):
        assert not tf.is_symbolic_tensor(ops.add(x, x))
        assert isinstance(ops.add(x, symbol), keras.KerasTensor)
        assert isinstance(ops.concatenate([x, symbol]), keras.KerasTensor)
        assert isinstance(ops.concatenate([[x, x], symbol][::-1][:1] + [x]), keras.KerasTensor)
        assert ops.concatenate([x, x]).shape == (8, 6)


def test_tensors_become_what_is_asked_for() -> None:
    convert, x = ops.convert_to_tensor, _x()
    assert convert(x) is x and convert(x, "float32") is x and convert(x, tf.float32) is x
    assert convert(x, "int32").dtype is tf.int32
    with pytest.raises(ValueError, match="Invalid dtype"):
        convert(x, "float33")

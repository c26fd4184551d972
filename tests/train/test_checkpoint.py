"""Checkpoint: names, matching, errors that change nothing."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import train

safetensors = pytest.importorskip("safetensors.numpy")
Checkpoint = train.Checkpoint


class Net(tf.Module):
    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.weight = tf.Variable(tf.ones((2, width)))
        self.parts = {"b": [tf.Variable(1.0)], "a/c": tf.Variable([True])}


def _names(path: str) -> list[str]:
    return sorted(safetensors.load_file(path))


# ---------------------------------------------------------------- names and values

def test_names_are_attribute_paths(tmp_path: Path) -> None:
    net = Net()
    optimizer = tf.keras.optimizers.Adam()
    optimizer.build([net.weight])
    path = Checkpoint(net=net, optimizer=optimizer, step=tf.Variable(3)).write(tmp_path / "x")
    assert path == str(tmp_path / "x.safetensors")
    assert _names(path) == [
        "net/parts/a%2Fc", "net/parts/b/0", "net/weight", "optimizer/iterations",
        "optimizer/learning_rate", "optimizer/momentums/net/weight",
        "optimizer/velocities/net/weight", "step"]


def test_names_do_not_depend_on_how_many_layers_were_made(tmp_path: Path) -> None:
    def written(name: str) -> list[str]:
        model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(3),
                                     tf.keras.layers.LayerNormalization()])
        return _names(Checkpoint(model=model).write(tmp_path / name))

    assert written("first") == written("second") == [
        "model/layers/0/bias", "model/layers/0/kernel", "model/layers/1/beta",
        "model/layers/1/gamma"]


def test_a_shared_variable_is_saved_once(tmp_path: Path) -> None:
    net = Net()
    holder = tf.Module()
    holder.inner, holder.same = net, net.weight
    path = Checkpoint(holder=holder).write(tmp_path / "shared")
    assert _names(path) == ["holder/inner/parts/a%2Fc", "holder/inner/parts/b/0", "holder/same"]


def test_weights_of_a_layer_without_attributes_are_saved(tmp_path: Path) -> None:
    class Bare(tf.keras.layers.Layer):
        def build(self, shape: Any) -> None:
            for _ in range(2):
                self.add_weight((2,), name="w")

    layer = Bare()
    layer.build(None)
    path = Checkpoint(layer=layer).write(tmp_path / "bare")
    assert _names(path) == ["layer/w", "layer/w_"]


@pytest.mark.parametrize("value", [
    np.float32(2.5), np.arange(6, dtype=np.int64).reshape(2, 3), np.array([True, False]),
    np.zeros((0, 3), np.float64), np.array([1 + 2j], np.complex64), np.array([1.5], np.float16),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.uint8(7)], ids=str)
def test_every_dtype_and_shape_comes_back(value: Any, tmp_path: Path) -> None:
    path = Checkpoint(v=tf.Variable(value)).write(tmp_path / "value")
    other = tf.Variable(np.zeros_like(value))
    Checkpoint(v=other).restore(path).assert_consumed()
    found = other.numpy()
    assert found.dtype == np.asarray(value).dtype and found.shape == np.shape(value)
    np.testing.assert_array_equal(found, value)


def test_bfloat16_comes_back(tmp_path: Path) -> None:
    pytest.importorskip("ml_dtypes")
    path = Checkpoint(v=tf.Variable(tf.constant([1.5, -2], tf.bfloat16))).write(tmp_path / "b")
    other = tf.Variable(tf.zeros((2,), tf.bfloat16))
    Checkpoint(v=other).restore(path).assert_consumed()
    assert tf.cast(other, tf.float32).numpy().tolist() == [1.5, -2]


def test_a_dtype_that_the_format_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.UnimplementedError, match="complex128"):
        Checkpoint(v=tf.Variable([1j], dtype=tf.complex128)).write(tmp_path / "c")
    assert not list(tmp_path.iterdir())


def test_variables_change_after_a_restore_without_changing_the_file(tmp_path: Path) -> None:
    variable = tf.Variable([1.0, 2.0])
    path = Checkpoint(v=variable).write(tmp_path / "v")
    Checkpoint(v=variable).restore(path)
    variable.assign_add([1.0, 1.0])
    Checkpoint(v=variable).restore(path)
    assert variable.numpy().tolist() == [1, 2]


def test_equal_states_give_equal_files(tmp_path: Path) -> None:
    objects = {"net": Net(), "rng": np.random.default_rng(1), "step": tf.Variable(1)}
    paths = [Checkpoint(**objects).write(tmp_path / name) for name in "ab"]
    assert Path(paths[0]).read_bytes() == Path(paths[1]).read_bytes()


def test_save_counts_and_the_count_is_restored(tmp_path: Path) -> None:
    checkpoint = Checkpoint(v=tf.Variable(1.0))
    checkpoint.save(tmp_path / "ck")
    path = checkpoint.save(tmp_path / "ck")
    assert path == str(tmp_path / "ck-2.safetensors")
    other = Checkpoint(v=tf.Variable(0.0))
    other.restore(path).assert_consumed()
    assert int(other.save_counter) == 2
    assert other.save(tmp_path / "ck").endswith("ck-3.safetensors")


def test_saving_is_unseen_by_tapes(tmp_path: Path) -> None:
    variable = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        Checkpoint(v=variable).write(tmp_path / "v")
    assert not tape.watched_variables()


def test_a_root_has_no_name(tmp_path: Path) -> None:
    path = Checkpoint(Net(), step=tf.Variable(1)).write(tmp_path / "root")
    assert _names(path) == ["parts/a%2Fc", "parts/b/0", "step", "weight"]


def test_nested_checkpoints_and_metrics(tmp_path: Path) -> None:
    mean = tf.keras.metrics.Mean()
    mean.update_state([1.0, 2.0])
    inner = Checkpoint(mean=mean)
    path = Checkpoint(inner=inner).write(tmp_path / "m")
    other = tf.keras.metrics.Mean()
    Checkpoint(inner=Checkpoint(mean=other)).restore(path).assert_consumed()
    assert float(other.result()) == 1.5


# ---------------------------------------------------------------- what is refused

@pytest.mark.parametrize("value", [3, "text", None, [1, 2], object()],
                         ids=lambda value: type(value).__name__)
def test_only_what_has_state_can_be_saved(value: Any) -> None:
    with pytest.raises(ValueError, match=r"tf\.Variable"):
        Checkpoint(step=value)


def test_names_are_checked() -> None:
    with pytest.raises(ValueError, match="another name"):
        Checkpoint(save_counter=tf.Variable(1))
    with pytest.raises(ValueError, match="another name"):
        Checkpoint(write=tf.Variable(1))
    with pytest.raises(ValueError, match="root"):
        Checkpoint(tf.Variable(1))
    with pytest.raises(ValueError, match="weight"):
        Checkpoint(Net(), weight=tf.Variable(1)).held()
    with pytest.raises(ValueError, match="two things"):
        Checkpoint(d={1: tf.Variable(1), "1": tf.Variable(2)}).write("never")


def test_a_list_in_itself_is_refused() -> None:
    holder: list[Any] = [tf.Variable(1.0)]
    holder.append(holder)
    with pytest.raises(ValueError, match="'l/1' is a list that it is in"):
        Checkpoint(l=holder)
    outer: dict[str, Any] = {"x": [tf.Variable(1.0)]}
    outer["x"].append(outer)
    with pytest.raises(ValueError, match="'d/x/1' is a dict that it is in"):
        Checkpoint(d=outer)
    twice = [tf.Variable(1.0)]
    Checkpoint(l=[twice, twice])


def test_nothing_to_save_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="nothing to save"):
        Checkpoint().save(tmp_path / "x")
    model = tf.keras.Sequential([tf.keras.layers.Dense(3)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="'model' has no variables"):
        Checkpoint(model=model, step=tf.Variable(1)).save(tmp_path / "x")


def test_the_package_is_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    checkpoint = Checkpoint(v=tf.Variable(1.0))
    checkpoint.restore(checkpoint.write(tmp_path / "x")).assert_consumed()


# ---------------------------------------------------------------- matching

def test_other_shapes_and_dtypes_change_nothing(tmp_path: Path) -> None:
    path = Checkpoint(a=tf.Variable([1.0]), b=tf.Variable([1.0, 2.0]),
                      c=tf.Variable([3.0])).write(tmp_path / "x")
    a, b = tf.Variable([5.0]), tf.Variable([5.0])
    c, d = tf.Variable([5]), tf.Variable(0.0)
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        Checkpoint(a=a, b=b, c=c, d=d).restore(path)
    text = str(error.value)
    assert "'b' is float32(1,), the file has float32(2,)" in text
    assert "'c' is int32(1,), the file has float32(1,)" in text
    assert "not in the file: d" in text
    assert a.numpy().tolist() == [5]


def test_a_slot_of_another_shape_builds_nothing(tmp_path: Path) -> None:
    from gtape.train import stored

    net, optimizer = Net(), tf.keras.optimizers.Adam()
    optimizer.build([net.weight])
    path = Path(Checkpoint(net=net, optimizer=optimizer).write(tmp_path / "x"))
    held = stored.read(path)
    held.arrays["optimizer/velocities/net/weight"] = np.zeros(7, np.float32)
    stored.write(held, path)
    fresh, other = Net(), tf.keras.optimizers.Adam()
    fresh.weight.assign(tf.zeros((2, 3)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="velocities"):
        Checkpoint(net=fresh, optimizer=other).restore(path)
    assert not other.built
    assert not fresh.weight.numpy().any()


def test_a_partial_restore_lists_what_is_left_over(tmp_path: Path) -> None:
    path = Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).write(tmp_path / "x")
    a = tf.Variable(0.0)
    status = Checkpoint(a=a, c=tf.Variable(0.0)).restore(path)
    assert float(a) == 1
    with pytest.raises(AssertionError, match=r"not in the file: c; only in the file: b"):
        status.assert_consumed()
    with pytest.raises(AssertionError, match="not in the file: c"):
        status.assert_existing_objects_matched()
    status.assert_nontrivial_match()
    Checkpoint(a=a).restore(path).assert_existing_objects_matched()
    with pytest.raises(AssertionError):
        Checkpoint(z=a).restore(path).assert_nontrivial_match()


def test_an_unasked_partial_restore_warns(tmp_path: Path) -> None:
    path = Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).write(tmp_path / "x")
    checkpoint = Checkpoint(a=tf.Variable(0.0))
    with pytest.warns(UserWarning, match=r"only in the file: b.*expect_partial") as caught:
        checkpoint.restore(path)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpoint.restore(path).expect_partial()
        Checkpoint(a=tf.Variable(0.0), b=tf.Variable(0.0)).restore(path)


def test_no_path_restores_nothing() -> None:
    status = Checkpoint(a=tf.Variable(1.0)).restore(None)
    status.expect_partial()
    with pytest.raises(AssertionError, match="None"):
        status.assert_consumed()


def test_an_optimizer_is_not_built_for_a_part_of_its_variables(tmp_path: Path) -> None:
    head, body = tf.Variable([1.0]), tf.Variable([2.0])
    optimizer = tf.keras.optimizers.Adam()
    optimizer.build([head, body])
    path = Checkpoint(head=head, body=body, optimizer=optimizer).write(tmp_path / "x")
    other = tf.keras.optimizers.Adam()
    status = Checkpoint(body=body, optimizer=other).restore(path)
    assert not other.built
    with pytest.raises(AssertionError, match="optimizer/momentums/head"):
        status.assert_consumed()


def test_exclusions_from_decay_survive_the_build_by_a_restore(tmp_path: Path) -> None:
    def made() -> tuple[Any, Any, Any]:
        kept, decayed = tf.Variable([1.0]), tf.Variable([1.0])
        optimizer = tf.keras.optimizers.AdamW(0.1, weight_decay=0.5)
        optimizer.exclude_from_weight_decay(var_list=[kept])
        return kept, decayed, optimizer

    kept, decayed, optimizer = made()
    optimizer.apply([tf.constant([0.0])] * 2, [kept, decayed])
    path = Checkpoint(k=kept, d=decayed, o=optimizer).write(tmp_path / "x")
    again, shrunk, other = made()
    Checkpoint(k=again, d=shrunk, o=other).restore(path).assert_consumed()
    other.apply([tf.constant([0.0])] * 2, [again, shrunk])
    assert again.numpy().tolist() == [1]
    assert shrunk.numpy()[0] < decayed.numpy()[0] < 1


def test_a_state_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    class Picky(train.experimental.PythonState):
        def __init__(self, text: str, refuses: bool = False) -> None:
            self.text, self.refuses = text, refuses

        def serialize(self) -> str:
            return self.text

        def deserialize(self, string_value: str) -> None:
            if self.refuses and string_value != self.text:
                raise ValueError("no")
            self.text = string_value

    path = Checkpoint(a=Picky("1"), b=Picky("2"), v=tf.Variable(3.0)).write(tmp_path / "x")
    a, b, v = Picky("old"), Picky("old", refuses=True), tf.Variable(0.0)
    with pytest.raises(tf.errors.DataLossError, match="'b' does not take its state"):
        Checkpoint(a=a, b=b, v=v).restore(path)
    assert (a.text, b.text, float(v)) == ("old", "old", 0)


def test_another_bit_generator_is_refused(tmp_path: Path) -> None:
    path = Checkpoint(rng=np.random.Generator(np.random.MT19937(1))).write(tmp_path / "x")
    with pytest.raises(tf.errors.DataLossError, match="PCG64"):
        Checkpoint(rng=np.random.default_rng(1)).restore(path)

"""Module: the order of its variables, names and scopes."""

from __future__ import annotations

import copy

import pytest

import gtape as tf


class Leaf(tf.Module):
    def __init__(self, name=None):
        super().__init__(name=name)
        self.w = tf.Variable(1.0, name="w")
        self.b = tf.Variable(1.0, name="b")
        self.c = tf.Variable(1.0, trainable=False, name="c")


class _Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.leaves = [Leaf(), Leaf("second")]
        self.table = {"k": tf.Variable(1.0, name="dk")}
        self.again = self._private = tf.Variable(3.0, name="private")
        self.parent = self


def _names(variables):
    return [v.name for v in variables]


def test_own_variables_come_first_sorted_by_attribute_each_once():
    net = _Net()
    wanted = ["private:0", "dk:0", "b:0", "c:0", "w:0", "b:0", "c:0", "w:0"]
    assert _names(net.variables) == wanted
    assert _names(net.trainable_variables) == [n for n in wanted if n != "c:0"]
    assert _names(net.non_trainable_variables) == ["c:0", "c:0"]
    assert isinstance(net.variables, tuple) and isinstance(net.submodules, tuple)
    assert [m.name for m in net.submodules] == ["leaf", "second"]


def test_gradients_for_a_module():
    leaf = Leaf()
    with tf.GradientTape() as tape:
        y = leaf.w * 2.0 + leaf.b * 3.0
    assert [g.numpy() for g in tape.gradient(y, leaf.trainable_variables)] == [3, 2]


def test_names():
    class MyDenseHTTPLayer(tf.Module):
        pass

    assert MyDenseHTTPLayer().name == "my_dense_http_layer"
    assert tf.Module("other").name_scope.name == "other/"
    for bad in ("$x", "a b", ""):
        with pytest.raises(ValueError, match="identifier"):
            tf.Module(bad)


def test_name_scopes_nest():
    class Scoped(tf.Module):
        def __init__(self):
            super().__init__(name="scoped")
            with self.name_scope:
                self.w = tf.Variable(1.0, name="w")

        @tf.Module.with_name_scope
        def build(self):
            """Makes v."""
            return tf.Variable(1.0, name="v").name

    with tf.name_scope("outer"):
        module = Scoped()
    assert module.w.name == "outer/scoped/w:0"
    assert module.build() == "outer/scoped/v:0"
    assert Scoped.build.__doc__ == "Makes v."


def test_a_forgotten_init_is_named():
    class Forgetful(tf.Module):
        def __init__(self):
            self.w = tf.Variable(1.0)

    assert len(Forgetful().variables) == 1
    with pytest.raises(AttributeError, match="super"):
        Forgetful().name_scope


def test_a_copy_has_its_own_variables():
    net = _Net()
    other = copy.deepcopy(net)
    other.leaves[0].w.assign(9.0)
    assert net.leaves[0].w.numpy() == 1
    assert _names(other.variables) == _names(net.variables)

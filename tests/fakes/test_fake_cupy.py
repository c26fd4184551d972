"""The fake CuPy refuses what CuPy refuses; where CuPy is installed, it offers what CuPy offers."""

from __future__ import annotations

import importlib.util
import inspect
import operator

import numpy as np
import pytest

from tests.fakes import fake_cupy as cp


def test_numpy_functions_stay_on_the_device():
    x = cp.asarray(np.arange(6.0)).reshape(2, 3)
    for made in (np.add(x, 1), np.concatenate([x, x]), np.linalg.norm(x), x.sum(), x[0, 0], x @ x.T,
                 np.float64(2) * x, 2 - x):
        assert isinstance(made, cp.ndarray)
    assert not isinstance(x, np.ndarray)


@pytest.mark.parametrize("mixed", [
    lambda x: np.asarray(x), lambda x: x + np.ones(3), lambda x: np.ones(3) + x,
    lambda x: cp.where(x > 0, x, np.ones(3)), lambda x: np.concatenate([x, np.ones(3)]),
    lambda x: x.__setitem__(slice(None), np.ones(3))])
def test_numpy_arrays_are_refused(mixed):
    with pytest.raises(TypeError):
        mixed(cp.ones(3))


def test_what_cupy_lacks_is_missing():
    x = cp.ones(3)
    with pytest.raises(TypeError, match="initial"):
        cp.max(x, initial=0)
    with pytest.raises(TypeError, match="initial"):
        x.max(initial=0)
    with pytest.raises(AttributeError, match="spacing"):
        _ = cp.spacing
    with pytest.raises(TypeError):
        np.insert(x, 0, 1.0)
    with pytest.raises(TypeError, match="int64"):
        cp.add.at(cp.zeros(3, dtype=np.int64), cp.asarray(np.array([0])), 1)


def test_arrays_of_another_device_are_refused():
    x = cp.ones(3)
    with cp.cuda.Device(1):
        assert cp.zeros(2).device.id == 1
        with pytest.raises(ValueError, match="current device"):
            x + 1
    assert (x + 1).device.id == 0


def test_views_own_no_memory():
    before = cp.cuda.used[0]
    x = cp.zeros((4, 4))
    view = x[1:].T.reshape(-1)
    assert cp.cuda.used[0] - before >= x.nbytes and x[1:].base is x and view.size == 12
    del x, view
    assert cp.cuda.used[0] == before


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed")
def test_the_list_of_names_is_true_of_cupy():
    import cupy

    wrong = []
    for name, params in cp.NAMES.items():
        function = operator.attrgetter(name)(cupy)
        try:
            real = [p.name for p in inspect.signature(function).parameters.values()]
        except (TypeError, ValueError):
            continue
        if params is not None and [p.lstrip("*") for p in params] != real:
            wrong.append(name)
    assert wrong == []

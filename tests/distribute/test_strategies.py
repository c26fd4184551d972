"""Strategies of one replica: contexts, run, reduce, and what several replicas are told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import gtape as tf

_MAKERS: list[Callable[[], tf.distribute.Strategy]] = [
    tf.distribute.get_strategy, lambda: tf.distribute.OneDeviceStrategy("/cpu:0"),
    lambda: tf.distribute.MirroredStrategy(["CPU:0"]), tf.distribute.MirroredStrategy]


@pytest.fixture(params=range(len(_MAKERS)), ids=["usual", "one", "mirrored", "mirrored_anywhere"])
def strategy(request: pytest.FixtureRequest) -> tf.distribute.Strategy:
    return _MAKERS[request.param]()


def test_a_program_without_a_strategy_is_in_a_replica() -> None:
    assert not tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()
    context = tf.distribute.get_replica_context()
    assert context is not None and int(context.replica_id_in_sync_group) == 0
    assert tf.distribute.get_strategy().num_replicas_in_sync == context.num_replicas_in_sync == 1


def test_a_scope_is_cross_replica_context() -> None:
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope() as entered:
        assert entered is strategy is tf.distribute.get_strategy()
        assert tf.distribute.has_strategy() and tf.distribute.in_cross_replica_context()
        assert tf.distribute.get_replica_context() is None
        with strategy.scope():
            assert tf.distribute.get_strategy() is strategy
    assert not tf.distribute.has_strategy()


def test_the_usual_scope_changes_nothing() -> None:
    with tf.distribute.get_strategy().scope():
        assert not tf.distribute.has_strategy()
        assert tf.distribute.get_replica_context() is not None


def test_run_is_a_call_in_the_replica(strategy: tf.distribute.Strategy) -> None:
    seen = []

    def step(x: tf.Tensor, by: float = 1.0) -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        assert context is not None and context.strategy is strategy
        seen.append(tf.distribute.in_cross_replica_context())
        return x * by

    with strategy.scope():
        made = strategy.run(step, args=(tf.constant([1.0, 2.0]),), kwargs={"by": 3.0})
    assert made.numpy().tolist() == [3.0, 6.0] and seen == [False]


def test_results_of_the_replica_are_plain_values(strategy: tf.distribute.Strategy) -> None:
    x = tf.constant([[1.0, 2.0], [3.0, 5.0]])
    assert strategy.reduce("SUM", x, axis=None) is x
    assert strategy.reduce("sum", x, axis=0).numpy().tolist() == [4.0, 7.0]
    mean = strategy.reduce(tf.distribute.ReduceOp.MEAN, {"a": x}, axis=-1)
    assert mean["a"].numpy().tolist() == [1.5, 4.0]
    assert strategy.reduce("MEAN", x, axis=(0, 1)).numpy() == 2.75
    assert strategy.gather(x, axis=1) is x
    assert strategy.experimental_local_results(x) == (x,)
    with pytest.raises(ValueError, match="X"):
        strategy.reduce("x", x, axis=None)


def test_all_reduce_and_merge_call_in_the_replica(strategy: tf.distribute.Strategy) -> None:
    def merged(given: tf.distribute.Strategy, x: tf.Tensor) -> tf.Tensor:
        assert given is strategy and tf.distribute.get_replica_context() is None
        return x + 1.0

    def step(x: tf.Tensor) -> None:
        context = tf.distribute.get_replica_context()
        assert context is not None
        both = context.all_reduce(tf.distribute.ReduceOp.SUM, [x, {"a": 2.0}])
        assert both[0] is x and both[1]["a"].numpy() == 2.0
        assert context.all_gather(x, 0) is x
        assert context.merge_call(merged, args=(x,)).numpy().tolist() == [2.0]
        with pytest.raises(ValueError, match="MAX"):
            context.all_reduce("max", x)
        with pytest.raises(ValueError, match="None"):
            context.all_reduce("sum", None)

    strategy.run(step, args=(tf.constant([1.0]),))


@pytest.mark.parametrize("call", [
    lambda s: s.run(lambda: 1), lambda s: s.reduce("SUM", 1.0, axis=None),
    lambda s: s.gather(tf.constant([1.0]), 0), lambda s: s.experimental_distribute_dataset([])])
def test_cross_replica_methods_are_refused_in_the_replica(
        strategy: tf.distribute.Strategy, call: Callable[[tf.distribute.Strategy], object]) -> None:
    with pytest.raises(RuntimeError, match="cross-replica context"):
        strategy.run(lambda: call(strategy))


def test_run_in_a_traced_function_converts_the_step() -> None:
    strategy = tf.distribute.MirroredStrategy()

    def step(x: tf.Tensor) -> tf.Tensor:
        if tf.reduce_sum(x) > 0:
            return x
        return -x

    @tf.function
    def train(x: tf.Tensor) -> tf.Tensor:
        return strategy.reduce("SUM", strategy.run(step, args=(x,)), axis=None)

    assert train(tf.constant([1.0, 2.0])).numpy().tolist() == [1.0, 2.0]
    assert train(tf.constant([-1.0, -2.0])).numpy().tolist() == [1.0, 2.0]


def test_gradients_flow_through_run() -> None:
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        w = tf.Variable(3.0)

    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = w * w
        return tape.gradient(loss, w)

    assert strategy.run(step).numpy() == 6.0


def test_extended_updates_variables(strategy: tf.distribute.Strategy) -> None:
    v = tf.Variable(1.0)
    made = strategy.extended.update(v, lambda v, a: v.assign_add(a), args=(2.0,))
    assert made.numpy() == v.numpy() == 3.0
    many = strategy.extended.update(v, lambda v: v.assign(7.0), group=False)
    assert isinstance(many, tuple) and v.numpy() == 7.0
    assert strategy.extended.broadcast_to(v, None) is v
    assert strategy.extended.reduce_to("SUM", v, v) is v
    assert strategy.extended.variable_created_in_scope(v)
    assert strategy.extended.worker_devices == strategy.extended.parameter_devices
    assert strategy.extended.worker_devices[0].startswith("/device:")
    with strategy.extended.colocate_vars_with(v):
        tf.Variable(0.0)


def test_datasets_and_values_are_made_for_one_replica(strategy: tf.distribute.Strategy) -> None:
    items = [1, 2]
    assert strategy.experimental_distribute_dataset(items) is items
    assert strategy.distribute_datasets_from_function(
        lambda c: [c.get_per_replica_batch_size(8), c.num_input_pipelines, c.input_pipeline_id,
                   c.num_replicas_in_sync]) == [8, 1, 0, 1]
    assert strategy.experimental_distribute_values_from_function(
        lambda c: (c.replica_id_in_sync_group, c.num_replicas_in_sync)) == (0, 1)
    assert not isinstance(items, (tf.distribute.DistributedDataset,
                                  tf.distribute.DistributedIterator,
                                  tf.distribute.DistributedValues))


def test_strategies_do_not_mix() -> None:
    with tf.distribute.MirroredStrategy().scope():
        for other in (tf.distribute.MirroredStrategy(), tf.distribute.OneDeviceStrategy("cpu:0")):
            with pytest.raises(RuntimeError, match="Mixing different"):
                other.scope().__enter__()


def test_one_device_places_tensors() -> None:
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        assert "CPU:0" in tf.constant(1.0).device


def test_more_than_one_replica_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="one replica, and devices names 2"):
        tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    for made in (tf.distribute.TPUStrategy, tf.distribute.MultiWorkerMirroredStrategy,
                 tf.distribute.ParameterServerStrategy,
                 tf.distribute.experimental.CentralStorageStrategy):
        with pytest.raises(tf.errors.UnimplementedError, match="one replica"):
            made()
    with pytest.raises(ValueError, match="no TPU"):
        tf.distribute.cluster_resolver.TPUClusterResolver()
    with pytest.raises(AttributeError, match="one replica only"):
        tf.distribute.NcclAllReduce


def test_run_wants_a_sequence_of_arguments(strategy: tf.distribute.Strategy) -> None:
    with pytest.raises(ValueError, match="list or tuple"):
        strategy.run(lambda x: x, args=tf.constant(1.0))


def test_a_strategy_for_the_whole_program() -> None:
    strategy = tf.distribute.MirroredStrategy()
    tf.distribute.experimental_set_strategy(strategy)
    try:
        assert tf.distribute.get_strategy() is strategy and tf.distribute.has_strategy()
        assert tf.distribute.in_cross_replica_context()
        assert strategy.run(lambda: int(tf.distribute.in_cross_replica_context())) == 0
    finally:
        tf.distribute.experimental_set_strategy(None)
    assert not tf.distribute.has_strategy()
    with strategy.scope(), pytest.raises(RuntimeError, match="inside the scope"):
        tf.distribute.experimental_set_strategy(None)

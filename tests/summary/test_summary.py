"""tf.summary: event files that TensorBoard's own reader reads, and TensorFlow's bytes."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import gtape as tf
from gtape.files.records import records
from gtape.summary.writers import Event, SummaryMetadata

summary = tf.summary


@pytest.fixture(autouse=True)
def nothing_in_force():
    from gtape.summary import writers

    yield
    writers.state.__init__()


def events(folder):
    """The events of the files in a folder, but for the first of each."""
    return [Event.FromString(r) for path in sorted(folder.iterdir())
            for r in list(records(path))[1:]]


def values(folder):
    """(step, tag, tensor) of each summary."""
    found = []
    for event in events(folder):
        if event.HasField("summary"):
            value, = event.summary.value
            found.append((event.step, value.tag, value))
    return found


def numbers(folder):
    return [(step, tag, float(tf.io.parse_tensor(v.tensor, tf.float32)))
            for step, tag, v in values(folder)]


def accumulated(folder):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = reader.EventAccumulator(str(folder), size_guidance={"tensors": 0})
    found.Reload()
    return found


def test_numbers_have_tensorflows_bytes(tmp_path):
    writer = summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        assert summary.scalar("a", 0.5, step=3).numpy()
        summary.scalar("i", 7, step=3, description="de **x**")
    writer.close()
    # The events of TensorFlow 2.21, without the time at the beginning.
    written = list(records(next(tmp_path.iterdir())))
    assert [record[9:] for record in written[1:]] == [
        b'\x10\x03*\x1e\n\x1c\n\x01aB\n\x08\x01\x12\x00"\x04\x00\x00\x00?J\x0b\n\t\n\x07scalars',
        b'\x10\x03*(\n&\n\x01iB\n\x08\x01\x12\x00"\x04\x00\x00\xe0@J\x15\n\t\n\x07scalars'
        b'\x1a\x08de **x**']
    assert written[0][9:].startswith(b"\x1a\rbrain.Event:2R")


def test_tensorboard_reads_every_kind(tmp_path):
    writer = summary.create_file_writer(tmp_path)
    pixels = np.arange(36, dtype=np.uint8).reshape(1, 3, 4, 3)
    with writer.as_default(step=4):
        summary.scalar("loss", 0.25)
        summary.histogram("weights", np.arange(100.0), buckets=5)
        summary.image("picture", pixels)
        summary.text("note", "hello *there*")
        summary.audio("sound", np.zeros([1, 8, 1], np.float32), 8000)
    writer.close()
    found = accumulated(tmp_path)
    assert set(found.Tags()["tensors"]) == {"loss", "weights", "picture", "note", "sound"}
    plugins = {tag: found.SummaryMetadata(tag).plugin_data.plugin_name
               for tag in found.Tags()["tensors"]}
    assert plugins == {"loss": "scalars", "weights": "histograms", "picture": "images",
                       "note": "text", "sound": "audio"}
    from tensorboard.util.tensor_util import make_ndarray

    read = {tag: make_ndarray(found.Tensors(tag)[0].tensor_proto) for tag in plugins}
    assert found.Tensors("loss")[0].step == 4 and read["loss"] == np.float32(0.25)
    np.testing.assert_allclose(read["weights"][:, 2], 20)
    np.testing.assert_allclose(read["weights"][0, :2], [0, 19.8])
    assert read["picture"][:2].tolist() == [b"4", b"3"]
    assert read["note"] == b"hello *there*" and read["sound"][0, 0].startswith(b"RIFF")


def test_the_graph_of_a_function_is_read_by_tensorboard(tmp_path):
    @tf.function
    def doubled(x):
        return x * 2.0 + tf.exp(x)

    writer = summary.create_file_writer(tmp_path)
    with writer.as_default():
        assert summary.graph(doubled.get_concrete_function(tf.TensorSpec([3])).graph).numpy()
        with pytest.raises(TypeError, match="get_concrete_function"):
            summary.graph(3)
    writer.close()
    graph = accumulated(tmp_path).Graph()
    assert graph.node[0].name == "input"
    assert {"exp", "Placeholder", "Const"} <= {n.op for n in graph.node}
    last = graph.node[-1]
    assert len(last.input) == 2 and set(last.input) <= {n.name for n in graph.node}


def test_images_are_the_values_they_were_given(tmp_path):
    pytest.importorskip("PIL")
    writer = summary.create_file_writer(tmp_path)
    with writer.as_default(step=0):
        summary.image("im", np.float32([[[[0.0], [0.5]], [[1.0], [2.0]]]]))
        summary.image("many", np.zeros([5, 2, 2, 3], np.uint8), max_outputs=2)
    writer.close()
    (_, _, one), (_, _, many) = values(tmp_path)
    strings = tf.io.parse_tensor(one.tensor, tf.string).numpy()
    assert tf.io.decode_png(strings[2]).numpy()[..., 0].tolist() == [[0, 127], [255, 255]]
    assert tf.io.parse_tensor(many.tensor, tf.string).shape == (4,)


def test_histograms_of_odd_values():
    from gtape.summary.values import buckets_of

    assert buckets_of(np.array([]), 30).tolist() == [[0, 0, 0]] * 30
    same = buckets_of(np.array([3.0] * 3), 4)
    assert same[:, 2].tolist() == [0, 0, 0, 3] and (same[:, :2] == 3).all()
    odd = buckets_of(np.array([np.nan, np.inf, 0.0, 1.0, 1.0]), 2)
    assert odd.tolist() == [[0, 0.5, 1], [0.5, 1, 2]]
    assert buckets_of(np.arange(3.0), 0).shape == (0, 3)


def test_steps(tmp_path):
    writer = summary.create_file_writer(tmp_path)
    counter = tf.Variable(7, dtype=tf.int64)
    with writer.as_default():
        with pytest.raises(ValueError, match="No step set"):
            summary.scalar("a", 1.0)
        summary.experimental.set_step(counter)
        summary.scalar("a", 1.0)
        counter.assign_add(1)
        summary.scalar("a", 2.0)
        with writer.as_default(step=20):
            assert summary.experimental.get_step() == 20
            summary.scalar("a", 3.0)
        assert summary.experimental.get_step() is counter
        summary.scalar("a", 4.0, step=tf.constant(30))
    writer.close()
    assert numbers(tmp_path) == [(7, "a", 1.0), (8, "a", 2.0), (20, "a", 3.0), (30, "a", 4.0)]


def test_conditions_and_no_writer(tmp_path):
    assert not summary.scalar("a", 1.0, step=0).numpy()
    assert not summary.should_record_summaries().numpy()
    writer = summary.create_file_writer(tmp_path)
    asked = []
    with writer.as_default(step=1):
        with summary.record_if(False):
            assert not summary.scalar("no", 1.0).numpy()
            assert not summary.should_record_summaries().numpy()
        with summary.record_if(lambda: asked.append(1) or tf.constant(len(asked) > 1)):
            assert not summary.scalar("no", 1.0).numpy() and summary.scalar("yes", 1.0).numpy()
        assert summary.write("lazy", lambda: asked.append(2) or 1.0).numpy()
    assert asked == [1, 1, 2]
    with summary.create_noop_writer().as_default(step=1):
        summary.scalar("nowhere", 1.0)
    with summary.create_file_writer(None).as_default(step=1):
        summary.scalar("nowhere", 1.0)
    writer.close()
    assert [tag for _, tag, _ in values(tmp_path)] == ["yes", "lazy"]


def test_tags_are_below_name_scopes(tmp_path):
    writer = summary.create_file_writer(tmp_path)
    with writer.as_default(step=0), tf.name_scope("outer"), tf.name_scope("in"):
        summary.scalar("a b", 1.0)
        with summary.experimental.summary_scope("s", "default") as (tag, scope):
            assert tag == "outer/in/s" and scope == "outer/in/s/"
    writer.close()
    assert [tag for _, tag, _ in values(tmp_path)] == ["outer/in/a b"]


def test_any_tensor_with_metadata(tmp_path):
    about = SummaryMetadata()
    about.plugin_data.plugin_name = "mine"
    about.plugin_data.content = b"1"
    writer = summary.create_file_writer(tmp_path)
    with writer.as_default():
        summary.write("t", [1, 2], step=5, metadata=about)
        summary.write("t", "text", step=6, metadata=about.SerializeToString())
        writer.flush()
        raw = events(tmp_path)[0].summary.SerializeToString()
        summary.experimental.write_raw_pb(raw, step=7)
        with pytest.raises(tf.errors.InvalidArgumentError):
            summary.write("t", 1, step=5, metadata=b"\xff")
    writer.close()
    assert [(s, v.metadata.plugin_data.plugin_name) for s, _, v in values(tmp_path)] == [
        (5, "mine"), (6, "mine"), (7, "mine")]


def test_traced_functions_write_at_every_call_in_order(tmp_path):
    counter = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(x):
        counter.assign_add(1)
        summary.scalar("x", tf.reduce_sum(x), step=counter)
        summary.histogram("h", x, step=counter)
        summary.scalar("after", x[0], step=counter)
        return x * 2.0

    writers = [summary.create_file_writer(tmp_path / name) for name in ("a", "b")]
    for i, writer in enumerate(writers):
        with writer.as_default():
            assert step(tf.constant([1.0, float(i)])).numpy().tolist() == [2.0, 2.0 * i]
    step(tf.constant([5.0, 5.0]))
    assert step.experimental_get_tracing_count() == 1
    for writer in writers:
        writer.close()
    assert [(s, t) for s, t, _ in values(tmp_path / "a")] == [(1, "x"), (1, "h"), (1, "after")]
    assert [(s, t) for s, t, _ in values(tmp_path / "b")] == [(2, "x"), (2, "h"), (2, "after")]


def test_a_writer_within_a_traced_function(tmp_path):
    inner = summary.create_file_writer(tmp_path / "inner")
    outer = summary.create_file_writer(tmp_path / "outer")

    @tf.function
    def step(x, n):
        with inner.as_default(step=n), summary.record_if(tf.equal(n % 2, 0)):
            summary.scalar("x", x)

    with outer.as_default():
        for n in range(4):
            step(tf.constant(float(n)), tf.constant(n, tf.int64))
    assert numbers(tmp_path / "inner") == [(0, "x", 0.0), (2, "x", 2.0)]
    assert numbers(tmp_path / "outer") == []
    inner.close()
    outer.close()


def test_conditions_around_a_traced_function_count_at_every_call(tmp_path):
    @tf.function
    def step(x):
        summary.scalar("x", x)
        return summary.should_record_summaries()

    writer = summary.create_file_writer(tmp_path)
    seen = []
    for n in range(4):
        with writer.as_default(step=n), summary.record_if(n % 2 == 1):
            seen.append(bool(step(tf.constant(float(n)))))
    assert seen == [False, True, False, True]
    assert numbers(tmp_path) == [(1, "x", 1.0), (3, "x", 3.0)]
    writer.close()


def test_gradients_pass_by_summaries(tmp_path):
    writer = summary.create_file_writer(tmp_path)
    x = tf.Variable(3.0)

    @tf.function
    def gradient():
        with tf.GradientTape() as tape:
            y = x * x
            summary.scalar("y", y, step=0)
        return tape.gradient(y, x)

    with writer.as_default():
        assert gradient().numpy() == 6.0
    writer.close()
    assert numbers(tmp_path) == [(0, "y", 9.0)]


def test_what_was_written_is_there_without_closing(tmp_path):
    writer = summary.create_file_writer(tmp_path, max_queue=2)
    writer.set_as_default(step=0)
    summary.scalar("a", 1.0)
    summary.scalar("a", 2.0)
    assert len(numbers(tmp_path)) == 2
    summary.scalar("a", 3.0)
    summary.flush()
    assert len(numbers(tmp_path)) == 3
    summary.scalar("a", 4.0)
    from gtape.summary import writers

    writers.state.__init__()
    del writer
    gc.collect()
    assert len(numbers(tmp_path)) == 4


def test_a_closed_writer_is_refused(tmp_path):
    writer = summary.create_file_writer(tmp_path)
    with writer.as_default(step=0):
        writer.close()
        writer.close()
        with pytest.raises(RuntimeError, match="already closed"):
            summary.scalar("a", 1.0)
    for call in (writer.init, writer.set_as_default, lambda: writer.as_default().__enter__()):
        with pytest.raises(RuntimeError, match="already closed"):
            call()


@pytest.mark.parametrize("call, error", [
    (lambda: summary.scalar("x", [1.0, 2.0], step=0), ValueError),
    (lambda: summary.scalar("x", "text", step=0), ValueError),
    (lambda: summary.histogram("x", ["text"], step=0), ValueError),
    (lambda: summary.image("x", np.zeros([3, 4, 3]), step=0), ValueError),
    (lambda: summary.image("x", np.zeros([1, 3, 4, 5]), step=0), ValueError),
    (lambda: summary.text("x", 3, step=0), TypeError),
    (lambda: summary.audio("x", np.zeros([8, 1], np.float32), 8000, step=0), ValueError),
    (lambda: summary.audio("x", np.zeros([1, 8, 1], np.float32), 8, step=0, encoding="mp3"),
     ValueError),
    (lambda: summary.trace_export("x"), ValueError),
    (lambda: summary.create_file_writer("s3://bucket"), tf.errors.UnimplementedError),
    (lambda: summary.create_file_writer("/proc/none/x"), tf.errors.OpError)])
def test_what_is_refused(tmp_path, call, error):
    with summary.create_file_writer(tmp_path).as_default(), pytest.raises(error):
        call()


def test_the_graphs_of_functions_that_are_traced_meanwhile_are_exported(tmp_path):
    @tf.function
    def doubled(x):
        return tf.exp(x) * 2.0

    writer = summary.create_file_writer(tmp_path)
    with writer.as_default():
        summary.trace_on(graph=True, profiler=False)
        doubled(tf.constant(1.0))
        with pytest.raises(ValueError, match="No step set"):
            summary.trace_export("t")
        summary.trace_export("t", step=4)
        doubled(tf.constant([1.0]))
        summary.trace_on()
        summary.trace_export("none", step=5)
        summary.trace_on()
        summary.trace_off()
        with pytest.raises(ValueError, match="Must enable trace"):
            summary.trace_export("x", step=0)
    writer.close()
    from gtape.compile.frontend import closed_graph

    assert closed_graph.listeners == []
    (step, tag, value), (_, _, empty) = values(tmp_path)
    assert (step, tag) == (4, "t")
    assert value.metadata.plugin_data.plugin_name == "graph_run_metadata_graph"
    content = tf.io.parse_tensor(value.tensor, tf.string).numpy()
    assert content.count(b"Placeholder") == 1 and b"exp" in content
    assert tf.io.parse_tensor(empty.tensor, tf.string).numpy() == b""


def test_keras_callback_writes_what_tensorboard_reads(tmp_path):
    keras = tf.keras
    model = keras.Sequential([keras.layers.Input([3]), keras.layers.Dense(2, name="d")])
    model.compile("sgd", "mse")
    callback = keras.callbacks.TensorBoard(tmp_path, histogram_freq=1, write_images=True,
                                           update_freq=1)
    x, y = np.ones([8, 3], np.float32), np.ones([8, 2], np.float32)
    model.fit(x, y, epochs=2, batch_size=4, verbose=0, callbacks=[callback],
              validation_data=(x, y))
    train = accumulated(tmp_path / "train")
    tags = set(train.Tags()["tensors"])
    assert {"epoch_loss", "epoch_learning_rate", "batch_loss", "keras"} <= tags
    assert any(t.endswith("kernel/histogram") for t in tags)
    assert any(t.endswith("kernel/image") for t in tags)
    assert [e.step for e in train.Tensors("epoch_loss")] == [0, 1]
    assert "epoch_loss" in accumulated(tmp_path / "validation").Tags()["tensors"]

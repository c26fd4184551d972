"""What is said when something goes wrong: the transformation, the element, the user's line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gtape as tf

Dataset = tf.data.Dataset


def _in_python(x: Any) -> Any:
    """A function that cannot be traced: it needs the numbers."""
    if x.numpy() == 3:
        raise ValueError("three is refused")
    return x * 2


def _until(iterator: Any) -> list[int]:
    found = []
    with pytest.raises(tf.errors.OpError) as raised:
        found.extend(int(x) for x in iterator)
    found.append(raised.value)
    return found


@pytest.mark.parametrize("threads", [None, 4])
def test_an_error_in_map_names_the_element_and_the_line(threads: int | None) -> None:
    dataset = Dataset.range(5).map(_in_python, num_parallel_calls=threads)
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        list(dataset)
    text = str(raised.value)
    assert re.search(r"map, element 3, .*test_failures.py:\d+: ValueError: three is refused", text)
    assert isinstance(raised.value.__cause__, ValueError)


def test_threads_give_what_comes_before_an_error_first() -> None:
    import time

    def slow(x: Any) -> Any:
        time.sleep(0.001)
        return _in_python_late(x)

    found = []
    with pytest.raises(tf.errors.InvalidArgumentError, match="element 12"):
        for x in Dataset.range(20).map(slow, num_parallel_calls=4):
            found.append(int(x))
    assert found == list(range(12))


def _in_python_late(x: Any) -> Any:
    if x.numpy() == 12:
        raise ValueError("twelve is refused")
    return x


@pytest.mark.parametrize(("raised", "expected"), [
    (KeyError("k"), tf.errors.UnknownError), (TypeError("t"), tf.errors.InvalidArgumentError),
    (MemoryError("m"), tf.errors.ResourceExhaustedError),
    (NotImplementedError("n"), tf.errors.UnimplementedError),
    (tf.errors.DataLossError("d"), tf.errors.DataLossError),
    (StopIteration(), tf.errors.InvalidArgumentError)])
def test_classes_of_errors_are_tensorflows(raised: Exception, expected: type[Exception]) -> None:
    def function(x: Any) -> Any:
        x.numpy()
        raise raised

    with pytest.raises(expected):
        list(Dataset.range(2).map(function))


def test_what_tracing_raises_comes_at_once() -> None:
    with pytest.raises(KeyError):
        Dataset.from_tensor_slices({"a": [1]}).map(lambda d: d["b"])


def test_a_generator_that_raises() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    dataset = Dataset.from_generator(items, output_signature=tf.TensorSpec([], tf.int32))
    with pytest.raises(tf.errors.InvalidArgumentError,
                       match=r"from_generator, element 1, .*test_failures.py:\d+: .*no more"):
        list(dataset)


@pytest.mark.parametrize(("item", "message"), [
    ([1, 2], r"element 1: .*shape \(2,\) where an element of shape \(1,\) was expected"),
    (["a"], "element 1: .*could not be converted to the expected type.*int32"),
    ({"a": 1}, "element 1: .*could not be converted"),
    ([2 ** 40], "element 1: .*could not be converted")])
def test_a_generator_that_yields_something_else(item: Any, message: str) -> None:
    dataset = Dataset.from_generator(
        lambda: iter([[1], item]), output_signature=tf.TensorSpec([1], tf.int32))
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(dataset)


def test_a_generator_of_another_structure() -> None:
    dataset = Dataset.from_generator(
        lambda: iter([(1, 2), (1,)]),
        output_signature=(tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.int32)))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"element 1: .*expected structure"):
        list(dataset)


def test_shapes_that_do_not_go_into_one_batch() -> None:
    dataset = Dataset.range(1, 5).map(lambda x: tf.fill([x], x)).batch(2)
    with pytest.raises(tf.errors.InvalidArgumentError,
                       match=r"batch, element 0: Cannot batch tensors with different shapes"):
        list(dataset)


def test_an_element_too_long_to_pad() -> None:
    dataset = Dataset.range(1, 3).map(lambda x: tf.fill([x], x)).padded_batch(2, [1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="axis 0 is 2 long"):
        list(dataset)


def test_an_error_in_a_batch_of_rows_is_that_of_one_row() -> None:
    table = tf.constant([1.0, 2.0])
    rows = Dataset.range(4).map(lambda i: tf.gather(table, i))
    for dataset in (rows, rows.batch(4), rows.batch(2)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"map, element 2.*gather"):
            list(dataset)
    assert [float(x) for x in Dataset.from_tensor_slices([0, 5, 1]).map(
        lambda i: tf.gather(table, i)).ignore_errors()] == [1.0, 2.0]


def test_errors_may_be_passed_over() -> None:
    dataset = Dataset.range(6).map(_in_python).ignore_errors()
    assert [int(x) for x in dataset] == [0, 2, 4, 8, 10]
    with pytest.warns(RuntimeWarning, match="three is refused"):
        list(Dataset.range(6).map(_in_python).ignore_errors(log_warning=True))


@pytest.mark.parametrize("make", [
    lambda: Dataset.range(3).batch(0), lambda: Dataset.range(3).shuffle(0),
    lambda: Dataset.range(3).shard(3, 3), lambda: Dataset.range(3).window(0),
    lambda: Dataset.range(1, 5, 0),
    lambda: Dataset.range(3).interleave(Dataset.range, cycle_length=0)])
def test_numbers_that_make_no_sense(make: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        make()


@pytest.mark.parametrize("make", [
    lambda: Dataset.range(3).batch("a"), lambda: Dataset.range(3).map(3),
    lambda: Dataset.zip((Dataset.range(3), [1, 2])), lambda: Dataset.from_generator([1]),
    lambda: Dataset.range(3).apply(lambda d: 1),
    lambda: Dataset.range(2).concatenate(Dataset.from_tensors(1.0)),
    lambda: Dataset.from_generator(lambda: iter([1])),
    lambda: Dataset.range(3).with_options(None)])
def test_arguments_of_other_types(make: Any) -> None:
    with pytest.raises(TypeError):
        make()


def test_a_predicate_must_say_yes_or_no() -> None:
    with pytest.raises(ValueError, match="boolean"):
        Dataset.range(3).filter(lambda x: x)


def test_an_infinite_dataset_has_no_length() -> None:
    with pytest.raises(TypeError, match="infinite"):
        len(Dataset.range(3).repeat())
    with pytest.raises(TypeError, match="unknown"):
        len(Dataset.range(3).filter(lambda x: True))


def test_a_damaged_cache_file(tmp_path: Any) -> None:
    path = str(tmp_path / "cache")
    dataset = Dataset.from_tensor_slices(([1, 2], ["a", "bc"])).cache(path)
    first = list(dataset.as_numpy_iterator())
    assert list(dataset.as_numpy_iterator()) == first
    file = tmp_path / "cache.npz"
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(tf.errors.DataLossError, match="damaged"):
        list(dataset)
    np.savez(file, shapes0=np.array([[10 ** 12]]), values0=np.zeros(3, np.uint8))
    with pytest.raises(tf.errors.DataLossError, match="damaged"):
        list(dataset)

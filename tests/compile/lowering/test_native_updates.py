"""Variables of which compiled programs write some rows or a slice: equal to eager, in place."""

import numpy as np
import pytest

import gtape as tf
from tests.compile.native_calls import assert_native, assert_same, hosted

pytestmark = pytest.mark.native
RNG = np.random.default_rng(0)
START = (RNG.normal(size=(6, 3)) * 9).astype("f")
ROWS = np.array([1, 5, 1, 0, 5, 1, 2, 1, 4], "i4")
VALUES = RNG.normal(size=(9, 3)).astype("f")


def both_ways(change, *args, start=START, native=True):
    """A variable after two eager changes, and after two by a program; the program."""
    inputs = [tf.constant(a) for a in args]
    variables = [tf.Variable(start) for _ in range(2)]

    def eager(*xs):
        change(variables[0], *xs)

    @tf.function
    def program(*xs):
        change(variables[1], *xs)

    for call in (eager, program):
        for _ in range(2):
            call(*inputs)
    assert_same(variables[1], variables[0])
    assert hosted(program, *inputs) == set() or not native
    return str(program.inspect(*inputs))


def written_in_place(report):
    """Whether no cell is copied."""
    return "in place" in report and "__builtin_memcpy(P" not in report.split("segment0")[-1]


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "i8", "u1"])
@pytest.mark.parametrize("how", ["add", "sub", "update", "max", "min"])
def test_rows_that_occur_several_times(how, dtype):
    def change(variable, rows, values):
        getattr(variable, f"scatter_{how}")(tf.IndexedSlices(values, rows))

    report = both_ways(change, ROWS, np.abs(VALUES * 5).astype(dtype), start=START.astype(dtype))
    assert written_in_place(report)


def test_products_of_rows_are_left_to_numpy():
    def change(variable, rows, values):
        variable.scatter_mul(tf.IndexedSlices(values, rows))

    both_ways(change, ROWS, VALUES, native=False)


@pytest.mark.parametrize("how", ["add", "sub", "update"])
def test_slices_at_index_tuples(how):
    cells = np.stack([ROWS, ROWS % 3], 1)

    def change(variable, cells, values):
        getattr(variable, f"scatter_nd_{how}")(cells, values)
        getattr(variable, f"scatter_nd_{how}")(cells[:, :1], values[:, None] + tf.zeros((9, 3)))

    both_ways(change, cells, VALUES[:, 0].copy())


@pytest.mark.parametrize("rows", [3000, 3])
def test_many_rows_shared_among_threads(rows):
    index = RNG.integers(0, rows, 5000).astype("i8")
    values = RNG.normal(size=(5000, 40)).astype("f")

    def change(variable, index, values):
        variable.scatter_sub(tf.IndexedSlices(values, index))

    both_ways(change, index, values, start=RNG.normal(size=(rows, 40)).astype("f"))


KEYS = {"rows": (slice(2, 4),), "row": (1,), "backwards": (slice(None, None, -2), 1),
        "column": (..., 2), "new axis": (None, slice(1, 3), slice(0, 2)), "last": (-1, slice(None)),
        "element": (2, -1), "empty": (slice(3, 3),)}


@pytest.mark.parametrize("how", ["assign", "assign_add", "assign_sub"])
@pytest.mark.parametrize("name", KEYS)
def test_slices(name, how):
    key = KEYS[name]
    piece = START[key]

    def change(variable, value, number):
        getattr(variable[key], how)(value)
        getattr(variable[key], how)(number)

    both_ways(change, np.full_like(piece, 1.5), np.float32(3))


@pytest.mark.parametrize("how", ["assign", "assign_add", "assign_sub"])
def test_slices_at_places_known_when_the_program_runs(how):
    def change(variable, place, rows, value):
        getattr(variable[place], how)(value)
        getattr(variable[place, place + 1], how)(2.0)
        getattr(variable[1:3, place], how)(value[:2])
        getattr(variable[rows], how)(value)
        getattr(variable[rows[:2]], how)(tf.stack([value, value]))

    both_ways(change, np.int32(-2), ROWS[:4] - 3, VALUES[0])


def test_one_row_of_a_large_table_does_not_touch_the_rest():
    table = tf.Variable(np.zeros((4000, 64), "f"))

    @tf.function
    def write(rows, values, place):
        table.scatter_add(tf.IndexedSlices(values, rows))

    @tf.function
    def assign(place, value):
        table[place].assign(value)

    args = (tf.constant([1, 3999, 1]), tf.ones((3, 64)), tf.constant(7))
    write(*args)
    assign(tf.constant(7), 2.0 * tf.ones(64))
    assert written_in_place(str(write.inspect(*args)))
    assert written_in_place(str(assign.inspect(tf.constant(7), tf.ones(64))))
    assert float(tf.reduce_sum(table)) == 64 * (2 + 1 + 2)


def test_a_value_that_is_still_read_is_not_overwritten():
    variable = tf.Variable(START)

    @tf.function
    def step(rows, values):
        old = variable * 1.0
        before = variable.read_value()
        variable.scatter_add(tf.IndexedSlices(values, rows))
        return old, before, variable - before

    old, before, change = step(ROWS, VALUES)
    assert_same([old, before], [START, START])
    assert_same(variable, START + np.asarray(change), 1e-5)


def test_a_variable_written_with_its_own_rows():
    def change(variable, rows):
        variable.scatter_update(tf.IndexedSlices(variable.read_value(), rows))
        variable[::-1].assign(variable)
        variable[1:3].assign_add(variable[:2])
        variable.scatter_sub(tf.IndexedSlices(variable[:3], rows[:3]))

    both_ways(change, np.array([3, 0, 5, 1, 2, 4], "i4"))


@pytest.mark.parametrize("how", ["update", "add", "sub", "max", "min"])
def test_tensor_scatter(how):
    function = getattr(tf, f"tensor_scatter_nd_{how}")
    cells = np.stack([ROWS, ROWS % 3], 1)[[0, 1, 2, 5]]

    def gradients(tensor, cells, values):
        with tf.GradientTape() as tape:
            tape.watch([tensor, values])
            made = function(tensor, cells, values)
            total = tf.reduce_sum(made ** 2)
        return made, tape.gradient(total, [tensor, values])

    assert_native(gradients, START, cells, VALUES[:4, 0].copy(), tolerance=1e-6)


# ---------------------------------------------------------------- what is out of range
def unchanged(change, *args):
    """The error of a program that leaves the state as it was; eagerly it is an error too."""
    variable, counter = tf.Variable(START), tf.Variable(0)

    @tf.function
    def program(*xs):
        counter.assign_add(1)
        variable.assign_add(tf.ones((6, 3)))
        return change(variable, *xs)

    for call in (lambda *xs: change(tf.Variable(START), *xs), program):
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            call(*map(tf.constant, args))
    assert_same([variable, counter], [START, np.int32(0)])
    assert not hosted(program, *map(tf.constant, args))
    return str(error.value)


@pytest.mark.parametrize("bad", [6, -1])
def test_a_row_out_of_range_writes_nothing(bad):
    def change(variable, rows):
        variable.scatter_add(tf.IndexedSlices(tf.ones((2, 3)), rows))

    text = unchanged(change, np.array([0, bad], "i4"))
    assert "scatter_add: indices must lie in [0, 6)" in text


def test_a_tuple_out_of_range_writes_nothing():
    def change(variable, cells):
        variable.scatter_nd_add(cells, tf.ones(2))

    text = unchanged(change, np.array([[0, 0], [1, 3]], "i4"))
    assert "scatter_nd_add" in text and "[6, 3]" in text


def test_a_slice_out_of_range_writes_nothing():
    def change(variable, place):
        variable[place].assign(tf.ones(3))

    text = unchanged(change, np.int32(6))
    assert "gather: indices must lie in [0, 6)" in text  # the slice is read first


def test_labels_and_segments_are_checked_before_anything_is_written():
    text = unchanged(lambda v, ids: tf.math.unsorted_segment_sum(v, ids, 4),
                     np.array([0, 1, 2, 3, 4, 0], "i4"))
    assert "segment_ids must be below 4" in text
    text = unchanged(lambda v, ids: tf.gather(v, ids, batch_dims=1), np.full((6, 1), 3, "i4"))
    assert "gather: indices must lie in [0, 3)" in text


def test_numbers_are_checked_before_anything_is_written():
    text = unchanged(lambda v, x: tf.debugging.check_numerics(v * x, "here"), np.float32(np.nan))
    assert text.startswith("here : Tensor had")

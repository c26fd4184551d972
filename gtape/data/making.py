"""Making: the functions of `tf.data.Dataset` that make datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gtape.core.convert import convert
from gtape.core.dtypes import int64
from gtape.data.arguments import dataset_of, datasets_of, flag, known
from gtape.ops.arguments import as_items


class Making:
    """What makes a dataset; a base of `Dataset`, which has these as static methods."""

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Any:
        """The dataset of one element, `tensors`: a tensor, or tuples and dicts of tensors.

        Raises:
            ValueError, TypeError: a leaf is nothing that a tensor can be made of.
        """
        from gtape.data.sources import OneElement

        return OneElement(tensors)

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Any:
        """The rows tensors[0], tensors[1], ... of a tensor, or of a nest of them.

        Arrays are copied, but for `np.memmap`, of which rows are read as they are wanted.

        Raises:
            ValueError: the first axes are not equally long, or there is none.
        """
        from gtape.data.sources import Slices

        return Slices(tensors)

    @staticmethod
    def from_generator(generator: Callable[..., Any], output_types: Any = None,
                       output_shapes: Any = None, args: Any = None, output_signature: Any = None,
                       name: str | None = None) -> Any:
        """What `generator(*args)`, called for every pass, yields.

        Args:
            output_signature: the specs of what it yields; or by the older way
            output_types: the dtypes, and
            output_shapes: the shapes.
            args: tensors that the generator gets as arguments, as NumPy arrays.

        Raises:
            TypeError: the generator is not callable, or nothing says what it yields.
            InvalidArgumentError: in a pass: what it yields does not fit, or it raises TypeError or
                ValueError; other exceptions become UnknownError.
        """
        from gtape.data.generators import Generated, spec_of_arguments

        spec = spec_of_arguments(output_signature, output_types, output_shapes)
        given = () if args is None else tuple(
            [known(convert(arg), "from_generator: args")
             for arg in as_items(args, "from_generator: args")])
        return Generated(generator, spec, given)

    @staticmethod
    def range(*args: Any, output_type: Any = None, name: str | None = None) -> Any:
        """range(stop), range(start, stop) or range(start, stop, step): scalars of int64, or of
        `output_type`.

        Raises:
            InvalidArgumentError: the step is zero. TypeError: an argument is no integer.
        """
        from gtape.data.sources import Range

        return Range(args, output_type)

    @staticmethod
    def counter(start: Any = 0, step: Any = 1, dtype: Any = None, name: str | None = None) -> Any:
        """start, start + step, ... without end: scalars of int64, or of `dtype`."""
        from gtape.data.sources import Counter

        return Counter(start, step, dtype)

    @staticmethod
    def random(seed: Any = None, rerandomize_each_iteration: bool | None = None,
               name: str | None = None) -> Any:
        """Random int64 numbers of [0, 2^32) without end.

        Args:
            rerandomize_each_iteration: every pass draws other numbers; by default none does.
        """
        from gtape.data.shuffling import Random

        return Random(seed, flag(rerandomize_each_iteration, "rerandomize_each_iteration"))

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Any:
        """Elements (an element of each dataset), as many as the shortest has.

        Args:
            args: datasets, or one nest of datasets, whose structure the elements have.

        Raises:
            TypeError: an argument is no dataset.
        """
        from gtape.data.combining import Zip

        if datasets is not None:
            args = (*args, datasets)
        return Zip(args if len(args) != 1 else args[0])

    @staticmethod
    def choose_from_datasets(datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = True,
                             ) -> Any:
        """For each number of `choice_dataset` the next element of datasets[number].

        Args:
            stop_on_empty_dataset: the end comes with that of a chosen dataset; False: such a
                choice is passed over.

        Raises:
            TypeError: the elements of the datasets differ in structure or dtype, or a choice is
                no int64 scalar. ValueError: no datasets.
        """
        from gtape.core.type_specs import TensorSpec
        from gtape.data.combining import Choose

        found = datasets_of(datasets, "choose_from_datasets")
        choices = dataset_of(choice_dataset, "choose_from_datasets: choice_dataset")
        if choices.element_spec != TensorSpec([], int64):
            raise TypeError(f"Invalid `choice_dataset`. Elements of `choice_dataset` must be "
                            f"scalar `tf.int64` tensors but are {choices.element_spec}.")
        return Choose(found, choices, flag(stop_on_empty_dataset, "stop_on_empty_dataset"))

    @staticmethod
    def sample_from_datasets(datasets: Any, weights: Any = None, seed: Any = None,
                             stop_on_empty_dataset: bool = False,
                             rerandomize_each_iteration: bool | None = None) -> Any:
        """The next element of a dataset that is drawn at random, again and again.

        Args:
            weights: how likely each dataset is, a vector or a dataset of vectors; equally without.
            stop_on_empty_dataset: the end comes with that of a drawn dataset; False: it is drawn
                no more.
            rerandomize_each_iteration: every pass draws anew; by default none does with a seed.

        Raises:
            TypeError: the elements differ in structure or dtype. ValueError: the weights do not
            fit the datasets.
        """
        from gtape.data.combining import Sample, weights_of

        found = datasets_of(datasets, "sample_from_datasets")
        return Sample(found, weights_of(found, weights), seed,
                      flag(stop_on_empty_dataset, "stop_on_empty_dataset"),
                      seed is None or flag(rerandomize_each_iteration,
                                           "rerandomize_each_iteration"))

    @staticmethod
    def load(path: Any, element_spec: Any = None, compression: Any = None, reader_func: Any = None,
             wait: bool = False) -> Any:
        """The dataset that `save` wrote to the folder `path`.

        Args:
            element_spec: of the elements; what the folder says by default.
            compression: accepted; the folder says it.
            reader_func: makes one dataset of a dataset of the shards' datasets; without it one
                shard follows the other.
            wait: accepted; a dataset is there when `save` is done.

        Raises:
            NotFoundError: no dataset was saved there.
            DataLossError: what is there is damaged; in a pass it names file and element.
        """
        from gtape.data.saved import load

        return load(path, element_spec, compression, reader_func)

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: Any = None,
                   name: str | None = None) -> Any:
        """The names of the files that match a glob pattern, or one of several: strings.

        Args:
            shuffle: in random order, by default; False: sorted.

        Raises:
            InvalidArgumentError: no file matches.
        """
        from gtape.data.sources import listed

        return listed(file_pattern, shuffle, seed)

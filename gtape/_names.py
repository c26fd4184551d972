"""Where each name of the root namespace lives. `gtape.__getattr__` reads it at first use.

An entry is `name`, or `name=attribute` where the module spells it differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

_TABLE = {
    "gtape.core.dtypes": """
        DType as_dtype bool=bool_ bfloat16 complex64 complex128 double float16 float32 float64 half
        int8 int16 int32 int64 string uint8 uint16 uint32 uint64""",
    "gtape.core.spec": "TensorShape",
    "gtape.core.context": "init_scope",
    "gtape.compile.frontend.function": "function",
    "gtape.data.iterators": "OptionalSpec",
    "gtape.core.type_specs": """
        TypeSpec TensorSpec NoneTensorSpec type_spec_from_value""",
    "gtape.core.tensor": "Tensor",
    "gtape.core.variable": """
        Variable VariableAggregation VariableSynchronization name_scope""",
    "gtape.autodiff.tape": "GradientTape",
    "gtape.autodiff.gradient_request": "UnconnectedGradients explain_none",
    "gtape.core.indexed_slices": "IndexedSlices IndexedSlicesSpec",
    "gtape.autodiff.backward": "RegisterGradient no_gradient",
    "gtape.autodiff.custom_gradient": "custom_gradient grad_pass_through recompute_grad",
    "gtape.core.module": "Module",
    "gtape.core.introspection": """
        executing_eagerly inside_function is_symbolic_tensor is_tensor get_logger get_static_value
        gradients hessians""",
    "gtape.devices.probe": "device DeviceSpec",
    "gtape.ops.elementwise.scalars": """
        acos acosh add asin asinh atan atan2 atanh complex=make_complex cos cosh
        equal exp floor greater greater_equal less less_equal logical_and logical_not
        logical_or maximum minimum multiply negative not_equal pow=power sigmoid sin
        sinh sqrt square subtract tan tanh realdiv=divide truncatediv truncatemod""",
    "gtape.ops.elementwise.operators": """
        abs=absolute round=round_ sign=signum truediv divide=truediv""",
    "gtape.ops.shape.casting": "cast saturate_cast bitcast",
    "gtape.ops.shape.creation": """
        constant convert_to_tensor eye fill linspace one_hot ones ones_like range=range_ zeros
        zeros_like""",
    "gtape.ops.shape.layout": """
        broadcast_to ensure_shape expand_dims reshape squeeze transpose""",
    "gtape.ops.shape.identity": """
        control_dependencies group guarantee_const identity identity_n no_op stop_gradient
        tuple=tuple_""",
    "gtape.ops.shape.packing": "concat parallel_stack split stack unstack",
    "gtape.ops.indexing.gathering": "gather gather_nd",
    "gtape.ops.linalg.products": "matmul",
    "gtape.ops.linalg.contraction": "einsum tensordot",
    "gtape.ops.linalg.eigen": "eig eigvals",
    "gtape.ops.linalg.matrix_functions": "matrix_square_root",
    "gtape.ops.signal.fourier": "fftnd ifftnd irfftnd rfftnd",
    "gtape.ops.linalg.norms": "norm",
    "gtape.ops.reductions.reductions": """
        reduce_all reduce_any reduce_max reduce_mean reduce_min reduce_prod reduce_sum""",
    "gtape.ops.reductions.sums": "add_n reduce_logsumexp scalar_mul",
    "gtape.ops.elementwise.clipping": "clip_by_global_norm clip_by_norm clip_by_value",
    "gtape.ops.control.selection": "where case cond switch_case",
    "gtape.ops.reductions.cumulative": "cumsum",
    "gtape.ops.indexing.sorting": """
        argmax argmin argsort sort searchsorted approx_top_k""",
    "gtape.ops.text.hashes": "fingerprint",
    "gtape.ops.text.numerals": "as_string",
    "gtape.ops.indexing.unique": "unique unique_with_counts",
    "gtape.ops.random.functions": "random_index_shuffle",
    "gtape.ops.reductions.histograms": "histogram_fixed_width histogram_fixed_width_bins",
    "gtape.ops.shape.arranging": """
        repeat reverse reverse_sequence roll tile meshgrid""",
    "gtape.ops.shape.padding": "pad",
    "gtape.ops.indexing.slicing": "slice=slice_ strided_slice",
    "gtape.ops.indexing.masking": "boolean_mask sequence_mask",
    "gtape.ops.indexing.segments": "dynamic_partition dynamic_stitch",
    "gtape.ops.indexing.scattering": """
        scatter_nd tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min
        tensor_scatter_nd_sub tensor_scatter_nd_update""",
    "gtape.ops.shape.blocks": """
        batch_to_space extract_volume_patches required_space_to_batch_paddings space_to_batch
        space_to_batch_nd""",
    "gtape.ops.shape.shapes": """
        broadcast_dynamic_shape broadcast_static_shape rank shape shape_n size unravel_index""",
    "gtape.ops.control.loops": """
        foldl foldr map_fn scan while_loop vectorized_map nondifferentiable_batch_function""",
    "gtape.ops.ragged.ragged_tensor": "RaggedTensor RaggedTensorSpec",
    "gtape.ops.sparse.tensor": "SparseTensor SparseTensorSpec",
    "gtape.ops.control.tensor_array": "TensorArray TensorArraySpec",
    "gtape.ops.control.host_functions": "numpy_function py_function print=print_",
    "gtape.ops.checks.assertions": "Assert assert_equal assert_greater assert_less assert_rank",
    "gtape.ops.nn.convolution": """
        conv conv2d_backprop_filter_v2 conv2d_backprop_input_v2""",
    "gtape.ops.random.initializers": """
        constant_initializer=Constant ones_initializer=Ones zeros_initializer=Zeros
        random_normal_initializer=RandomNormal random_uniform_initializer=RandomUniform""",
    "gtape.keras": "initializers losses metrics optimizers",
}

#: Submodules reachable as attributes.
MODULES = ("audio", "autodiff", "autograph", "bitwise", "compat", "config", "data", "debugging",
           "distribute", "dtypes", "errors", "experimental", "image", "inspect", "io", "keras",
           "linalg", "lookup", "math", "nest", "nn", "quantization", "ragged", "random",
           "raw_ops", "sets", "signal", "sparse", "strings", "summary", "test", "testing",
           "train", "types")

#: Names of TensorFlow that gtape leaves out, and what to use instead.
ABSENT = {
    "Graph": "decorate a Python function with gtape.function",
    "Session": "call the functions themselves",
    "placeholder": "pass tensors as function arguments",
    "queue": "use queue.Queue of the standard library",
    "saved_model": (
        "save weights with gtape.train.Checkpoint, Keras models with model.save, whose file Keras "
        "on TensorFlow reads and exports"),
    "estimator": "write the training loop with gtape.GradientTape",
    "xla": "gtape has no XLA",
    "lite": "gtape trains; it does not export to devices",
    "feature_column": "build features with NumPy",
    "assign": "variable.assign(value)",
    "gfile": "use gtape.io.gfile",
    "ragged_fill_empty_rows": "use a padded tensor with gtape.sequence_mask",
    "ragged_fill_empty_rows_grad": "use a padded tensor with gtape.sequence_mask",
    "edit_distance": "it compares sparse tensors of labels; compare Python sequences",
    "check_pinned": "read tensor.device",
}


def parsed(table: dict[str, str]) -> dict[str, tuple[str, str]]:
    """(module, attribute) by public name, of a table "name other=attribute" by module."""
    names = {}
    for module, text in table.items():
        for entry in text.split():
            name, _, attribute = entry.partition("=")
            names[name] = (module, attribute or name)
    return names


ROOT = parsed(_TABLE)


def missing(owner: str, name: str, names: Iterable[str]) -> str:
    """What to say of a name that `owner` does not have: the nearest of those that it has."""
    # Here, since only mistakes need it: `import gtape` loads next to nothing.
    import difflib

    # The nearest three: more would hide the one that was meant.
    near = difflib.get_close_matches(name, [*names], 3)
    return f"{owner} has no '{name}'" + (f"; did you mean {', '.join(near)}?" if near else "")


def lacking(owner: str, names: Iterable[str], more: str = "") -> Callable[[str], object]:
    """The `__getattr__` of a module that has no other names than these."""
    def refuse(name: str) -> object:
        raise AttributeError(missing(owner, name, names) + more)

    return refuse


def advice(name: str) -> str:
    """What to say of a name that gtape does not have."""
    # Before the search for similar names, which would suggest something else.
    if name in ABSENT:
        return f"gtape has no '{name}': {ABSENT[name]}"
    return missing("gtape", name, (*ROOT, *MODULES))

"""Losses: what is minimised, as functions (one value per example) and as classes (reduced)."""

from __future__ import annotations

from typing import Any

_WHERE = {
    "loss": "Loss LossFunctionWrapper Reduction",
    "regression": """MeanSquaredError MeanAbsoluteError MeanAbsolutePercentageError
        MeanSquaredLogarithmicError Huber LogCosh CosineSimilarity""",
    "regression_functions": """mean_squared_error mean_absolute_error
        mean_absolute_percentage_error mean_squared_logarithmic_error huber log_cosh
        cosine_similarity poisson kl_divergence hinge squared_hinge categorical_hinge""",
    "divergences": "Poisson KLDivergence Hinge SquaredHinge CategoricalHinge",
    "crossentropy": """BinaryCrossentropy BinaryFocalCrossentropy CategoricalCrossentropy
        CategoricalFocalCrossentropy SparseCategoricalCrossentropy
        CategoricalGeneralizedCrossEntropy""",
    "crossentropy_functions": """binary_crossentropy binary_focal_crossentropy
        categorical_crossentropy categorical_focal_crossentropy sparse_categorical_crossentropy
        categorical_generalized_cross_entropy""",
    "overlap": "Dice Tversky Circle dice tversky circle",
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names.split()}
_ALIASES = {
    "MSE": "mean_squared_error", "MAE": "mean_absolute_error",
    "MAPE": "mean_absolute_percentage_error", "MSLE": "mean_squared_logarithmic_error",
    "KLD": "kl_divergence", "logcosh": "log_cosh"}
_ALIASES |= {name.lower(): target for name, target in _ALIASES.items()} | {
    "kullback_leibler_divergence": "kl_divergence", "bce": "binary_crossentropy"}


def __getattr__(name: str) -> Any:
    from gtape.keras.lookup import attribute

    return attribute(__name__, _MODULE_OF, globals(), _ALIASES.get(name, name))


def __dir__() -> list[str]:
    return sorted((*_MODULE_OF, *_ALIASES, "get"))


def get(identifier: Any) -> Any:
    """The loss of a name such as 'mse' or 'BinaryCrossentropy'; None and functions stay.

    Raises:
        ValueError: an unknown name.
    """
    from gtape.keras.lookup import resolve

    if not isinstance(identifier, str):
        return resolve("loss", {}, identifier)
    try:
        found = __getattr__(identifier)
    except AttributeError as error:
        raise ValueError(f"there is no loss '{identifier}': {error}") from None
    return found() if isinstance(found, type) else found

"""Metrics: numbers that describe predictions, gathered over batches."""

from __future__ import annotations

from typing import Any

_WHERE = {
    "metric": "Metric",
    "means": "Mean Sum MeanMetricWrapper RootMeanSquaredError",
    "of_losses": """BinaryCrossentropy CategoricalCrossentropy CategoricalHinge Hinge KLDivergence
        LogCoshError MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredError
        MeanSquaredLogarithmicError Poisson SparseCategoricalCrossentropy SquaredHinge""",
    "accuracy": """Accuracy BinaryAccuracy CategoricalAccuracy SparseCategoricalAccuracy
        SparseTopKCategoricalAccuracy TopKCategoricalAccuracy binary_accuracy categorical_accuracy
        sparse_categorical_accuracy sparse_top_k_categorical_accuracy top_k_categorical_accuracy""",
    "confusion": """FalseNegatives FalsePositives Precision Recall TrueNegatives TruePositives""",
    "curves": """AUC PrecisionAtRecall RecallAtPrecision SensitivityAtSpecificity
        SpecificityAtSensitivity""",
    "iou": "BinaryIoU IoU MeanIoU OneHotIoU OneHotMeanIoU",
    "scores": "F1Score FBetaScore R2Score",
    "correlation": "ConcordanceCorrelation CosineSimilarity PearsonCorrelation",
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names.split()}
_ALIASES = {"mse": "MeanSquaredError", "mae": "MeanAbsoluteError", "kld": "KLDivergence",
            "mape": "MeanAbsolutePercentageError", "msle": "MeanSquaredLogarithmicError",
            "bce": "BinaryCrossentropy", "auc": "AUC", "rmse": "RootMeanSquaredError"}
_FUNCTIONS = {"MSE": "mean_squared_error", "MAE": "mean_absolute_error",
              "MAPE": "mean_absolute_percentage_error", "KLD": "kl_divergence",
              "MSLE": "mean_squared_logarithmic_error"}


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS or name in _FUNCTIONS.values():
        from gtape.keras import losses

        return getattr(losses, _FUNCTIONS.get(name, name))
    from gtape.keras.lookup import attribute

    return attribute(__name__, _MODULE_OF, globals(), name)


def __dir__() -> list[str]:
    return sorted((*_MODULE_OF, *_FUNCTIONS, "get"))


def get(identifier: Any) -> Any:
    """The metric of a name such as 'mae' or 'binary_accuracy'; metrics and functions stay.

    Raises:
        ValueError: an unknown name.
    """
    from gtape.keras.lookup import found, resolve
    from gtape.keras.naming import snake_case

    if not isinstance(identifier, str):
        return resolve("metric", {}, identifier)
    table = {name: name for name in _MODULE_OF if name[0].isupper()}
    table |= {snake_case(name): name for name in table} | _ALIASES
    return __getattr__(found("metric", table, identifier))(name=identifier)

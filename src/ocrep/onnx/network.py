"""A fitted estimator as the arrays that a graph needs: the hidden map, the output weights, the labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ocrep import literature
from ocrep._features.hidden_map import HiddenMap
from ocrep._features.random_layer import RandomLayer
from ocrep.estimators import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor
from ocrep.literature.units import MixedMap

Classifier: TypeAlias = PinvClassifier | TikhonovClassifier
Pruned: TypeAlias = literature.OPELMRegressor | literature.PrunedELMRegressor | literature.TROPELMRegressor
OnOneNetwork: TypeAlias = (
    literature.ELMClassifier | literature.ELMRegressor | literature.RELMClassifier | literature.RELMRegressor
)


class OnnxExportError(ValueError):
    """A model cannot be written as an ONNX graph; the message says why and what to do."""


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """HW + b."""

    weights: np.ndarray
    """(n_features_out, n_targets)."""
    intercept: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A fitted estimator as arrays."""

    hidden: HiddenMap | MixedMap | None
    """None if the features are the inputs themselves."""
    stages: tuple[Linear, ...] = ()
    """The output weights, then the calibration if there is one; empty for a layer alone."""
    labels: np.ndarray | None = None
    """The classes of a classifier, as text or whole numbers."""

    @property
    def calibrated(self) -> bool:
        """Whether the last stage computes the logits of probabilities."""
        return len(self.stages) == 2

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the graph's results."""
        if self.labels is None:
            return ("variable",)
        return ("label", "probabilities", "scores") if self.calibrated else ("label", "scores")

    @property
    def width(self) -> int | None:
        """Columns of the result; None for a layer alone, whose inputs may be part of it."""
        return self.stages[-1].weights.shape[1] if self.stages else None


def network_of(model: Any) -> Network:
    """Read a fitted estimator of this library."""
    check_is_fitted(model)
    return _read(model)


@singledispatch
def _read(model: Any) -> Network:
    raise OnnxExportError(f"{type(model).__name__} is not an estimator of ocrep.")


@_read.register
def _layer(model: RandomLayer) -> Network:
    return Network(model.map_)


@_read.register
def _with_layer(model: PinvRegressor | PinvClassifier) -> Network:
    return _trained(model, model.layer_.map_)


@_read.register
def _without_layer(model: TikhonovRegressor | TikhonovClassifier) -> Network:
    return _trained(model, None)


@_read.register
def _pruned(model: Pruned) -> Network:
    return _trained(model, model.map_)


@_read.register
def _on_one_network(model: OnOneNetwork) -> Network:
    return network_of(model.network_)


ESTIMATORS: tuple[type, ...] = tuple(kind for kind in _read.registry if kind is not object)
"""All estimators that `network_of` can read."""


def _trained(
    model: PinvRegressor | TikhonovRegressor | Classifier | Pruned, hidden: HiddenMap | MixedMap | None
) -> Network:
    output = Linear(np.atleast_2d(model.coef_).T.astype(np.float64), np.atleast_1d(model.intercept_))
    if not isinstance(model, Classifier):
        return Network(hidden, (output,))
    labels = _plain_labels(model.classes_)
    if model.calibrate is None:
        return Network(hidden, (output,), labels)
    advice = "call fit with this gamma and calibrate='loo', or set calibrate=None."
    check_is_fitted(model, "calibrator_", msg=f"This γ is not calibrated: {advice}")
    return Network(hidden, (output, Linear(model.calibrator_.slope, model.calibrator_.offset)), labels)


def _plain_labels(classes: np.ndarray) -> np.ndarray:
    """Labels as one of the two types that a graph can return."""
    labels = classes.tolist()
    if all(isinstance(label, str) for label in labels):
        return classes.astype(object)
    if all(isinstance(label, int | float) and label == int(label) for label in labels):
        return classes.astype(np.int64)
    raise OnnxExportError(
        f"A graph returns labels as text or whole numbers, and these are {labels}: encode them before fitting."
    )

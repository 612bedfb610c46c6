"""What a graph needs to know of a fitted estimator, whichever it is: the hidden map, the output weights, the labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ocrep._features.hidden_map import HiddenMap
from ocrep._features.random_layer import RandomLayer
from ocrep.estimators.features import HiddenUnits, OwnFeatures
from ocrep.literature.network import NetworkBased
from ocrep.literature.units import MixedMap, SelectedUnits


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
    """None for features that are the inputs themselves."""
    stages: tuple[Linear, ...] = ()
    """What follows: the output weights, then the calibration; nothing for a layer alone."""
    labels: np.ndarray | None = None
    """The classes of a classifier, as text or whole numbers."""

    @property
    def calibrated(self) -> bool:
        """Whether the last stage gives the logits of probabilities."""
        return len(self.stages) == 2

    @property
    def results(self) -> tuple[str, ...]:
        """What a graph gives, by name."""
        if self.labels is None:
            return ("variable",)
        return ("label", "probabilities", "scores") if self.calibrated else ("label", "scores")

    @property
    def width(self) -> int | None:
        """Columns of the result; None for a layer alone, whose inputs may be part of it."""
        return self.stages[-1].weights.shape[1] if self.stages else None


@singledispatch
def network_of(model: Any) -> Network:
    """Read a fitted estimator of this library."""
    raise OnnxExportError(f"{type(model).__name__} is not an estimator of ocrep.")


@network_of.register
def _layer(model: RandomLayer) -> Network:
    check_is_fitted(model)
    return Network(model.map_)


@network_of.register
def _pinv(model: HiddenUnits) -> Network:
    check_is_fitted(model)
    return _trained(model, model.layer_.map_)


@network_of.register
def _tikhonov(model: OwnFeatures) -> Network:
    check_is_fitted(model)
    return _trained(model, None)


@network_of.register
def _speaks_for_a_network(model: NetworkBased) -> Network:
    check_is_fitted(model)
    return network_of(model.network_)


@network_of.register
def _selected_units(model: SelectedUnits) -> Network:
    check_is_fitted(model)
    return _trained(model, model.map_)


def _trained(model: Any, hidden: HiddenMap | MixedMap | None) -> Network:
    stages = [Linear(np.atleast_2d(model.coef_).T.astype(np.float64), np.atleast_1d(model.intercept_))]
    if not hasattr(model, "classes_"):
        return Network(hidden, tuple(stages))
    if model.calibrate is not None:
        calibrator = model._calibrator()  # says so itself if this γ is not calibrated
        stages.append(Linear(calibrator.slope, calibrator.offset))
    return Network(hidden, tuple(stages), _plain_labels(model.classes_))


def _plain_labels(classes: np.ndarray) -> np.ndarray:
    """Labels in one of the two kinds that a graph can give."""
    labels = classes.tolist()
    if all(isinstance(label, str) for label in labels):
        return classes.astype(object)
    if all(isinstance(label, int | float) and label == int(label) for label in labels):
        return classes.astype(np.int64)
    raise OnnxExportError(f"A graph gives labels as text or whole numbers, and these are {labels}.")

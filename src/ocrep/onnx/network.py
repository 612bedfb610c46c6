"""A fitted estimator as the arrays that a graph needs: the hidden map, the output weights, the labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ocrep import literature
from ocrep._features.hidden_map import HiddenMap
from ocrep._features.random_layer import RandomLayer
from ocrep.estimators import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor
from ocrep.literature.units import MixedMap

Hidden: TypeAlias = HiddenMap | MixedMap | None
"""None if the features are the inputs themselves."""

_ON_NETWORK = (literature.ELMClassifier, literature.ELMRegressor, literature.RELMClassifier, literature.RELMRegressor)
_WITH_MAP = (RandomLayer, literature.OPELMRegressor, literature.PrunedELMRegressor, literature.TROPELMRegressor)
_HIDDEN: dict[type, Callable[[Any], Hidden]] = {
    **dict.fromkeys(_WITH_MAP, attrgetter("map_")),
    **dict.fromkeys((PinvClassifier, PinvRegressor), attrgetter("layer_.map_")),
    **dict.fromkeys((TikhonovClassifier, TikhonovRegressor), lambda model: None),
}
ESTIMATORS: tuple[type, ...] = (*_HIDDEN, *_ON_NETWORK)
"""All estimators that `network_of` can read."""


class OnnxExportError(ValueError):
    """A model cannot be written as an ONNX graph; the message says why and what to do."""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A fitted estimator as arrays."""

    hidden: Hidden
    stages: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    """Weights (n_features_out, n_targets) and intercept of the output, then those of the calibration if there is one;
    empty for a layer alone."""
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
        return self.stages[-1][0].shape[1] if self.stages else None


def network_of(model: Any) -> Network:
    """Read a fitted estimator of this library."""
    check_is_fitted(model)
    if isinstance(model, _ON_NETWORK):
        return network_of(model.network_)
    hidden_of = next((read for kind, read in _HIDDEN.items() if isinstance(model, kind)), None)
    if hidden_of is None:
        raise OnnxExportError(f"{type(model).__name__} is not an estimator of ocrep.")
    hidden = hidden_of(model)
    if isinstance(model, RandomLayer):
        return Network(hidden)
    output = np.atleast_2d(model.coef_).T.astype(np.float64), np.atleast_1d(model.intercept_)
    if not is_classifier(model):
        return Network(hidden, (output,))
    labels = _plain_labels(model.classes_)
    if model.calibrate is None:
        return Network(hidden, (output,), labels)
    advice = "call fit with this gamma and calibrate='loo', or set calibrate=None."
    check_is_fitted(model, "calibrator_", msg=f"This γ is not calibrated: {advice}")
    return Network(hidden, (output, (model.calibrator_.slope, model.calibrator_.offset)), labels)


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

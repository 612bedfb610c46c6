"""The types that a model file may hold: ours, in one table with their names in files, and a few others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ocrep import literature, rules
from ocrep._features.activations import ACTIVATIONS, Activation
from ocrep._features.hidden_map import HiddenMap
from ocrep._features.random_layer import RandomLayer
from ocrep._linalg.counts import Counts
from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldFactors, FoldPlan
from ocrep._linalg.spectrum import Spectrum
from ocrep._training.calibration import Calibrator
from ocrep._training.learned import Learned
from ocrep._training.targets import Labels, Numbers
from ocrep.estimators import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor
from ocrep.literature.units import MixedMap

_RULES = (rules.Rule, rules.Choice, rules.Curve)
_PUBLIC: dict[str, Iterable[type]] = {
    "ocrep": (PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor, RandomLayer, Factor, Spectrum),
    "ocrep.rules": [kind for kind in vars(rules).values() if isinstance(kind, type) and issubclass(kind, _RULES)],
    "ocrep.literature": [getattr(literature, name) for name in literature.__all__],
}
# Files contain these names, so they never change. When a private class moves, only the right-hand side changes.
OWN: dict[str, Callable[..., Any]] = {
    **{f"{room}.{kind.__name__}": kind for room, kinds in _PUBLIC.items() for kind in kinds},
    "ocrep.Activation": Activation,
    "ocrep.Calibrator": Calibrator,
    "ocrep.Counts": Counts,
    "ocrep.FoldFactors": FoldFactors,
    "ocrep.FoldPlan": FoldPlan,
    "ocrep.HiddenMap": HiddenMap,
    "ocrep.Labels": Labels,
    "ocrep.Learned": Learned,
    "ocrep.MixedMap": MixedMap,
    "ocrep.Numbers": Numbers,
    **{f"ocrep.activations.{name}": known.function for name, known in ACTIVATIONS.items()},
}

OTHERS = (
    "numpy.dtype",  # an attribute of scikit-learn's imputers
    "sklearn.utils._bunch.Bunch",  # an attribute of voting and stacking: a dict
    *(f"sklearn.feature_selection._univariate_selection.{name}" for name in ("f_classif", "f_regression")),
)
"""Harmless types and functions of other libraries that skops does not trust by default."""


def path_of(kind: Callable[..., Any]) -> str:
    """Where Python finds a type or function today."""
    return f"{kind.__module__}.{kind.__name__}"


_NAMES = {path_of(kind): name for name, kind in OWN.items()}


def name_of(path: str) -> str:
    """The name in files of the type or function at this path; types of other libraries are named by their path."""
    return _NAMES.get(path, path)

"""The types that a model file may hold: ours, in one table with their names in files, and a few others."""

from __future__ import annotations

from collections.abc import Callable
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

_RULES = {name: kind for name, kind in vars(rules).items() if isinstance(kind, type) and issubclass(kind, rules.Rule)}

# Files contain the names on the left, so these never change. When a class moves, only the right-hand side changes.
OWN: dict[str, Callable[..., Any]] = {
    "ocrep.PinvClassifier": PinvClassifier,
    "ocrep.PinvRegressor": PinvRegressor,
    "ocrep.TikhonovClassifier": TikhonovClassifier,
    "ocrep.TikhonovRegressor": TikhonovRegressor,
    "ocrep.RandomLayer": RandomLayer,
    "ocrep.Factor": Factor,
    "ocrep.Spectrum": Spectrum,
    "ocrep.rules.Choice": rules.Choice,
    "ocrep.rules.Curve": rules.Curve,
    **{f"ocrep.rules.{name}": kind for name, kind in _RULES.items()},
    **{f"ocrep.literature.{name}": getattr(literature, name) for name in literature.__all__},
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


def is_own(name: str) -> bool:
    """Whether a name or path belongs to this library."""
    return name.partition(".")[0] == "ocrep"

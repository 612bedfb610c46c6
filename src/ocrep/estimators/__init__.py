"""The public estimators: scikit-learn's interface, no numerics."""

from ocrep.estimators.base import rows_of
from ocrep.estimators.pinv import PinvClassifier, PinvRegressor
from ocrep.estimators.search import PinvClassifierCV, PinvRegressorCV
from ocrep.estimators.tikhonov import TikhonovClassifier, TikhonovRegressor

NETWORKS = (PinvClassifier, PinvClassifierCV, PinvRegressor, PinvRegressorCV)
"""All estimators with a hidden layer."""

__all__ = [
    "NETWORKS",
    "PinvClassifier",
    "PinvClassifierCV",
    "PinvRegressor",
    "PinvRegressorCV",
    "TikhonovClassifier",
    "TikhonovRegressor",
    "rows_of",
]

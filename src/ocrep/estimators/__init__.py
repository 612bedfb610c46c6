"""The public estimators: scikit-learn's interface, no numerics."""

from ocrep.estimators.base import rows_of
from ocrep.estimators.pinv import PinvClassifier, PinvRegressor
from ocrep.estimators.tikhonov import TikhonovClassifier, TikhonovRegressor

__all__ = ["PinvClassifier", "PinvRegressor", "TikhonovClassifier", "TikhonovRegressor", "rows_of"]

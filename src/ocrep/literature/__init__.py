"""The methods the paper compares OCReP with, as estimators that share its layer, factor and spectrum."""

from ocrep.literature.elm import ELMClassifier, ELMRegressor
from ocrep.literature.pruned import PrunedELMRegressor
from ocrep.literature.relm import RELMClassifier, RELMRegressor
from ocrep.literature.trop import OPELMRegressor, TROPELMRegressor

__all__ = [
    "ELMClassifier",
    "ELMRegressor",
    "OPELMRegressor",
    "PrunedELMRegressor",
    "RELMClassifier",
    "RELMRegressor",
    "TROPELMRegressor",
]

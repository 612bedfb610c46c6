"""The methods that the paper compares OCReP with, as estimators on the same hidden layer, factor and spectrum."""

from ocrep.literature.elm import ELMClassifier, ELMRegressor, RELMClassifier, RELMRegressor
from ocrep.literature.op_elm import OPELMRegressor, TROPELMRegressor
from ocrep.literature.pruned import PrunedELMRegressor

__all__ = [
    "ELMClassifier",
    "ELMRegressor",
    "OPELMRegressor",
    "PrunedELMRegressor",
    "RELMClassifier",
    "RELMRegressor",
    "TROPELMRegressor",
]

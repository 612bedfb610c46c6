"""Neural networks trained in closed form, with the regularization chosen by mathematics instead of search.

Names are imported when first used (PEP 562), so that `import ocrep` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ocrep import datasets as datasets
    from ocrep import literature as literature
    from ocrep import report as report
    from ocrep import rules as rules
    from ocrep import study as study
    from ocrep._features.random_layer import RandomLayer as RandomLayer
    from ocrep._linalg.factor import Factor as Factor
    from ocrep._linalg.spectrum import Spectrum as Spectrum
    from ocrep._rows.scan.scan import scan as scan
    from ocrep.analysis.compare import compare_rules as compare_rules
    from ocrep.analysis.compare import hidden_size_path as hidden_size_path
    from ocrep.displays import ConditionDisplay as ConditionDisplay
    from ocrep.displays import GainDisplay as GainDisplay
    from ocrep.displays import GammaPathDisplay as GammaPathDisplay
    from ocrep.displays import HiddenSizeDisplay as HiddenSizeDisplay
    from ocrep.displays import SpectrumDisplay as SpectrumDisplay
    from ocrep.estimators.pinv import PinvClassifier as PinvClassifier
    from ocrep.estimators.pinv import PinvRegressor as PinvRegressor
    from ocrep.estimators.pinv import TikhonovClassifier as TikhonovClassifier
    from ocrep.estimators.pinv import TikhonovRegressor as TikhonovRegressor
    from ocrep.serialization.model_files import load_model as load_model
    from ocrep.serialization.model_files import save_model as save_model

_HOME = {
    "compare_rules": "ocrep.analysis.compare",
    "ConditionDisplay": "ocrep.displays",
    "GainDisplay": "ocrep.displays",
    "GammaPathDisplay": "ocrep.displays",
    "HiddenSizeDisplay": "ocrep.displays",
    "SpectrumDisplay": "ocrep.displays",
    "load_model": "ocrep.serialization.model_files",
    "save_model": "ocrep.serialization.model_files",
    "hidden_size_path": "ocrep.analysis.compare",
    "Factor": "ocrep._linalg.factor",
    "PinvClassifier": "ocrep.estimators.pinv",
    "PinvRegressor": "ocrep.estimators.pinv",
    "RandomLayer": "ocrep._features.random_layer",
    "scan": "ocrep._rows.scan.scan",
    "Spectrum": "ocrep._linalg.spectrum",
    "TikhonovClassifier": "ocrep.estimators.pinv",
    "TikhonovRegressor": "ocrep.estimators.pinv",
}
_MODULES = ("datasets", "literature", "report", "rules", "study")

__all__ = ["__version__", *sorted(_HOME), *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"ocrep.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'ocrep' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

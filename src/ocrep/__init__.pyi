"""The public names of ocrep, each written once: type checkers read this file, and `__init__.py` does too."""

from ocrep import datasets as datasets
from ocrep import displays as displays
from ocrep import exceptions as exceptions
from ocrep import explain as explain
from ocrep import literature as literature
from ocrep import onnx as onnx
from ocrep import parts as parts
from ocrep import report as report
from ocrep import rules as rules
from ocrep._layers.random_layer import RandomLayer as RandomLayer
from ocrep._linalg.factor import Factor as Factor
from ocrep._linalg.spectrum import Spectrum as Spectrum
from ocrep._rows.stream import scan as scan
from ocrep._versions import show_versions as show_versions
from ocrep.analysis import significance as significance
from ocrep.analysis.compare import compare_rules as compare_rules
from ocrep.analysis.compare import hidden_size_path as hidden_size_path
from ocrep.displays import ConditionDisplay as ConditionDisplay
from ocrep.displays import GainDisplay as GainDisplay
from ocrep.displays import GammaPathDisplay as GammaPathDisplay
from ocrep.displays import HiddenSizeDisplay as HiddenSizeDisplay
from ocrep.displays import SpectrumDisplay as SpectrumDisplay
from ocrep.estimators import PinvClassifier as PinvClassifier
from ocrep.estimators import PinvClassifierCV as PinvClassifierCV
from ocrep.estimators import PinvRegressor as PinvRegressor
from ocrep.estimators import PinvRegressorCV as PinvRegressorCV
from ocrep.estimators import TikhonovClassifier as TikhonovClassifier
from ocrep.estimators import TikhonovRegressor as TikhonovRegressor
from ocrep.serialization import load_model as load_model
from ocrep.serialization import save_model as save_model
from ocrep.tables import TableClassifier as TableClassifier
from ocrep.tables import TableRegressor as TableRegressor
from ocrep.tables import fit_table as fit_table

__version__: str

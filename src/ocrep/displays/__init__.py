"""Displays of a fitted network, in scikit-learn's convention (drawing needs matplotlib)."""

from ocrep.displays.errors import GammaPathDisplay, HiddenSizeDisplay
from ocrep.displays.spectral import ConditionDisplay, GainDisplay, SpectrumDisplay

__all__ = ["ConditionDisplay", "GainDisplay", "GammaPathDisplay", "HiddenSizeDisplay", "SpectrumDisplay"]

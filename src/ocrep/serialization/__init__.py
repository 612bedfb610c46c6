"""Models to and from files."""

from ocrep.serialization.model_files import load_model, model_info, save_model
from ocrep.serialization.record import ModelFileError, ModelInfo

__all__ = ["ModelFileError", "ModelInfo", "load_model", "model_info", "save_model"]

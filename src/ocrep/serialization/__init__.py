"""Models to and from files."""

from ocrep.serialization.archive import ModelFileError, ModelInfo
from ocrep.serialization.model_files import load_model, model_info, save_model

__all__ = ["ModelFileError", "ModelInfo", "load_model", "model_info", "save_model"]

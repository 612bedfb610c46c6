"""Models to and from files."""

from ocrep.serialization.archive import ModelFileError, ModelInfo, blaming
from ocrep.serialization.model_files import load_model, model_info, save_model

__all__ = ["ModelFileError", "ModelInfo", "blaming", "load_model", "model_info", "save_model"]

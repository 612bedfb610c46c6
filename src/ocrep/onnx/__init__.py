"""Models as ONNX graphs, which run without Python: converters for skl2onnx, and one call that exports."""

from ocrep.onnx.converters import register
from ocrep.onnx.export import save_onnx, to_onnx
from ocrep.onnx.network import OnnxExportError

__all__ = ["OnnxExportError", "register", "save_onnx", "to_onnx"]

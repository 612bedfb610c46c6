"""Fitted models as ONNX graphs, which run without Python: an export function, and converters for skl2onnx."""

from ocrep.onnx.export import save_onnx, to_onnx
from ocrep.onnx.network import OnnxExportError, register

__all__ = ["OnnxExportError", "register", "save_onnx", "to_onnx"]

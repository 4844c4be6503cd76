"""Serving without torch."""

from foveate.serving.onnx_scorer import OnnxScorer

__all__ = ["OnnxScorer"]

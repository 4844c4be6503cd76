"""Dynamic int8 quantisation of the encoder: weights per output channel, activations at run time."""

from __future__ import annotations

import logging
from pathlib import Path

from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process


def quantize_encoder(source: Path, target: Path) -> None:
    """Write an int8 copy of an encoder graph; embeddings stay fp32, where int8 costs most agreement."""
    prepared = target.with_suffix(".prepared")
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.ERROR)
    try:
        quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        quantize_dynamic(
            str(prepared),
            str(target),
            weight_type=QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=["MatMul", "Gemm"],
        )
    finally:
        logging.getLogger().setLevel(level)
        prepared.unlink(missing_ok=True)

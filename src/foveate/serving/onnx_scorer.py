"""The exported scorer: onnxruntime and tokenizers, no torch.

An export folder holds foveate.json (the contract), tokenizer.json, three graphs (one more for each further head) and,
where it was quantised, an int8 encoder. The graphs are read once; one scorer may serve many conversations and threads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from foveate.core.errors import CheckpointError, ConfigError, MissingExtraError
from foveate.core.files import sha256
from foveate.core.protocols import PolicyName
from foveate.core.schema import Turn
from foveate.core.tiers import Importance, OrdinalThresholds, TierValues
from foveate.rules.importance import decide, with_keywords
from foveate.signals.batches import Ids, Windows, encode_texts
from foveate.signals.deltas import DELTAS, TOKENIZER, initializers, restored, tokenizer_file
from foveate.signals.features import SIGNAL_NAMES
from foveate.signals.lexical import Floats
from foveate.signals.vectors import VectorScorer

T = TypeVar("T")

MANIFEST = "foveate.json"
FORMAT = 1
Precision = Literal["fp32", "int8"]
ENCODERS: dict[Precision, str] = {"fp32": "encoder.onnx", "int8": "encoder.int8.onnx"}
_GRAPHS = ("mixer.onnx", "head.onnx")
IMPORTANCE, NLI = "importance.onnx", "nli.onnx"
_LEAST = {"dim": 1, "width": 1, "reach": 0, "max_length": 1}
_TYPES: dict[str, tuple[type, str]] = {
    **dict.fromkeys(_LEAST, (int, "a whole number")),
    "name": (str, "a text"),
    "policy": (str, "a text"),
    "signals": (list, "a list"),
    "files": (dict, "file names with their sha256"),
}
_AGAIN = "export again"


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
        manifest = read_manifest(folder, precision)
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise MissingExtraError("tokenizers", "onnx") from error
        self.name = str(manifest["name"])
        self.dim, self.width, self.reach = manifest["dim"], manifest["width"], manifest["reach"]
        self.policy: PolicyName = manifest["policy"]
        self.tier_values = _tiers(folder, manifest, "tier_values", TierValues) or TierValues()
        self.thresholds = _tiers(folder, manifest, "thresholds", OrdinalThresholds)
        self._windows = Windows(Tokenizer.from_file(str(tokenizer_file(folder))), manifest["max_length"])
        weights = _weights(folder, manifest)
        self._encoder = _session(folder / ENCODERS[precision], threads, weights)
        self._mixer, self._head = (_session(folder / name, threads) for name in _GRAPHS)
        has_head = IMPORTANCE in manifest["files"]
        self._importance = _session(folder / IMPORTANCE, threads) if has_head else None
        self._nli = _session(folder / NLI, threads) if NLI in manifest["files"] else None
        self._threshold = float(manifest["critical_threshold"]) if has_head else 0.0
        for key, graph in (("dim", self._encoder), ("width", self._mixer)):
            made = graph.get_outputs()[0].shape[-1]
            if isinstance(made, int) and made != manifest[key]:
                raise CheckpointError(
                    f"{folder / MANIFEST}: {key} is {manifest[key]}, the graphs make {made}: {_AGAIN}"
                )

    def encode(self, texts: Sequence[str]) -> Floats:
        return encode_texts(texts, self._windows, self._run_encoder, self.dim)

    def mix(self, vectors: Floats) -> Floats:
        return self._mixer.run(None, {"vectors": vectors})[0]

    def head(self, vectors: Floats, mixed: Floats, query: Floats, signals: Floats) -> Floats:
        inputs = {"vectors": vectors, "mixed": mixed, "query": query, "signals": signals}
        return self._head.run(None, inputs)[0]

    @property
    def has_nli(self) -> bool:
        """Whether the export holds an NLI head."""
        return self._nli is not None

    def contradiction(self, vectors: Floats, reply: Floats) -> Floats:
        """(n,) P(contradiction) of each turn with the reply, by the export's NLI head (Eq. 5)."""
        if self._nli is None:
            raise CheckpointError(f"{self.name} has no NLI head: export a run that trained one")
        return self._nli.run(None, {"vectors": vectors, "reply": reply})[0]

    @property
    def has_importance(self) -> bool:
        """Whether the export holds an importance head."""
        return self._importance is not None

    def importance(self, vectors: Floats, turns: Sequence[Turn]) -> list[Importance]:
        """The class of each turn: CRITICAL where the export's importance head or the keyword rule says so."""
        if self._importance is None:
            raise CheckpointError(f"{self.name} has no importance head: export a run that trained one")
        probabilities = self._importance.run(None, {"vectors": vectors})[0]
        return with_keywords(decide(probabilities.tolist(), self._threshold), turns)

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
        model = OnnxVectorModel(Path(folder), precision, threads)
        importance = model.importance if model.has_importance else None
        super().__init__(model, importance, model.contradiction if model.has_nli else None)


def read_manifest(folder: Path, precision: Precision | None = None) -> Mapping[str, Any]:
    """The checked contract of an export folder.

    The files that serving reads are checked with it: one encoder, or with `precision` None all there are. The weights
    for torch are not read.

    Raises:
        CheckpointError: see `OnnxVectorModel`.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise CheckpointError(f"{folder} is no export ({MANIFEST} is missing): make one with foveate export RUN OUT")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}): {_AGAIN}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not of format {FORMAT}: export again with this version of foveate")
    _check_values(path, manifest)
    if manifest["signals"] != list(SIGNAL_NAMES):
        raise CheckpointError(
            f"{folder} was trained on other signals than this version computes: train and export again"
        )
    if manifest["policy"] not in get_args(PolicyName):
        raise CheckpointError(
            f"{path} asks for the policy {manifest['policy']!r}: known are {', '.join(get_args(PolicyName))}"
        )
    files = manifest["files"]
    if precision is not None and ENCODERS[precision] not in files:
        raise CheckpointError(f"{folder} has no {precision} encoder: export it again with {precision}")
    encoders = [ENCODERS[precision]] if precision else [name for name in ENCODERS.values() if name in files]
    optional = ([DELTAS] if "weights" in manifest else [TOKENIZER]) + [
        name for name in (IMPORTANCE, NLI) if name in files
    ]
    if IMPORTANCE in optional and not isinstance(manifest.get("critical_threshold"), float):
        raise CheckpointError(f"{path}: critical_threshold is missing beside {IMPORTANCE}: {_AGAIN}")
    for name in (*encoders, *_GRAPHS, *optional):
        if name not in files:
            raise CheckpointError(f"{path}: files does not list {name}: {_AGAIN}")
        _check_file(folder / name, files[name])
    return manifest


def _check_values(path: Path, manifest: Mapping[str, Any]) -> None:
    slim = {"weights": (dict, "a table")} if "weights" in manifest else {}
    for key, (kind, what) in {**_TYPES, **slim}.items():
        if key not in manifest:
            raise CheckpointError(f"{path}: {key} is missing: {_AGAIN}")
        value = manifest[key]
        if type(value) is not kind or (key in _LEAST and value < _LEAST[key]):
            least = f" of at least {_LEAST[key]}" if key in _LEAST else ""
            raise CheckpointError(f"{path}: {key} is {repr(value)[:60]}, not {what}{least}: {_AGAIN}")


def _tiers(folder: Path, manifest: Mapping[str, Any], key: str, kind: Callable[..., T]) -> T | None:
    """What was learned about the tiers under this key; None in an export made before it was."""
    given = manifest.get(key)
    if given is None:
        return None
    try:
        return kind(**given)
    except (ConfigError, TypeError) as error:
        raise CheckpointError(f"{folder / MANIFEST}: {key} cannot be read ({error}): {_AGAIN}") from error


def _check_file(path: Path, expected: object) -> None:
    try:
        found = sha256(path) if path.is_file() else None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}): make it readable, or {_AGAIN}") from error
    if found is None or found != expected:
        raise CheckpointError(f"{path} is missing or damaged (sha256 differs): {_AGAIN}")


def _weights(folder: Path, manifest: Mapping[str, Any]) -> Mapping[str, Floats]:
    """What a slim export's encoder graph lacks; nothing for others."""
    if "weights" not in manifest:
        return {}
    return initializers(manifest["weights"], restored(folder))


def _session(path: Path, threads: int, weights: Mapping[str, Floats] | None = None) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError("onnxruntime", "onnx") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if not weights:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(tensor) for tensor in weights.values()]
    options.add_external_initializers(list(weights), values)
    return onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])

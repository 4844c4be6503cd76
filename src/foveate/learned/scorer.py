"""A trained model as a scorer, in torch: what evaluation uses on a run folder, and the reference an export is
held to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModel

from foveate.core.errors import CheckpointError
from foveate.core.protocols import PolicyName
from foveate.core.schema import Turn
from foveate.core.tiers import Importance
from foveate.learned.encoder import MODEL_FOLDER
from foveate.learned.model import FoveateModel
from foveate.rules.importance import with_keywords
from foveate.signals.batches import Ids, Windows, encode_texts
from foveate.signals.deltas import DELTAS, restored, tokenizer_file
from foveate.signals.features import SIGNAL_NAMES
from foveate.signals.lexical import Floats
from foveate.signals.vectors import VectorScorer


class TorchVectorModel:
    """`signals.vectors.VectorModel` over a `FoveateModel`; evaluation mode, no gradients, on the model's device."""

    def __init__(self, model: FoveateModel, tokenizer: Any, name: str) -> None:
        self.model = model.eval()
        self.name = name
        self.dim, self.width = model.dim, model.config.width
        self.reach = model.mixer.reach
        self.policy: PolicyName = _policy(model.config.policy)
        self.tier_values, self.thresholds = model.tier_values, model.thresholds
        self.windows = Windows(tokenizer, model.config.max_length)

    @torch.inference_mode()
    def encode(self, texts: Sequence[str]) -> Floats:
        return encode_texts(texts, self.windows, self._run, self.dim)

    @torch.inference_mode()
    def mix(self, vectors: Floats) -> Floats:
        return self.model.mix(self._tensor(vectors)).cpu().numpy()

    @torch.inference_mode()
    def head(self, vectors: Floats, mixed: Floats, query: Floats, signals: Floats) -> Floats:
        tensors = (self._tensor(x) for x in (vectors, mixed, query[None], signals[None]))
        return self.model.probability(self.model.fuse(*tensors))[0].cpu().numpy()

    @torch.inference_mode()
    def contradiction(self, vectors: Floats, reply: Floats) -> Floats:
        """(n,) P(contradiction) of each turn with the reply, by the model's NLI head."""
        return self.model.contradiction(self._tensor(vectors), self._tensor(reply)).cpu().numpy()

    @torch.inference_mode()
    def importance(self, vectors: Floats, turns: Sequence[Turn]) -> list[Importance]:
        """The class of each turn: CRITICAL where the model's importance head or the keyword rule says so."""
        if self.model.importance is None:
            raise CheckpointError(f"{self.name} has no importance head: train one, or leave the classes to the rule")
        return with_keywords(self.model.importance.decide(self._tensor(vectors)), turns)

    def _run(self, ids: Ids, mask: Ids) -> Floats:
        device = self.model.device
        return self.model.encode(torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)).cpu().numpy()

    def _tensor(self, array: Floats) -> torch.Tensor:
        return torch.from_numpy(np.array(array, dtype=np.float32)).to(self.model.device)


def load_model(folder: Path) -> tuple[FoveateModel, Any]:
    """The model and tokenizer of a run folder (its best checkpoint) or of a saved model folder.

    Raises:
        CheckpointError: the folder holds no model, a damaged one, or one trained on other signals.
    """
    saved = folder / MODEL_FOLDER if (folder / MODEL_FOLDER).is_dir() else folder
    reads = tokenizer_file(saved)
    if not (saved / "model.safetensors").is_file() or not reads.is_file():
        raise CheckpointError(
            f"{folder} holds no finished model: give a run folder of foveate train, or its {MODEL_FOLDER}/"
        )
    tokenizer = _loaded(reads, lambda: Tokenizer.from_file(str(reads)))
    config = _loaded(saved / "config.json", lambda: AutoConfig.from_pretrained(saved))
    if (saved / DELTAS).is_file():
        model = _loaded(saved / "model.safetensors", lambda: _from_deltas(saved, config))
    else:
        model = _loaded(saved / "model.safetensors", lambda: AutoModel.from_pretrained(saved, config=config))
    if not isinstance(model, FoveateModel):
        raise CheckpointError(f"{saved} holds a {type(model).__name__}, not a foveate model")
    if list(model.config.signal_names or ()) != list(SIGNAL_NAMES):
        raise CheckpointError(f"{saved} was trained on other signals than this version computes: train it again")
    return model, tokenizer


def _from_deltas(folder: Path, config: Any) -> FoveateModel:
    """The model of a slim export: its own heads, and the encoder from the packaged base and the differences."""
    model = FoveateModel(config)
    tensors = restored(folder)
    encoder = {f"encoder.{name}": torch.from_numpy(tensors[name]) for name in model.encoder.state_dict()}
    model.load_state_dict(encoder | load_file(folder / "model.safetensors"))
    return model


def _loaded(path: Path, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except Exception as error:  # each library raises its own types here, the tokenizer's binding Exception itself
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise CheckpointError(f"{path} cannot be read ({reason}): copy it again, or train again") from error


def load_scorer(folder: str | Path, name: str | None = None) -> VectorScorer:
    """A scorer from a run folder of `foveate train` or a saved model folder."""
    model, tokenizer = load_model(Path(folder))
    backend = TorchVectorModel(model, tokenizer, name or Path(folder).name)
    importance = None if model.importance is None else backend.importance
    return VectorScorer(backend, importance, None if model.nli is None else backend.contradiction)


def _policy(name: str) -> PolicyName:
    if name not in get_args(PolicyName):
        raise CheckpointError(f"the model asks for the policy {name!r}: known are {', '.join(get_args(PolicyName))}")
    return name  # pyright: ignore[reportReturnType]

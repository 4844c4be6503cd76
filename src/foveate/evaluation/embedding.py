"""The dense baseline's encoder: the packaged all-MiniLM-L6-v2, mean pooled, with torch imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.core.errors import MissingExtraError
from foveate.core.tokens import minilm_folder

Vectors = NDArray[np.float32]


class MiniLmEmbedder:
    """Texts to unit vectors by a BERT-like encoder's masked mean, as all-MiniLM-L6-v2 was trained.

    Args:
        folder: a Hugging Face model folder; None for the packaged one.
        max_length: tokens a text is cut to (the model's own limit).
        batch: texts encoded together, sorted by length.
    """

    def __init__(self, folder: Path | None = None, *, max_length: int = 256, batch: int = 64) -> None:
        self._folder = folder
        self._max_length = max_length
        self._batch = batch

    @cached_property
    def _parts(self) -> tuple[Any, Any, Any]:
        try:
            import torch
            from transformers import AutoModel, AutoTokenizer
            from transformers.utils.logging import disable_progress_bar
        except ImportError as error:
            raise MissingExtraError("torch", "train") from error
        disable_progress_bar()
        folder = self._folder or minilm_folder()
        return torch, AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    @property
    def dim(self) -> int:
        return int(self._parts[2].config.hidden_size)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(len(texts), dim) float32 rows of length 1; 0 for a text without a word."""
        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        order = sorted((i for i, text in enumerate(texts) if text.strip()), key=lambda i: len(texts[i]))
        for start in range(0, len(order), self._batch):
            rows = order[start : start + self._batch]
            out[rows] = self._encode([texts[i] for i in rows])
        return out

    def _encode(self, texts: list[str]) -> Vectors:
        torch, tokenizer, model = self._parts
        inputs = tokenizer(texts, padding=True, truncation=True, max_length=self._max_length, return_tensors="pt")
        with torch.inference_mode():
            states = model(**inputs).last_hidden_state
        mask = inputs["attention_mask"].unsqueeze(-1).to(states.dtype)
        pooled = (states * mask).sum(1) / mask.sum(1)
        return torch.nn.functional.normalize(pooled, dim=1).numpy()

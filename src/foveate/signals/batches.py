"""Texts to token batches for an encoder: long texts in windows, batches by token count, little padding.

Shared by the torch encoder (training) and the ONNX one (serving), so both see the same tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from foveate.core.tokens import without_surrogates
from foveate.signals.lexical import Floats

Ids = NDArray[np.int64]
# (ids (b, t), mask (b, t)) -> unit vectors (b, dim)
Run = Callable[[Ids, Ids], Floats]

MAX_WASTE = 0.08
"""Largest share of a batch's tokens that may be padding."""


class Windows:
    """Token windows of a text, each with the special tokens the model expects.

    Args:
        tokenizer: a `tokenizers.Tokenizer`; its truncation and padding are switched off once, here, and its state is
            not touched again, so threads may share it.
        max_length: tokens a window, special tokens included.
    """

    def __init__(self, tokenizer, max_length: int) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        bare, dressed = tokenizer.encode("a", add_special_tokens=False).ids, tokenizer.encode("a").ids
        start = next(i for i in range(len(dressed) - len(bare) + 1) if dressed[i : i + len(bare)] == bare)
        self._before, self._after = dressed[:start], dressed[start + len(bare) :]
        self._body = max(1, max_length - len(self._before) - len(self._after))
        self.max_length = max_length

    def split(self, texts: Sequence[str]) -> list[list[list[int]]]:
        """For each text its windows of token ids; a text without tokens has one window of special tokens."""
        encoded = self._tokenizer.encode_batch([without_surrogates(text) for text in texts], add_special_tokens=False)
        return [self._dress(e.ids) for e in encoded]

    def _dress(self, ids: list[int]) -> list[list[int]]:
        starts = range(0, max(len(ids), 1), self._body)
        return [self._before + ids[s : s + self._body] + self._after for s in starts]


def length_batches(lengths: Sequence[int], tokens_per_batch: int) -> list[list[int]]:
    """Indices grouped by similar length, each group at most `tokens_per_batch` padded tokens (or one item), of which
    at most `MAX_WASTE` are padding.
    """
    groups: list[list[int]] = []
    real = 0
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        padded = (len(groups[-1]) + 1) * lengths[index] if groups else 0
        real += lengths[index]
        if groups and padded <= tokens_per_batch and padded - real <= MAX_WASTE * padded:
            groups[-1].append(index)
        else:
            groups.append([index])
            real = lengths[index]
    return groups


def padding_waste(lengths: Sequence[int], groups: Sequence[Sequence[int]]) -> float:
    """The share of tokens in the padded batches that is padding."""
    padded = sum(len(g) * max(lengths[i] for i in g) for g in groups)
    return 1 - sum(lengths) / padded if padded else 0.0


def pad(rows: Sequence[Sequence[int]]) -> tuple[Ids, Ids]:
    """(b, t) ids and mask of rows of unequal length; padding has id 0 and mask 0."""
    ids = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for r, row in enumerate(rows):
        ids[r, : len(row)] = row
        mask[r, : len(row)] = 1
    return ids, mask


def encode_texts(texts: Sequence[str], windows: Windows, run: Run, dim: int, tokens_per_batch: int = 4096) -> Floats:
    """(n, dim) unit vectors; a text longer than a window is the normalised mean of its windows, weighted by length."""
    split = windows.split(texts)
    owner = [i for i, parts in enumerate(split) for _ in parts]
    rows = [part for parts in split for part in parts]
    out = np.zeros((len(texts), dim), dtype=np.float32)
    for group in length_batches([len(r) for r in rows], tokens_per_batch):
        ids, mask = pad([rows[i] for i in group])
        weights = mask.sum(1, dtype=np.float32)[:, None]
        np.add.at(out, [owner[i] for i in group], run(ids, mask) * weights)
    return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12)

"""Embedders without weights: signed feature hashing of words and character n-grams.

The embedder AFM falls back on offline (section 3.7), made stable: every hash is BLAKE2b over the feature's bytes, so
vectors are the same in every process, and a word lands in the same bucket wherever it stands in the text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from foveate.core.errors import ConfigError
from foveate.core.schema import Turn
from foveate.signals.lexical import STOPWORDS, Growing, terms

Vectors = NDArray[np.float32]

_WORD = re.compile(r"\w+")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_STOP_STEMS = frozenset(stem for word in STOPWORDS for stem in terms(word))
_STOP_WEIGHT = 0.1
_GRAM_WEIGHT = 0.3


class ArrayEmbedder(Protocol):
    """An embedder whose rows numpy can take; both embedders here and `core.protocols.Embedder` fit."""

    @property
    def dim(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]] | Vectors: ...


@lru_cache(maxsize=1 << 17)
def stable_hash(feature: str) -> int:
    """A 64-bit hash that is equal in every process."""
    return int.from_bytes(hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _checked_dim(dim: int) -> int:
    if dim < 2:
        raise ConfigError(f"an embedding of {dim} dimensions holds nothing: give dim >= 2")
    return dim


def _unit(vector: Vectors) -> Vectors:
    norm = float(np.linalg.norm(vector))
    return vector / np.float32(norm) if norm > 0 else vector


class HashingEmbedder:
    """Stemmed words and their character n-grams, hashed with a sign, L2-normalised.

    Function words weigh a tenth of a content word; n-grams let inflections and typing errors meet, and stand in for
    words where a script writes none apart (CJK). The position of a word plays no part.

    Args:
        dim: buckets.
        ngrams: lengths of the character n-grams, inclusive; (0, 0) for words only.
    """

    def __init__(self, dim: int = 1024, ngrams: tuple[int, int] = (3, 4)) -> None:
        self._dim = _checked_dim(dim)
        self._ngrams = ngrams

    @property
    def dim(self) -> int:
        return self._dim

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(len(texts), dim) float32 rows of length 1, or 0 for a text without words."""
        out = np.zeros((len(texts), self._dim), dtype=np.float32)
        for row, text in zip(out, texts, strict=True):
            for feature, weight in self._features(text):
                h = stable_hash(feature)
                row[(h >> 1) % self._dim] += weight if h & 1 else -weight
            row[:] = _unit(row)
        return out

    def _features(self, text: str) -> list[tuple[str, float]]:
        found: list[tuple[str, float]] = []
        for stem in terms(text):
            weight = _STOP_WEIGHT if stem in _STOP_STEMS else 1.0
            found.append((f"w:{stem}", weight))
            if weight == 1.0:
                found.extend((f"c:{gram}", _GRAM_WEIGHT) for gram in self._grams(stem))
        return found

    def _grams(self, word: str) -> list[str]:
        low, high = self._ngrams
        if low <= 0:
            return []
        if _CJK.search(word):
            low, padded = 1, word
        else:
            padded = f"<{word}>"
        return [padded[i : i + n] for n in range(low, high + 1) for i in range(len(padded) - n + 1)]


class PositionalHashingEmbedder:
    """The public AFM code's offline fault, kept for its baseline: the token's position is hashed too.

    Two texts that share a word at different positions share no bucket for it, so similarities are near zero
    (EVALUATION section 8). A reconstruction: the hash is stable here, where the public code's changes from run to run.
    """

    def __init__(self, dim: int = 256) -> None:
        self._dim = _checked_dim(dim)

    @property
    def dim(self) -> int:
        return self._dim

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(len(texts), dim) float32 rows of length 1, or 0 for a text without words."""
        out = np.zeros((len(texts), self._dim), dtype=np.float32)
        for row, text in zip(out, texts, strict=True):
            for position, word in enumerate(_WORD.findall(text.lower())):
                row[stable_hash(f"{position}:{word}") % self._dim] += 1.0
            row[:] = _unit(row)
        return out


class LazyVectors:
    """The vectors of a growing list of texts: each text is embedded once, on first use."""

    def __init__(self, embedder: ArrayEmbedder) -> None:
        self._embedder = embedder
        self._pending: list[str] = []
        self._rows = Growing(embedder.dim)

    def __len__(self) -> int:
        return len(self._rows) + len(self._pending)

    def append(self, texts: Sequence[str]) -> None:
        """Note further texts; nothing is embedded yet."""
        self._pending.extend(texts)

    def view(self) -> Vectors:
        """(n, dim) unit rows; embeds what is still pending in one call."""
        if self._pending:
            self._rows.extend(np.asarray(self._embedder.embed(self._pending), dtype=np.float32))
            self._pending = []
        return self._rows.view

    def similarity(self, text: str) -> NDArray[np.float64]:
        """(n,) cosine of every text with `text`."""
        rows = self.view()
        if not len(rows):
            return np.zeros(0)
        query = np.asarray(self._embedder.embed([text]), dtype=np.float32)[0]
        return np.clip((rows @ query).astype(np.float64), -1.0, 1.0)


def turn_texts(turns: Sequence[Turn]) -> list[str]:
    """The words of each turn."""
    return [turn.text for turn in turns]

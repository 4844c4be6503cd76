"""A question without its function words, for rankers that would otherwise match on them."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, replace

from foveate.core.protocols import PolicyName, Scorer, ScorerIndex, Scores
from foveate.core.schema import Query, Turn
from foveate.signals.lexical import STOPWORDS


def content_words(text: str) -> str:
    """The text without English function words; the text itself where it has no others."""
    kept = [word for word in text.split() if word.strip(string.punctuation).lower() not in STOPWORDS]
    return " ".join(kept) or text


@dataclass(frozen=True, slots=True)
class ContentScorer:
    """Another scorer, asked only for the content words of the question."""

    scorer: Scorer

    @property
    def name(self) -> str:
        return f"{self.scorer.name}-content"

    @property
    def policy(self) -> PolicyName:
        return self.scorer.policy

    @property
    def calibrated(self) -> bool:
        return self.scorer.calibrated

    def open(self) -> ScorerIndex:
        return _ContentIndex(self.scorer.open())


class _ContentIndex:
    def __init__(self, index: ScorerIndex) -> None:
        self._index = index

    def append(self, turns: Sequence[Turn]) -> None:
        self._index.append(turns)

    def score(self, query: Query) -> Scores:
        return self._index.score(replace(query, text=content_words(query.text)))

"""Adaptive Focus Memory's score (AFM section 3.2) and its three offline readings (EVALUATION section 8).

A turn's score is 1 where it is CRITICAL; otherwise it is its similarity to the query, clamped at 0, times a factor of
its recency w = 0.5^(k/h): 0.5 + 0.5 w where RELEVANT, 0.25 w where TRIVIAL. k counts the turns since: 0 for the newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from foveate.core.errors import ConfigError
from foveate.core.protocols import ImportanceClassifier, PolicyName, ScorerIndex, Scores
from foveate.core.schema import Query, Turn
from foveate.core.tiers import Importance, Thresholds
from foveate.rules.hashing import ArrayEmbedder, HashingEmbedder, LazyVectors, PositionalHashingEmbedder, turn_texts
from foveate.rules.importance import ConstantImportance, KeywordImportance

Formula = Literal["paper", "public"]

HALF_LIFE = 12.0
PAPER_THRESHOLDS = Thresholds(high=0.45, mid=0.25)
PUBLIC_THRESHOLDS = Thresholds(high=0.55, mid=0.30)


def recency(k: float, half_life: float = HALF_LIFE) -> float:
    """0.5^(k/h): the weight of a turn that is k turns old (AFM section 3.2)."""
    return 0.5 ** (k / half_life)


def afm_score(similarity: float, k: float, importance: Importance, half_life: float = HALF_LIFE) -> float:
    """The paper's piecewise score of one turn, in [0, 1] for a cosine similarity."""
    if importance is Importance.CRITICAL:
        return 1.0
    w = recency(k, half_life)
    factor = 0.5 + 0.5 * w if importance is Importance.RELEVANT else 0.25 * w
    return max(0.0, similarity) * factor


def public_afm_score(similarity: float, k: float, half_life: float = HALF_LIFE) -> float:
    """The public code's score, which is not the paper's: max(0, sim) (0.25 + 0.75 w), without classes."""
    return max(0.0, similarity) * (0.25 + 0.75 * recency(k, half_life))


@dataclass(frozen=True, slots=True)
class AfmScorer:
    """AFM's score of every turn, for the policy `afm`.

    Attributes:
        embedder: texts to unit vectors; each turn is embedded once, on first use.
        importance: the class of each turn, asked for once, when the turn is appended.
        half_life: h, in turns.
        formula: `paper` (piecewise) or `public` (one factor, classes ignored).
        thresholds: tau_high and tau_mid that belong to the formula; the packer is given them by whoever builds it.
    """

    embedder: ArrayEmbedder
    importance: ImportanceClassifier
    half_life: float = HALF_LIFE
    formula: Formula = "paper"
    thresholds: Thresholds = PAPER_THRESHOLDS
    name: str = "afm"
    policy: PolicyName = "afm"
    calibrated: bool = False

    def __post_init__(self) -> None:
        if not self.half_life > 0:
            raise ConfigError(f"half_life={self.half_life} is not above 0: give the turns after which recency halves")

    def open(self) -> ScorerIndex:
        return _AfmIndex(self)

    def thresholds_at(self, n: int) -> Thresholds:
        """The thresholds for a history of n turns: fixed."""
        return self.thresholds


class _AfmIndex:
    def __init__(self, scorer: AfmScorer) -> None:
        self._scorer = scorer
        self._vectors = LazyVectors(scorer.embedder)
        self._classes: list[Importance] = []

    def append(self, turns: Sequence[Turn]) -> None:
        self._vectors.append(turn_texts(turns))
        self._classes.extend(self._scorer.importance.classify(turn) for turn in turns)

    def score(self, query: Query) -> Scores:
        similarity = np.maximum(self._vectors.similarity(query.text), 0.0)
        weight = recencies(len(self._classes), self._scorer.half_life)
        match self._scorer.formula:
            case "paper":
                score = similarity * _paper_factors(weight, self._classes)
                score[np.array(self._classes, dtype=np.int64) == Importance.CRITICAL] = 1.0
                classes = list(self._classes)
            case "public":
                score = similarity * (0.25 + 0.75 * weight)
                classes = None
        signals = {"similarity": similarity.tolist(), "recency": weight.tolist()}
        return Scores(score=score.tolist(), importance=classes, signals=signals)


def recencies(n: int, half_life: float = HALF_LIFE) -> NDArray[np.float64]:
    """(n,) recency weights of n turns in chronological order: 1 for the newest."""
    return np.asarray(0.5 ** (np.arange(n - 1, -1, -1, dtype=np.float64) / half_life))


def _paper_factors(weight: NDArray[np.float64], classes: Sequence[Importance]) -> NDArray[np.float64]:
    relevant = np.array(classes, dtype=np.int64) == Importance.RELEVANT
    return np.where(relevant, 0.5 + 0.5 * weight, 0.25 * weight)


def afm_paper_offline(embedder: ArrayEmbedder | None = None) -> AfmScorer:
    """The paper without an API: every turn TRIVIAL, so no score exceeds 0.25 and nothing is ever meant to be FULL."""
    importance = ConstantImportance(Importance.TRIVIAL)
    return AfmScorer(embedder or HashingEmbedder(), importance, name="afm-paper-offline")


def afm_public_offline(embedder: ArrayEmbedder | None = None) -> AfmScorer:
    """The public code without an API: its own formula and thresholds (.55/.30) over the positional hashing embedder."""
    return AfmScorer(
        embedder or PositionalHashingEmbedder(),
        ConstantImportance(Importance.TRIVIAL),
        formula="public",
        thresholds=PUBLIC_THRESHOLDS,
        name="afm-public-offline",
    )


def afm_rule(embedder: ArrayEmbedder | None = None, half_life: float = HALF_LIFE) -> AfmScorer:
    """The paper's score with the keyword classifier in the place of the chat model."""
    return AfmScorer(embedder or HashingEmbedder(), KeywordImportance(), half_life=half_life, name="afm-rule")


def afm_all_relevant(embedder: ArrayEmbedder | None = None) -> AfmScorer:
    """The paper's score with every turn RELEVANT: what a classifier that never says TRIVIAL would give."""
    return AfmScorer(embedder or HashingEmbedder(), ConstantImportance(Importance.RELEVANT), name="afm-all-relevant")

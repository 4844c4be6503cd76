"""The scorer an application gets when it names none: words in common with the query, and how recent a turn is.

No weights, no embedding, no network. It is a rule of ours, not of a paper: BM25 over a turn and its neighbours with
the session's date, which was the strongest ranker without training on LoCoMo, plus a short memory for what was said
last, so that a query without words in common ("and then?") gets the newest turns. CRITICAL turns by keyword are under
the packer's guard.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from foveate.core.errors import ConfigError
from foveate.core.protocols import ImportanceClassifier, PolicyName, ScorerIndex, Scores
from foveate.core.schema import Query, Turn
from foveate.core.tiers import Importance
from foveate.rules.afm import recencies
from foveate.rules.importance import KeywordImportance
from foveate.signals.lexical import STOPWORDS, LexicalIndex

TRIVIAL_FACTOR = 0.25

_WORD = re.compile(r"\w+(?:['’]\w+)*")


@dataclass(frozen=True, slots=True)
class ChatScorer:
    """score = (bm25 / highest bm25 + recency_weight * recency) / (1 + recency_weight), in [0, 1]; a quarter where
    TRIVIAL.

    Of two turns that share the same words with the query the newer one ranks first. The scores are no probabilities,
    so the policy is `score`.

    Attributes:
        importance: the class of each turn, asked for once.
        recency_weight: what the newest turn gets for being the newest.
        half_life: turns after which that halves.
    """

    importance: ImportanceClassifier = field(default_factory=KeywordImportance)
    recency_weight: float = 0.3
    half_life: float = 6.0
    name: str = "chat"
    policy: PolicyName = "score"
    calibrated: bool = False

    def __post_init__(self) -> None:
        if not self.recency_weight >= 0 or not self.half_life > 0:
            raise ConfigError(
                f"recency_weight={self.recency_weight}, half_life={self.half_life}: give a weight >= 0, a half-life > 0"
            )

    def open(self) -> ScorerIndex:
        return _ChatIndex(self)


class _ChatIndex:
    def __init__(self, scorer: ChatScorer) -> None:
        self._scorer = scorer
        self._lexical = LexicalIndex()
        self._classes: list[Importance] = []

    def append(self, turns: Sequence[Turn]) -> None:
        self._lexical.append(turns)
        self._classes.extend(self._scorer.importance.classify(turn) for turn in turns)

    def score(self, query: Query) -> Scores:
        weight = self._scorer.recency_weight
        bm25 = self._lexical.bm25(content_of(query.text), window=1, header=True).astype(np.float64)
        recency = recencies(len(self._classes), self._scorer.half_life)
        shared = bm25 / max(float(bm25.max(initial=0.0)), 1e-9)
        trivial = np.array(self._classes, dtype=np.int64) == Importance.TRIVIAL
        score = (shared + weight * recency) / (1.0 + weight) * np.where(trivial, TRIVIAL_FACTOR, 1.0)
        signals = {"bm25": bm25.tolist(), "recency": recency.tolist()}
        return Scores(score=score.tolist(), importance=list(self._classes), signals=signals)


def content_of(query: str) -> str:
    """The query without English function words, or as it is where it has no others."""
    return " ".join(w for w in _WORD.findall(query) if w.lower() not in STOPWORDS) or query

"""The adaptive compression rule: Eq. 1-6 of the adaptive-compression paper, with what it leaves open made exact.

- Eq. 1: s = alpha sim + beta recency + gamma dependency, weights >= 0; sim is the cosine clamped at 0, recency is
  0.5^(k/h).
- dependency (undefined in the paper): see `DependencyRule`.
- Eq. 2: tau_s and tau_l rise with the length of the history: see `AdaptiveThresholds`.
- Eq. 3: see `rules.budget.DynamicBudget`. The paper's formula and its prose disagree on the sign; both are there.
- Eq. 5-6: see `coherent`. As printed, the turn that contradicts the last reply is demoted, though it is the one that
  could correct it; `guard` raises it instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from foveate.core.errors import ConfigError
from foveate.core.protocols import ImportanceClassifier, PolicyName, ScorerIndex, Scores
from foveate.core.schema import Query, Turn
from foveate.core.tiers import Importance, Thresholds
from foveate.rules.afm import HALF_LIFE, recencies
from foveate.rules.budget import BudgetSign as BudgetSign
from foveate.rules.budget import DynamicBudget as DynamicBudget
from foveate.rules.budget import dynamic_budget as dynamic_budget
from foveate.rules.budget import entropy as entropy
from foveate.rules.budget import softmax as softmax
from foveate.rules.contradiction import ContradictionProb, LexicalContradiction
from foveate.rules.dependency import DependencyRule
from foveate.rules.hashing import ArrayEmbedder, HashingEmbedder, LazyVectors, turn_texts
from foveate.rules.importance import KeywordImportance

Floats = NDArray[np.float64]
CoherenceMode = Literal["paper", "guard"]


@dataclass(frozen=True, slots=True)
class Weights:
    """alpha, beta and gamma of Eq. 1, each >= 0."""

    similarity: float = 0.5
    recency: float = 0.3
    dependency: float = 0.2

    def __post_init__(self) -> None:
        least = min(self.similarity, self.recency, self.dependency)
        if not least >= 0:
            raise ConfigError(f"a weight of Eq. 1 is {least}: weights must be >= 0")


def importance_score(similarity: float, recency: float, dependency: float, weights: Weights | None = None) -> float:
    """Eq. 1 for one turn."""
    w = weights or Weights()
    return w.similarity * similarity + w.recency * recency + w.dependency * dependency


def coherent(s: float, p: float, mode: CoherenceMode = "paper", weight: float = 0.5) -> float:
    """Eq. 5-6 for one turn of importance s that contradicts the last reply with probability p.

    `paper`: z = s (1 - p). `guard`: z = s + weight p, so that a contradicted fact is kept.
    """
    match mode:
        case "paper":
            return s * (1.0 - p)
        case "guard":
            return s + weight * p


@dataclass(frozen=True, slots=True)
class AdaptiveThresholds:
    """tau_s and tau_l of Eq. 2 for a history of n turns: fixed up to `reference` turns, then rising towards 1.

    tau(n) = 1 - (1 - tau) (reference / n)^rate for n > reference. The paper says only that thresholds adapt with the
    length of the context; this keeps tau_l <= tau_s and is the identity at rate 0. The values are ours, set
    after one look at how a LoCoMo conversation was packed: low enough that the budget decides and not they.
    """

    base: Thresholds = field(default_factory=lambda: Thresholds(high=0.10, mid=0.05))
    reference: int = 64
    rate: float = 0.02

    def __post_init__(self) -> None:
        if self.reference < 1 or self.rate < 0:
            raise ConfigError(
                f"thresholds adapt from reference={self.reference} at rate={self.rate}: give reference >= 1, rate >= 0"
            )

    def at(self, n: int) -> Thresholds:
        """The thresholds for n turns."""
        if n <= self.reference or self.rate == 0:
            return self.base
        shrink = (self.reference / n) ** self.rate
        return Thresholds(high=1 - (1 - self.base.high) * shrink, mid=1 - (1 - self.base.mid) * shrink)


@dataclass(frozen=True, slots=True)
class AccScorer:
    """z of Eq. 6 for every turn, for the policy `topk` (Algorithm 1).

    Attributes:
        embedder: texts to unit vectors; each turn is embedded once, on first use.
        weights: alpha, beta, gamma.
        half_life: of the recency, in turns.
        coherence: Eq. 5-6 as printed, or guarding what contradicts the last reply.
        guard_weight: how much a certain contradiction adds in `guard`.
        contradiction: ContradictionProb(u_i, r_{t-1}); not asked where there is no last reply (c = 1).
        adaptive: the thresholds of Eq. 2 by length; the packer is given them by whoever builds it.
        importance: classes for the packer, which the paper does not have; None leaves every turn RELEVANT.
    """

    embedder: ArrayEmbedder = field(default_factory=HashingEmbedder)
    weights: Weights = field(default_factory=Weights)
    half_life: float = HALF_LIFE
    coherence: CoherenceMode = "paper"
    guard_weight: float = 0.5
    contradiction: ContradictionProb = field(default_factory=LexicalContradiction)
    adaptive: AdaptiveThresholds = field(default_factory=AdaptiveThresholds)
    importance: ImportanceClassifier | None = None
    name: str = "acc"
    policy: PolicyName = "topk"
    calibrated: bool = False

    def __post_init__(self) -> None:
        if not self.half_life > 0:
            raise ConfigError(f"half_life={self.half_life} is not above 0: give the turns after which recency halves")
        if not self.guard_weight >= 0:
            raise ConfigError(f"guard_weight={self.guard_weight} is below 0: give guard_weight >= 0")

    def open(self) -> ScorerIndex:
        return _AccIndex(self)

    def thresholds_at(self, n: int) -> Thresholds:
        """tau_s and tau_l for a history of n turns (Eq. 2)."""
        return self.adaptive.at(n)


class _AccIndex:
    def __init__(self, scorer: AccScorer) -> None:
        self._scorer = scorer
        self._vectors = LazyVectors(scorer.embedder)
        self._dependency = DependencyRule()
        self._texts: list[str] = []
        self._classes: list[Importance] = []
        self._reply: str | None = None
        self._contradiction: list[float] = []

    def append(self, turns: Sequence[Turn]) -> None:
        texts = turn_texts(turns)
        self._texts.extend(texts)
        self._vectors.append(texts)
        self._dependency.append(texts)
        if self._scorer.importance is not None:
            self._classes.extend(self._scorer.importance.classify(turn) for turn in turns)

    def score(self, query: Query) -> Scores:
        scorer = self._scorer
        similarity = np.maximum(self._vectors.similarity(query.text), 0.0)
        recency = recencies(len(self._texts), scorer.half_life)
        dependency = self._dependency.values()
        w = scorer.weights
        s = w.similarity * similarity + w.recency * recency + w.dependency * dependency
        p = self._contradictions(query.last_reply)
        z = s * (1.0 - p) if scorer.coherence == "paper" else s + scorer.guard_weight * p
        columns = {
            "similarity": similarity,
            "recency": recency,
            "dependency": dependency,
            "s": s,
            "contradiction": p,
            "z": z,
        }
        return Scores(
            score=z.tolist(),
            importance=list(self._classes) if scorer.importance is not None else None,
            signals={name: column.tolist() for name, column in columns.items()},
        )

    def _contradictions(self, reply: str | None) -> Floats:
        """(n,) probabilities; those of earlier turns are kept as long as the reply stays the same."""
        if not reply:
            return np.zeros(len(self._texts))
        if reply != self._reply:
            self._reply, self._contradiction = reply, []
        new = self._texts[len(self._contradiction) :]
        if new:
            self._contradiction.extend(self._scorer.contradiction.probabilities(new, reply))
        return np.asarray(self._contradiction, dtype=np.float64)


def acc_rule(
    embedder: ArrayEmbedder | None = None, coherence: CoherenceMode = "paper", *, keyword_importance: bool = False
) -> AccScorer:
    """The rule with everything offline, for `topk`.

    `keyword_importance` adds the CRITICAL class the paper does not have; the policy is then `score`, which guards it.
    """
    return AccScorer(
        embedder=embedder or HashingEmbedder(),
        coherence=coherence,
        importance=KeywordImportance() if keyword_importance else None,
        name=f"acc-{coherence}",
        policy="score" if keyword_importance else "topk",
    )

"""Eq. 5-6 around any scorer: what contradicts the last reply is demoted (`paper`) or kept (`guard`).

For a calibrated scorer with probability p of being needed and P the probability of contradicting the last reply:
paper z = p (1 - P), guard z = p + weight P. Neither is a calibrated probability any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foveate.core.errors import ConfigError
from foveate.core.protocols import PolicyName, Scorer, ScorerIndex, Scores, thresholds_of, tier_values_of
from foveate.core.schema import Query, Turn
from foveate.core.tiers import Thresholds, TierValues
from foveate.rules.acc import CoherenceMode, coherent
from foveate.rules.contradiction import ContradictionProb


def policy_of(base: Scorer) -> PolicyName:
    """The base's policy; `optimal` needs calibrated values, which z is not, so `score` stands in for it."""
    return "score" if base.policy == "optimal" else base.policy


def plain_text(turn: Turn) -> str:
    """A premise without date and speaker."""
    return turn.text


@dataclass(frozen=True, slots=True)
class CoherentScorer:
    """A scorer whose scores are changed by Eq. 6.

    Attributes:
        base: the scorer.
        contradiction: ContradictionProb(u_i, r_{t-1}); not asked where there is no last reply (c = 1). None reads the
            base's signal "contradiction", which a trained scorer with an NLI head gives.
        mode: see `rules.acc.coherent`.
        weight: how much a certain contradiction adds in `guard`.
        premise: what of a turn is compared with the reply; a model that keeps turn vectors reads
            `signals.vectors.turn_text`.
    """

    base: Scorer
    contradiction: ContradictionProb | None
    mode: CoherenceMode = "guard"
    weight: float = 0.5
    premise: Callable[[Turn], str] = plain_text
    calibrated: bool = False

    def __post_init__(self) -> None:
        if not self.weight >= 0:
            raise ConfigError(f"weight={self.weight} of a contradiction is below 0: give weight >= 0")

    @property
    def name(self) -> str:
        return f"{self.base.name}-{self.mode}"

    @property
    def policy(self) -> PolicyName:
        return policy_of(self.base)

    @property
    def tier_values(self) -> TierValues:
        return tier_values_of(self.base)

    def thresholds_at(self, n: int) -> Thresholds:
        """Those of the base: Eq. 6 moves scores and not the scale they are on."""
        return thresholds_of(self.base, n)

    def open(self) -> ScorerIndex:
        return _CoherentIndex(self)


class _CoherentIndex:
    def __init__(self, scorer: CoherentScorer) -> None:
        self._scorer, self._base = scorer, scorer.base.open()
        self._premises: list[str] = []
        self._reply: str | None = None
        self._known: list[float] = []

    def append(self, turns: Sequence[Turn]) -> None:
        self._base.append(turns)
        self._premises += [self._scorer.premise(turn) for turn in turns]

    def score(self, query: Query) -> Scores:
        scores, scorer = self._base.score(query), self._scorer
        found = self._contradictions(query.last_reply, scores)
        z = [coherent(s, p, scorer.mode, scorer.weight) for s, p in zip(scores.score, found, strict=True)]
        return Scores(z, scores.importance, {**scores.signals, "base": scores.score, "contradiction": found})

    def _contradictions(self, reply: str | None, scores: Scores) -> list[float]:
        """(n,) probabilities; those of earlier turns are kept as long as the reply stays the same."""
        judge = self._scorer.contradiction
        if not reply:
            return [0.0] * len(self._premises)
        if judge is None:
            return list(scores.signals["contradiction"])
        if reply != self._reply:
            self._reply, self._known = reply, []
        new = self._premises[len(self._known) :]
        self._known.extend(float(p) for p in judge.probabilities(new, reply))
        return list(self._known)

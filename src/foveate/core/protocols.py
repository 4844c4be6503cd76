"""The seams: what a scorer, summarizer, embedder or importance classifier must offer. Anything that does, fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from foveate.core.schema import Query, Turn
from foveate.core.tiers import Importance, Thresholds, TierValues

PolicyName = Literal["afm", "topk", "newest", "score", "optimal"]


@dataclass(frozen=True, slots=True)
class Scores:
    """What a scorer says of every turn, in the order of the turns.

    Attributes:
        score: one value a turn, higher is better; where the scorer is calibrated, the probability that the turn is
            needed.
        importance: AFM's class of each turn; None where the scorer has no opinion (all RELEVANT for packing).
        signals: named per-turn values behind the score, for the trace.
    """

    score: Sequence[float]
    importance: Sequence[Importance] | None = None
    signals: Mapping[str, Sequence[float]] = field(default_factory=dict)


@runtime_checkable
class ScorerIndex(Protocol):
    """The scorer's state for one growing conversation. Appending a turn must not touch the earlier ones again."""

    def append(self, turns: Sequence[Turn]) -> None: ...

    def score(self, query: Query) -> Scores: ...


@runtime_checkable
class Scorer(Protocol):
    """Scores the turns of a conversation against a query.

    Attributes:
        name: for traces and result rows.
        policy: the packing policy its scores are meant for.
        calibrated: whether `Scores.score` is a probability, which `optimal` needs to be worth using.
    """

    @property
    def name(self) -> str: ...

    @property
    def policy(self) -> PolicyName: ...

    @property
    def calibrated(self) -> bool: ...

    def open(self) -> ScorerIndex:
        """A fresh index for one conversation."""
        ...


@runtime_checkable
class HasThresholds(Protocol):
    """A scorer with thresholds of its own."""

    def thresholds_at(self, n: int) -> Thresholds:
        """tau_s and tau_l for a history of n turns (Eq. 2)."""
        ...


@runtime_checkable
class HasTierValues(Protocol):
    """A scorer that was trained together with what a compressed form is worth."""

    @property
    def tier_values(self) -> TierValues: ...


def thresholds_of(scorer: Scorer, n: int) -> Thresholds:
    """The thresholds that belong to a scorer for a history of n turns; AFM's where it has none."""
    return scorer.thresholds_at(n) if isinstance(scorer, HasThresholds) else Thresholds()


def tier_values_of(scorer: Scorer) -> TierValues:
    """What belongs to a scorer as the value of a compressed form; the prior where it has none."""
    return scorer.tier_values if isinstance(scorer, HasTierValues) else TierValues()


@dataclass(frozen=True, slots=True)
class Compressed:
    """A shorter form of a text.

    Attributes:
        text: the shorter form.
        retention: the share of the source's content it still carries, 0 to 1.
        note: what a reader of the trace should know of how it was made, "" for nothing.
    """

    text: str
    retention: float
    note: str = ""


@runtime_checkable
class Summarizer(Protocol):
    """Shortens one text to at most `max_tokens`, counted with the counter it was built with."""

    @property
    def name(self) -> str: ...

    def compress(self, text: str, max_tokens: int, hint: str = "") -> Compressed | None:
        """The shorter form, or None where nothing useful fits. `hint` is the query, "" for a query-agnostic form."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Texts to unit vectors."""

    @property
    def dim(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector of length `dim` a text, L2-normalised (the zero vector for a text without words)."""
        ...


@runtime_checkable
class ImportanceClassifier(Protocol):
    def classify(self, turn: Turn) -> Importance: ...

"""Rankers that need no training: the baselines of EVALUATION section 11, and the way to plug in a ranker of one's own.

None of them is calibrated: their scores order turns and are no probabilities, so the policy is `score` (descending
score, the earlier turn first on a tie, skip what does not fit) or `newest`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from foveate.core.errors import ConfigError
from foveate.core.protocols import PolicyName, Scorer, ScorerIndex, Scores
from foveate.core.schema import Query, Turn
from foveate.rules.hashing import ArrayEmbedder, LazyVectors
from foveate.signals.lexical import LexicalIndex

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FunctionScorer:
    """Any function (turns, query) -> one score a turn, as a scorer.

    Attributes:
        name: for traces and result rows.
        fn: called with all turns so far and the query; must return one number a turn, higher is better.
        policy: the packing policy its scores are meant for.
        calibrated: True only where the numbers are probabilities that the turn is needed.
    """

    name: str
    fn: Callable[[Sequence[Turn], Query], Sequence[float]]
    policy: PolicyName = "score"
    calibrated: bool = False

    def open(self) -> ScorerIndex:
        return _FunctionIndex(self)


class _FunctionIndex:
    def __init__(self, scorer: FunctionScorer) -> None:
        self._scorer = scorer
        self._turns: list[Turn] = []

    def append(self, turns: Sequence[Turn]) -> None:
        self._turns.extend(turns)

    def score(self, query: Query) -> Scores:
        score = [float(x) for x in self._scorer.fn(tuple(self._turns), query)]
        if len(score) != len(self._turns):
            raise ConfigError(
                f"scorer {self._scorer.name!r} gave {len(score)} scores for {len(self._turns)} turns: give one a turn"
            )
        return Scores(score=score)


@dataclass(frozen=True, slots=True)
class RandomScorer:
    """Scores drawn from (seed, turn id, query): the floor. The same turn scores the same however the list has grown."""

    seed: int = 13
    policy: PolicyName = "score"
    calibrated: bool = False

    @property
    def name(self) -> str:
        return f"random-{self.seed}"

    def open(self) -> ScorerIndex:
        return _FunctionIndex(FunctionScorer(self.name, self._draw))

    def _draw(self, turns: Sequence[Turn], query: Query) -> list[float]:
        return [_uniform(f"{self.seed}\x1f{turn.id}\x1f{query.text}") for turn in turns]


def _uniform(key: str) -> float:
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") / 2.0**64


@dataclass(frozen=True, slots=True)
class RecencyScorer:
    """Newer turns score higher, up to 1 for the newest; policy `newest` fills the budget from the end."""

    name: str = "recency"
    policy: PolicyName = "newest"
    calibrated: bool = False

    def open(self) -> ScorerIndex:
        return _FunctionIndex(FunctionScorer(self.name, lambda turns, _: _ramp(len(turns))))


@dataclass(frozen=True, slots=True)
class OldestFirstScorer:
    """Older turns score higher: what the LoCoMo code's truncation keeps (EVALUATION 1.12)."""

    name: str = "oldest"
    policy: PolicyName = "score"
    calibrated: bool = False

    def open(self) -> ScorerIndex:
        return _FunctionIndex(FunctionScorer(self.name, lambda turns, _: _ramp(len(turns))[::-1]))


def _ramp(n: int) -> list[float]:
    return [(i + 1) / n for i in range(n)]


@dataclass(frozen=True, slots=True)
class Bm25Scorer:
    """Okapi BM25 (k1 1.5, b 0.75, Porter stems) of each turn for the query.

    Attributes:
        window: neighbours on each side that count as the turn's own text.
        header: whether the session's date counts as well.
    """

    window: int = 0
    header: bool = False
    k1: float = 1.5
    b: float = 0.75
    policy: PolicyName = "score"
    calibrated: bool = False

    @property
    def name(self) -> str:
        return "bm25" + (f"-w{self.window}" if self.window else "") + ("-date" if self.header else "")

    def open(self) -> ScorerIndex:
        return _Bm25Index(self)


class _Bm25Index:
    def __init__(self, scorer: Bm25Scorer) -> None:
        self._scorer = scorer
        self._index = LexicalIndex(k1=scorer.k1, b=scorer.b)

    def append(self, turns: Sequence[Turn]) -> None:
        self._index.append(turns)

    def score(self, query: Query) -> Scores:
        found = self._index.bm25(query.text, window=self._scorer.window, header=self._scorer.header)
        score = found.astype(np.float64).tolist()
        return Scores(score=score, signals={"bm25": score})


@dataclass(frozen=True, slots=True)
class DenseScorer:
    """Cosine between the embedded turn and the embedded query. Each turn is embedded once, on first use.

    Attributes:
        embedder: texts to unit vectors.
        header: whether the text that is embedded starts with the session's date and the speaker.
        window: neighbours on each side whose vectors are added before the cosine is taken (no text is embedded twice).
    """

    embedder: ArrayEmbedder
    header: bool = False
    window: int = 0
    label: str = "dense"
    policy: PolicyName = "score"
    calibrated: bool = False

    @property
    def name(self) -> str:
        return self.label + (f"-w{self.window}" if self.window else "") + ("-date" if self.header else "")

    def open(self) -> ScorerIndex:
        return _DenseIndex(self)


class _DenseIndex:
    def __init__(self, scorer: DenseScorer) -> None:
        self._scorer = scorer
        self._vectors = LazyVectors(scorer.embedder)

    def append(self, turns: Sequence[Turn]) -> None:
        self._vectors.append([embedded_text(turn, header=self._scorer.header) for turn in turns])

    def score(self, query: Query) -> Scores:
        score = self._windowed(query.text) if self._scorer.window else self._vectors.similarity(query.text)
        values = score.tolist()
        return Scores(score=values, signals={"cosine": values})

    def _windowed(self, text: str) -> Floats:
        rows = self._vectors.view().astype(np.float64)
        if not len(rows):
            return np.zeros(0)
        summed = rows.copy()
        for k in range(1, self._scorer.window + 1):
            summed[k:] += rows[:-k]
            summed[:-k] += rows[k:]
        query = np.asarray(self._scorer.embedder.embed([text]), dtype=np.float64)[0]
        norms = np.linalg.norm(summed, axis=1)
        return np.divide(summed @ query, norms, out=np.zeros(len(rows)), where=norms > 0)


def embedded_text(turn: Turn, *, header: bool) -> str:
    """What is embedded of a turn: its words, with `date` and `speaker` before them where `header` asks for it."""
    if not header:
        return turn.text
    said = f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text
    return f"{turn.date}: {said}" if turn.date else said


@dataclass(frozen=True, slots=True)
class RrfScorer:
    """Reciprocal-rank fusion: sum over scorers of 1 / (k + rank), ranks from 1, ties to the earlier turn."""

    scorers: tuple[Scorer, ...]
    k: float = 60.0
    label: str = ""
    policy: PolicyName = "score"
    calibrated: bool = False

    @property
    def name(self) -> str:
        return self.label or "rrf(" + "+".join(s.name for s in self.scorers) + ")"

    def open(self) -> ScorerIndex:
        return _FusedIndex(self.scorers, lambda columns: sum_of([1.0 / (self.k + ranks(c)) for c in columns]))


@dataclass(frozen=True, slots=True)
class SumScorer:
    """Weighted sum of scores, each standardised inside the conversation (mean 0, deviation 1; 0 where all are one)."""

    scorers: tuple[Scorer, ...]
    weights: tuple[float, ...] = field(default=())
    label: str = ""
    policy: PolicyName = "score"
    calibrated: bool = False

    def __post_init__(self) -> None:
        if self.weights and len(self.weights) != len(self.scorers):
            raise ConfigError(f"{len(self.weights)} weights for {len(self.scorers)} scorers: give one weight a scorer")

    @property
    def name(self) -> str:
        return self.label or "sum(" + "+".join(s.name for s in self.scorers) + ")"

    def open(self) -> ScorerIndex:
        weights = self.weights or (1.0,) * len(self.scorers)
        return _FusedIndex(
            self.scorers,
            lambda columns: sum_of([w * standardised(c) for w, c in zip(weights, columns, strict=True)]),
        )


class _FusedIndex:
    def __init__(self, scorers: Sequence[Scorer], fuse: Callable[[list[Floats]], Floats]) -> None:
        if not scorers:
            raise ConfigError("a fusion of 0 scorers ranks nothing: give at least one scorer")
        self._names = [s.name for s in scorers]
        self._indexes = [s.open() for s in scorers]
        self._fuse = fuse

    def append(self, turns: Sequence[Turn]) -> None:
        for index in self._indexes:
            index.append(turns)

    def score(self, query: Query) -> Scores:
        parts = [index.score(query) for index in self._indexes]
        columns = [np.asarray(part.score, dtype=np.float64) for part in parts]
        signals = dict(zip(self._names, (c.tolist() for c in columns), strict=True))
        importance = next((p.importance for p in parts if p.importance is not None), None)
        return Scores(score=self._fuse(columns).tolist(), importance=importance, signals=signals)


def sum_of(columns: Sequence[Floats]) -> Floats:
    """Elementwise sum of arrays of one length."""
    return np.sum(np.stack(columns), axis=0)


def ranks(scores: Floats) -> Floats:
    """Rank of every score, 1 for the highest; equal scores are ranked in order of the turns."""
    out = np.empty(len(scores))
    out[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return out


def standardised(scores: Floats) -> Floats:
    """Scores with mean 0 and deviation 1; all 0 where they do not differ."""
    if not len(scores):
        return scores
    deviation = float(scores.std())
    return (scores - scores.mean()) / deviation if deviation > 1e-12 else np.zeros(len(scores))

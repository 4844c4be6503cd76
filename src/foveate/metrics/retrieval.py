"""Evidence kept under a token budget (ERB), rank metrics and LongMemEval's retrieval metrics.

Sources: EVALUATION.md 1.9 (L6) and section 3. Three recalls must not be confused: ERB and `recall_at` are fractional,
`recall_any` and `recall_all` are 0 or 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from foveate.metrics.text import tokens

KEPT_FROM = 0.8


def coverage(text: str, emitted: str) -> float:
    """The share of a turn's own tokens, as a multiset, that the text emitted for it carries.

    Tokens are normalised and not stemmed. A turn without tokens is covered as soon as anything is emitted for it.
    """
    wanted = Counter(tokens(text))
    if not wanted:
        return float(bool(emitted.strip()))
    shared = wanted & Counter(tokens(emitted))
    return shared.total() / wanted.total()


@dataclass(frozen=True, slots=True)
class EvidenceRecall:
    """How much of one question's evidence a context keeps.

    Attributes:
        erb: the share of the evidence turns kept.
        all: 1 if all are kept, else 0.
        any: 1 if at least one is kept, else 0.
        session: the share of the evidence's sessions that keep at least one evidence turn.
        coverage: the mean coverage of the evidence turns, without a threshold.
    """

    erb: float
    all: float
    any: float
    session: float
    coverage: float


def evidence_recall(
    evidence: Sequence[str], covered: Mapping[str, float], sessions: Mapping[str, str] | None = None
) -> EvidenceRecall | None:
    """L6 for one question; None where the question has no evidence (such questions are excluded).

    Args:
        evidence: canonical turn ids without duplicates.
        covered: the coverage of each turn; an absent turn has coverage 0.
        sessions: the session of each turn; without it the part of the id before the colon.
    """
    if not evidence:
        return None
    shares = [covered.get(turn, 0.0) for turn in evidence]
    kept = [share >= KEPT_FROM for share in shares]
    session = [sessions[turn] if sessions is not None else turn.split(":")[0] for turn in evidence]
    held = {key for key, hit in zip(session, kept, strict=True) if hit}
    return EvidenceRecall(
        erb=sum(kept) / len(kept),
        all=float(all(kept)),
        any=float(any(kept)),
        session=len(held) / len(set(session)),
        coverage=sum(shares) / len(shares),
    )


def recall_at(ranking: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """The share of the gold ids among the first k of a ranking; None without gold."""
    wanted = set(gold)
    return len(wanted.intersection(ranking[:k])) / len(wanted) if wanted else None


def reciprocal_rank(ranking: Sequence[str], gold: Collection[str]) -> float | None:
    """1 over the rank of the first gold id, 0 if none is ranked; None without gold. Its mean is MRR."""
    wanted = set(gold)
    if not wanted:
        return None
    return next((1 / rank for rank, item in enumerate(ranking, 1) if item in wanted), 0.0)


def ranking_of(scores: Sequence[float], ids: Sequence[str]) -> list[str]:
    """Ids by falling score; the earlier turn first where scores tie."""
    order = sorted(range(len(ids)), key=lambda i: -scores[i])
    return [ids[i] for i in order]


@dataclass(frozen=True, slots=True)
class LongMemEvalRecall:
    """LongMemEval's recall_any@k, recall_all@k and ndcg_any@k of one question."""

    any: float
    all: float
    ndcg: float


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain if rank == 1 else gain / math.log2(rank) for rank, gain in enumerate(gains, 1))


def longmemeval(ranking: Sequence[str], gold: Collection[str], k: int) -> LongMemEvalRecall:
    """LongMemEval's metrics at k: ranks 1 and 2 weigh alike (the gain at rank i > 1 is divided by log2(i)).

    The ideal ordering is that of the whole ranked corpus at the same k. Without gold: any 0, all 1, ndcg 0, as
    published; leave such questions out.
    """
    wanted = set(gold)
    top = set(ranking[:k])
    gains = [float(item in wanted) for item in ranking]
    ideal = _dcg(sorted(gains, reverse=True)[:k])
    return LongMemEvalRecall(
        any=float(bool(wanted & top)),
        all=float(wanted <= top),
        ndcg=_dcg(gains[:k]) / ideal if ideal else 0.0,
    )


def session_of(turn_id: str) -> str:
    """LongMemEval's session of a turn id: the id without its last `_n`."""
    return turn_id.rpartition("_")[0]


def longmemeval_sessions(ranking: Sequence[str], gold: Collection[str], k: int) -> LongMemEvalRecall:
    """The metrics of a turn ranking read as sessions: k grows until k distinct sessions are seen."""
    sessions = [session_of(turn) for turn in ranking]
    depth = k
    while depth < len(sessions) and len(set(sessions[:depth])) < k:
        depth += 1
    return longmemeval(sessions, {session_of(turn) for turn in gold}, depth)

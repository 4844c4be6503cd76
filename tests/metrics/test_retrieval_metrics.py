"""The golden rows of EVALUATION.md 1.9 and section 3."""

from __future__ import annotations

import pytest

from foveate.metrics.retrieval import (
    EvidenceRecall,
    coverage,
    evidence_recall,
    longmemeval,
    longmemeval_sessions,
    ranking_of,
    recall_at,
    reciprocal_rank,
)

ALLERGY = "I am allergic to peanuts"


@pytest.mark.parametrize(
    ("emitted", "expected"),
    [
        ("[ref 3 user] I am", 0.4),
        ("allergic to peanuts", 0.6),
        ("I am allergic to peanuts.", 1.0),
        ("", 0.0),
        ("peanuts peanuts peanuts", 0.2),
    ],
)
def test_coverage(emitted: str, expected: float) -> None:
    assert coverage(ALLERGY, emitted) == pytest.approx(expected)


def test_coverage_counts_each_word_as_often_as_it_is_there() -> None:
    assert coverage("no no never", "no never") == pytest.approx(2 / 3)
    assert coverage("running", "run") == 0.0


def test_a_turn_without_words_is_covered_once_emitted() -> None:
    assert coverage("...", "Ann: ...") == 1.0
    assert coverage("...", "") == 0.0


def test_evidence_recall() -> None:
    assert evidence_recall(["D1:3", "D2:8"], {"D1:3": 1.0}) == EvidenceRecall(0.5, 0.0, 1.0, 0.5, 0.5)
    partial = evidence_recall(["D1:3", "D1:5"], {"D1:3": 0.8, "D1:5": 0.79})
    assert partial is not None
    assert (partial.erb, partial.all, partial.any, partial.session) == (0.5, 0.0, 1.0, 1.0)
    assert partial.coverage == pytest.approx(0.795)
    assert evidence_recall(["D1:3"], {}) == EvidenceRecall(0.0, 0.0, 0.0, 0.0, 0.0)
    assert evidence_recall([], {"D1:3": 1.0}) is None


def test_sessions_may_be_given() -> None:
    found = evidence_recall(["m1", "m2"], {"m1": 1.0}, {"m1": "1", "m2": "1"})
    assert found is not None
    assert found.session == 1.0


def test_rank_metrics() -> None:
    ranking = ["c", "a", "b"]
    assert recall_at(ranking, {"a", "b"}, 2) == 0.5
    assert recall_at(ranking, set(), 2) is None
    assert reciprocal_rank(ranking, {"b", "a"}) == 0.5
    assert reciprocal_rank(ranking, {"z"}) == 0.0
    assert reciprocal_rank(ranking, set()) is None


def test_ties_go_to_the_earlier_turn() -> None:
    assert ranking_of([0.5, 0.9, 0.5, 0.9], ["a", "b", "c", "d"]) == ["b", "d", "a", "c"]


@pytest.mark.parametrize(
    ("ranking", "gold", "k", "expected"),
    [
        ("s1 s2 s3 s4 s5", {"s1"}, 1, (1, 1, 1)),
        ("s2 s1 s3 s4 s5", {"s1"}, 2, (1, 1, 1)),
        ("s2 s3 s1 s4 s5", {"s1"}, 3, (1, 1, 0.63093)),
        ("s1 s2 s3 s4 s5", {"s1", "s3"}, 2, (1, 0, 0.5)),
        ("s1 s2 s3 s4 s5", {"s1", "s3"}, 3, (1, 1, 0.815465)),
        ("s1 s2 s3", set(), 3, (0, 1, 0)),
    ],
)
def test_longmemeval(ranking: str, gold: set[str], k: int, expected: tuple[float, float, float]) -> None:
    found = longmemeval(ranking.split(), gold, k)
    assert (found.any, found.all, found.ndcg) == pytest.approx(expected, abs=1e-5)


def test_longmemeval_turns_read_as_sessions() -> None:
    found = longmemeval_sessions(["s1_1", "s1_2", "s1_3", "s2_1", "s2_2", "s3_1"], {"s2_1"}, 2)
    assert (found.any, found.all, found.ndcg) == pytest.approx((1, 1, 0.25))

"""Golden values of EVALUATION.md section 6, and AUROC against scikit-learn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.errors import DataError
from foveate.metrics.nli import (
    accuracy,
    auroc,
    contradiction_rate,
    dialogue_contradiction,
    evidence_prf,
    majority_accuracy,
    prf,
    strict,
)


def test_accuracy_and_majority() -> None:
    gold = ["neutral", "neutral", "entailment", "contradiction"]
    assert accuracy(["neutral", "entailment", "entailment", "neutral"], gold) == 0.5
    assert majority_accuracy(gold) == 0.5
    with pytest.raises(DataError, match="no labels"):
        accuracy([], [])
    with pytest.raises(DataError, match="1 values for 4"):
        accuracy(["neutral"], gold)


def test_f1_of_the_positive_class() -> None:
    found = prf([True, True, False, False], [True, False, True, False])
    assert (found.precision, found.recall, found.f1) == (0.5, 0.5, 0.5)
    assert prf([False, False], [True, False]).f1 == 0.0
    assert prf([False], [False]).f1 == 0.0


@pytest.mark.parametrize(
    ("probabilities", "gold", "expected"),
    [
        ([0.1, 0.4, 0.35, 0.8], [False, False, True, True], 0.75),
        ([0.9, 0.1], [True, False], 1.0),
        ([0.1, 0.9], [True, False], 0.0),
        ([0.5, 0.5, 0.5], [True, False, True], 0.5),
        ([0.2, 0.2, 0.7], [True, False, True], 0.75),
    ],
)
def test_auroc(probabilities: list[float], gold: list[bool], expected: float) -> None:
    assert auroc(probabilities, gold) == pytest.approx(expected)


def test_auroc_of_one_class_is_none() -> None:
    assert auroc([0.2, 0.4], [True, True]) is None


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0]), st.booleans()), min_size=2, max_size=40))
def test_auroc_is_scikit_learns(rows: list[tuple[float, bool]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    probabilities, gold = [p for p, _ in rows], [g for _, g in rows]
    found = auroc(probabilities, gold)
    if all(gold) or not any(gold):
        assert found is None
    else:
        assert found == pytest.approx(metrics.roc_auc_score(gold, probabilities))


def test_a_dialogue_contradicts_where_one_turn_of_the_same_speaker_does() -> None:
    largest = dialogue_contradiction([0.1, 0.7, 0.2], ["a", "a", "a"], "a")
    assert largest == 0.7
    assert dialogue_contradiction([], [], "a") == 0.0
    assert dialogue_contradiction([0.1, 0.7, 0.2], ["a", "b", "a"], "a") == 0.2
    assert dialogue_contradiction([0.9], ["b"], "a") == 0.0


def test_the_contradiction_rate_counts_a_tie() -> None:
    assert contradiction_rate([0.7]) == 1.0
    assert contradiction_rate([0.0]) == 0.0
    assert contradiction_rate([0.5]) == 1.0
    assert contradiction_rate([0.7, 0.0, 0.5, 0.499]) == 0.5
    with pytest.raises(DataError, match="no response"):
        contradiction_rate([])


def test_evidence_and_strict_accuracy() -> None:
    found = evidence_prf({2, 6}, {2, 4, 6})
    assert (found.precision, found.recall, found.f1) == pytest.approx((2 / 3, 1.0, 0.8))
    assert not strict(True, True, {2, 6}, {2, 4, 6})
    assert strict(True, True, {2, 6}, [6, 2])
    assert not strict(True, False, {2, 6}, {2, 6})

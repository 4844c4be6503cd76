"""Inference and contradiction: accuracy, F1, AUROC, and contradiction in dialogues (EVALUATION.md section 6).

A dialogue's response is scored by utterance, as DECODE (Nie et al., 2021) does: it contradicts what came before where
some earlier turn of the same speaker does with probability 0.5 or more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from foveate.core.errors import DataError

THRESHOLD = 0.5
"""A probability from which on a contradiction is called; a tie is one."""


def accuracy(predicted: Sequence[object], gold: Sequence[object]) -> float:
    """The share of equal labels. Raises DataError for none, or for unequal counts."""
    _same_length(predicted, gold)
    return sum(p == g for p, g in zip(predicted, gold, strict=True)) / len(gold)


def majority_accuracy(gold: Sequence[object]) -> float:
    """The accuracy of always saying the most frequent label."""
    _same_length(gold, gold)
    return max(Counter(gold).values()) / len(gold)


@dataclass(frozen=True, slots=True)
class Prf:
    """Precision, recall and their harmonic mean; each 0 where its denominator is."""

    precision: float
    recall: float
    f1: float


def prf(predicted: Sequence[bool], gold: Sequence[bool]) -> Prf:
    """Of the positive class."""
    _same_length(predicted, gold)
    hits = sum(p and g for p, g in zip(predicted, gold, strict=True))
    return _prf(hits, sum(predicted), sum(gold))


def auroc(probabilities: Sequence[float], gold: Sequence[bool]) -> float | None:
    """The probability that a positive is put above a negative, ties half (Mann & Whitney, 1947); None where a class
    is absent.
    """
    _same_length(probabilities, gold)
    scores, labels = np.asarray(probabilities, float), np.asarray(gold, bool)
    positives, negatives = int(labels.sum()), int((~labels).sum())
    if not positives or not negatives:
        return None
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    rank = np.cumsum(count) - (count - 1) / 2
    return float((rank[place][labels].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def dialogue_contradiction(probabilities: Sequence[float], speakers: Sequence[str], speaker: str) -> float:
    """The largest P(contradiction | earlier turn, response) over the earlier turns of the response's speaker; 0
    without one.
    """
    _paired(probabilities, speakers)
    return max((p for p, who in zip(probabilities, speakers, strict=True) if who == speaker), default=0.0)


def contradiction_rate(dialogues: Sequence[float], threshold: float = THRESHOLD) -> float:
    """CR: the share of responses whose `dialogue_contradiction` is at least `threshold`. Raises DataError for none."""
    if not dialogues:
        raise DataError("a contradiction rate of no response: give at least one")
    return sum(p >= threshold for p in dialogues) / len(dialogues)


def evidence_prf(gold: Collection[int], predicted: Collection[int]) -> Prf:
    """How well the turns that make a contradiction were found."""
    return _prf(len(set(gold) & set(predicted)), len(set(predicted)), len(set(gold)))


def strict(gold_label: bool, predicted_label: bool, gold: Collection[int], predicted: Collection[int]) -> bool:
    """Whether the label is right and the evidence is exactly the gold one."""
    return gold_label == predicted_label and set(gold) == set(predicted)


def _prf(hits: int, predicted: int, gold: int) -> Prf:
    return Prf(
        hits / predicted if predicted else 0.0,
        hits / gold if gold else 0.0,
        2 * hits / (predicted + gold) if predicted + gold else 0.0,
    )


def _same_length(first: Sequence[object], second: Sequence[object]) -> None:
    if not second:
        raise DataError("no labels to compare: give at least one")
    _paired(first, second)


def _paired(first: Sequence[object], second: Sequence[object]) -> None:
    if len(first) != len(second):
        raise DataError(f"{len(first)} values for {len(second)}: give one for each")

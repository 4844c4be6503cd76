"""Does the export say what the model says? Measured on synthetic conversations that no run trains on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foveate.core.schema import Conversation
from foveate.corpora import synthetic
from foveate.signals.lexical import Floats
from foveate.signals.vectors import VectorModel, VectorScorer

FP32_TOLERANCE = 1e-4
INT8_AGREEMENT = 0.9
TOP = 20
_SEED = 20_261_129


@dataclass(frozen=True, slots=True)
class Parity:
    """How far a second backend is from the first.

    Attributes:
        max_abs: largest difference of a probability.
        agreement: mean share of the first backend's 20 best turns that are among the second's 20 best.
        questions: how many were asked.
    """

    max_abs: float
    agreement: float
    questions: int


def probe(conversations: int = 2) -> list[Conversation]:
    """The conversations that exports are checked on: generated from a seed of their own."""
    return synthetic.generate(conversations, _SEED)


def compare(reference: VectorModel, other: VectorModel, conversations: Sequence[Conversation]) -> Parity:
    """Both backends on every question, each with its own vectors."""
    pairs = list(zip(_scores(reference, conversations), _scores(other, conversations), strict=True))
    largest = max(float(np.abs(a - b).max()) for a, b in pairs)
    return Parity(largest, float(np.mean([top_agreement(a, b) for a, b in pairs])), len(pairs))


def top_agreement(first: Floats, second: Floats, top: int = TOP) -> float:
    """|top-k of one and of the other| / k; equal scores rank the earlier turn first."""
    k = min(top, len(first))
    best = [set(np.argsort(-scores, kind="stable")[:k].tolist()) for scores in (first, second)]
    return len(best[0] & best[1]) / k


def _scores(model: VectorModel, conversations: Sequence[Conversation]) -> list[Floats]:
    out: list[Floats] = []
    for conversation in conversations:
        index = VectorScorer(model).open()
        index.append(conversation.turns)
        index.remember([question.query.text for question in conversation.questions])
        out += [np.asarray(index.score(question.query).score) for question in conversation.questions]
    return out

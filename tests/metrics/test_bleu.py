"""The golden table of EVALUATION.md section 7."""

from __future__ import annotations

import math

import pytest

from foveate.metrics.bleu import ReconstructionBleu, corpus_bleu

LINES = (
    "Alice: I am allergic to peanuts.",
    "Bob: Noted, I will avoid them.",
    "Alice: We fly to Thailand on May 7.",
    "Bob: Great, I booked the hotel.",
)
HISTORY = " ".join(LINES)


@pytest.mark.parametrize(
    ("context", "bleu", "penalty", "precision"),
    [
        (HISTORY, 100, 1, 100),
        (" ".join(LINES[:2]), 32.705, 0.32705, 100),
        (LINES[0], 3.020, 0.0302, 100),
        (" ".join(reversed(LINES)), 95.482, 1, 95.482),
        ("The user Alice has a peanut allergy and travels to Thailand May 7.", 2.890, 0.20775, 13.91),
    ],
)
def test_golden(context: str, bleu: float, penalty: float, precision: float) -> None:
    found = ReconstructionBleu(HISTORY)(context)
    assert found.bleu == pytest.approx(bleu, abs=5e-4)
    assert found.penalty == pytest.approx(penalty, abs=5e-5)
    assert found.precision == pytest.approx(precision, abs=5e-3)


@pytest.mark.parametrize("context", ["", "peanuts"])
def test_next_to_nothing_is_worth_nothing(context: str) -> None:
    assert ReconstructionBleu(HISTORY)(context).bleu == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("kept", "ceiling"), [(90, 89.48), (75, 71.65), (50, 36.79), (25, 4.98), (10, 0.012)])
def test_no_extract_beats_its_length(kept: int, ceiling: float) -> None:
    words = [f"w{i}" for i in range(100)]
    found = ReconstructionBleu(" ".join(words))(" ".join(words[:kept]))
    assert found.ratio == kept / 100
    assert found.ceiling == pytest.approx(ceiling, rel=5e-2 if kept == 10 else 1e-3)
    assert found.ceiling == pytest.approx(100 * math.exp(1 - 1 / found.ratio))
    assert found.of_ceiling == pytest.approx(1)


def test_one_history_scores_many_contexts() -> None:
    score = ReconstructionBleu(HISTORY)
    assert [score(LINES[0]).bleu, score(HISTORY).bleu, score(LINES[0]).bleu] == [
        score(line).bleu for line in (LINES[0], HISTORY, LINES[0])
    ]


def test_the_corpus_is_no_mean_of_sentences() -> None:
    assert corpus_bleu([" ".join(LINES[:2]), LINES[0]], [HISTORY, HISTORY]) == pytest.approx(15.259, abs=5e-4)

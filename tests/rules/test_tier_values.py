"""What a compressed form is worth, fitted."""

from __future__ import annotations

import math

import pytest

from foveate.core.protocols import Compressed
from foveate.core.render import TranscriptRenderer
from foveate.core.schema import Conversation, Evidence, Query, Question, Turn
from foveate.core.tiers import TierValues
from foveate.core.tokens import ChapterCounter
from foveate.rules.tier_values import Pair, evidence_forms, fit_tier_values


def pairs_of(slope: float, shift: float, each: int = 2000) -> list[Pair]:
    """Each retention with hits in the proportion that the map gives it, so that the optimum is known."""
    found: list[Pair] = []
    for retention in (0.1, 0.3, 0.5, 0.7, 0.9):
        hits = round(each / (1 + math.exp(-(slope * retention + shift))))
        found += [(retention, k < hits) for k in range(each)]
    return found


@pytest.mark.parametrize(("slope", "shift"), [(6.0, -3.0), (2.0, 0.5), (10.0, -6.0)])
def test_it_finds_a_known_map(slope: float, shift: float) -> None:
    found = fit_tier_values(pairs_of(slope, shift))
    assert (found.slope, found.shift) == (pytest.approx(slope, rel=0.03), pytest.approx(shift, abs=0.1))


def test_pairs_that_a_threshold_separates_give_finite_numbers() -> None:
    found = fit_tier_values([(k / 100, k >= 80) for k in range(40, 100)])
    assert found.slope is not None
    assert 20 < found.slope < 200
    assert found.carried(0.6) < 0.05
    assert found.carried(0.95) > 0.8


def test_forms_that_never_carry_what_is_needed_are_worth_next_to_nothing() -> None:
    found = fit_tier_values([(0.3 + 0.001 * k, False) for k in range(300)])
    assert found.carried(0.5) < 0.02
    assert found.carried(0.5) < TierValues().carried(0.5)


def test_more_retained_is_never_worth_less() -> None:
    found = fit_tier_values([(0.2, True)] * 90 + [(0.2, False)] * 10 + [(0.8, True)] * 10 + [(0.8, False)] * 90)
    assert found.slope == 0.0
    assert found.carried(0.1) == found.carried(0.9) == pytest.approx(0.5, abs=0.02)


def test_without_a_pair_the_prior_stays() -> None:
    assert fit_tier_values([]) == TierValues()


class Cut:
    """The first words, as many as the text's own last word says."""

    name = "cut"

    def compress(self, text: str, max_tokens: int, hint: str = "") -> Compressed | None:
        words = text.split()
        keep = int(words[-1])
        return Compressed(" ".join(words[:keep]), keep / len(words)) if keep else None


def test_forms_are_those_of_the_evidence_once_a_question() -> None:
    texts = ["w0 w1 w2 w3 w4 w5 w6 w7 w8 9", "w0 w1 w2 w3 w4 w5 w6 w7 w8 5", "w0 w1 w2 w3 w4 w5 w6 w7 w8 0"]
    turns = tuple(Turn(str(i), "user", text) for i, text in enumerate(texts))
    asked = [("0", "1"), ("1", "2"), (), ("0",)]
    questions = tuple(Question(str(k), Query("?"), Evidence(ids, None, "1")) for k, ids in enumerate(asked))
    chat = Conversation("c", turns, questions)
    found = evidence_forms([chat], Cut(), ChapterCounter(), TranscriptRenderer())
    assert found == [(0.9, True), (0.5, False), (0.5, False), (0.9, True)]
    fewer = evidence_forms([chat], Cut(), ChapterCounter(), TranscriptRenderer(), words=lambda turn: "w0 w1 w2 w3 w4")
    assert [hit for _, hit in fewer] == [True] * 4

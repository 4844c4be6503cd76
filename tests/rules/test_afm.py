"""AFM's score: the golden values of EVALUATION section 8, and the scorer against the formula."""

import numpy as np
import pytest

from foveate.core.errors import ConfigError
from foveate.core.protocols import Embedder, Scorer
from foveate.core.schema import Query, Turn
from foveate.core.tiers import Importance, Tier
from foveate.rules.afm import (
    PAPER_THRESHOLDS,
    AfmScorer,
    afm_all_relevant,
    afm_paper_offline,
    afm_public_offline,
    afm_rule,
    afm_score,
    public_afm_score,
)
from foveate.rules.hashing import HashingEmbedder
from foveate.rules.importance import ConstantImportance


def turns_of(*texts: str) -> list[Turn]:
    return [Turn(id=f"m{i}", role="user", content=text) for i, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("similarity", "k", "importance", "expected"),
    [
        (0.0, 100, Importance.CRITICAL, 1.0),
        (0.6, 12, Importance.RELEVANT, 0.44999999999999996),
        (0.9, 24, Importance.RELEVANT, 0.5625),
        (0.8, 0, Importance.TRIVIAL, 0.2),
        (-0.3, 0, Importance.RELEVANT, 0.0),
        (-0.3, 0, Importance.TRIVIAL, 0.0),
    ],
)
def test_golden_scores(similarity: float, k: int, importance: Importance, expected: float) -> None:
    assert afm_score(similarity, k, importance) == expected


def test_the_golden_double_below_tau_high_is_meant_to_be_compressed() -> None:
    assert PAPER_THRESHOLDS.intended(afm_score(0.6, 12, Importance.RELEVANT)) is Tier.COMPRESSED


def test_the_public_formula_differs() -> None:
    assert public_afm_score(0.8, 0) == pytest.approx(0.8)
    assert public_afm_score(0.8, 12) == pytest.approx(0.8 * 0.625)
    assert public_afm_score(-1.0, 0) == 0.0


@pytest.mark.parametrize("build", [afm_rule, afm_all_relevant, afm_paper_offline])
def test_the_scorer_equals_the_formula(build) -> None:
    turns = turns_of("I am allergic to peanuts", "We love street food in Bangkok", "ok", "The street food was great")
    scorer = build()
    index = scorer.open()
    index.append(turns[:2])
    index.append(turns[2:])
    scores = index.score(Query(text="best street food in Bangkok"))
    embedder = HashingEmbedder()
    query = embedder.embed(["best street food in Bangkok"])[0]
    for i, turn in enumerate(turns):
        sim = float(embedder.embed([turn.text])[0] @ query)
        expected = afm_score(sim, len(turns) - 1 - i, scorer.importance.classify(turn))
        assert scores.score[i] == pytest.approx(expected, abs=1e-6)


def test_the_offline_paper_rule_never_means_full() -> None:
    index = afm_paper_offline().open()
    index.append(turns_of("peanut allergy", "peanut allergy"))
    scores = index.score(Query(text="peanut allergy"))
    assert scores.score == pytest.approx([0.25 * 0.5 ** (1 / 12), 0.25])
    assert all(PAPER_THRESHOLDS.intended(s) is not Tier.FULL for s in scores.score)


def test_the_public_offline_rule_misses_a_shared_word_at_another_position() -> None:
    index = afm_public_offline().open()
    index.append(turns_of("I have a severe peanut allergy", "peanut"))
    first, second = index.score(Query(text="peanut")).score
    assert second == pytest.approx(1.0)
    assert first < 0.2


def test_a_critical_turn_scores_one_whatever_the_query() -> None:
    index = afm_rule().open()
    index.append(turns_of("I am allergic to peanuts", *["Tell me about trains"] * 200))
    assert index.score(Query(text="trains")).score[0] == 1.0


def test_an_empty_history_and_wordless_turns_have_scores() -> None:
    index = afm_rule().open()
    assert list(index.score(Query(text="x")).score) == []
    index.append([Turn(id="m0", role="assistant", content=None), *turns_of("")])
    assert list(index.score(Query(text="")).score) == [0.0, 0.0]


def test_each_turn_is_embedded_once_and_only_on_first_use() -> None:
    class Counting(HashingEmbedder):
        def __init__(self) -> None:
            super().__init__(dim=64)
            self.texts: list[str] = []

        def embed(self, texts):
            self.texts.extend(texts)
            return super().embed(texts)

    embedder = Counting()
    index = AfmScorer(embedder, ConstantImportance()).open()
    index.append(turns_of("one", "two"))
    assert embedder.texts == []
    index.score(Query(text="q"))
    index.append(turns_of("three"))
    index.score(Query(text="q"))
    assert sorted(embedder.texts) == ["one", "q", "q", "three", "two"]


def test_bad_half_life_is_one_clear_error() -> None:
    with pytest.raises(ConfigError, match="half_life=0"):
        afm_rule(half_life=0)


def test_the_scorers_offer_the_protocols() -> None:
    assert isinstance(afm_rule(), Scorer)
    assert isinstance(HashingEmbedder(), Embedder)
    assert np.allclose(np.linalg.norm(HashingEmbedder().embed(["a peanut", ""]), axis=1), [1.0, 0.0])

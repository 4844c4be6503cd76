"""Tier values and the thresholds of Eq. 2: the numbers, and how a build and a scorer come by them."""

from __future__ import annotations

import math

import pytest

from foveate.core import (
    ChapterCounter,
    Compressed,
    ConfigError,
    ContextBuilder,
    OrdinalThresholds,
    Scores,
    Thresholds,
    Tier,
    TierValues,
    TranscriptRenderer,
    Turn,
)
from foveate.core.protocols import thresholds_of, tier_values_of
from foveate.rules.acc import AccScorer
from foveate.rules.coherence import CoherentScorer
from foveate.rules.contradiction import LexicalContradiction
from foveate.rules.ranking import RecencyScorer

RETENTIONS = [k / 20 for k in range(21)]


class Halves:
    """The first half of the words."""

    name = "halves"

    def compress(self, text: str, max_tokens: int, hint: str = "") -> Compressed:
        words = text.split()
        return Compressed(" ".join(words[: len(words) // 2]), 0.5)


def test_the_prior_is_the_square_of_the_retention_to_the_bit() -> None:
    assert [TierValues().carried(r) for r in RETENTIONS] == [r**2 for r in RETENTIONS]


def test_a_fitted_value_is_a_probability_that_never_falls() -> None:
    found = [TierValues(12.0, -9.6).carried(r) for r in RETENTIONS]
    assert found == sorted(found)
    assert 0.0 < found[0] < 1e-4
    assert found[16] == pytest.approx(0.5)
    assert TierValues(2000.0, -1000.0).carried(0.0) == 0.0


@pytest.mark.parametrize("numbers", [(-1.0, 0.0), (math.inf, 0.0), (1.0, math.nan)])
def test_values_that_fall_with_the_retention_are_refused(numbers: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="slope of at least 0"):
        TierValues(*numbers)


def test_thresholds_move_with_the_log_of_the_length() -> None:
    tau = OrdinalThresholds(level=-2.0, rate=-0.5, gap=1.5)
    for n in (1, 64, 128, 600):
        found = tau.at(n)
        low, high = (math.log(x / (1 - x)) for x in (found.mid, found.high))
        assert low == pytest.approx(-2.0 - 0.5 * math.log(n / 64))
        assert high - low == pytest.approx(1.5)
    assert tau.at(0) == tau.at(1)


def test_thresholds_that_cross_are_refused() -> None:
    with pytest.raises(ConfigError, match="gap >= 0"):
        OrdinalThresholds(0.0, 0.0, -0.1)


def test_a_scorer_brings_its_own_and_others_get_the_defaults() -> None:
    acc = AccScorer()
    assert thresholds_of(acc, 500) == acc.thresholds_at(500) != Thresholds()
    assert thresholds_of(RecencyScorer(), 500) == Thresholds()
    assert tier_values_of(acc) == TierValues()
    around = CoherentScorer(acc, LexicalContradiction())
    assert thresholds_of(around, 500) == acc.thresholds_at(500)


def packed(values: TierValues | None, thresholds: Thresholds | None = None, policy: str = "optimal"):
    """Two turns of 40 words, of which one and a half fit."""
    turns = [Turn(str(i), "user", "word " * 40) for i in range(2)]
    builder = ContextBuilder(
        counter=ChapterCounter(), renderer=TranscriptRenderer(), summarizer=Halves(), tier_values=values
    )
    builder.append(turns)
    cost = builder.problem(Scores([0.6, 0.5])).cost[0]
    return builder.build(Scores([0.6, 0.5]), int(1.7 * cost), policy=policy, thresholds=thresholds)  # type: ignore[arg-type]


def test_what_a_compressed_form_is_worth_decides_and_shows_in_the_value() -> None:
    prior = packed(None)
    assert prior.tiers == (Tier.FULL, Tier.COMPRESSED)
    assert prior.stats.value == 0.6 + 0.5 * 0.25
    assert packed(TierValues()) == prior
    learned = packed(TierValues(0.0, 3.0))
    assert learned.tiers == (Tier.FULL, Tier.COMPRESSED)
    assert learned.stats.value == pytest.approx(0.6 + 0.5 / (1 + math.exp(-3)))


def test_thresholds_of_one_build_do_not_stay() -> None:
    high = packed(None, Thresholds(0.9, 0.55), "topk")
    assert high.tiers == (Tier.COMPRESSED, Tier.DROP)
    assert [trace.intended for trace in high.trace] == [Tier.COMPRESSED, Tier.PLACEHOLDER]
    assert packed(None, None, "topk").tiers == (Tier.FULL, Tier.DROP)

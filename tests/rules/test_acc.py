"""Eq. 1-6: the goldens of EVALUATION section 6, both signs of Eq. 3, both coherence modes, the dependency rule."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.errors import ConfigError
from foveate.core.schema import Query, Turn
from foveate.core.tiers import Thresholds
from foveate.rules.acc import (
    AccScorer,
    AdaptiveThresholds,
    DynamicBudget,
    Weights,
    acc_rule,
    coherent,
    dynamic_budget,
    entropy,
    importance_score,
)
from foveate.rules.contradiction import LexicalContradiction
from foveate.rules.dependency import DependencyRule, opens_with_anaphor


def turns_of(*texts: str) -> list[Turn]:
    return [Turn(id=f"m{i}", role="user", content=text) for i, text in enumerate(texts)]


def test_golden_equations_1_5_and_6() -> None:
    s = importance_score(0.8, 0.5, 1.0, Weights(0.5, 0.3, 0.2))
    assert s == pytest.approx(0.75)
    assert coherent(s, 0.1, "paper") == pytest.approx(0.675)
    assert coherent(s, 0.1, "guard", weight=0.5) == pytest.approx(0.8)


def test_golden_equation_3() -> None:
    p = (0.5, 0.25, 0.25)
    assert entropy(p) == pytest.approx(1.0397, abs=5e-5)
    z = [math.log(x) for x in p]
    assert dynamic_budget(z, 1024, 64.0) == 957


def test_the_prose_sign_gives_uncertainty_more_and_never_more_than_the_maximum() -> None:
    flat, sharp = [0.0, 0.0, 0.0, 0.0], [9.0, 0.0, 0.0, 0.0]
    paper, prose = DynamicBudget(lam=100.0, sign="paper"), DynamicBudget(lam=100.0, sign="prose")
    assert paper.budget(flat, 1024) == 885 < paper.budget(sharp, 1024)
    assert prose.budget(flat, 1024) == 1024 > prose.budget(sharp, 1024)


def test_the_normalised_budget_loses_at_most_lambda() -> None:
    rule = DynamicBudget(lam=300.0, normalised=True)
    assert rule.budget([0.0] * 1000, 1000) == pytest.approx(700, abs=1)
    assert rule.budget([0.0], 1000) == 1000
    assert rule.budget([], 1000) == 1000


@given(
    st.lists(st.floats(-50, 50), max_size=40),
    st.integers(0, 5000),
    st.floats(0, 1e6),
    st.sampled_from(["paper", "prose"]),
    st.booleans(),
    st.integers(0, 500),
)
def test_the_budget_stays_in_its_bounds(z, b_max, lam, sign, normalised, b_min) -> None:
    budget = DynamicBudget(lam=lam, sign=sign, normalised=normalised, b_min=b_min).budget(z, b_max)
    assert min(b_min, b_max) <= budget <= b_max


def test_thresholds_rise_with_the_length_and_keep_their_order() -> None:
    rule = AdaptiveThresholds(Thresholds(high=0.4, mid=0.2), reference=64, rate=0.1)
    assert rule.at(10) == rule.at(64) == Thresholds(high=0.4, mid=0.2)
    previous = rule.at(64)
    for n in (100, 1000, 100_000):
        now = rule.at(n)
        assert previous.high < now.high < 1
        assert previous.mid < now.mid <= now.high
        previous = now
    assert AdaptiveThresholds(rate=0.0).at(10**6) == AdaptiveThresholds().base


def test_dependency_of_a_turn_others_lean_on() -> None:
    rule = DependencyRule()
    rule.append(["We adopted a beagle called Biscuit", "Nice weather today", "Biscuit the beagle chewed my shoe"])
    first, weather, last = rule.values()
    assert first == pytest.approx(0.5 ** (1 / 12) * 2 / 4, abs=1e-6)
    assert weather == last == 0.0


def test_an_anaphor_leans_on_the_turn_before() -> None:
    rule = DependencyRule()
    rule.append(["Paris", "Rome", "It was lovely"])
    assert list(rule.values()) == pytest.approx([0.0, 0.5, 0.0])
    assert opens_with_anaphor("Yeah, they did")
    assert not opens_with_anaphor("Italy is lovely")


@given(st.lists(st.text(alphabet="abc xyz?.", max_size=30), max_size=15))
def test_dependency_is_in_range_and_incremental(texts) -> None:
    whole, parts = DependencyRule(), DependencyRule()
    whole.append(texts)
    for text in texts:
        parts.append([text])
    assert list(whole.values()) == list(parts.values())
    assert all(0 <= v <= 1 for v in whole.values())


@pytest.mark.parametrize(
    ("premise", "reply"),
    [
        ("I have a severe peanut allergy.", "Try the peanut noodles, they are great."),
        ("I do not drink coffee.", "Here is your coffee."),
        ("The meeting room opens at 9.", "The meeting room opens at 11."),
        ("I am vegan.", "Grill some meat."),
    ],
)
def test_the_lexical_rule_sees_plain_contradictions(premise: str, reply: str) -> None:
    assert LexicalContradiction().probabilities([premise], reply)[0] >= 0.3


@pytest.mark.parametrize(
    ("premise", "reply"),
    [
        ("I have a severe peanut allergy.", "Noted: peanut allergy."),
        ("I drink coffee.", "Here is your coffee."),
        ("The meeting is at 9.", "The meeting is at 9."),
        ("I never liked rain.", "Trains leave hourly."),
        ("", "Anything."),
    ],
)
def test_the_lexical_rule_is_silent_elsewhere(premise: str, reply: str) -> None:
    assert LexicalContradiction().probabilities([premise], reply) == [0.0]


def test_as_printed_the_contradicting_turn_sinks_and_guarded_it_rises() -> None:
    turns = turns_of("I have a severe peanut allergy.", "Tell me about trains.")
    query = Query(text="street food", last_reply="Try the peanut noodles, they are great.")
    calm = Query(text="street food")

    def z(scorer: AccScorer, q: Query) -> float:
        index = scorer.open()
        index.append(turns)
        return index.score(q).score[0]

    assert z(acc_rule(coherence="paper"), query) < z(acc_rule(coherence="paper"), calm)
    assert z(acc_rule(coherence="guard"), query) > z(acc_rule(coherence="guard"), calm)
    assert z(acc_rule(coherence="guard"), calm) == z(acc_rule(coherence="paper"), calm)


def test_the_contradiction_of_earlier_turns_is_asked_once_a_reply() -> None:
    asked: list[list[str]] = []

    class Counting:
        def probabilities(self, premises, hypothesis):
            asked.append(list(premises))
            return [0.25] * len(premises)

    index = AccScorer(contradiction=Counting()).open()
    index.append(turns_of("a", "b"))
    index.score(Query(text="q", last_reply="r"))
    index.append(turns_of("c"))
    index.score(Query(text="q", last_reply="r"))
    scores = index.score(Query(text="q", last_reply=None))
    assert asked == [["a", "b"], ["c"]]
    assert list(scores.signals["contradiction"]) == [0.0, 0.0, 0.0]


def test_an_empty_history_scores_nothing() -> None:
    assert list(acc_rule().open().score(Query(text="q", last_reply="r")).score) == []


@pytest.mark.parametrize("build", [lambda: Weights(-0.1, 0.5, 0.5), lambda: DynamicBudget(lam=-1.0)])
def test_negative_parameters_are_one_clear_error(build) -> None:
    with pytest.raises(ConfigError, match=">= 0"):
        build()

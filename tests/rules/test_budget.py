"""Budget rules: bounds, goldens, the price against every possible choice, and scalars fitted to a mean cost."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.errors import ConfigError
from foveate.core.packer import Instance, Item, Option, columns_of
from foveate.core.tiers import Tier
from foveate.rules.budget import (
    BudgetRule,
    CappedBudget,
    CoverageBudget,
    DynamicBudget,
    FixedBudget,
    NeedBudget,
    Offer,
    PriceBudget,
    critical_tokens,
    fit_scalar,
    mean_tokens,
    offer_of,
    shares,
)

SMALL = Offer.of([0.9, 0.5, 0.1, 0.4], [10, 20, 5, 40], [0, 0, 1, -1], [8, 6])


@st.composite
def offers(draw: st.DrawFn, most: int = 7) -> Offer:
    n = draw(st.integers(1, most))
    column = st.lists(st.floats(0, 1), min_size=n, max_size=n)
    return Offer.of(
        draw(column),
        draw(st.lists(st.integers(1, 60), min_size=n, max_size=n)),
        draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n)),
        draw(st.lists(st.integers(0, 20), min_size=3, max_size=3)),
    )


def choices(offer: Offer) -> list[tuple[float, float]]:
    """(tokens, value) of every subset of the items, headers paid."""
    found: list[tuple[float, float]] = []
    for kept in product((False, True), repeat=len(offer.score)):
        mask = np.array(kept)
        sections = {int(s) for s in offer.section[mask]} - {-1}
        tokens = float(offer.cost[mask].sum()) + sum(float(offer.header[s]) for s in sections)
        found.append((tokens, float(offer.score[mask].sum())))
    return found


@pytest.mark.parametrize(
    ("rule", "tokens"),
    [
        (FixedBudget(70), 70),
        (FixedBudget(700), 100),
        (CappedBudget(FixedBudget(70), 60), 60),
        (CappedBudget(NeedBudget(2.0), 600), 71),
        (PriceBudget(0.02), 38),
        (PriceBudget(0.0001), 89),
        (PriceBudget(0.04), 18),
        (PriceBudget(1.0), 0),
        (PriceBudget(1.0, b_min=7), 7),
        (PriceBudget(0.02 / 1.9, "share"), 38),
        (NeedBudget(1.0), 35),
        (NeedBudget(2.0), 71),
        (CoverageBudget(0.0), 0),
        (CoverageBudget(0.4), 18),
        (CoverageBudget(0.7), 38),
        (CoverageBudget(0.9), 78),
        (CoverageBudget(1.0), 89),
    ],
)
def test_goldens(rule: BudgetRule, tokens: int) -> None:
    assert rule.tokens(SMALL, 100) == tokens


def test_eq_3_over_log_odds_is_the_entropy_of_the_shares_of_the_odds() -> None:
    odds = (2.0, 1.0, 1.0)
    offer = Offer.of([o / (1 + o) for o in odds], [10, 10, 10])
    assert DynamicBudget(lam=64.0, log_odds=True).tokens(offer, 1024) == math.floor(1024 - 64 * 1.0397207708)
    assert DynamicBudget(lam=64.0).tokens(offer, 1024) < 957
    certain = Offer.of([1.0, 0.0, 0.0], [10, 10, 10])
    assert DynamicBudget(lam=500.0, log_odds=True, normalised=True).tokens(certain, 1024) == 1024


RULES = st.one_of(
    st.builds(FixedBudget, st.integers(0, 500)),
    st.builds(
        DynamicBudget,
        st.floats(0, 1e5),
        st.sampled_from(["paper", "prose"]),
        st.booleans(),
        st.integers(0, 90),
        st.booleans(),
    ),
    st.builds(PriceBudget, st.floats(0, 10), st.sampled_from(["turns", "share"]), st.integers(0, 90)),
    st.builds(NeedBudget, st.floats(0, 100), st.integers(0, 90)),
    st.builds(CoverageBudget, st.floats(0, 1), st.integers(0, 90)),
)


@given(RULES, offers(), st.integers(0, 400))
def test_every_rule_stays_within_the_budget(rule: BudgetRule, offer: Offer, b_max: int) -> None:
    assert isinstance(rule, BudgetRule)
    tokens = rule.tokens(offer, b_max)
    assert type(tokens) is int
    assert 0 <= tokens <= b_max


@given(RULES)
def test_an_empty_history_needs_nothing_beyond_the_least(rule: BudgetRule) -> None:
    assert 0 <= rule.tokens(Offer.of([], []), 100) <= 100


@given(offers(), st.floats(1e-4, 0.2))
def test_the_price_buys_the_choice_that_maximises_value_less_its_price(offer: Offer, price: float) -> None:
    """Against all subsets: no choice that fits into the budget given is worth more."""
    found = choices(offer)
    best = max(value - price * tokens for tokens, value in found)
    spent = PriceBudget(price).tokens(offer, 10_000)
    worth = max(value for tokens, value in found if tokens <= spent)
    assert worth - price * spent == pytest.approx(best, abs=1e-9)


@given(st.lists(offers(4), min_size=2, max_size=3), st.floats(1e-3, 0.1))
def test_no_other_split_of_the_same_tokens_is_worth_more(questions: list[Offer], price: float) -> None:
    """Everett's theorem, against every way to choose in all questions together."""
    budgets = [PriceBudget(price).tokens(offer, 10_000) for offer in questions]
    by_price = sum(
        max(v for t, v in choices(offer) if t <= budget) for offer, budget in zip(questions, budgets, strict=True)
    )
    best = max(
        sum(value for _, value in split)
        for split in product(*map(choices, questions))
        if sum(tokens for tokens, _ in split) <= sum(budgets)
    )
    assert by_price == pytest.approx(best, abs=1e-9)


def test_a_share_is_of_the_questions_own_sum() -> None:
    assert shares(np.array([0.2, 0.6])) == pytest.approx([0.25, 0.75])
    assert list(shares(np.zeros(2))) == [0.0, 0.0]
    one, three = Offer.of([0.5], [100]), Offer.of([0.5] * 3, [100] * 3)
    assert PriceBudget(0.004, "turns").tokens(three, 999) == 300
    assert PriceBudget(0.004, "share").tokens(three, 999) == 0
    assert PriceBudget(0.004, "share").tokens(one, 999) == 100


def many() -> list[Offer]:
    rng = np.random.default_rng(3)
    return [
        Offer.of(
            rng.beta(0.1, 2, 60).tolist(), rng.integers(10, 60, 60).tolist(), [i // 10 for i in range(60)], [9] * 6
        )
        for _ in range(40)
    ]


@pytest.mark.parametrize(
    ("make", "low", "high"),
    [
        (PriceBudget, 1e-9, 1.0),
        (lambda x: PriceBudget(x, "share"), 1e-9, 1.0),
        (NeedBudget, 1e-3, 1e3),
        (CoverageBudget, 1e-6, 1.0),
        (lambda x: DynamicBudget(x, "paper", True, log_odds=True), 1.0, 1e6),
        (lambda x: DynamicBudget(x, "prose", True, log_odds=True), 1.0, 1e6),
    ],
)
def test_the_scalar_is_fitted_to_the_mean(make, low: float, high: float) -> None:
    questions = many()
    for target in (200.0, 500.0):
        scalar = fit_scalar(make, questions, target, 1000, low=low, high=high, tolerance=3.0)
        assert mean_tokens(make(scalar), questions, 1000) == pytest.approx(target, abs=3.0)


def test_a_mean_out_of_reach_ends_at_the_nearer_end() -> None:
    scalar = fit_scalar(NeedBudget, many(), 5000.0, 1000, low=1e-3, high=1e4)
    assert mean_tokens(NeedBudget(scalar), many(), 1000) == pytest.approx(1000, abs=1)


def test_a_packing_problem_is_offered_without_what_it_has_to_keep() -> None:
    items = [
        Item((Option(Tier.FULL, 10, 0.9),), 0.9, section=0, pinned=True),
        Item((Option(Tier.FULL, 20, 0.5),), 0.5, section=0, critical=True),
        Item((Option(Tier.FULL, 30, 0.3),), 0.3, section=1, critical=True),
        Item((Option(Tier.FULL, 5, 0.2),), 0.2),
    ]
    columns = columns_of(Instance(tuple(items), header_costs=(7, 8), fixed_cost=3))
    offer = offer_of(columns)
    assert offer.score.tolist() == [0.5, 0.3, 0.2]
    assert offer.cost.tolist() == [20, 30, 5]
    assert offer.section.tolist() == [0, 1, -1]
    assert offer.header.tolist() == [0, 8]
    assert critical_tokens(columns) == 20 + 30 + 8


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: FixedBudget(-1), "size=-1"),
        (lambda: PriceBudget(-0.1), "price=-0.1"),
        (lambda: PriceBudget(math.nan), "price=nan"),
        (lambda: NeedBudget(-1.0), "factor=-1.0"),
        (lambda: CoverageBudget(1.5), r"rho=1\.5"),
        (lambda: CoverageBudget(0.5, b_min=-3), "b_min=-3"),
        (lambda: Offer.of([0.1], [1, 2]), "1 scores, 2 costs"),
        (lambda: Offer.of([0.1], [1], [0]), "section 0 has no header"),
        (lambda: mean_tokens(FixedBudget(1), [], 10), "no question"),
        (lambda: fit_scalar(NeedBudget, [SMALL], 10, 100, low=2.0, high=1.0), "0 < low < high"),
    ],
)
def test_bad_input_is_one_clear_error(build, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build()

"""The walking policies on small instances worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_knapsack import instances, total

from foveate.core import BudgetError, Instance, Item, Option, PolicyName, Thresholds, Tier, pack

D, P, C, F = Tier.DROP, Tier.PLACEHOLDER, Tier.COMPRESSED, Tier.FULL


def item(
    score: float,
    full: int,
    compressed: int | None = None,
    stub: int | None = None,
    critical: bool = False,
    section: int | None = None,
) -> Item:
    options = [Option(F, full, max(0.0, score))]
    options += [Option(C, compressed, max(0.0, score) / 2)] if compressed is not None else []
    options += [Option(P, stub, 0.0)] if stub is not None else []
    return Item(tuple(options), score, Thresholds().intended(score), critical=critical, section=section)


def chosen(policy: PolicyName, budget: int, *items: Item, headers: tuple[int, ...] = ()) -> tuple[Tier, ...]:
    return pack(Instance(items, headers), budget, policy).choice


@pytest.mark.parametrize(
    ("budget", "choice"),
    [
        (100, (F, C, P)),
        (36, (F, C, P)),
        (35, (F, C, D)),
        (33, (F, C, D)),
        (32, (F, P, P)),
        (26, (F, P, P)),
        (25, (F, P, D)),
        (19, (C, P, P)),
        (9, (P, P, P)),
        (8, (P, P, D)),
        (3, (P, D, D)),
        (2, (D, D, D)),
    ],
)
def test_afm_goes_oldest_first_down_from_the_intended_tier(budget: int, choice: tuple[Tier, ...]) -> None:
    items = item(0.45, 20, 10, 3), item(0.25, 20, 13, 3), item(0.24, 20, 10, 3)
    assert chosen("afm", budget, *items) == choice


def test_afm_reads_the_score_as_ieee_doubles_do() -> None:
    score = 0.6 * (0.5 + 0.5 * 0.5)  # just under 0.45
    assert chosen("afm", 100, item(score, 20, 10)) == (C,)


def test_afm_leaves_out_the_newest_however_relevant_as_published() -> None:
    assert chosen("afm", 20, item(0.5, 20, None, 3), item(1.0, 20, None, 3, critical=True)) == (F, D)


def test_afm_writes_a_text_that_no_stub_undercuts() -> None:
    assert chosen("afm", 9, item(0.1, 4), item(0.3, 5)) == (F, F)


def test_topk_takes_full_and_compressed_by_descending_score() -> None:
    items = item(0.26, 9, 4), item(0.46, 20), item(0.9, 12), item(0.45, 9, 4), item(0.25, 1, 1), item(0.3, 9)
    assert chosen("topk", 100, *items) == (C, F, F, C, D, D)
    assert chosen("topk", 20, *items) == (C, D, F, C, D, D)
    assert chosen("topk", 15, *items) == (D, D, F, D, D, D)


def test_newest_and_score_skip_what_does_not_fit_and_go_on() -> None:
    items = item(0.1, 3), item(0.9, 9, 6), item(0.5, 5)
    assert chosen("newest", 9, *items) == (F, D, F)
    assert chosen("newest", 11, *items) == (D, C, F)
    assert chosen("score", 9, *items) == (D, F, D)
    assert chosen("score", 8, *items) == (D, C, D)
    assert chosen("score", 5, *items) == (D, D, F)


def test_score_ties_go_to_the_earlier_item_and_negative_scores_are_kept_last() -> None:
    assert chosen("score", 10, item(0.5, 5), item(0.5, 5), item(0.5, 5)) == (F, F, D)
    assert chosen("score", 10, item(-2.0, 5), item(-1.0, 5), item(-1.5, 5)) == (D, F, F)


def test_a_header_is_paid_once_a_section() -> None:
    items = item(0.9, 5, section=0), item(0.8, 5, section=1), item(0.7, 5, section=0)
    assert chosen("score", 16, *items, headers=(3, 3)) == (F, F, D)
    assert chosen("score", 13, *items, headers=(3, 3)) == (F, D, F)
    assert pack(Instance(items, (3, 3)), 99, "score").cost == 21


def test_critical_items_come_first_in_full_where_they_all_fit() -> None:
    items = item(0.9, 10), item(0.1, 8, 4, critical=True)
    for policy in ("score", "newest", "optimal"):
        assert chosen(policy, 18, *items) == (F, F)
        assert chosen(policy, 14, *items) == (D, F)
        assert chosen(policy, 8, *items) == (D, F)
        assert chosen(policy, 7, *items) == (D, C)


def test_critical_items_that_fit_only_shortened_may_be_upgraded_one_by_one() -> None:
    items = item(0.2, 8, 4, critical=True), item(0.1, 8, 4, critical=True)
    for policy in ("score", "optimal"):
        assert chosen(policy, 12, *items) == (F, C)
        assert chosen(policy, 8, *items) == (C, C)


def test_where_critical_items_do_not_all_fit_nothing_else_is_kept() -> None:
    items = item(0.9, 2), item(0.2, 8, critical=True), item(0.1, 8, critical=True)
    for policy in ("score", "newest", "optimal"):
        packing = pack(Instance(items), 15, policy)
        assert packing.restricted
        assert packing.choice[0] is D
        assert sorted(packing.choice[1:]) == [D, F]
        assert pack(Instance(items), 16, policy).choice == (D, F, F)


def test_the_least_budget_is_named() -> None:
    pinned = Item((Option(F, 7, 1.0),), 1.0, pinned=True, section=0)
    instance = Instance((pinned, item(0.5, 3)), (4,), 2)
    for policy in ("afm", "topk", "newest", "score", "optimal"):
        with pytest.raises(
            BudgetError, match=r"a budget of 12 tokens is too small for .*: the least budget is 13"
        ) as caught:
            pack(instance, 12, policy)
        assert (caught.value.budget, caught.value.least) == (12, 13)
        assert pack(instance, 13, policy).choice == (F, D)


@given(instance=instances(), budget=st.integers(0, 50), policy=st.sampled_from(["afm", "topk", "newest", "score"]))
def test_costs_add_up(instance: Instance, budget: int, policy: PolicyName) -> None:
    try:
        packing = pack(instance, budget, policy)
    except BudgetError:
        return
    assert total(instance, packing) == (packing.value, packing.cost)
    assert packing.cost <= budget

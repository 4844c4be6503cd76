"""The chapter's strategies: the rules by themselves, and the scorers through the packer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.errors import ConfigError
from foveate.core.packer import Instance, Item, Option, pack
from foveate.core.protocols import Scorer
from foveate.core.schema import Query, Turn
from foveate.core.tiers import Importance, Thresholds, Tier
from foveate.core.tokens import ChapterCounter
from foveate.rules.eviction import EvictionScorer, TokenWindowScorer, WindowScorer, evict


def turns_of(texts) -> list[Turn]:
    return [Turn(id=f"m{i}", role="user", content=text) for i, text in enumerate(texts)]


def kept(scorer: Scorer, turns: list[Turn], costs: list[int], budget: int) -> list[int]:
    index = scorer.open()
    index.append(turns)
    scores = index.score(Query(text=""))
    items = tuple(Item((Option(Tier.FULL, c, 1.0),), s) for c, s in zip(costs, scores.score, strict=True))
    packing = pack(Instance(items), budget, scorer.policy, thresholds=Thresholds())
    return [i for i, tier in enumerate(packing.choice) if tier is Tier.FULL]


class Levels:
    def __init__(self, levels: list[int]) -> None:
        self._levels = levels

    def classify(self, turn: Turn) -> Importance:
        return Importance(self._levels[int(turn.id[1:])])


def test_fifo_removes_the_oldest_and_importance_the_oldest_of_the_lowest_level() -> None:
    costs, levels = [10] * 6, [2, 0, 1, 0, 0, 0]
    assert evict(costs, levels, 40, "fifo") == [2, 3, 4, 5]
    assert evict(costs, levels, 40, "importance") == [0, 2, 4, 5] == evict(costs, levels, 40, "hybrid")
    assert evict(costs, levels, 30, "importance") == [0, 4, 5]


def test_the_newest_two_are_never_removed() -> None:
    assert evict([10] * 5, [2, 2, 2, 0, 0], 5, "importance") == [3, 4]
    assert evict([10], [0], 0, "fifo") == [0]


@given(
    st.lists(st.tuples(st.just(10), st.integers(0, 2)), min_size=0, max_size=12),
    st.integers(2, 12),
    st.sampled_from(["fifo", "importance", "hybrid"]),
)
def test_the_packer_keeps_what_the_chapter_keeps_when_turns_cost_the_same(pairs, fit, strategy) -> None:
    costs, levels = [c for c, _ in pairs], [level for _, level in pairs]
    turns = turns_of(["x"] * len(costs))
    scorer = EvictionScorer(strategy, Levels(levels))
    assert kept(scorer, turns, costs, 10 * fit) == evict(costs, levels, 10 * fit, strategy)


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 2)), min_size=2, max_size=12),
    st.integers(0, 200),
    st.sampled_from(["fifo", "importance"]),
)
def test_the_packer_keeps_no_less_than_the_chapter(pairs, budget, strategy) -> None:
    costs, levels = [c for c, _ in pairs], [level for _, level in pairs]
    chapter = evict(costs, levels, budget, strategy)
    if sum(costs[i] for i in chapter) > budget:
        return
    scorer = EvictionScorer(strategy, Levels(levels))
    assert set(chapter) <= set(kept(scorer, turns_of(["x"] * len(costs)), costs, budget))


def test_a_window_of_turns_keeps_the_newest_and_nothing_else() -> None:
    turns = turns_of(["x"] * 30)
    assert kept(WindowScorer(20), turns, [5] * 30, 10_000) == list(range(10, 30))
    assert kept(WindowScorer(20), turns, [5] * 30, 15) == [27, 28, 29]
    assert kept(WindowScorer(20), [], [], 15) == []


def test_a_window_of_tokens_ends_before_the_turn_that_would_exceed_it() -> None:
    turns = turns_of(["hello world"] * 10)
    costs = [ChapterCounter().count(t.text) for t in turns]
    assert costs == [3] * 10
    assert kept(TokenWindowScorer(ChapterCounter(), 10), turns, costs, 1000) == [7, 8, 9]


def test_a_window_of_tokens_keeps_at_least_the_newest_turn() -> None:
    assert kept(TokenWindowScorer(ChapterCounter(), 1), turns_of(["hello world"] * 2), [3, 3], 100) == [1]


@pytest.mark.parametrize("build", [lambda: WindowScorer(0), lambda: TokenWindowScorer(ChapterCounter(), 0)])
def test_an_empty_window_is_one_clear_error(build) -> None:
    with pytest.raises(ConfigError, match="holds nothing"):
        build()

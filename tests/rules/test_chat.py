"""The default scorer."""

import pytest

from foveate.core.errors import ConfigError
from foveate.core.protocols import Scorer
from foveate.core.schema import Query, Turn
from foveate.core.tiers import Importance
from foveate.rules.chat import ChatScorer


def scores(texts, query: str):
    index = ChatScorer().open()
    for i, text in enumerate(texts):
        index.append([Turn(f"m{i}", "user", text)])
    return index.score(Query(query))


def test_shared_words_decide_and_recency_breaks_ties() -> None:
    filler = ["We ate well today"] * 2
    found = scores([*filler, "My passport is blue", *filler, "My passport is blue", *filler], "passport?")
    assert found.score[5] > found.score[2] > found.score[0]
    assert found.score[7] > found.score[0]
    assert all(0 <= s <= 1 for s in found.score)


def test_a_pleasantry_ranks_below_a_fact_of_the_same_age() -> None:
    assert (
        scores(["I moved to Lyon", "Thanks!"], "zzz").score[1] < scores(["I moved to Lyon", "It rains"], "zzz").score[1]
    )


def test_importance_is_the_keyword_rules() -> None:
    found = scores(["I'm allergic to peanuts", "ok", "We ate"], "x")
    assert list(found.importance or []) == [Importance.CRITICAL, Importance.TRIVIAL, Importance.RELEVANT]


def test_the_protocol_and_the_limits() -> None:
    assert isinstance(ChatScorer(), Scorer)
    assert list(ChatScorer().open().score(Query("q")).score) == []
    with pytest.raises(ConfigError, match="half_life=0"):
        ChatScorer(half_life=0)

"""Eq. 5-6 around any scorer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from foveate.core.errors import ConfigError
from foveate.core.schema import Query, Turn
from foveate.rules.acc import AccScorer, CoherenceMode
from foveate.rules.coherence import CoherentScorer
from foveate.rules.contradiction import LexicalContradiction
from foveate.rules.ranking import FunctionScorer
from foveate.signals.vectors import turn_text

TURNS = [
    Turn("t0", "user", "I am allergic to peanuts.", speaker="Ann", date="8 May 2023"),
    Turn("t1", "assistant", "Noted."),
    Turn("t2", "user", "We fly on Monday."),
]
REPLY = "Peanuts are fine for you."


class Fixed:
    """P by the place of the premise; remembers what it was asked."""

    def __init__(self, *p: float) -> None:
        self._p, self.asked = p, []

    def probabilities(self, premises: Sequence[str], hypothesis: str) -> list[float]:
        self.asked.append((tuple(premises), hypothesis))
        return list(self._p[: len(premises)])


def base(policy: str = "optimal") -> FunctionScorer:
    return FunctionScorer("half", lambda turns, query: [0.5] * len(turns), policy, calibrated=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(("mode", "expected"), [("paper", [0.05, 0.5, 0.4]), ("guard", [0.95, 0.5, 0.6])])
def test_what_contradicts_the_reply_is_demoted_or_kept(mode: CoherenceMode, expected: list[float]) -> None:
    index = CoherentScorer(base(), Fixed(0.9, 0.0, 0.2), mode).open()
    index.append(TURNS)
    scores = index.score(Query("What now?", last_reply=REPLY))
    assert scores.score == pytest.approx(expected)
    assert scores.signals["base"] == [0.5] * 3
    assert scores.signals["contradiction"] == [0.9, 0.0, 0.2]


@pytest.mark.parametrize("reply", [None, ""])
def test_without_a_last_reply_nothing_changes_and_nothing_is_asked(reply: str | None) -> None:
    model = Fixed(0.9, 0.9, 0.9)
    index = CoherentScorer(base(), model, "paper").open()
    index.append(TURNS)
    assert index.score(Query("What now?", last_reply=reply)).score == [0.5] * 3
    assert model.asked == []


def test_new_turns_alone_are_compared_with_the_same_reply() -> None:
    model = Fixed(0.9, 0.0, 0.2)
    index = CoherentScorer(base(), model, "guard", premise=turn_text).open()
    index.append(TURNS[:2])
    index.score(Query("a", last_reply=REPLY))
    index.append(TURNS[2:])
    index.score(Query("b", last_reply=REPLY))
    index.score(Query("b", last_reply="Other."))
    asked = [premises for premises, _ in model.asked]
    assert asked[0] == ("8 May 2023 Ann: I am allergic to peanuts.", "assistant: Noted.")
    assert asked[1] == ("user: We fly on Monday.",)
    assert len(asked[2]) == 3


def test_z_is_no_probability_so_the_policy_is_no_optimal_one() -> None:
    scorer = CoherentScorer(base(), Fixed(), "paper")
    assert (scorer.name, scorer.policy, scorer.calibrated) == ("half-paper", "score", False)
    assert CoherentScorer(base("topk"), Fixed(), "guard").policy == "topk"


@pytest.mark.parametrize("mode", ["paper", "guard"])
def test_around_the_rule_it_is_the_rules_own_coherence(mode: CoherenceMode) -> None:
    query = Query("Which snack may I eat on the flight?", last_reply=REPLY)
    own = AccScorer(coherence=mode).open()
    around = CoherentScorer(AccScorer(contradiction=Fixed(0, 0, 0)), LexicalContradiction(), mode).open()
    for index in (own, around):
        index.append(TURNS)
    assert around.score(query).score == pytest.approx(own.score(query).score)
    assert max(own.score(query).signals["contradiction"]) > 0.3


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(ConfigError, match="weight=-1"):
        CoherentScorer(base(), Fixed(), "guard", weight=-1)

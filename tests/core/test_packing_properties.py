"""The packing contract over random conversations: every policy, renderer and counter, any budget from the least on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packing_histories import COUNTERS, POLICIES, Case, Shortener, cases, check, counter, groups_by_definition

from foveate.core import BudgetError, ChatRenderer, ContextBuilder, Query, TranscriptRenderer, atomic_groups

PREAMBLE = st.sampled_from([None, "", "Be kind.", "你好"])


def builder_for(case: Case, renderer: str, counting: str, short: bool, stub_value: float = 0.0) -> ContextBuilder:
    builder = ContextBuilder(
        counter=counter(counting),
        renderer=ChatRenderer() if renderer == "chat" else TranscriptRenderer(),
        summarizer=Shortener(counter(counting)) if short else None,
        stub_value=stub_value,
    )
    builder.append(case.turns)
    return builder


def least_budget(builder: ContextBuilder, case: Case, **arguments: object) -> int:
    with pytest.raises(BudgetError) as caught:
        builder.build(case.scores, -1, **arguments)  # type: ignore[arg-type]
    return caught.value.least


@pytest.mark.parametrize("counting", COUNTERS)
@pytest.mark.parametrize("renderer", ["chat", "transcript"])
@given(data=st.data(), case=cases())
@settings(max_examples=120)
def test_contract(data: st.DataObject, case: Case, renderer: str, counting: str) -> None:
    policy = data.draw(st.sampled_from(POLICIES))
    stub_value = data.draw(st.sampled_from([0.0, 0.2]))
    builder = builder_for(case, renderer, counting, data.draw(st.booleans()), stub_value)
    include_query = data.draw(st.booleans())
    reserve = data.draw(st.sampled_from([0, 7]))
    arguments = {
        "policy": policy,
        "preamble": data.draw(PREAMBLE),
        "query": Query("Is the peanut allergy severe?"),
        "include_query": include_query,
        "reserve": reserve,
    }
    least = least_budget(builder, case, **arguments)
    budget = least + data.draw(st.sampled_from([0, 1, 5, 20, 60, 150, 1200, 20000]))
    packed = builder.build(case.scores, budget, **arguments)
    frame = (arguments["preamble"] is not None, include_query)
    check(case, packed, policy, renderer, counter(counting), budget - reserve, frame)
    with pytest.raises(BudgetError) as caught:
        builder.build(case.scores, least - 1, **arguments)
    assert caught.value.least == least


@given(case=cases(max_events=16))
@settings(max_examples=150)
def test_groups_follow_their_definition(case: Case) -> None:
    groups = atomic_groups(case.turns)
    assert groups == [tuple(sorted(group)) for group in groups_by_definition(case.turns)]

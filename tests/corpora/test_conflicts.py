"""Planted conflicts: what is where, and the same on every machine."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest

from foveate.core.errors import DataError
from foveate.corpora.synthetic import conflicts
from foveate.corpora.synthetic.conflicts import KINDS, Conflict, fact_kinds, generate


@pytest.fixture(scope="module")
def planted() -> list[Conflict]:
    return generate(90, 13)


def text_of(conflict: Conflict, turn_id: str) -> str:
    (turn,) = (turn for turn in conflict.conversation.turns if turn.id == turn_id)
    return turn.text


def values_in(conflict: Conflict, turn_id: str) -> set[str]:
    (kind,) = (kind for kind in fact_kinds() if kind.name == conflict.topic)
    text = text_of(conflict, turn_id)
    # the longest first: "AB negative" holds "B negative"
    found = [value for value in sorted(kind.values, key=len, reverse=True) if value in text]
    return {value for value in found if not any(value != other and value in other for other in found)}


def test_kinds_and_facts_come_in_turn(planted: list[Conflict]) -> None:
    assert Counter(conflict.kind for conflict in planted) == dict.fromkeys(KINDS, 30)
    assert len(fact_kinds()) >= 20
    assert len({conflict.topic for conflict in planted}) == len(fact_kinds())


def test_the_turns_that_are_named_say_what_they_should(planted: list[Conflict]) -> None:
    for conflict in planted:
        (question,) = conflict.conversation.questions
        answer = question.evidence.answer or ""
        assert question.evidence.turn_ids == (conflict.true,)
        assert values_in(conflict, conflict.true) == {answer}
        denied = any(deny.split("{v}")[0] in text_of(conflict, "reply") for k in fact_kinds() for deny in k.deny)
        for turn_id in conflict.wrong:
            assert values_in(conflict, turn_id) != {answer} or (turn_id == "reply" and denied)
        assert (values_in(conflict, conflict.opposed) != values_in(conflict, "reply")) or denied
        assert conflict.conversation.turns[-1].id == "reply"
        assert question.query.last_reply == text_of(conflict, "reply")
        assert answer is not None
        assert answer not in question.query.text


def test_an_update_comes_after_its_fact_and_users_and_assistants_alternate(planted: list[Conflict]) -> None:
    for conflict in planted:
        turns = conflict.conversation.turns
        place = {turn.id: i for i, turn in enumerate(turns)}
        assert len(place) == len(turns)
        if conflict.kind != "wrong-reply":
            assert place["fact"] < place["update"] < place["reply"]
        assert [turns[place[name]].role for name in ("fact", "fact-noted", "lead", "reply")] == [
            "user",
            "assistant",
            "user",
            "assistant",
        ]
        assert len({turn.speaker for turn in turns}) == 2
        sessions = [turn.session for turn in turns]
        assert [s for i, s in enumerate(sessions) if i == 0 or s != sessions[i - 1]] == sorted(
            set(sessions), key=sessions.index
        )


def test_the_values_of_a_fact_do_not_lie_around(planted: list[Conflict]) -> None:
    for conflict in planted:
        own = {"fact", "update", "reply"}
        others = " ".join(turn.text for turn in conflict.conversation.turns if turn.id not in own)
        (kind,) = (kind for kind in fact_kinds() if kind.name == conflict.topic)
        assert not any(line.split("{v}")[0] in others for line in kind.fact if len(line.split("{v}")[0]) > 12)


def test_a_conflict_depends_on_the_seed_and_its_number(planted: list[Conflict]) -> None:
    assert generate(3, 13) == planted[:3]
    assert generate(3, 14) != planted[:3]
    digest = hashlib.sha256(repr(planted[:6]).encode()).hexdigest()
    assert digest == hashlib.sha256(repr(generate(6, 13)).encode()).hexdigest()


def test_no_conflicts_are_refused() -> None:
    with pytest.raises(DataError, match="cannot generate 0 conflicts"):
        generate(0, 1)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("fact: a {v}", "line 1"),
        ("== a\nfoo: b", "line 2"),
        ("== a\nvalues: x | y\nfact: {v}\nupdate: {v}\nreply: {v}", "section 'a' has no 'ask' line"),
        ("== a\nvalues: x\nfact: {v}\nupdate: {v}\nreply: {v}\nask: q", "at least two values"),
    ],
)
def test_a_bad_file_is_one_line_that_names_the_place(text: str, named: str) -> None:
    with pytest.raises(DataError, match=named):
        conflicts.parse(text)

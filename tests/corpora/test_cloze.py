"""Sentences taken out of turns as questions."""

from __future__ import annotations

from pathlib import Path

from foveate.core.schema import Conversation, Evidence, Query, Question, Turn
from foveate.corpora import qmsum
from foveate.corpora.cloze import SENTENCE_WORDS, TURN_WORDS, inverse_cloze

FIRST, SECOND = (
    "We went to the lake {laugh} with all the children.",
    "It rained the whole way, and the car broke down twice.",
)
LONG = f"{FIRST} {SECOND}"
SHORT = "Yeah. That is what I heard as well, I think."


def conversation(*texts: str | None) -> Conversation:
    turns = tuple(Turn(id=f"t{i}", role="user", content=text) for i, text in enumerate(texts))
    own = Question("own", Query("Where?"), Evidence(turn_ids=("t0",)))
    return Conversation("c", turns, (own,))


def test_a_sentence_asks_for_the_rest_of_its_turn() -> None:
    made = inverse_cloze(conversation(SHORT, LONG, None), 5)
    (question,) = made.questions
    assert question.evidence == Evidence(turn_ids=("t1",), category="cloze")
    left = made.turns[1].text
    sentences = {FIRST.replace("{laugh}", ""), SECOND}
    assert {question.query.text, left} == sentences
    assert [made.turns[i] for i in (0, 2)] == [conversation(SHORT, LONG, None).turns[i] for i in (0, 2)]


def test_the_draw_is_that_of_seed_and_name() -> None:
    whole = conversation(*[f"{LONG} Number {i} said nothing more about it then." for i in range(20)])
    first = inverse_cloze(whole, 4)
    assert len(first.questions) == len({q.evidence.turn_ids for q in first.questions}) == 4
    assert inverse_cloze(whole, 4) == first
    assert inverse_cloze(whole, 4, seed=1).questions != first.questions
    assert inverse_cloze(Conversation("d", whole.turns), 4).questions != first.questions


def test_meetings_give_questions_whose_words_are_gone_from_their_turn(data_root: Path) -> None:
    meeting = qmsum.load(data_root, "val")[0]
    made = inverse_cloze(meeting, 32)
    before = {turn.id: turn for turn in meeting.turns}
    after = {turn.id: turn for turn in made.turns}
    assert before.keys() == after.keys()
    assert len(made.questions) == 32
    for question in made.questions:
        (turn,) = question.evidence.turn_ids
        asked, left = question.query.text.split(), after[turn].text.split()
        assert SENTENCE_WORDS[0] <= len(asked) <= SENTENCE_WORDS[1]
        assert TURN_WORDS <= len(asked) + len(left) <= len(before[turn].text.split())

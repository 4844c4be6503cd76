"""The cheap signals: shape, standardisation, growth, and what single columns say."""

from __future__ import annotations

import numpy as np
import pytest
from chats import chat, cuts

from foveate.core.schema import Part, Query, Turn
from foveate.signals.features import PLAIN, SIGNAL_NAMES, STANDARDISED, SignalIndex

QUESTION = Query("When did Melanie paint the sunset at the lake in May 2023?")


def signals(turns: list[Turn], text: str) -> dict[str, list[float]]:
    index = SignalIndex()
    index.append(turns)
    table = index.signals(Query(text))
    return {name: table[:, k].tolist() for k, name in enumerate(SIGNAL_NAMES)}


def said(*texts: str, speaker: str = "Ann", date: str | None = None) -> list[Turn]:
    return [Turn(id=str(i), role="user", content=t, speaker=speaker, date=date) for i, t in enumerate(texts)]


def test_one_row_a_turn_and_one_column_a_name() -> None:
    index = SignalIndex()
    index.append(chat(50))
    table = index.signals(QUESTION)
    assert table.shape == (50, len(SIGNAL_NAMES))
    assert table.dtype == np.float32
    assert len(set(SIGNAL_NAMES)) == len(SIGNAL_NAMES) == len(STANDARDISED) + len(PLAIN)


def test_unbounded_signals_are_standardised() -> None:
    index = SignalIndex()
    index.append(chat(100))
    columns = index.signals(QUESTION)[:, : len(STANDARDISED)]
    np.testing.assert_allclose(columns.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(columns.std(0), 1, atol=1e-4)


def test_plain_signals_are_bounded() -> None:
    index = SignalIndex()
    index.append(chat(100))
    columns = index.signals(QUESTION)[:, len(STANDARDISED) :]
    assert columns.min() >= 0
    assert columns.max() <= 2


@pytest.mark.parametrize("count", [1, 2, 30])
@pytest.mark.parametrize("text", ["", "?", "the of", "zebra", "When did Melanie paint on 2023-13-01?"])
def test_no_signal_is_ever_undefined(count: int, text: str) -> None:
    index = SignalIndex()
    index.append(chat(count))
    assert np.isfinite(index.signals(Query(text))).all()


def test_turns_without_words_or_dates_are_defined() -> None:
    index = SignalIndex()
    index.append([Turn(id="0", role="assistant", content=None), Turn(id="1", role="tool", content="")])
    assert np.isfinite(index.signals(QUESTION)).all()


def test_an_empty_conversation_has_no_rows() -> None:
    assert SignalIndex().signals(QUESTION).shape == (0, len(SIGNAL_NAMES))


def test_appending_piece_by_piece_changes_nothing() -> None:
    turns, grown, whole = chat(120, seed=2), SignalIndex(), SignalIndex()
    for piece in cuts(turns):
        grown.append(piece)
        grown.signals(QUESTION)
    whole.append(turns)
    assert len(grown) == 120
    np.testing.assert_array_equal(grown.signals(QUESTION), whole.signals(QUESTION))


def test_the_speaker_who_is_named_stands_out() -> None:
    turns = [Turn(id=str(i), role="user", content="hi", speaker=name) for i, name in enumerate(["Ann", "Bob"])]
    asked = signals(turns, "What does Bob's dog eat?")
    assert asked["speaker_named"] == [0, 1]
    assert asked["speaker_not_named"] == [1, 0]
    nobody = signals(turns, "What does the dog eat?")
    assert nobody["speaker_named"] == nobody["speaker_not_named"] == [0, 0]


def test_nearer_dates_count_more() -> None:
    days = ["8 May 2023", "7 June 2023", None, "8 May 2022", "not a day"]
    turns = [Turn(id=str(i), role="user", content="hi", date=day, session=str(i)) for i, day in enumerate(days)]
    near = signals(turns, "What happened on May 8, 2023?")["date_near"]
    assert near == pytest.approx([1, 0.5, 0, 0.5 ** (365 / 30), 0])
    assert signals(turns, "What happened?")["date_near"] == [0] * 5


def test_recency_halves_every_twelve_turns_and_position_runs_to_one() -> None:
    found = signals(chat(25), "anything")
    assert found["recency"][-1] == 1
    assert found["recency"][12] == pytest.approx(0.5)
    assert found["recency"][0] == pytest.approx(0.25)
    assert found["position"][-1] == 1
    assert found["position"][0] == pytest.approx(1 / 25)


def test_an_answer_follows_a_question() -> None:
    found = signals(said("How are you?", "Fine.", "Good."), "anything")
    assert found["asks"] == [1, 0, 0]
    assert found["answers"] == [0, 1, 0]


def test_an_answer_follows_a_question_across_appends() -> None:
    index = SignalIndex()
    for turn in said("How are you?", "Fine."):
        index.append([turn])
    assert index.signals(QUESTION)[:, SIGNAL_NAMES.index("answers")].tolist() == [0, 1]


def test_time_and_numbers_count_double_where_they_are_asked_for() -> None:
    turns = said("we met yesterday", "I have three cats", "nice")
    when, how_many, what = (signals(turns, q) for q in ("When did they meet?", "How many cats?", "What cats?"))
    assert [f["says_when"] for f in (when, how_many, what)] == [[1, 0, 0]] * 3
    assert [f["says_when_asked"] for f in (when, how_many, what)] == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert [f["has_number_asked"] for f in (when, how_many, what)] == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_a_turn_with_parts_has_media() -> None:
    turns = [
        Turn(id="0", role="user", content=(Part("text", "look"), Part("image", "a cat"))),
        Turn(id="1", role="user", content="look"),
        Turn(id="2", role="assistant", content=None),
    ]
    assert signals(turns, "cat")["has_media"] == [1, 0, 0]


def test_the_turn_that_shares_rare_words_ranks_first() -> None:
    found = signals(said("the lake", "the lake and my violin", "the sea", "the lake"), "the violin at the lake")
    for name in ("bm25", "covered", "rarest"):
        assert int(np.argmax(found[name])) == 1
    assert found["bm25_near"][0] > found["bm25_near"][3]

"""BM25: equal to bm25s, incremental, and widened as it says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import bm25s
import numpy as np
import pytest
from chats import chat, cuts

from foveate.core.schema import Turn
from foveate.corpora import locomo
from foveate.signals.lexical import Growing, LexicalIndex, content_terms, idf, terms

QUESTIONS = (
    "When did Melanie paint the sunset?",
    "What did Caroline do at the adoption agency in May 2023, and what did she do after?",
    "lake lake lake camping",
    "zebra xylophone",
)


def words_of(turn: Turn) -> list[str]:
    return terms(f"{turn.speaker or ''} {turn.text}")


def reference(documents: Sequence[list[str]], query: list[str]) -> np.ndarray:
    model = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    model.index([list(d) for d in documents], show_progress=False)
    known = [word for word in query if word in model.vocab_dict]
    return model.get_scores(known) if known else np.zeros(len(documents), dtype=np.float32)


def filled(turns: Sequence[Turn]) -> LexicalIndex:
    index = LexicalIndex()
    index.append(turns)
    return index


@pytest.mark.parametrize("question", QUESTIONS)
def test_equals_bm25s_on_turns(question: str) -> None:
    turns = chat(150)
    expected = reference([words_of(t) for t in turns], terms(question))
    np.testing.assert_allclose(filled(turns).bm25(question), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("window", [1, 2])
def test_equals_bm25s_on_turns_widened_by_neighbours_and_date(window: int) -> None:
    turns = chat(90, seed=3)
    documents = [
        [w for t in turns[max(0, i - window) : i + window + 1] for w in words_of(t)] + terms(turns[i].date or "")
        for i in range(len(turns))
    ]
    found = filled(turns).bm25(QUESTIONS[1], window=window, header=True)
    np.testing.assert_allclose(found, reference(documents, terms(QUESTIONS[1])), rtol=1e-5, atol=1e-6)


def test_equals_bm25s_on_a_real_conversation(data_root: Path) -> None:
    conversation = locomo.load(data_root)[0]
    index, documents = filled(conversation.turns), [words_of(t) for t in conversation.turns]
    for question in conversation.questions[::40]:
        expected = reference(documents, terms(question.query.text))
        np.testing.assert_allclose(index.bm25(question.query.text), expected, rtol=1e-4, atol=1e-5)


def test_sessions_are_scored_as_single_documents() -> None:
    turns = chat(80, seed=5)
    documents = [[w for t in turns[s : s + 20] for w in words_of(t)] for s in range(0, 80, 20)]
    question = "the lake and the sunset"
    expected = np.repeat(reference(documents, content_terms(question)), 20)
    np.testing.assert_allclose(filled(turns).bm25_sessions(question), expected, rtol=1e-5, atol=1e-6)


def test_appending_piece_by_piece_changes_nothing() -> None:
    turns, index = chat(130, seed=1), LexicalIndex()
    for piece in cuts(turns):
        index.append(piece)
        index.bm25(QUESTIONS[0], window=1, header=True)
    whole = filled(turns)
    for question in QUESTIONS:
        np.testing.assert_array_equal(
            index.bm25(question, window=1, header=True), whole.bm25(question, window=1, header=True)
        )
        np.testing.assert_array_equal(index.bm25_sessions(question), whole.bm25_sessions(question))


def five_turns() -> list[Turn]:
    said = ["hello", "a violin", "nice", "good", "bye"]
    dates = ["7 May 2023"] * 3 + ["9 June 2023"] * 2
    return [
        Turn(id=str(i), role="user", content=text, session=day, date=day)
        for i, (text, day) in enumerate(zip(said, dates, strict=True))
    ]


def test_a_window_reaches_its_neighbours_and_no_further() -> None:
    index = filled(five_turns())
    for window, reached in ((0, [1]), (1, [0, 1, 2]), (2, [0, 1, 2, 3]), (9, [0, 1, 2, 3, 4])):
        assert np.flatnonzero(index.bm25("violin", window=window)).tolist() == reached


def test_a_header_counts_for_its_own_session_only() -> None:
    index = filled(five_turns())
    assert not index.bm25("June").any()
    assert np.flatnonzero(index.bm25("June", header=True)).tolist() == [3, 4]
    assert index.lengths(header=True).tolist() == [4, 5, 4, 4, 4]


def test_content_leaves_function_words_out() -> None:
    turns = [Turn(id="0", role="user", content="what is the"), Turn(id="1", role="user", content="violin")]
    index = filled(turns)
    assert np.flatnonzero(index.bm25("what is the violin")).tolist() == [0, 1]
    assert np.flatnonzero(index.bm25("what is the violin", content=True)).tolist() == [1]
    assert not index.bm25("what is the", content=True).any()


def test_words_are_stemmed_without_possessives() -> None:
    assert terms("Melanie’s paintings, she painted; Melanie's") == [*terms("melanie painting she paint"), "melani"]
    assert content_terms("Where did she go camping?") == ["go", "camp"]


def test_a_speaker_is_part_of_the_turn() -> None:
    index = filled(
        [Turn(id="0", role="user", content="hi", speaker="Melanie"), Turn(id="1", role="user", content="hi")]
    )
    assert np.flatnonzero(index.bm25("Melanie")).tolist() == [0]


def test_an_empty_conversation_has_empty_scores() -> None:
    index = LexicalIndex()
    assert index.bm25("violin").shape == index.bm25("violin", window=2, header=True).shape == (0,)
    assert index.bm25_sessions("violin").shape == (0,)


def test_turns_without_words_score_nothing() -> None:
    index = filled([Turn(id="0", role="assistant", content=None), Turn(id="1", role="user", content="...")])
    assert index.bm25("violin", window=1, header=True).tolist() == [0.0, 0.0]
    assert index.bm25("").tolist() == [0.0, 0.0]


def test_idf_falls_with_frequency_and_never_below_zero() -> None:
    values = [idf(10, df) for df in range(11)]
    assert values == sorted(values, reverse=True)
    assert values[-1] > 0


def test_a_growing_array_keeps_its_rows() -> None:
    rows = np.arange(600, dtype=np.float32).reshape(200, 3)
    array = Growing(3)
    for row in rows:
        array.extend(row)
    np.testing.assert_array_equal(array.view, rows)
    array.replace(7, np.zeros((2, 3), dtype=np.float32))
    assert array.view[6:10, 0].tolist() == [18.0, 0.0, 0.0, 27.0]

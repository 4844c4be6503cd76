from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from foveate.core.errors import DataError
from foveate.core.schema import Conversation, Part, Question
from foveate.corpora import locomo

# EVALUATION 1.1: sessions, turns, words, captions, questions, categories 1 to 5, audited answers
COUNTS: dict[str, tuple[int, ...]] = {
    "conv-26": (19, 419, 10428, 116, 199, 32, 37, 13, 70, 47, 15),
    "conv-30": (19, 369, 8019, 72, 105, 11, 26, 0, 44, 24, 4),
    "conv-41": (32, 663, 16165, 131, 193, 31, 27, 8, 86, 41, 5),
    "conv-42": (29, 629, 13310, 119, 260, 37, 40, 11, 111, 61, 14),
    "conv-43": (29, 680, 15788, 164, 242, 31, 26, 14, 107, 64, 13),
    "conv-44": (28, 675, 15295, 156, 158, 30, 24, 7, 62, 35, 7),
    "conv-47": (31, 689, 14907, 109, 190, 20, 34, 13, 83, 40, 8),
    "conv-48": (30, 681, 13573, 142, 239, 21, 42, 10, 118, 48, 7),
    "conv-49": (25, 509, 11450, 92, 196, 37, 33, 13, 73, 40, 14),
    "conv-50": (30, 568, 14837, 125, 204, 32, 32, 7, 87, 46, 12),
}

# EVALUATION 1.9: what each malformed evidence list means
REPAIRS: dict[str, tuple[str, ...]] = {
    "conv-26:q37": ("D8:6", "D9:17"),
    "conv-43:q18": ("D1:14", "D2:7", "D4:7", "D5:15", "D11:26", "D20:21", "D26:36"),
    "conv-49:q31": ("D9:1", "D4:4", "D4:6"),
    "conv-49:q38": ("D22:1", "D22:2", "D9:10", "D9:11"),
    "conv-49:q46": ("D21:18", "D21:22", "D11:15", "D11:19"),
    "conv-50:q69": ("D30:5",),
}

# the answers that the release gives as numbers
INTEGERS: dict[str, str] = {
    "conv-26:q1": "2022",
    "conv-26:q26": "2022",
    "conv-26:q40": "2",
    "conv-26:q49": "2022",
    "conv-26:q72": "2022",
    "conv-26:q75": "3",
}


@pytest.fixture(scope="module")
def corpus(data_root: Path) -> dict[str, Conversation]:
    return {conversation.id: conversation for conversation in locomo.load(data_root)}


@pytest.fixture(scope="module")
def questions(corpus: dict[str, Conversation]) -> dict[str, Question]:
    return {question.id: question for conversation in corpus.values() for question in conversation.questions}


def test_conversations_come_in_the_files_order(corpus: dict[str, Conversation]) -> None:
    assert tuple(corpus) == locomo.CONVERSATIONS == tuple(COUNTS)


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_a_conversation(corpus: dict[str, Conversation], data_root: Path, name: str) -> None:
    turns, questions = corpus[name].turns, corpus[name].questions
    categories = Counter(question.evidence.category for question in questions)
    audited = sum(question_id.startswith(f"{name}:") for question_id in locomo.score_corrupting(data_root))
    assert COUNTS[name] == (
        len({turn.session for turn in turns}),
        len(turns),
        sum(len(locomo.raw_text(turn).split()) for turn in turns),
        sum(isinstance(turn.content, tuple) for turn in turns),
        len(questions),
        *(categories[c] for c in "12345"),
        audited,
    )


def test_totals(corpus: dict[str, Conversation], questions: dict[str, Question]) -> None:
    assert sum(len(c.turns) for c in corpus.values()) == 5882
    assert sum(len({t.session for t in c.turns}) for c in corpus.values()) == 272
    assert Counter(q.evidence.category for q in questions.values()) == {"1": 282, "2": 321, "3": 96, "4": 841, "5": 446}
    assert len(questions) == 1986


def test_turn_ids_are_unique_and_ordered_by_session_number(corpus: dict[str, Conversation]) -> None:
    for conversation in corpus.values():
        keys = [tuple(int(n) for n in turn.id[1:].split(":")) for turn in conversation.turns]
        assert keys == sorted(set(keys))
        assert all(turn.session == turn.id[1:].split(":")[0] for turn in conversation.turns)


def test_dates_without_a_session_make_no_session(corpus: dict[str, Conversation]) -> None:
    assert max(int(turn.session or 0) for turn in corpus["conv-26"].turns) == 19


def test_dates_are_rendered_without_time_and_comma(corpus: dict[str, Conversation]) -> None:
    assert corpus["conv-26"].turns[0].date == "8 May 2023"
    dates = {turn.date for conversation in corpus.values() for turn in conversation.turns}
    assert all(date is not None and len(date.split()) == 3 and "," not in date for date in dates)


def test_speakers_and_roles(corpus: dict[str, Conversation]) -> None:
    pairs = {(t.speaker, t.role) for t in corpus["conv-41"].turns}
    assert pairs == {("John", "user"), ("Maria", "assistant")}


def test_evidence_is_canonical(corpus: dict[str, Conversation], questions: dict[str, Question]) -> None:
    assert sum(len(q.evidence.turn_ids) for q in questions.values()) == 2820
    assert sum(bool(q.evidence.turn_ids) for q in questions.values()) == 1982
    for conversation in corpus.values():
        known = {turn.id for turn in conversation.turns}
        for question in conversation.questions:
            ids = question.evidence.turn_ids
            assert len(set(ids)) == len(ids)
            assert known.issuperset(ids)


@pytest.mark.parametrize("name", REPAIRS)
def test_a_repair_by_name(questions: dict[str, Question], name: str) -> None:
    assert questions[name].evidence.turn_ids == REPAIRS[name]


def test_ids_that_do_not_exist_are_dropped(questions: dict[str, Question]) -> None:
    assert "D10:19" not in questions["conv-42:q58"].evidence.turn_ids
    assert "D4:36" not in questions["conv-47:q38"].evidence.turn_ids
    assert all(questions[name].evidence.turn_ids for name in ("conv-42:q58", "conv-42:q88", "conv-47:q38"))


def test_questions_without_evidence_are_the_four_known(questions: dict[str, Question]) -> None:
    bare = {name for name, question in questions.items() if not question.evidence.turn_ids}
    assert bare == {"conv-26:q30", "conv-26:q46", "conv-50:q39", "conv-50:q42"}
    assert {questions[name].evidence.category for name in bare} == {"3"}


def test_answers_are_text_and_traps_are_adversarial(questions: dict[str, Question]) -> None:
    for question in questions.values():
        evidence = question.evidence
        assert evidence.answer is None or isinstance(evidence.answer, str)
        assert (evidence.trap is not None) == (evidence.category == "5")
    numbers = {name: questions[name].evidence.answer for name in INTEGERS}
    assert numbers == INTEGERS
    both = {name for name, q in questions.items() if q.evidence.category == "5" and q.evidence.answer is not None}
    assert both == {"conv-26:q167", "conv-26:q178"}


def test_duplicates_repeat_an_earlier_question(corpus: dict[str, Conversation], questions: dict[str, Question]) -> None:
    found: set[str] = set()
    for conversation in corpus.values():
        seen: set[tuple[object, ...]] = set()
        for question in conversation.questions:
            key = (question.query, question.evidence)
            if key in seen:
                found.add(question.id)
            seen.add(key)
    assert found == locomo.DUPLICATES
    assert len(questions) - len(locomo.DUPLICATES) == 1975


def test_the_mislabelled_question_is_answered_elsewhere(questions: dict[str, Question]) -> None:
    wrong, right = questions["conv-30:q95"], questions["conv-30:q61"]
    assert {wrong.id} == locomo.MISLABELLED
    assert wrong.query == right.query
    assert wrong.evidence.turn_ids == right.evidence.turn_ids
    assert wrong.evidence.trap == right.evidence.answer


def test_the_audit_lists(questions: dict[str, Question], data_root: Path) -> None:
    corrupting, citations = locomo.score_corrupting(data_root), locomo.wrong_citations(data_root)
    assert (len(corrupting), len(citations)) == (99, 57)
    assert not corrupting & citations
    assert Counter(questions[name].evidence.category for name in corrupting) == {"1": 28, "2": 26, "3": 9, "4": 36}


def test_p1_folds(corpus: dict[str, Conversation]) -> None:
    sizes = [sum(len(corpus[name].questions) for name in fold.test) for fold in locomo.folds()]
    assert sizes == [625, 365, 357, 400, 239]
    assert sorted(name for fold in locomo.folds() for name in fold.test) == list(locomo.CONVERSATIONS)
    for k, fold in enumerate(locomo.folds()):
        assert fold.name == f"F{k}"
        assert fold.validation == locomo.folds()[(k + 1) % 5].test
        assert sorted(fold.test + fold.validation + fold.train) == list(locomo.CONVERSATIONS)


def test_a_shared_name_is_never_in_test_and_train(corpus: dict[str, Conversation]) -> None:
    for fold in locomo.folds():
        tested = {turn.speaker for name in fold.test for turn in corpus[name].turns}
        assert all(not tested & {turn.speaker for turn in corpus[name].turns} for name in fold.train)


def tiny() -> dict[str, Any]:
    return {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Bo",
            "session_10_date_time": "1:05 am on 1 June, 2023",
            "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "Later."}],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [
                {"speaker": "Ana", "dia_id": "D2:1", "text": "Look", "blip_caption": "a red kite", "query": "secret"}
            ],
            "session_3_date_time": "1:56 pm on 9 May, 2023",
        },
        "qa": [{"question": "What?", "answer": 7, "evidence": ["D:2:01; D10:1", "D2:1", "D9:9", "D"], "category": 4}],
        "event_summary": {"secret": "secret"},
    }


def test_a_small_record() -> None:
    conversation = locomo.parse(tiny())
    assert [turn.id for turn in conversation.turns] == ["D2:1", "D10:1"]
    first = conversation.turns[0]
    assert first.content == (Part("text", "Look"), Part("image", "a red kite"))
    assert first.text == "Look\n[image: a red kite]"
    assert locomo.raw_text(first) == "Look"
    assert conversation.questions[0].evidence.turn_ids == ("D2:1", "D10:1")
    assert conversation.questions[0].evidence.answer == "7"
    assert "secret" not in repr(conversation)


def test_a_record_without_its_keys_is_refused() -> None:
    record = tiny()
    del record["qa"]
    with pytest.raises(DataError, match="'qa' is missing"):
        locomo.parse(record)


def test_a_changed_release_is_refused(tmp_path: Path) -> None:
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo" / "locomo10.json").write_text("[]")
    with pytest.raises(DataError, match="expected sha256 79fa87e9"):
        locomo.load(tmp_path)

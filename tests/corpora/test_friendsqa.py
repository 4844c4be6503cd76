from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foveate.core.errors import DataError
from foveate.corpora import friendsqa

# scenes, utterances, questions, questions whose answers come from several utterances
COUNTS: dict[friendsqa.Split, tuple[int, int, int, int]] = {
    "dev": (136, 2847, 1182, 161),
    "test": (113, 2336, 1201, 190),
}


@pytest.mark.parametrize("split", COUNTS)
def test_counts(data_root: Path, split: friendsqa.Split) -> None:
    scenes = friendsqa.load(data_root, split)
    questions = [question for scene in scenes for question in scene.questions]
    assert (
        len(scenes),
        sum(len(scene.turns) for scene in scenes),
        len(questions),
        sum(len(question.evidence.turn_ids) > 1 for question in questions),
    ) == COUNTS[split]
    assert all(question.evidence.turn_ids and question.evidence.answer for question in questions)
    assert {q.evidence.category for q in questions} == {"Who", "What", "When", "Where", "Why", "How"}
    assert len({question.id for question in questions}) == len(questions)


def test_the_same_scene_is_not_in_both_splits(data_root: Path) -> None:
    dev, test = (friendsqa.load(data_root, split) for split in ("dev", "test"))
    assert not {scene.id for scene in dev} & {scene.id for scene in test}


def scene(utterance_id: int) -> dict[str, Any]:
    answers = [
        {"answer_text": "Second", "utterance_id": 1, "is_speaker": False},
        {"answer_text": "First", "utterance_id": utterance_id, "is_speaker": True},
    ]
    utterances = [
        {"uid": 0, "speakers": ["Ana", "Bo"], "utterance": "First"},
        {"uid": 1, "speakers": ["Bo"], "utterance": "Second"},
    ]
    qas = [{"id": "s01_e01_c01_Who_Paraphrased", "question": "Who ?", "answers": answers}]
    return {"title": "s01_e01_c01", "paragraphs": [{"utterances:": utterances, "qas": qas}]}


def test_a_small_scene() -> None:
    found = friendsqa.parse(scene(0))
    assert [(turn.id, turn.speaker, turn.text) for turn in found.turns] == [
        ("t0", "Ana and Bo", "First"),
        ("t1", "Bo", "Second"),
    ]
    (question,) = found.questions
    assert question.evidence.turn_ids == ("t0", "t1")
    assert (question.evidence.answer, question.evidence.category) == ("Second", "Who")


def test_an_answer_from_nowhere_is_refused() -> None:
    with pytest.raises(DataError, match="names utterance t7"):
        friendsqa.parse(scene(7))


def test_a_scene_without_the_colon_key_is_refused() -> None:
    record = scene(0)
    record["paragraphs"][0]["utterances"] = record["paragraphs"][0].pop("utterances:")
    with pytest.raises(DataError, match="'utterances:' is missing"):
        friendsqa.parse(record)


def test_an_unknown_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no split 'train'"):
        friendsqa.load(tmp_path, "train")  # type: ignore[arg-type]

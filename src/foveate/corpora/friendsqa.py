"""FriendsQA (Yang and Choi, 2019): scenes of a TV series with questions about their utterances.

A scene is one conversation. Its utterances lie under a key with a colon in it ("utterances:"), may have several
speakers, and are tokenised. A question may have several accepted answers; its evidence is every utterance an answer
comes from. The released train file is not among the known files, so there are two splits: dev and test.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from foveate.core.errors import DataError
from foveate.core.schema import Conversation, Evidence, Query, Question, Turn
from foveate.corpora.root import locate, read_json

Split = Literal["dev", "test"]

_FILES: Mapping[str, str] = {"dev": "friendsqa_dev.json", "test": "friendsqa_tst.json"}


def load(root: Path, split: Split) -> list[Conversation]:
    """The scenes of a split, in the file's order: 136 with 1,182 questions (dev), 113 with 1,201 (test).

    Raises:
        DataError: the split is unknown, or its file is missing or changed.
    """
    if split not in _FILES:
        raise DataError(f"FriendsQA has no split {split!r}: give dev or test")
    return [parse(record) for record in read_json(locate(root, "friendsqa", _FILES[split]))["data"]]


def parse(record: Mapping[str, Any]) -> Conversation:
    """One scene.

    Raises:
        DataError: a key is absent, or an answer names an utterance that the scene does not have.
    """
    try:
        name = str(record["title"])
        (paragraph,) = record["paragraphs"]
        turns = tuple(_turn(utterance) for utterance in paragraph["utterances:"])
        known = frozenset(turn.id for turn in turns)
        return Conversation(name, turns, tuple(_question(qa, known) for qa in paragraph["qas"]))
    except KeyError as error:
        raise DataError(f"not a FriendsQA scene: {error} is missing") from error


def _turn(utterance: Mapping[str, Any]) -> Turn:
    speaker = " and ".join(utterance["speakers"])
    return Turn(id=f"t{utterance['uid']}", role="user", content=utterance["utterance"], speaker=speaker)


def _question(qa: Mapping[str, Any], known: frozenset[str]) -> Question:
    ids = tuple(f"t{n}" for n in sorted({int(answer["utterance_id"]) for answer in qa["answers"]}))
    if unknown := [turn_id for turn_id in ids if turn_id not in known]:
        raise DataError(f"{qa['id']}: an answer names utterance {unknown[0]}, which the scene does not have")
    answer = qa["answers"][0]["answer_text"] if qa["answers"] else None
    return Question(qa["id"], Query(qa["question"]), Evidence(ids, answer, category=qa["id"].split("_")[3]))

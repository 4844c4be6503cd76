"""Conversations on disk: JSONL, one conversation a line, the form in which synthetic data is shipped.

A line is {"id", "turns": [{"id", "role", "content", "speaker", "session", "date"}], "questions": [{"id", "question",
"evidence": [turn id], "answer", "category", "trap"}]}; content is a string or [{"kind", "text"}]; absent means None.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from foveate.core.errors import DataError
from foveate.core.schema import Conversation, Evidence, Part, PartKind, Query, Question, Turn
from foveate.corpora.root import read_jsonl


def write(path: Path, conversations: Iterable[Conversation]) -> None:
    """Write conversations as JSONL, folders made as needed; equal conversations give equal bytes.

    Raises:
        DataError: the file cannot be written.
    """
    lines = (json.dumps(_record(c), ensure_ascii=False, separators=(",", ":")) + "\n" for c in conversations)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines), encoding="utf-8", newline="\n")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}") from error


def read(path: Path) -> list[Conversation]:
    """The conversations of a file that `write` made.

    Raises:
        DataError: the file cannot be read, or a line is not a conversation: names the line and what is wrong with it.
    """
    return read_jsonl(path, lambda value, number: _conversation(value, f"{path} line {number}"))


def _record(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "turns": [_turn_record(turn) for turn in conversation.turns],
        "questions": [_question_record(question) for question in conversation.questions],
    }


def _turn_record(turn: Turn) -> dict[str, Any]:
    content: object = turn.content
    if isinstance(turn.content, tuple):
        content = [{"kind": part.kind, "text": part.text} for part in turn.content]
    record = {"id": turn.id, "role": turn.role, "content": content}
    return record | _present(speaker=turn.speaker, session=turn.session, date=turn.date)


def _question_record(question: Question) -> dict[str, Any]:
    evidence = question.evidence
    record = {"id": question.id, "question": question.query.text, "evidence": list(evidence.turn_ids)}
    return record | _present(answer=evidence.answer, category=evidence.category, trap=evidence.trap)


def _present(**values: str | None) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _conversation(value: Any, where: str) -> Conversation:
    record = _mapping(value, where)
    turns = tuple(
        _turn(_mapping(turn, f"{where} turn {i}"), f"{where} turn {i}")
        for i, turn in enumerate(_list(record, "turns", where))
    )
    known = {turn.id for turn in turns}
    if len(known) != len(turns):
        raise DataError(f"{where}: turn ids are not unique")
    questions = tuple(
        _question(_mapping(question, f"{where} question {i}"), known, f"{where} question {i}")
        for i, question in enumerate(_list(record, "questions", where))
    )
    return Conversation(_text(record, "id", where), turns, questions)


def _turn(record: Mapping[str, Any], where: str) -> Turn:
    return Turn(
        id=_text(record, "id", where),
        role=_text(record, "role", where),
        content=_content(record.get("content"), where),
        speaker=_optional(record, "speaker", where),
        session=_optional(record, "session", where),
        date=_optional(record, "date", where),
    )


def _content(value: Any, where: str) -> str | tuple[Part, ...] | None:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise DataError(f"{where}: content is {type(value).__name__}, expected a string or a list of parts")
    return tuple(_part(_mapping(part, where), where) for part in value)


def _part(record: Mapping[str, Any], where: str) -> Part:
    kind: PartKind | None = next((k for k in get_args(PartKind) if k == record.get("kind")), None)
    if kind is None:
        raise DataError(f"{where}: part kind {record.get('kind')!r} is not one of {', '.join(get_args(PartKind))}")
    return Part(kind, _text(record, "text", where))


def _question(record: Mapping[str, Any], known: set[str], where: str) -> Question:
    ids = _list(record, "evidence", where)
    if unknown := [turn_id for turn_id in ids if turn_id not in known]:
        raise DataError(f"{where}: evidence {unknown[0]!r} is no turn of the conversation")
    evidence = Evidence(
        turn_ids=tuple(ids),
        answer=_optional(record, "answer", where),
        category=_optional(record, "category", where) or "",
        trap=_optional(record, "trap", where),
    )
    return Question(_text(record, "id", where), Query(_text(record, "question", where)), evidence)


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected an object, found {type(value).__name__}")
    return value


def _list(record: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = record.get(key)
    if not isinstance(value, list):
        raise DataError(f"{where}: {key!r} must be a list")
    return value


def _text(record: Mapping[str, Any], key: str, where: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise DataError(f"{where}: {key!r} must be a string")
    return value


def _optional(record: Mapping[str, Any], key: str, where: str) -> str | None:
    return None if record.get(key) is None else _text(record, key, where)

"""QMSum (Zhong et al., 2021): meetings, and queries with the spans of turns that answer them.

A meeting is one conversation without sessions or dates. A specific query's evidence is every turn of its
`relevant_text_span` (inclusive turn indices, written as strings); a general query has none. The text stays as released,
tokenised and with marks such as {vocalsound}; a turn may be empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from foveate.core.errors import DataError
from foveate.core.schema import Conversation, Evidence, Query, Question, Turn
from foveate.corpora.root import locate, read_jsonl

Split = Literal["train", "val", "test"]

_FILES: Mapping[str, str] = {"train": "ALL_train_rebuilt.jsonl", "val": "val.jsonl", "test": "test.jsonl"}

LONGBENCH_OVERLAP: frozenset[str] = frozenset(f"val-{index}" for index in (7, 12, 26, 31, 32, 33))
"""Meetings that the English LongBench items at hand ask about. A run that reports LongBench may not train on them."""


def load(root: Path, split: Split, *, without_longbench: bool = False) -> list[Conversation]:
    """The meetings of a split, in the file's order.

    Args:
        root: the data root.
        split: 162 meetings to train, 35 to validate, 35 to test.
        without_longbench: leave out `LONGBENCH_OVERLAP`.

    Raises:
        DataError: the split is unknown, or its file is missing or changed.
    """
    if split not in _FILES:
        raise DataError(f"QMSum has no split {split!r}: give train, val or test")
    path = locate(root, "qmsum", _FILES[split])
    meetings = read_jsonl(path, lambda record, number: parse(record, f"{split}-{number - 1}"))
    return [m for m in meetings if not (without_longbench and m.id in LONGBENCH_OVERLAP)]


def parse(record: Mapping[str, Any], name: str) -> Conversation:
    """One meeting; `name` is its id where the record carries no file name.

    Raises:
        DataError: a key is absent, or a span lies outside the meeting.
    """
    try:
        name = str(record["file"]).removesuffix(".json") if "file" in record else name
        turns = tuple(_turn(index, turn) for index, turn in enumerate(record["meeting_transcripts"]))
        specific = (_question(f"{name}:s{i}", q, len(turns)) for i, q in enumerate(record["specific_query_list"]))
        general = (_question(f"{name}:g{i}", q, len(turns)) for i, q in enumerate(record["general_query_list"]))
        return Conversation(name, turns, (*specific, *general))
    except KeyError as error:
        raise DataError(f"{name}: not a QMSum meeting: {error} is missing") from error


def _turn(index: int, record: Mapping[str, Any]) -> Turn:
    return Turn(id=f"t{index}", role="user", content=record["content"], speaker=record["speaker"])


def _question(name: str, record: Mapping[str, Any], n_turns: int) -> Question:
    spans = record.get("relevant_text_span")
    evidence = Evidence(
        turn_ids=() if spans is None else _span_ids(name, spans, n_turns),
        answer=record["answer"],
        category="general" if spans is None else "specific",
    )
    return Question(name, Query(record["query"]), evidence)


def _span_ids(name: str, spans: list[list[str]], n_turns: int) -> tuple[str, ...]:
    indices: set[int] = set()
    for first, last in spans:
        if not 0 <= int(first) <= int(last) < n_turns:
            raise DataError(f"{name}: span {first}..{last} lies outside the meeting's {n_turns} turns")
        indices.update(range(int(first), int(last) + 1))
    return tuple(f"t{index}" for index in sorted(indices))

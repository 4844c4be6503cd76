"""LoCoMo (Maharana et al., 2024): ten very long two-person chats with questions and the turns that answer them.

Reads the released locomo10.json and repairs what is wrong in it by rule, never by hand:

- sessions are the keys `session_<n>` that hold a list, in order of n (one conversation has dates without sessions);
- an image turn carries its released caption; the search query, image address, event summaries, observations and
  session summaries are never read, as some of them give answers away;
- evidence ids are canonical (malformed strings split, zero padding dropped, ids that do not exist dropped, no
  duplicates): 2,820 ids over 1,982 of the 1,986 questions;
- whole-number answers become text; category 5 has a trap instead of an answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveate.core.errors import DataError
from foveate.core.schema import Conversation, Evidence, Part, Query, Question, Turn
from foveate.corpora.root import locate, read_json

CATEGORY_NAMES: Mapping[str, str] = {
    "1": "multi-hop",
    "2": "temporal",
    "3": "open-domain",
    "4": "single-hop",
    "5": "adversarial",
}
"""What the category numbers mean. Later repositories rotate them; counts and published scores prove this reading."""

DUPLICATES: frozenset[str] = frozenset(f"conv-48:q{index}" for index in range(89, 100))
"""Questions that repeat an earlier one of their conversation word for word, labels included."""

MISLABELLED: frozenset[str] = frozenset({"conv-30:q95"})
"""An adversarial question that is also asked, and answered, as a single-hop one with the same evidence."""

_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D\s*:?\s*(\d+)\s*:\s*(\d+)")
_DATE = re.compile(r"\d{1,2}:\d{2} [ap]m on (\d{1,2}) ([A-Z][a-z]+), (\d{4})")


@dataclass(frozen=True, slots=True)
class Fold:
    """One fold of protocol P1; every conversation is tested once.

    Attributes:
        name: "F0".."F4".
        test: conversation ids scored.
        validation: conversation ids for early stopping and thresholds: the next fold's test set.
        train: all others.
    """

    name: str
    test: tuple[str, ...]
    validation: tuple[str, ...]
    train: tuple[str, ...]


_FOLD_TESTS: tuple[tuple[str, ...], ...] = (
    ("conv-41", "conv-43", "conv-47"),
    ("conv-30", "conv-42"),
    ("conv-26", "conv-44"),
    ("conv-49", "conv-50"),
    ("conv-48",),
)

CONVERSATIONS: tuple[str, ...] = tuple(sorted(name for test in _FOLD_TESTS for name in test))
"""The ten conversation ids, in the file's order. Protocol P0 tests on all of them and trains on none."""


def folds() -> tuple[Fold, ...]:
    """Protocol P1: five folds by conversation; the three that share a speaker's name stay together in F0."""
    found: list[Fold] = []
    for k, test in enumerate(_FOLD_TESTS):
        validation = _FOLD_TESTS[(k + 1) % len(_FOLD_TESTS)]
        train = tuple(name for name in CONVERSATIONS if name not in test and name not in validation)
        found.append(Fold(f"F{k}", test, validation, train))
    return tuple(found)


def load(root: Path) -> list[Conversation]:
    """The ten conversations in the file's order.

    Raises:
        DataError: the file is missing or is not the pinned release.
    """
    return [parse(sample) for sample in read_json(locate(root, "locomo", "locomo10.json"))]


def parse(sample: Mapping[str, Any]) -> Conversation:
    """One record of the released file.

    Raises:
        DataError: a key that the corpus documents is absent.
    """
    try:
        name = str(sample["sample_id"])
        turns = _turns(sample["conversation"])
        known = frozenset(turn.id for turn in turns)
        questions = tuple(_question(name, index, qa, known) for index, qa in enumerate(sample["qa"]))
    except KeyError as error:
        raise DataError(f"not a LoCoMo record: {error} is missing; use the released locomo10.json") from error
    return Conversation(name, turns, questions)


def raw_text(turn: Turn) -> str:
    """The words spoken in a turn, without its image's caption: what evidence recall must cover."""
    if turn.content is None or isinstance(turn.content, str):
        return turn.content or ""
    return "\n".join(part.text for part in turn.content if part.kind == "text")


def canonical_evidence(raw: list[str], known: frozenset[str]) -> tuple[str, ...]:
    """The evidence ids a list of released strings means: every D<n>:<n>, unpadded, existing, each once, in order."""
    found = (f"D{int(s)}:{int(t)}" for text in raw for s, t in _EVIDENCE.findall(text))
    return tuple(dict.fromkeys(turn_id for turn_id in found if turn_id in known))


def score_corrupting(root: Path) -> frozenset[str]:
    """Ids of the 99 questions whose answer an independent audit found wrong or ambiguous (`clean_1to4` drops them).

    Raises:
        DataError: the audit file is missing or is not the pinned one.
    """
    return frozenset(qid for qid, kind in _audit(root) if kind != "WRONG_CITATION")


def wrong_citations(root: Path) -> frozenset[str]:
    """Ids of the 57 questions whose answer stands but whose evidence ids the same audit disputes.

    Raises:
        DataError: the audit file is missing or is not the pinned one.
    """
    return frozenset(qid for qid, kind in _audit(root) if kind == "WRONG_CITATION")


def _audit(root: Path) -> list[tuple[str, str]]:
    rows = read_json(locate(root, "locomo_audit", "errors.json"))
    return [(_audited_id(row["question_id"]), row["error_type"]) for row in rows]


def _audited_id(text: str) -> str:
    match = re.fullmatch(r"locomo_(\d+)_qa(\d+)", text)
    if match is None:
        raise DataError(f"audit question_id {text!r} is not of the form locomo_<i>_qa<j>")
    return f"{CONVERSATIONS[int(match[1])]}:q{int(match[2])}"


def _turns(conversation: Mapping[str, Any]) -> tuple[Turn, ...]:
    roles = {conversation["speaker_a"]: "user", conversation["speaker_b"]: "assistant"}
    numbers = (int(m[1]) for key in conversation if (m := _SESSION.fullmatch(key)))
    turns: list[Turn] = []
    for number in sorted(numbers):
        records = conversation[f"session_{number}"]
        if isinstance(records, list):
            date = _date(conversation[f"session_{number}_date_time"])
            turns.extend(_turn(record, str(number), date, roles) for record in records)
    return tuple(turns)


def _turn(record: Mapping[str, Any], session: str, date: str, roles: Mapping[str, str]) -> Turn:
    content: str | tuple[Part, ...] = record["text"]
    if caption := record.get("blip_caption"):
        content = (Part("text", record["text"]), Part("image", caption))
    return Turn(
        id=record["dia_id"],
        role=roles[record["speaker"]],
        content=content,
        speaker=record["speaker"],
        session=session,
        date=date,
    )


def _date(text: str) -> str:
    """A released session time to "8 May 2023"."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise DataError(f"session date {text!r} is not of the form '1:56 pm on 8 May, 2023'")
    return f"{int(match[1])} {match[2]} {match[3]}"


def _question(name: str, index: int, qa: Mapping[str, Any], known: frozenset[str]) -> Question:
    answer = qa.get("answer")
    evidence = Evidence(
        turn_ids=canonical_evidence(qa["evidence"], known),
        answer=None if answer is None else str(answer),
        category=str(qa["category"]),
        trap=qa.get("adversarial_answer"),
    )
    return Question(f"{name}:q{index}", Query(qa["question"]), evidence)

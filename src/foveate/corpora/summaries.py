"""Dialogues with the summaries people wrote of them, in one form for training and scoring summarizers.

A source is "corpus:part" (`SOURCES`):

- DialogSum (Chen et al., 2021): short dialogues; one summary each in dev, three in test. Its licence keeps it out of
  training. Speakers stay "#Person1#", as the summaries call them.
- MTS-Dialog and ACI-Bench (see `corpora.medical`): consultations with the section, or the whole note, of a clinician.
- QMSum (see `corpora.qmsum`): a query and its answer; a specific query's dialogue is the turns that answer it (the gold
  spans of Zhong et al., 2021), a general one's the whole meeting.

MTS-Dialog repeats some dialogues, also between its training and its other files, so `training_pairs` leaves out what a
held-out part holds.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from foveate.core.errors import ConfigError, DataError
from foveate.core.schema import Conversation, Question, Turn
from foveate.corpora import medical, qmsum
from foveate.corpora.root import KNOWN, locate, read_jsonl

SOURCES: tuple[str, ...] = (
    "dialogsum:dev",
    "dialogsum:test",
    "mts_dialog:train",
    "mts_dialog:validation",
    "mts_dialog:test1",
    "mts_dialog:test2",
    "aci_bench:train",
    "aci_bench:valid",
    "aci_bench:test1",
    "aci_bench:test2",
    "aci_bench:test3",
    "qmsum:train",
    "qmsum:val",
    "qmsum:test",
)

_DIALOGSUM_LINE = re.compile(r"\s*(#Person\d#)\s*:\s*(.*)")


@dataclass(frozen=True, slots=True)
class SummaryPair:
    """A dialogue and its reference summaries.

    Attributes:
        id: unique over all sources.
        dialogue: its turns, with speakers where the corpus names them.
        summaries: one reference or more; a score takes the best of them.
        group: pairs of one group share text (one meeting, or the same words), so that no split may part them.
        query: what the summary answers, "" for a summary of the whole.
    """

    id: str
    dialogue: tuple[Turn, ...]
    summaries: tuple[str, ...]
    group: str
    query: str = ""


def load_pairs(source: str, root: Path) -> list[SummaryPair]:
    """The pairs of a source, in the file's order. QMSum leaves out the meetings that LongBench asks about.

    Raises:
        DataError: no such source, or its file is missing, changed or not in the documented form.
    """
    corpus, part = _parts(source)
    match corpus:
        case "dialogsum":
            return _dialogsum(root, part)
        case "mts_dialog":
            return _consultations(medical.load_mts(root, cast(medical.MtsSplit, part)))
        case "aci_bench":
            return _consultations(medical.load_aci(root, cast(medical.AciSplit, part)))
        case _:
            return _meetings(qmsum.load(root, cast(qmsum.Split, part), without_longbench=True))


def training_pairs(sources: Sequence[str], root: Path) -> list[SummaryPair]:
    """The pairs of training parts, one source after the other, without any whose group a held-out part of its corpus
    holds too.

    Raises:
        ConfigError: a source's licence or part keeps it out of training.
        DataError: no such source, or a file is missing, changed or not in the documented form.
    """
    for source in sources:
        _refuse(source)
    return [pair for source in sources for pair in _without_held_out(source, root)]


def _refuse(source: str) -> None:
    """Raises where a source may not train."""
    corpus, part = _parts(source)
    allowed = ", ".join(name for name in SOURCES if _may_train(name))
    if KNOWN[corpus].checkpoint != "yes":
        raise ConfigError(f"{source} may not train ({KNOWN[corpus].licence}, evaluation only): give {allowed}")
    if part != "train":
        raise ConfigError(f"{source} may not train (a held-out part): give {allowed}")


def _parts(source: str) -> tuple[str, str]:
    if source not in SOURCES:
        raise DataError(f"there is no summary source {source!r}: give one of {', '.join(SOURCES)}")
    corpus, _, part = source.partition(":")
    return corpus, part


def _may_train(source: str) -> bool:
    corpus, _, part = source.partition(":")
    return part == "train" and KNOWN[corpus].checkpoint == "yes"


def _without_held_out(source: str, root: Path) -> list[SummaryPair]:
    corpus = source.partition(":")[0]
    others = (name for name in SOURCES if name != source and name.startswith(f"{corpus}:"))
    held_out = {pair.group for name in others for pair in load_pairs(name, root)}
    return [pair for pair in load_pairs(source, root) if pair.group not in held_out]


def _dialogsum(root: Path, part: str) -> list[SummaryPair]:
    path = locate(root, "dialogsum", f"dialogsum.{part}.jsonl")
    keys = ("summary",) if part == "dev" else ("summary1", "summary2", "summary3")
    return read_jsonl(path, lambda record, number: parse_dialogsum(record, keys, f"{path} line {number}"))


def parse_dialogsum(record: Any, keys: Sequence[str], place: str) -> SummaryPair:
    """One dialogue with the summaries under `keys`; `place` is named where something is wrong.

    Raises:
        DataError: a key is absent, or the record holds no text where text belongs.
    """
    try:
        name, dialogue, summaries = record["fname"], record["dialogue"], tuple(record[key].strip() for key in keys)
        turns = medical.parse_turns(dialogue, _DIALOGSUM_LINE)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{place}: not a DialogSum dialogue: {error}") from error
    if not turns or not all(summaries):
        raise DataError(f"{place}: dialogue or summary is empty")
    return SummaryPair(f"dialogsum-{name}", turns, summaries, _text_group(turns))


def _consultations(found: Sequence[medical.Consultation]) -> list[SummaryPair]:
    return [
        SummaryPair(c.conversation.id, c.conversation.turns, (c.note,), _text_group(c.conversation.turns))
        for c in found
    ]


def _meetings(meetings: Sequence[Conversation]) -> list[SummaryPair]:
    return [pair for meeting in meetings for pair in _queries(meeting)]


def _queries(meeting: Conversation) -> Iterator[SummaryPair]:
    for question in meeting.questions:
        answer = _answer(question)
        wanted = set(question.evidence.turn_ids)
        turns = tuple(turn for turn in meeting.turns if turn.text and (not wanted or turn.id in wanted))
        yield SummaryPair(f"qmsum-{question.id}", turns, (answer,), f"qmsum-{meeting.id}", question.query.text)


def _answer(question: Question) -> str:
    answer = (question.evidence.answer or "").strip()
    if not answer:
        raise DataError(f"QMSum {question.id}: the answer is empty")
    return answer


def _text_group(turns: Sequence[Turn]) -> str:
    """A digest of the words, without case and spacing."""
    words = " ".join(" ".join(turn.text for turn in turns).casefold().split())
    return hashlib.sha256(words.encode()).hexdigest()[:16]

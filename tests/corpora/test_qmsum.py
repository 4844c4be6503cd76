from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foveate.core.errors import DataError
from foveate.corpora import qmsum
from foveate.corpora.root import locate, read_jsonl

# meetings, turns, specific queries
COUNTS: dict[qmsum.Split, tuple[int, int, int]] = {
    "train": (162, 88336, 1095),
    "val": (35, 20123, 237),
    "test": (35, 20718, 244),
}


@pytest.mark.parametrize("split", COUNTS)
def test_counts(data_root: Path, split: qmsum.Split) -> None:
    meetings = qmsum.load(data_root, split)
    specific = [q for m in meetings for q in m.questions if q.evidence.category == "specific"]
    assert (len(meetings), sum(len(m.turns) for m in meetings), len(specific)) == COUNTS[split]
    assert all(q.evidence.turn_ids for q in specific)
    assert len({m.id for m in meetings}) == len(meetings)


def test_evidence_ids_exist_and_general_queries_have_none(data_root: Path) -> None:
    for meeting in qmsum.load(data_root, "val"):
        known = {turn.id for turn in meeting.turns}
        for question in meeting.questions:
            assert known.issuperset(question.evidence.turn_ids)
            assert bool(question.evidence.turn_ids) == (question.evidence.category == "specific")


def test_meetings_that_longbench_asks_about_are_left_out(data_root: Path) -> None:
    kept = qmsum.load(data_root, "val", without_longbench=True)
    assert len(kept) == 35 - len(qmsum.LONGBENCH_OVERLAP)
    assert not {m.id for m in kept} & qmsum.LONGBENCH_OVERLAP


def test_the_overlap_list_is_what_longbench_contains(data_root: Path) -> None:
    items = read_jsonl(locate(data_root, "longbench/minilongbench", "minilongbench_en.jsonl"), lambda value, _: value)
    prompts = [item["prompt"] for item in items if item["task"] == "qmsum"]
    assert len(prompts) == 6

    found: set[str] = set()
    for split in COUNTS:
        for meeting in qmsum.load(data_root, split):
            texts = [turn.text for turn in meeting.turns if len(turn.text) > 80][:5]
            if any(all(text in prompt for text in texts) for prompt in prompts):
                found.add(meeting.id)
    assert found == qmsum.LONGBENCH_OVERLAP


def meeting(span: list[str]) -> dict[str, Any]:
    return {
        "meeting_transcripts": [{"speaker": "A", "content": text} for text in ("one", "", "three")],
        "specific_query_list": [{"query": "What?", "answer": "so", "relevant_text_span": [span, ["2", "2"]]}],
        "general_query_list": [{"query": "Sum up.", "answer": "all"}],
    }


def test_a_small_meeting() -> None:
    found = qmsum.parse(meeting(["1", "2"]), "val-0")
    assert [(t.id, t.speaker, t.text) for t in found.turns] == [
        ("t0", "A", "one"),
        ("t1", "A", ""),
        ("t2", "A", "three"),
    ]
    specific, general = found.questions
    assert (specific.id, specific.evidence.turn_ids) == ("val-0:s0", ("t1", "t2"))
    assert (general.id, general.evidence.turn_ids, general.evidence.answer) == ("val-0:g0", (), "all")


def test_a_span_outside_the_meeting_is_refused() -> None:
    with pytest.raises(DataError, match=r"span 1\.\.3 lies outside the meeting's 3 turns"):
        qmsum.parse(meeting(["1", "3"]), "val-0")


def test_a_record_without_turns_is_refused() -> None:
    with pytest.raises(DataError, match="'meeting_transcripts' is missing"):
        qmsum.parse({}, "val-0")


def test_an_unknown_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no split 'dev'"):
        qmsum.load(tmp_path, "dev")  # type: ignore[arg-type]

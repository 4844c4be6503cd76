from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foveate.core.errors import ConfigError, DataError
from foveate.core.files import sha256
from foveate.corpora import medical, qmsum, summaries
from foveate.corpora.root import KNOWN

# pairs, references a pair, pairs with a query; QMSum's val without the meetings LongBench asks about
COUNTS: dict[str, tuple[int, int, bool]] = {
    "dialogsum:dev": (500, 1, False),
    "dialogsum:test": (500, 3, False),
    "mts_dialog:train": (1201, 1, False),
    "mts_dialog:validation": (100, 1, False),
    "mts_dialog:test1": (200, 1, False),
    "mts_dialog:test2": (200, 1, False),
    "aci_bench:train": (67, 1, False),
    "aci_bench:valid": (20, 1, False),
    "aci_bench:test1": (40, 1, False),
    "aci_bench:test2": (40, 1, False),
    "aci_bench:test3": (40, 1, False),
    "qmsum:train": (1257, 1, True),
    "qmsum:val": (231, 1, True),
    "qmsum:test": (281, 1, True),
}
TRAINING: tuple[str, ...] = ("mts_dialog:train", "aci_bench:train", "qmsum:train")

Put = Callable[[str, str, str], Path]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Writes a corpus file under a data root of the test's own, and has its hash be the known one."""

    def write(folder: str, name: str, text: str) -> Path:
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        source = KNOWN[folder]
        monkeypatch.setitem(KNOWN, folder, replace(source, files={**source.files, name: sha256(path)}))
        return tmp_path

    return write


def dialogue(name: str, **summary: str) -> str:
    return json.dumps({"fname": name, "dialogue": "#Person1#: Hi, Ben.\n#Person2#: Hello!", **summary}) + "\n"


def consultations(put: Put, name: str, *dialogues: str) -> Path:
    rows = [["ID", "section_header", "section_text", "dialogue"]]
    rows += [[str(n), "ALLERGY", "Nuts.", text] for n, text in enumerate(dialogues)]
    lines = [",".join(f'"{cell}"' for cell in row) for row in rows]
    return put("mts_dialog", name, "\r\n".join(lines) + "\r\n")


def test_all_sources_are_counted() -> None:
    assert tuple(COUNTS) == summaries.SOURCES


@pytest.mark.parametrize("source", COUNTS)
def test_counts(data_root: Path, source: str) -> None:
    pairs = summaries.load_pairs(source, data_root)
    n, references, queried = COUNTS[source]
    assert len(pairs) == n
    assert {len(pair.summaries) for pair in pairs} == {references}
    assert all(bool(pair.query) == queried for pair in pairs)
    assert all(pair.dialogue and all(pair.summaries) for pair in pairs)


def test_ids_are_unique_over_all_sources(data_root: Path) -> None:
    ids = [pair.id for source in summaries.SOURCES for pair in summaries.load_pairs(source, data_root)]
    assert len(set(ids)) == len(ids)


def test_training_shares_no_group_with_any_other_part(data_root: Path) -> None:
    pairs = summaries.training_pairs(TRAINING, data_root)
    rest = [s for s in summaries.SOURCES if s not in TRAINING]
    held_out = {pair.group for source in rest for pair in summaries.load_pairs(source, data_root)}
    assert not held_out & {pair.group for pair in pairs}
    whole = {pair.id for source in TRAINING for pair in summaries.load_pairs(source, data_root)}
    left_out = whole - {pair.id for pair in pairs}
    assert left_out == {"mts-train-56", "mts-train-901", "mts-train-926", "mts-train-989"}


def test_dialogsum_has_one_summary_in_dev_and_three_in_test(put: Put) -> None:
    put("dialogsum", "dialogsum.dev.jsonl", dialogue("dev_0", summary=" They greet. "))
    root = put("dialogsum", "dialogsum.test.jsonl", dialogue("test_0", summary1="a", summary2="b", summary3="c"))
    (dev,), (test,) = summaries.load_pairs("dialogsum:dev", root), summaries.load_pairs("dialogsum:test", root)
    assert [(turn.speaker, turn.text) for turn in dev.dialogue] == [("#Person1#", "Hi, Ben."), ("#Person2#", "Hello!")]
    assert (dev.id, dev.summaries, dev.query) == ("dialogsum-dev_0", ("They greet.",), "")
    assert (test.id, test.summaries) == ("dialogsum-test_0", ("a", "b", "c"))
    assert dev.group == test.group


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"fname": "x", "dialogue": "#Person1#: Hi"}, "line 1: not a DialogSum dialogue: 'summary'"),
        ({"fname": "x", "dialogue": "#Person1#: Hi", "summary": None}, "line 1: not a DialogSum dialogue"),
        ({"fname": "x", "dialogue": "", "summary": "a"}, "line 1: dialogue or summary is empty"),
        ({"fname": "x", "dialogue": "#Person1#: Hi", "summary": " "}, "line 1: dialogue or summary is empty"),
        ([], "line 1: not a DialogSum dialogue"),
    ],
)
def test_what_is_no_dialogue_with_a_summary_is_refused(put: Put, record: Any, message: str) -> None:
    root = put("dialogsum", "dialogsum.dev.jsonl", json.dumps(record) + "\n")
    with pytest.raises(DataError, match=message):
        summaries.load_pairs("dialogsum:dev", root)


def test_a_query_comes_with_the_turns_that_answer_it(put: Put) -> None:
    meeting = {
        "meeting_transcripts": [{"speaker": s, "content": text} for s, text in (("A", "one"), ("B", ""), ("A", "two"))],
        "specific_query_list": [{"query": "What?", "answer": "So.", "relevant_text_span": [["1", "2"]]}],
        "general_query_list": [{"query": "Sum up.", "answer": "All."}],
    }
    root = put("qmsum", "test.jsonl", json.dumps(meeting) + "\n")
    specific, general = summaries.load_pairs("qmsum:test", root)
    assert ([t.id for t in specific.dialogue], specific.query, specific.summaries) == (["t2"], "What?", ("So.",))
    assert ([t.id for t in general.dialogue], general.query, general.summaries) == (["t0", "t2"], "Sum up.", ("All.",))
    assert specific.group == general.group == "qmsum-test-0"


def test_longbench_meetings_are_left_out(data_root: Path) -> None:
    groups = {pair.group for pair in summaries.load_pairs("qmsum:val", data_root)}
    assert not groups & {f"qmsum-{name}" for name in qmsum.LONGBENCH_OVERLAP}


def test_a_dialogue_that_a_test_file_repeats_does_not_train(put: Put) -> None:
    for name in medical.MTS_FILES.values():
        root = consultations(put, name, f"Doctor: Any allergies?\nPatient: {name}.")
    root = consultations(put, medical.MTS_FILES["train"], "Doctor: Hello.", "Doctor:  any allergies?\nPatient: Nuts.")
    assert len(summaries.training_pairs(["mts_dialog:train"], root)) == 2
    consultations(put, medical.MTS_FILES["test2"], "Doctor: Any allergies?\nPatient: nuts.")
    assert [pair.id for pair in summaries.training_pairs(["mts_dialog:train"], root)] == ["mts-train-0"]


@pytest.mark.parametrize("source", [s for s in summaries.SOURCES if s not in TRAINING])
def test_what_may_not_train_is_refused_before_a_file_is_read(tmp_path: Path, source: str) -> None:
    why = "CC BY-NC-SA 4.0, evaluation only" if source.startswith("dialogsum") else "a held-out part"
    with pytest.raises(ConfigError, match=rf"^{source} may not train \({why}\): give {', '.join(TRAINING)}$"):
        summaries.training_pairs([source], tmp_path)


def test_an_unknown_source_and_a_changed_file_are_refused(put: Put) -> None:
    root = put("dialogsum", "dialogsum.dev.jsonl", dialogue("dev_0", summary="a"))
    for load in (summaries.load_pairs, lambda source, root: summaries.training_pairs([source], root)):
        with pytest.raises(DataError, match="there is no summary source 'dialogsum': give one of dialogsum:dev"):
            load("dialogsum", root)
    (root / "dialogsum" / "dialogsum.dev.jsonl").write_text("{}\n")
    with pytest.raises(DataError, match=r"dialogsum\.dev\.jsonl has changed"):
        summaries.load_pairs("dialogsum:dev", root)

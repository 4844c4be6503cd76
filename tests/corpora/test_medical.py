from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from foveate.core.errors import DataError
from foveate.corpora import medical
from foveate.corpora.root import KNOWN

MTS: dict[medical.MtsSplit, int] = {"train": 1201, "validation": 100, "test1": 200, "test2": 200}
ACI: dict[medical.AciSplit, int] = {"train": 67, "valid": 20, "test1": 40, "test2": 40, "test3": 40}


def test_the_counts_that_the_data_states(data_root: Path) -> None:
    mts = {split: medical.load_mts(data_root, split) for split in MTS}
    assert {split: len(found) for split, found in mts.items()} == MTS
    everything = [consultation for found in mts.values() for consultation in found]
    sections = Counter(consultation.section for consultation in everything)
    assert (len(everything), sections["ALLERGY"], sections["MEDICATIONS"]) == (1701, 84, 80)
    aci = {split: medical.load_aci(data_root, split) for split in ACI}
    assert {split: len(found) for split, found in aci.items()} == ACI
    everything += [consultation for found in aci.values() for consultation in found]
    assert len({consultation.conversation.id for consultation in everything}) == 1701 + 207


def test_every_turn_has_words_and_a_speaker_where_the_file_gives_one(data_root: Path) -> None:
    found = [c for split in MTS for c in medical.load_mts(data_root, split)]
    speakers = Counter(turn.speaker for c in found for turn in c.conversation.turns)
    assert speakers["Patient"] > 6700
    assert speakers["Guest_family_2"] == 15
    assert speakers[None] <= 2
    assert all(c.note for c in found if c.section == "ALLERGY")
    visits = [c for split in ACI for c in medical.load_aci(data_root, split)]
    speakers = Counter(turn.speaker for c in visits for turn in c.conversation.turns)
    assert speakers == {"doctor": 5897, "patient": 5406, "patient_guest": 132, None: 1}
    assert all(c.section is None and len(c.note) > 100 for c in visits)


def test_clinicians_answer_and_patients_ask(data_root: Path) -> None:
    visit = medical.load_aci(data_root, "train")[0]
    first, second = visit.conversation.turns[:2]
    assert (first.role, first.speaker, second.role, second.speaker) == ("assistant", "doctor", "user", "patient")


def test_lines_without_a_speaker_go_on_with_the_turn_before() -> None:
    turns = medical.parse_turns(
        "Nurse speaking\nDoctor: Any allergies?\r\n\r\nPatient: Yes.\n Two of them.\nDocotr_2: Oh"
    )
    assert [(t.id, t.role, t.speaker, t.text) for t in turns] == [
        ("t0", "user", None, "Nurse speaking"),
        ("t1", "assistant", "Doctor", "Any allergies?"),
        ("t2", "user", "Patient", "Yes. Two of them."),
        ("t3", "assistant", "Docotr_2", "Oh"),
    ]


def test_both_may_train_what_is_shipped_and_say_under_which_licence() -> None:
    for folder in ("mts_dialog", "aci_bench"):
        assert (KNOWN[folder].licence, KNOWN[folder].checkpoint) == ("CC BY 4.0", "yes")


def test_an_unknown_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="mts_dialog has no split 'dev'"):
        medical.load_mts(tmp_path, "dev")  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"TrainingSet\.csv is missing"):
        medical.load_mts(tmp_path, "train")

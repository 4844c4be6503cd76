"""Doctor-patient dialogues with what a clinician wrote down: MTS-Dialog and ACI-Bench.

- MTS-Dialog (Ben Abacha et al., 2023; CC BY 4.0): short dialogues, each about one section of a note (ALLERGY,
  MEDICATIONS, ...) and with the text of that section.
- ACI-Bench (Yim et al., 2023; CC BY 4.0): full visits with the whole note; the text is lower-cased speech.

A line of a dialogue is a turn, "Patient: ..." or "[patient] ..."; a line without a speaker goes on with the turn before
it. Speakers keep the names the files give them, misspellings included.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from foveate.core.errors import DataError
from foveate.core.schema import Conversation, Turn
from foveate.corpora.root import locate

MtsSplit = Literal["train", "validation", "test1", "test2"]
AciSplit = Literal["train", "valid", "test1", "test2", "test3"]

MTS_FILES: Mapping[str, str] = {
    "train": "MTS-Dialog-TrainingSet.csv",
    "validation": "MTS-Dialog-ValidationSet.csv",
    "test1": "MTS-Dialog-TestSet-1-MEDIQA-Chat-2023.csv",
    "test2": "MTS-Dialog-TestSet-2-MEDIQA-Sum-2023.csv",
}
ACI_FILES: Mapping[str, str] = {
    "train": "train.csv",
    "valid": "valid.csv",
    "test1": "clinicalnlp_taskB_test1.csv",
    "test2": "clinicalnlp_taskC_test2.csv",
    "test3": "clef_taskC_test3.csv",
}

_MTS_LINE = re.compile(r'"?\s*([A-Z][a-z]+(?:_[a-z]+)?(?:_?\d)?)\s?:\s*(.*)')
_ACI_LINE = re.compile(r"\s*\[(\w+)\]\s*(.*)")
_CLINICIAN = re.compile(r"do[ck]\w*|guest_clin\w*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Consultation:
    """One dialogue and what was written down of it.

    Attributes:
        conversation: the turns; clinicians have the role assistant, patients and their family user.
        section: the section of the note it is about ("ALLERGY"); None where the note is of the whole visit.
        note: the section's text, or the whole note.
    """

    conversation: Conversation
    section: str | None
    note: str


def load_mts(root: Path, split: MtsSplit) -> list[Consultation]:
    """The dialogues of one MTS-Dialog file, in its order: 1,201, 100, 200 and 200.

    Raises:
        DataError: the split is unknown, or its file is missing or changed.
    """
    rows = _rows(root, "mts_dialog", MTS_FILES, split)
    return [_consultation(f"mts-{split}-{row['ID']}", row, _MTS_LINE) for row in rows]


def load_aci(root: Path, split: AciSplit) -> list[Consultation]:
    """The visits of one ACI-Bench file, in its order: 67, 20, 40, 40 and 40.

    Raises:
        DataError: the split is unknown, or its file is missing or changed.
    """
    rows = _rows(root, "aci_bench", ACI_FILES, split)
    return [_consultation(f"aci-{row['encounter_id']}", row, _ACI_LINE) for row in rows]


def _rows(root: Path, folder: str, files: Mapping[str, str], split: str) -> list[dict[str, str]]:
    if split not in files:
        raise DataError(f"{folder} has no split {split!r}: give {', '.join(files)}")
    path = locate(root, folder, files[split])
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))


def _consultation(name: str, row: Mapping[str, str], line: re.Pattern[str]) -> Consultation:
    try:
        turns = parse_turns(row["dialogue"], line)
        note = row["note"] if "note" in row else row["section_text"]
    except KeyError as error:
        raise DataError(f"{name}: not a consultation: {error} is missing") from error
    return Consultation(Conversation(name, turns), row.get("section_header"), note.strip())


def parse_turns(dialogue: str, line: re.Pattern[str] = _MTS_LINE) -> tuple[Turn, ...]:
    """The turns of a dialogue's text; empty lines are left out, and words before any speaker are a turn of nobody."""
    spoken: list[tuple[str | None, str]] = []
    for text in filter(str.strip, dialogue.splitlines()):
        found = line.match(text)
        if found is not None:
            spoken.append((found[1], found[2].strip()))
        elif spoken:
            speaker, before = spoken[-1]
            spoken[-1] = (speaker, f"{before} {text.strip()}".strip())
        else:
            spoken.append((None, text.strip()))
    return tuple(
        Turn(id=f"t{index}", role="assistant" if is_clinician(speaker) else "user", content=text, speaker=speaker)
        for index, (speaker, text) in enumerate(spoken)
    )


def is_clinician(speaker: str | None) -> bool:
    """Whether a speaker of these corpora is a doctor, a nurse or another clinician."""
    return speaker is not None and _CLINICIAN.match(speaker) is not None

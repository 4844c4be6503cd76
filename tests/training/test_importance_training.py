"""Weak labels, seeded batches, and a head that learns from them in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from foveate.core.errors import DataError
from foveate.core.schema import Conversation, Turn
from foveate.core.tiers import Importance
from foveate.corpora import medical, safety
from foveate.corpora.medical import Consultation
from foveate.corpora.safety import LabelledTurn
from foveate.learned.importance import ImportanceHead
from foveate.metrics.nli import auroc
from foveate.signals.lexical import Floats
from foveate.training import importance
from foveate.training.importance import ImportanceBatches, choose_threshold, train_head

DIM = 512


def bag_of_words(texts: Sequence[str]) -> Floats:
    """Unit vectors of hashed words: an encoder that needs no weights."""
    out = np.zeros((len(texts), DIM), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            out[row, sum(ord(c) * 31**k for k, c in enumerate(word)) % DIM] += 1
    return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)


def consultation(section: str | None, note: str, dialogue: str) -> Consultation:
    return Consultation(Conversation("c", medical.parse_turns(dialogue)), section, note)


def labels(section: str | None, note: str, dialogue: str) -> dict[str, str]:
    found = importance.label_consultation(consultation(section, note, dialogue), "mts_dialog")
    return {turn.turn.text: turn.label.name for turn in found}


def test_a_stated_allergy_is_critical_and_a_denied_one_is_not() -> None:
    dialogue = "Doctor: Any allergies?\nPatient: Yes. Bactrim.\nDoctor: Bactrim, I see.\nPatient: Okay."
    assert labels("ALLERGY", "Bactrim, which causes nausea.", dialogue) == {
        "Any allergies?": "RELEVANT",
        "Yes. Bactrim.": "CRITICAL",
        "Okay.": "TRIVIAL",
    }
    dialogue = "Doctor: Do you have any allergies?\nPatient: No.\nDoctor: None at all?\nPatient: Not that I know of."
    found = labels("ALLERGY", "No known drug allergies.", dialogue)
    assert "CRITICAL" not in found.values()
    assert found["Do you have any allergies?"] == "RELEVANT"


def test_what_could_be_either_is_left_out() -> None:
    dialogue = "Patient: Should I go on with the warfarin?\nDoctor: You take warfarin.\nPatient: I don't take warfarin."
    assert labels("MEDICATIONS", "Warfarin.", dialogue) == {}


def test_other_sections_teach_what_the_keyword_rule_sees() -> None:
    dialogue = "Patient: My father has diabetes.\nPatient: The left knee hurts.\nPatient: I work in a bank."
    found = labels("FAM/SOCHX", "Knee pain. Father has diabetes.", dialogue)
    assert found == {"My father has diabetes.": "CRITICAL", "I work in a bank.": "RELEVANT"}


def test_chats_teach_critical_only_where_they_may() -> None:
    turns = (Turn("a", "user", "I'm allergic to bees."), Turn("b", "user", "Hi!"), Turn("c", "user", "It rained."))
    chat = Conversation("c", turns)
    assert [t.label for t in importance.label_chat(chat, "synthetic", teach=True)] == [2, 0, 1]
    assert [t.label for t in importance.label_chat(chat, "qmsum", teach=False)] == [0, 1]


def test_no_dialogue_and_no_template_is_in_two_splits(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importance, "MEETINGS", 1)
    splits = importance.labelled_turns(data_root, [])
    groups = [{turn.group for turn in part} for part in (splits.train, splits.validation, splits.test)]
    assert groups[0] & groups[1] == groups[0] & groups[2] == groups[1] & groups[2] == set()
    for part in (splits.train, splits.validation, splits.test):
        assert {turn.label for turn in part} == set(Importance)
        assert {turn.origin.split(":")[0] for turn in part} == {"safety", "mts_dialog", "aci_bench", "qmsum"}


def some(count: int = 40) -> list[LabelledTurn]:
    return safety.generate(1, per_template=3)[::7][:count]


def test_batches_are_a_function_of_seed_and_step_and_cover_an_epoch() -> None:
    turns = some()
    batches, again = (ImportanceBatches(turns, bag_of_words, size=16) for _ in range(2))
    assert len(batches) == 5
    again.batch(7)
    for step in (0, 3, 7):
        assert all(torch.equal(a, b) for a, b in zip(batches.batch(step), again.batch(step), strict=True))
    seen = torch.cat([batches.batch(step)[1] for step in range(5)])
    assert seen.sort().values.equal(batches.labels.sort().values)
    assert len(batches.labels) == 2 * len(turns)
    assert not torch.equal(batches.batch(0)[0], batches.batch(5)[0])


def test_a_turn_is_there_with_and_without_date_and_speaker() -> None:
    seen: list[str] = []

    def encode(texts: Sequence[str]) -> Floats:
        seen.extend(texts)
        return bag_of_words(texts)

    turn = Turn("a", "user", "I can't eat eggs.", speaker="Ana", date="8 May 2023")
    ImportanceBatches([LabelledTurn(turn, Importance.CRITICAL, "x", "g")], encode)
    assert seen == ["8 May 2023 Ana: I can't eat eggs.", "I can't eat eggs."]


def test_without_turns_there_is_nothing_to_train() -> None:
    with pytest.raises(DataError, match="no labelled turn"):
        ImportanceBatches([], bag_of_words)


@pytest.mark.parametrize("seed", [6, 7])
def test_the_head_learns_templates_it_has_not_seen(seed: int) -> None:
    torch.manual_seed(0)
    train, validation, test = importance._shared_out(safety.generate(seed, per_template=3), seed)
    batches = [ImportanceBatches(part, bag_of_words) for part in (train, validation, test)]
    head = ImportanceHead(DIM, hidden=32)
    threshold = train_head(head, batches[0], batches[1], epochs=6, lr=5e-3)
    assert 0.5 <= threshold < 1
    assert float(head.threshold) == pytest.approx(threshold)
    with torch.no_grad():
        critical = head.probabilities(batches[2].vectors)[:, Importance.CRITICAL]
    truth = batches[2].labels == int(Importance.CRITICAL)
    area = auroc(critical.tolist(), truth.tolist())
    assert area is not None
    assert area > 0.6


def test_the_threshold_lets_through_the_share_it_may() -> None:
    critical = torch.tensor([0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.1, 0.1, 0.1, 0.1])
    labels = torch.tensor([2, 1, 2, 1, 1, 0, 0, 0, 1, 1])
    for spurious, expected in ((0.0, 1), (0.25, 2), (0.5, 2)):
        threshold = choose_threshold(critical, labels, spurious)
        assert int(((critical >= threshold) & (labels != 2)).sum()) <= spurious * 8
        assert int(((critical >= threshold) & (labels == 2)).sum()) == expected
    assert choose_threshold(critical, labels, 1.0) == 0.5
    with pytest.raises(DataError, match="validation turns of other classes"):
        choose_threshold(critical, torch.full((10,), 2))

"""Precision and recall of CRITICAL: counts, hand labels, and the three detectors side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from foveate.core.schema import Conversation, Turn
from foveate.core.tiers import Importance
from foveate.corpora import locomo
from foveate.corpora.safety import LabelledTurn
from foveate.evaluation import importance
from foveate.evaluation.importance import STATED, UNCLEAR, compare, detection, hand_labelled, markdown


def bees(turns: Sequence[Turn]) -> list[Importance]:
    """A head that knows bees."""
    return [Importance.CRITICAL if "bees" in turn.text else Importance.RELEVANT for turn in turns]


def test_counts_give_precision_and_recall() -> None:
    found = detection([True, True, False, False], [True, False, True, True])
    assert (found.turns, found.critical, found.flagged, found.found) == (4, 3, 2, 1)
    assert (found.precision, found.recall) == (0.5, 1 / 3)
    nothing = detection([False], [False])
    assert (nothing.precision, nothing.recall) == (None, None)


def test_hand_labels_name_turns_that_are_there(data_root: Path) -> None:
    turns, truth = hand_labelled(data_root)
    assert sum(truth) == sum(len(ids.split()) for ids in STATED.values()) == 17
    assert len(turns) == 63
    assert all(turn.role == "user" for turn in turns)
    stated = [turn.text for turn, yes in zip(turns, truth, strict=True) if yes]
    assert "I use my Albuterol inhaler." not in stated
    assert any("allergic to Bactrim" in text for text in stated)
    assert any("Ritalin" in text for text in stated)
    assert not {f"{k}{v}" for k, v in UNCLEAR.items()} & {f"{k}{t}" for k, v in STATED.items() for t in v.split()}


@pytest.fixture
def one_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ("We saw bees.", "I'm allergic to eggs and bees.", "I'm allergic to eggs.", "Hello!")
    chat = Conversation("c", tuple(Turn(f"D1:{i}", "user", text) for i, text in enumerate(texts)))
    monkeypatch.setattr(locomo, "load", lambda root: [chat])
    monkeypatch.setattr(importance, "hand_labelled", lambda root: ([], []))


@pytest.mark.usefixtures("one_chat")
def test_head_rule_and_either_are_counted_apart(tmp_path: Path) -> None:
    def labelled(text: str, label: Importance, origin: str) -> LabelledTurn:
        return LabelledTurn(Turn("a", "user", text), label, origin, "g")

    test = [
        labelled("Killer bees in my shoe.", Importance.CRITICAL, "safety:allergy"),
        labelled("I'm allergic to eggs.", Importance.CRITICAL, "mts_dialog"),
        labelled("I like bees.", Importance.RELEVANT, "mts_dialog"),
    ]
    found = compare(bees, test, tmp_path, {"paraphrases": ["I'm allergic to eggs."]})
    templates, dialogue = found.sets["weak labels, templates"], found.sets["weak labels, dialogue"]
    assert (templates["head"].recall, templates["rule"].recall, templates["either"].recall) == (1, 0, 1)
    assert (dialogue["head"].precision, dialogue["rule"].precision, dialogue["either"].precision) == (0, 1, 0.5)
    assert found.sets["paraphrases"]["rule"].recall == 1
    assert [who for who, _ in found.flagged] == ["head", "head and rule", "rule"]
    assert found.sets["LoCoMo"]["either"].flagged == 3
    text = markdown(found)
    assert "| LoCoMo: either" in text
    assert "3: 75.00 [30.06, 95.44]" in text

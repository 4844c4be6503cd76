"""The checkpoint that comes with foveate: the default where it can run, and the rule where it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from foveate import FocusManager
from foveate.memory import choices
from foveate.memory.choices import default_scorer, load_scorer, shipped_checkpoint
from foveate.rules.chat import ChatScorer


@pytest.fixture(scope="module")
def usable() -> None:
    if isinstance(default_scorer(), ChatScorer):
        pytest.skip("the extras of the shipped checkpoint, or the packaged MiniLM, are not installed")


@pytest.mark.usefixtures("usable")
def test_it_is_the_default_and_shared() -> None:
    first, second = FocusManager(), FocusManager("auto")
    assert first.scorer is second.scorer
    assert first.scorer.name == "foveate-minilm"
    assert first.scorer.calibrated


@pytest.mark.usefixtures("usable")
def test_it_finds_what_the_question_needs_and_keeps_the_allergy() -> None:
    manager = FocusManager(counter="chapter", summarizer=None)
    manager.add_message("user", "I am allergic to peanuts, they send me to hospital.")
    manager.add_message("user", "My sister Ingrid moved to Bergen last spring to work at the aquarium.")
    for number in range(30):
        manager.add_message("assistant", f"The match on pitch {number} was a draw, and the weather was fine again.")
    packed = manager.build_context("Which city does Ingrid live in now?", 80)
    contents = " ".join(str(message["content"]) for message in packed.messages)
    assert "Bergen" in contents
    assert "allergic to peanuts" in contents


def test_without_its_extras_the_rule_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "_NEEDED", ("onnxruntime_that_is_not_there",))
    assert isinstance(load_scorer("auto"), ChatScorer)


def test_without_the_checkpoint_the_rule_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "shipped_checkpoint", lambda: None)
    assert isinstance(load_scorer("auto"), ChatScorer)


def test_it_is_found_in_the_repository() -> None:
    folder = shipped_checkpoint()
    assert folder is not None
    assert folder == Path(__file__).resolve().parents[2] / "checkpoints" / "foveate-minilm"


@pytest.mark.usefixtures("usable")
def test_it_serves_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from foveate import FocusManager\n"
        "m = FocusManager(); m.add_message('user', 'My dog is called Rex.')\n"
        "print(m.scorer.name, m.build_context('What is the dog called?', 200).stats.full)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["foveate-minilm", "1"]

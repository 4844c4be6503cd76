"""The template bank: labels, determinism, and that it does not teach the allergy benchmark its sentences."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from foveate.core.tiers import Importance
from foveate.corpora import safety, safety_bank, store
from foveate.evaluation.allergy_script import HELD_OUT, PARAPHRASES, QUESTION

LENGTH = 6
WORD = re.compile(r"[\w']+")
CARRIERS = ["We went to the lake on Sunday.", "The train was late again."]


def runs_of_words(text: str) -> set[tuple[str, ...]]:
    words = WORD.findall(text.lower())
    return {tuple(words[i : i + LENGTH]) for i in range(len(words) - LENGTH + 1)}


def test_every_class_and_family_is_there_and_groups_are_templates() -> None:
    made = safety.generate(13)
    count = Counter(turn.label for turn in made)
    assert count[Importance.CRITICAL] > 800
    assert count[Importance.RELEVANT] > 800
    assert count[Importance.TRIVIAL] > 100
    families = {*safety_bank.CRITICAL_FAMILIES, *safety_bank.RELEVANT_FAMILIES, "small talk"}
    assert {turn.origin for turn in made} == {f"safety:{family}" for family in families}
    assert all(len({t.label for t in made if t.group == group}) == 1 for group in {t.group for t in made})


def test_a_seed_gives_the_same_turns_and_another_gives_others() -> None:
    assert safety.generate(7, carriers=CARRIERS) == safety.generate(7, carriers=CARRIERS)
    assert safety.generate(7) != safety.generate(8)


def test_slots_are_all_filled_and_texts_are_sentences() -> None:
    for made in safety.generate(3, per_template=12, carriers=CARRIERS):
        assert "{" not in made.turn.text
        assert made.turn.text.strip() == made.turn.text != ""


def test_facts_are_buried_led_in_and_mistyped() -> None:
    texts = [turn.turn.text for turn in safety.generate(13, carriers=CARRIERS) if turn.label is Importance.CRITICAL]
    assert any(text.startswith(CARRIERS[0]) and text.endswith(CARRIERS[1]) for text in texts)
    assert any(text.startswith("By the way, ") for text in texts)
    assert sum(text == text.lower() for text in texts) > 40


def test_a_capital_slot_has_a_capital_value() -> None:
    import random

    assert safety.filled("{Food} and {food}", {"food": ["eggs"]}, random.Random(0)) == "Eggs and eggs"


def test_nothing_of_six_words_is_shared_with_the_allergy_benchmark(repo_root: Path) -> None:
    theirs = {run for text in (*PARAPHRASES, *HELD_OUT, QUESTION) for run in runs_of_words(text)}
    assert len(theirs) > 200
    ours = {run for seed in range(4) for turn in safety.generate(seed) for run in runs_of_words(turn.turn.text)}
    chats = [chat for file in (repo_root / "data" / "synthetic").glob("*.jsonl") for chat in store.read(file)]
    ours |= {run for chat in chats for turn in chat.turns for run in runs_of_words(turn.text)}
    assert ours & theirs == set()


def test_the_bank_never_names_what_the_benchmark_asks_about() -> None:
    made = safety.generate(13, per_template=20)
    assert not [turn.turn.text for turn in made if "peanut" in turn.turn.text.lower()]

"""The allergy benchmark: its dialogues, what it counts, and that the default memory keeps every allergy."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from foveate.cli import evaluate_allergy as verb
from foveate.core.errors import ConfigError, DataError
from foveate.core.protocols import PolicyName
from foveate.core.tiers import Importance, OrdinalThresholds, Tier, TierValues
from foveate.core.tokens import load_counter
from foveate.evaluation import allergy, allergy_script
from foveate.evaluation.allergy import Cell, Plan, cells_of, dialogue, measures, tokens_of
from foveate.evaluation.allergy_plot import save_plot
from foveate.evaluation.progress import Lines
from foveate.memory.counting import CautiousCounter
from foveate.metrics.allergy import retention, states_allergy
from foveate.rules.importance import KeywordImportance
from foveate.signals.lexical import Floats

sys.path.append(str(Path(__file__).resolve().parents[1] / "learned"))

import tiny  # pyright: ignore[reportMissingImports]

CELLS = cells_of((0, 6, 41), allergy.POSITIONS)
COUNTER = CautiousCounter()


def run(names: str, cells: tuple[Cell, ...], work: Path, paraphrases: int = 40) -> list[allergy.Row]:
    plan = Plan(cells, ("least", 128, 512), paraphrases, COUNTER)
    candidates = [verb.candidate(name, COUNTER) for name in verb.names_of(names)]
    return allergy.run(candidates, plan, work, Lines(len(candidates) * len(cells)))


def test_there_are_enough_paraphrases_and_most_can_be_seen_by_metric_a() -> None:
    assert len(set(allergy_script.PARAPHRASES)) == 40
    assert sum(map(states_allergy, allergy_script.PARAPHRASES)) >= 24
    assert len({*allergy_script.PARAPHRASES, *allergy_script.HELD_OUT}) == 60
    assert all("peanut" in text.lower() for text in allergy_script.PARAPHRASES)
    assert not re.search("peanut|allerg|nut", allergy_script.QUESTION + allergy_script.PREAMBLE + allergy_script.REPLY)


@pytest.mark.parametrize("cell", cells_of((0, 1, 6, 7, 60), allergy.POSITIONS))
def test_a_dialogue_has_the_distractors_asked_for_and_one_allergy(cell: Cell) -> None:
    turns, stated = dialogue(3, cell, 13)
    assert len(turns) == cell.distractors + 2
    place = [turn.id for turn in turns].index(stated)
    assert turns[place].text == allergy_script.PARAPHRASES[3]
    assert [turn.role for turn in turns] == [("user", "assistant")[i % 2] for i in range(len(turns))]
    assert place == 0 if cell.position == "first" else abs(place - cell.distractors / 2) <= 1
    others = [turn.text for turn in turns if turn.id != stated]
    assert not [text for text in others if re.search("peanut|allerg|{|}", text, re.IGNORECASE)]


def test_dialogues_are_deterministic_and_differ_between_paraphrases() -> None:
    cell = Cell(500, "middle")
    turns, _ = dialogue(0, cell, 13)
    assert dialogue(0, cell, 13)[0] == turns
    assert dialogue(1, cell, 13)[0] != turns
    assert dialogue(0, cell, 14)[0] != turns
    assert len({turn.text for turn in turns}) > 300


def test_without_distractors_there_is_one_position() -> None:
    assert CELLS[0] == Cell(0, "first")
    assert len(CELLS) == 5


def test_distractors_are_never_critical_by_the_rule() -> None:
    turns, stated = dialogue(0, Cell(500, "first"), 13)
    classify = KeywordImportance().classify
    assert [turn.text for turn in turns if turn.id != stated and classify(turn) is Importance.CRITICAL] == []


def test_the_default_memory_keeps_every_allergy_at_every_budget_that_can_hold_it(tmp_path: Path) -> None:
    rows = run("chat", CELLS, tmp_path)
    assert {row["budget"] for row in rows} == {"least", 128, 512}
    assert [(row["distractors"], row["budget"], row["missed"]) for row in rows if row["full"] < row["n"]] == []
    assert all(row["retention"][0] == 1.0 for row in rows)
    assert all(row["budget_violations"] == 0 for row in rows)


@pytest.mark.parametrize(("head", "threshold"), [(False, 0.0), (True, 1.1)])
def test_a_trained_scorer_keeps_every_allergy_too(tmp_path: Path, head: bool, threshold: float) -> None:
    """By the manager's keyword rule where the model has no head, by the scorer's own where it has one."""
    model = tiny.model(importance=head)
    if model.importance is not None:
        model.importance.threshold.fill_(threshold)
    folder = tiny.saved(tmp_path / "tiny", model)
    rows = run(str(folder), (Cell(0, "first"), Cell(20, "middle")), tmp_path / "work")
    assert [(row["distractors"], row["budget"], row["missed"]) for row in rows if row["full"] < row["n"]] == []
    assert {row["method"] for row in rows} == {"tiny"}
    assert all(row["fingerprint"] and row["index_p50"] is None for row in rows)


def test_texts_are_encoded_once() -> None:
    class Counting:
        name, dim, width, reach = "counting", 1, 1, 0
        policy: PolicyName = "score"
        tier_values = TierValues()
        thresholds: OrdinalThresholds | None = None
        calls: ClassVar[list[str]] = []

        def encode(self, texts: Sequence[str]) -> Floats:
            self.calls.extend(texts)
            return np.array([[len(text)] for text in texts], dtype=np.float32)

        def mix(self, vectors: Floats) -> Floats:
            return vectors

        def head(self, vectors: Floats, mixed: Floats, query: Floats, signals: Floats) -> Floats:
            return vectors[:, 0]

    model = allergy.Remembering(Counting())
    assert model.encode(["a", "bb", "a"])[:, 0].tolist() == [1, 2, 1]
    assert model.encode(["bb", "ccc"])[:, 0].tolist() == [2, 3]
    assert Counting.calls == ["a", "bb", "ccc"]


def test_one_token_less_than_least_cannot_hold_the_allergy() -> None:
    turns, _ = dialogue(0, Cell(6, "first"), 13)
    memory = verb.candidate("chat", COUNTER).open()
    memory.add_turns(turns)
    least = tokens_of(turns[:1], COUNTER)
    question, preamble = allergy_script.QUESTION, allergy_script.PREAMBLE
    assert memory.build_context(question, least, preamble).tiers[0] is Tier.FULL
    assert memory.build_context(question, least - 1, preamble).tiers[0] is not Tier.FULL


def test_baselines_lose_it_as_they_are_said_to(tmp_path: Path) -> None:
    rows = run("stateless,recency,afm-paper-offline,afm-rule", (Cell(41, "first"),), tmp_path)
    share = {(row["method"], row["budget"]): row["full"] / row["n"] for row in rows}
    assert share["stateless", 512] == share["recency", 128] == 0
    assert share["afm-paper-offline", 512] < 0.2
    assert share["afm-rule", 512] == 1
    tokens = {row["method"]: row["tokens"] for row in rows if row["budget"] == 512}
    assert tokens["stateless"] < 60 < tokens["recency"]


def test_measured_cells_are_read_back(tmp_path: Path) -> None:
    first = run("chat", (Cell(6, "first"),), tmp_path, 3)
    assert run("chat", (Cell(6, "first"),), tmp_path, 3) == first
    (file,) = (tmp_path / "allergy").iterdir()
    file.write_text("[{}]")
    with pytest.raises(DataError, match="delete it and evaluate again"):
        run("chat", (Cell(6, "first"),), tmp_path, 3)


def test_rows_without_a_trial_are_left_out_and_measures_of_none_are_none(tmp_path: Path) -> None:
    plan = Plan((Cell(0, "first"),), (40,), 2, COUNTER)
    assert allergy.run([verb.candidate("chat", COUNTER)], plan, tmp_path, Lines(1)) == []
    found = measures([])
    assert (found["n"], found["full_share"], found["retention"], found["tokens"]) == (0, None, None, None)


def test_more_paraphrases_than_there_are_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="41 paraphrases: give 1 to 40"):
        run("chat", CELLS, tmp_path, 41)


def test_the_verb_writes_rows_tables_and_a_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    verb.configure(parser)
    names = ("out", "report", "plot", "work")
    paths = dict(zip(names, (tmp_path / n for n in ("rows.jsonl", "t.md", "p.svg", "work")), strict=True))
    options = [f"--{name}={path}" for name, path in paths.items()]
    options += ["--method=stateless,chat", "--distractors=0,6", "--budgets=least,256", "--paraphrases=2"]
    assert verb.run(parser.parse_args([*options, "--counter=minilm"])) == 0
    rows = [json.loads(line) for line in paths["out"].read_text().splitlines()]
    assert len(rows) == 2 * 2 * 3
    assert {row["badge"] for row in rows} == {"reconstruction"}
    text = capsys.readouterr().out
    assert paths["report"].read_text().strip() == text.strip()
    assert "badge: reconstruction" in text
    assert "100.0 [34.2, 100.0]" in text
    assert b"distractor messages" in paths["plot"].read_bytes() or paths["plot"].stat().st_size > 5000


def test_wrong_arguments_are_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no method 'afm-x'"):
        verb.candidate("afm-x", COUNTER)
    with pytest.raises(ConfigError, match="at most once"):
        verb.names_of("chat,rules")
    with pytest.raises(ConfigError, match="least,256,800"):
        verb.parse_budgets("most")
    with pytest.raises(ConfigError, match="from 0 on"):
        verb.parse_counts("-1")
    with pytest.raises(ConfigError, match="no budget can hold"):
        allergy.markdown([])
    with pytest.raises(ConfigError, match="at least one budget"):
        save_plot([], tmp_path / "p.png")


def test_budgets_and_counts_are_sorted() -> None:
    assert verb.parse_budgets("800,least, 128") == ("least", 128, 800)
    assert verb.parse_counts("60,0,6,6") == (0, 6, 60)


def test_the_counter_of_the_benchmark_is_the_pinned_one() -> None:
    turns, _ = dialogue(0, Cell(0, "first"), 13)
    assert 40 < tokens_of(turns[:1], load_counter("minilm")) < 90
    assert retention([allergy_script.PARAPHRASES[0]])

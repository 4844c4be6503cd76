"""The reader part of the evidence stage: what it asks, what it sums, and a whole run with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from tiny_runs import SHAPE, silent, tiny_config

from foveate.config.load import load_config
from foveate.config.schema import ModelConfig, ObjectiveConfig, ReaderConfig, TrainConfig
from foveate.core.errors import ConfigError
from foveate.core.schema import Conversation
from foveate.core.tokens import ChapterCounter
from foveate.corpora import synthetic
from foveate.learned.model import FoveateModel
from foveate.signals.lexical import Floats
from foveate.training.evidence import EvidenceStage
from foveate.training.examples import Example, build_example
from foveate.training.reader import ReaderPart, require_answers
from foveate.training.run import train
from foveate.training.stage import Batch

sys.path.append(str(Path(__file__).resolve().parents[1] / "learned"))

import tiny  # pyright: ignore[reportMissingImports]
import tiny_reader  # pyright: ignore[reportMissingImports]

ROWS = [0, 1, 2]


def vectors(texts: Sequence[str]) -> Floats:
    return np.random.default_rng(len(texts)).standard_normal((len(texts), tiny.DIM)).astype(np.float32)


def without_answers(conversation: Conversation, rows: Sequence[int]) -> Conversation:
    questions = [
        replace(q, evidence=replace(q.evidence, answer=None)) if k in rows else q
        for k, q in enumerate(conversation.questions)
    ]
    return replace(conversation, questions=tuple(questions))


@pytest.fixture(scope="module")
def conversation() -> Conversation:
    made = synthetic.generate(1, 9, SHAPE)[0]
    return replace(made, questions=tuple(sorted(made.questions, key=lambda q: q.evidence.answer is None)))


@pytest.fixture(scope="module")
def example(conversation: Conversation) -> Example:
    return build_example(conversation, vectors, ChapterCounter())


def part(questions: int = 8, seed: int = 13) -> ReaderPart:
    return ReaderPart(tiny_reader.reader(), ReaderConfig(max_tokens=64, questions=questions), 0.05, seed)


def inputs(example: Example) -> tuple[torch.Tensor, torch.Tensor]:
    make = torch.Generator().manual_seed(3)
    logits = torch.randn(len(ROWS), len(example.turn_texts), generator=make)
    return logits.requires_grad_(), torch.from_numpy(example.cost)


def test_it_sums_over_the_questions_one_by_one(example: Example) -> None:
    logits, cost = inputs(example)
    together = part()(example, ROWS, logits, cost, 1)
    apart = sum(part()(example, [row], logits[[k]], cost, 1) for k, row in enumerate(ROWS))
    torch.testing.assert_close(together, apart)
    assert together.isfinite()
    assert float(together.detach()) > 0


def test_questions_without_an_answer_are_left_out(conversation: Conversation, example: Example) -> None:
    logits, cost = inputs(example)
    some = build_example(without_answers(conversation, [1]), vectors, ChapterCounter())
    found = part()(some, ROWS, logits, cost, 1)
    torch.testing.assert_close(found, part()(example, [0, 2], logits[[0, 2]], cost, 1))
    none = build_example(without_answers(conversation, ROWS), vectors, ChapterCounter())
    nothing = part()(none, ROWS, logits, cost, 1)
    assert float(nothing.detach()) == 0
    (gradient,) = torch.autograd.grad(nothing, logits)
    assert not gradient.any()


def test_the_questions_that_are_drawn_stand_for_the_rest(example: Example) -> None:
    logits, cost = inputs(example)
    each = [float(part()(example, [row], logits[[k]], cost, 1).detach()) for k, row in enumerate(ROWS)]
    drawn = {step: float(part(1)(example, ROWS, logits, cost, step).detach()) for step in range(12)}
    assert all(min(abs(value - 3 * one) for one in each) < 1e-3 for value in drawn.values())
    assert len({round(value, 3) for value in drawn.values()}) == 3
    assert drawn == {step: float(part(1)(example, ROWS, logits, cost, step).detach()) for step in range(12)}


def test_the_prompt_shows_evidence_first_then_what_scores_highest(example: Example) -> None:
    logits, _ = inputs(example)
    asked = part()
    evidence = set(np.flatnonzero(example.evidence[0]).tolist())
    best = int(logits[0].detach().argmax())
    low = logits[0].detach().clone()
    low[sorted(evidence)] = -50
    shown = set(asked.prompt(example, 0, low).turns)
    assert evidence <= shown
    assert best in shown
    assert len(shown) < len(example.turn_texts)


def test_the_gradient_reaches_the_scorers_parameters(example: Example, shared: Path) -> None:
    scorer: FoveateModel = tiny.model()
    config = replace(tiny_config(shared, shared / "unused"), objective=ObjectiveConfig(task="reader", budgets=(64,)))
    stage = EvidenceStage(config, scorer, None, vectors, ChapterCounter(), [example], [example], reader=part())  # type: ignore[arg-type]
    found = stage.loss(scorer, Batch(0, tuple(ROWS)), 1)
    assert set(found.parts) == {"listwise", "binary", "packing", "reader", "spent"}
    torch.testing.assert_close(found.total.detach(), found.parts["reader"])
    found.total.backward()
    moved = {name for name, p in scorer.named_parameters() if p.grad is not None and bool(p.grad.any())}
    assert any(name.startswith("head.") for name in moved)
    assert any(name.startswith("mixer.") for name in moved)


def test_both_adds_the_weighted_part(example: Example, shared: Path) -> None:
    scorer: FoveateModel = tiny.model()

    def total(task: Literal["evidence", "both"], weight: float) -> tuple[float, float]:
        config = replace(
            tiny_config(shared, shared / "unused"),
            objective=ObjectiveConfig(task=task, budgets=(64,)),
            reader=ReaderConfig(weight=weight),
        )
        reader = None if task == "evidence" else part()
        stage = EvidenceStage(config, scorer, None, vectors, ChapterCounter(), [example], [example], reader=reader)  # type: ignore[arg-type]
        found = stage.loss(scorer, Batch(0, tuple(ROWS)), 1)
        return float(found.total.detach()), float(found.parts.get("reader", torch.tensor(0.0)))

    plain, _ = total("evidence", 1.0)
    added, read = total("both", 0.25)
    assert added == pytest.approx(plain + 0.25 * read, rel=1e-5)


def reading(shared: Path, out: Path, task: Literal["reader", "both"]) -> TrainConfig:
    folder = shared / "reader"
    if not folder.is_dir():
        tiny_reader.saved(folder)
    config = tiny_config(shared, out)
    reader = ReaderConfig(name=str(folder), max_tokens=64, questions=1)
    return replace(config, objective=replace(config.objective, task=task), reader=reader)


def test_a_run_with_a_reader_logs_its_part_and_repeats_itself(shared: Path, tmp_path: Path) -> None:
    records: list[str] = []
    for name in ("a", "b"):
        config = reading(shared, tmp_path / name, "both")
        train(replace(config, optim=replace(config.optim, epochs=1)), silent)
        records.append((tmp_path / name / "metrics.jsonl").read_text())
    steps = [json.loads(line) for line in records[0].splitlines()]
    assert records[0] == records[1]
    assert all(step["reader"] > 0 for step in steps if "loss" in step)
    assert any("validation/score" in step for step in steps)


def test_data_without_answers_is_refused(conversation: Conversation) -> None:
    silenced = without_answers(conversation, range(len(conversation.questions)))
    with pytest.raises(ConfigError, match=r"objective.task=both: no training question has an answer"):
        require_answers([build_example(silenced, vectors, ChapterCounter())], "both")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("reader: {name: ''}", "reader.name is empty"),
        ("reader: {max_tokens: 8}", "reader.max_tokens=8"),
        ("reader: {weight: 0}", "reader.weight=0"),
        ("reader: {questions: 0}", "reader.questions=0"),
        ("objective: {task: answers}", "answers"),
        (
            "objective: {task: both}\nmodel: {fusion: cosine, encoder: {tune: top}}",
            "objective.task=both with model.fusion=cosine",
        ),
    ],
)
def test_what_contradicts_is_named(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "bad.yaml").write_text(f"out: a\n{text}\n")
    with pytest.raises(ConfigError, match=named):
        load_config(tmp_path / "bad.yaml")


def test_the_reader_alone_needs_no_other_weight() -> None:
    assert ObjectiveConfig(task="reader", listwise=0, binary=0, packing=0).task == "reader"
    assert TrainConfig(out="a", model=ModelConfig()).reader == ReaderConfig()

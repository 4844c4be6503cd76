"""The evidence stage's parts: calibration, batches, cached vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_runs import SHAPE, tiny_config

from foveate.core.tokens import ChapterCounter
from foveate.corpora import synthetic
from foveate.signals.lexical import Floats
from foveate.training.evidence import BM25, EvidenceStage, fit_platt, fresh_turns, policy_for
from foveate.training.examples import Example, VectorCache, beginning, build_example
from foveate.training.stage import Batch


@pytest.mark.parametrize(("scale", "shift"), [(0.5, -1.0), (1.0, 0.0), (2.5, 3.0)])
def test_platt_finds_a_known_scale_and_shift(scale: float, shift: float) -> None:
    """Each logit appears with labels in the proportion that the true map gives it, so the optimum is exact."""
    logits = torch.linspace(-4, 4, 81, dtype=torch.float64)
    ones = (torch.sigmoid(scale * logits + shift) * 10_000).round().int().tolist()
    repeated = logits.repeat_interleave(10_000)
    labels = torch.cat([torch.arange(10_000) < count for count in ones]).double()
    found = fit_platt(repeated, labels)
    assert found == pytest.approx((scale, shift), abs=0.01)


@pytest.mark.parametrize(
    ("by_score", "policy"),
    [
        ([0.5] * 8, "optimal"),
        ([0.6] * 8, "score"),
        ([1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5], "optimal"),
        ([0.7, 0.6, 0.5, 0.7, 0.6, 0.7, 0.6, 0.7], "score"),
        ([0.4] * 8, "optimal"),
        ([1.0], "optimal"),
    ],
)
def test_the_knapsack_gives_way_to_a_clear_lead_alone(by_score: list[float], policy: str) -> None:
    assert policy_for(np.array(by_score), np.full(len(by_score), 0.5)) == policy


def constant(texts: Sequence[str]) -> Floats:
    return np.full((len(texts), 4), 0.5, dtype=np.float32)


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return [build_example(c, constant, ChapterCounter()) for c in synthetic.generate(3, 9, SHAPE)]


def stage(shared: Path, examples: Sequence[Example], seed: int = 13) -> EvidenceStage:
    config = replace(tiny_config(shared, shared / "unused"), seed=seed)
    nothing: Any = None
    return EvidenceStage(config, nothing, nothing, constant, ChapterCounter(), examples, examples)


def test_an_epoch_asks_every_question_once(shared: Path, examples: list[Example]) -> None:
    every = {(e, q): 1 for e, example in enumerate(examples) for q in range(len(example.query_texts))}
    for epoch in range(3):
        batches = stage(shared, examples).batches(epoch)
        assert Counter((b.example, q) for b in batches for q in b.questions) == every
        assert max(len(b.questions) for b in batches) == 3


def test_batches_depend_on_seed_and_epoch_alone(shared: Path, examples: list[Example]) -> None:
    first, second = stage(shared, examples), stage(shared, examples)
    later: list[Batch] = first.batches(2)
    first.batches(0)
    assert second.batches(2) == later == first.batches(2)
    assert first.batches(1) != later
    assert stage(shared, examples, seed=14).batches(2) != later


def test_an_example_marks_the_evidence(examples: list[Example]) -> None:
    for example in examples:
        ids = [turn.id for turn in example.conversation.turns]
        for row, question in zip(example.evidence, example.conversation.questions, strict=True):
            assert {ids[i] for i in np.flatnonzero(row)} == set(question.evidence.turn_ids)
        assert example.signals.shape[:2] == example.evidence.shape
        assert (example.cost > 0).all()


def test_the_beginning_of_a_conversation_is_a_conversation(examples: list[Example]) -> None:
    whole = examples[0]
    last = [int(np.flatnonzero(row).max()) for row in whole.evidence]
    turns = sorted(last)[len(last) // 2] + 1
    part = beginning(whole, turns)
    assert part is not None
    assert len(part.query_texts) == sum(place < turns for place in last) < len(last)
    again = build_example(part.conversation, constant, ChapterCounter())
    assert part.turn_texts == again.turn_texts
    assert part.query_texts == again.query_texts
    for name in ("vectors", "queries", "signals", "evidence", "cost"):
        np.testing.assert_array_equal(getattr(part, name), getattr(again, name))
    assert beginning(whole, min(last)) is None
    fewer = beginning(whole, len(whole.turn_texts), 2)
    assert fewer is not None
    assert fewer.query_texts == [whole.query_texts[0], whole.query_texts[len(last) // 2]]


def chosen(examples: list[Example], most: int, seed: int = 0) -> list[int]:
    return fresh_turns(examples[0], [0, 1, 2], most, np.random.default_rng(seed))


def test_fresh_turns_are_evidence_and_hard_negatives(examples: list[Example]) -> None:
    """The vectors are all alike here, so that words alone say what is hard."""
    evidence = examples[0].evidence[:3] > 0
    found = chosen(examples, most=8)
    assert found == sorted(set(found))
    assert len(found) == 8
    assert (evidence[:, found].any(axis=1)).all()
    likeness = examples[0].signals[:3, :, BM25].max(0)
    others = sorted(np.flatnonzero(~evidence.any(0)).tolist(), key=lambda i: -likeness[i])
    negatives = [i for i in found if not evidence[:, i].any()]
    assert set(negatives) <= set(others[: 2 * len(negatives)])
    assert {tuple(chosen(examples, 8, seed)) for seed in range(9)} != {tuple(found)}
    assert chosen(examples, most=8) == found


def test_every_question_keeps_a_turn_of_evidence_however_few_are_wanted(examples: list[Example]) -> None:
    found = chosen(examples, most=2)
    assert (examples[0].evidence[:3][:, found] > 0).any(axis=1).all()
    assert len(found) <= 3


def test_equal_texts_are_encoded_once(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def encode(texts: Sequence[str]) -> Floats:
        asked.append(list(texts))
        return np.arange(len(texts) * 2, dtype=np.float32).reshape(len(texts), 2)

    cache = VectorCache(tmp_path / "cache", "key", encode)
    first = cache(["a", "b"])
    np.testing.assert_array_equal(cache(["a", "b"]), first)
    np.testing.assert_array_equal(VectorCache(tmp_path / "cache", "key", encode)(["a", "b"]), first)
    assert asked == [["a", "b"]]
    cache(["b", "a"])
    cache(["ab"])
    VectorCache(tmp_path / "cache", "other", encode)(["a", "b"])
    assert asked[1:] == [["b", "a"], ["ab"], ["a", "b"]]
    assert all(path.suffix == ".npy" for path in (tmp_path / "cache").iterdir())

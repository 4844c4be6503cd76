"""The heads beside the scorer: what a step gives them, what they say of responses, and their calibration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from tiny_runs import SHAPE

from foveate.core.schema import Turn
from foveate.core.tiers import Importance
from foveate.core.tokens import ChapterCounter
from foveate.corpora import synthetic
from foveate.corpora.nli import Pair
from foveate.corpora.safety import LabelledTurn
from foveate.learned.model import FoveateConfig, FoveateModel, Outputs
from foveate.learned.nli import NLI_LABELS
from foveate.signals.features import SIGNAL_NAMES
from foveate.signals.lexical import Floats
from foveate.training.examples import build_example
from foveate.training.heads import Heads, ImportancePart, NliPart, response_text
from foveate.training.importance import ImportanceBatches
from foveate.training.nli import NliBatches

DIM = 16


def encode(texts: Sequence[str]) -> Floats:
    """A unit vector of letter counts."""
    out = np.full((len(texts), DIM), 1e-3, dtype=np.float32)
    for row, text in enumerate(texts):
        np.add.at(out[row], np.frombuffer(text.encode(), dtype=np.uint8) % DIM, 1)
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def model() -> FoveateModel:
    torch.manual_seed(0)
    encoder = {"model_type": "bert", "hidden_size": DIM, "num_hidden_layers": 1, "num_attention_heads": 2}
    encoder |= {"intermediate_size": 16, "vocab_size": 40, "max_position_embeddings": 16}
    config = FoveateConfig(
        encoder=encoder, signal_names=list(SIGNAL_NAMES), width=8, nli=True, nli_width=8, importance=True
    )
    return FoveateModel(config)


def nli_part() -> NliPart:
    pairs = [
        Pair(f"a dog {w}", f"the cat {w}", label, "snli") for w in "runs eats naps".split() for label in NLI_LABELS
    ]
    batches = NliBatches(pairs, encode, 4, seed=1)
    responses = [{0: torch.from_numpy(encode(["a cat"]))[0], 2: torch.from_numpy(encode(["no dog"]))[0]}]
    return NliPart(batches, batches, responses)


def importance_part() -> ImportancePart:
    said = {
        Importance.CRITICAL: "I am allergic to nuts",
        Importance.RELEVANT: "we met at the lake",
        Importance.TRIVIAL: "ok",
    }
    turns = [
        LabelledTurn(Turn(f"{k}-{label}", "user", f"{text} {k}"), label, "synthetic", str(k))
        for k in range(6)
        for label, text in said.items()
    ]
    return ImportancePart(*(ImportanceBatches(turns, encode, size=5, seed=2) for _ in range(2)))


def test_a_step_gives_each_head_its_batch() -> None:
    heads, made = Heads(nli_part(), importance_part()), model()
    inputs, labels = heads.inputs(7, torch.device("cpu"))
    again, _ = heads.inputs(7, torch.device("cpu"))
    torch.testing.assert_close(inputs["turns"], again["turns"])
    vectors, queries = (torch.from_numpy(encode(texts)) for texts in (["x", "yy", "z"], ["what"]))
    outputs = made(vectors, queries, torch.zeros(1, 3, len(SIGNAL_NAMES)), **inputs)
    found = heads.losses(outputs, labels)
    assert found.keys() == {"nli", "importance"}
    (found["nli"] + found["importance"]).backward()
    assert made.nli is not None
    assert made.importance is not None
    for head in (made.nli, made.importance):
        assert all(p.grad is not None for p in head.parameters())


def test_without_heads_a_step_gives_nothing() -> None:
    assert Heads().inputs(0, torch.device("cpu")) == ({}, {})
    assert Heads().losses(Outputs(torch.zeros(1, 2)), {}) == {}
    assert Heads().calibrate(model()) == {}


def test_responses_are_judged_against_every_turn_as_constants() -> None:
    part, made = nli_part(), model()
    assert made.nli is not None
    vectors = torch.from_numpy(encode(["a dog runs", "the cat naps", "hm", "the lake"]))
    made.train()
    judged = part.judge(made.nli, 1.0, vectors, 0, (2, 1, 0))
    assert judged.rows.tolist() == [0, 2]
    assert judged.contradiction.shape == judged.entailment.shape == (2, 4)
    assert not judged.contradiction.requires_grad
    assert made.nli.training
    made.eval()
    alone = torch.softmax(made.nli(vectors[1:2], part.responses[0][2][None]), -1)[0]
    assert judged.contradiction[0, 1].item() == pytest.approx(alone[2].item(), abs=1e-6)
    assert judged.entailment[0, 1].item() == pytest.approx(alone[0].item(), abs=1e-6)
    assert part.judge(made.nli, 1.0, vectors, 0, (1,)).contradiction.shape == (0, 4)


def test_calibration_sets_the_temperature_and_the_threshold() -> None:
    heads, made = Heads(nli_part(), importance_part()), model()
    found = heads.calibrate(made)
    assert made.importance is not None
    assert made.config.nli_temperature > 0
    assert found["critical_threshold"] == pytest.approx(float(made.importance.threshold))
    assert {"nli_score", "nli_f1", "nli_ece", "critical_recall", "critical_precision"} <= found.keys()


def test_a_response_is_the_question_with_its_answer() -> None:
    example = build_example(synthetic.generate(1, 9, SHAPE)[0], encode, ChapterCounter())
    texts = [response_text(question) for question in example.conversation.questions]
    for text, question in zip(texts, example.conversation.questions, strict=True):
        assert (text is None) == (question.evidence.answer is None)
        assert text is None or text == f"{question.query.text} {question.evidence.answer}"

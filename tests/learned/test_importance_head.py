"""The importance head: its loss, its decision, and its place in the model."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny
import torch
from torch.nn import functional

from foveate.core.errors import ConfigError
from foveate.core.schema import Query, Turn
from foveate.core.tiers import Importance
from foveate.learned.importance import ImportanceHead
from foveate.learned.model import FoveateModel
from foveate.learned.objective.importance import class_weights, importance_loss
from foveate.learned.scorer import load_scorer


def test_every_class_weighs_the_same_however_rare() -> None:
    labels = torch.tensor([0, 1, 1, 1, 1, 1, 2, 2])
    weights = class_weights(labels)
    assert torch.allclose(weights, torch.tensor([8 / 3, 8 / 15, 8 / 6]))
    loss = importance_loss(torch.zeros(8, 3), labels, weights)
    sums = torch.stack([loss[labels == c].sum() for c in range(3)])
    assert torch.allclose(sums, sums[:1].expand(3))
    assert torch.allclose(loss.mean(), torch.log(torch.tensor(3.0)))


def test_a_class_that_does_not_occur_weighs_nothing() -> None:
    assert class_weights(torch.tensor([1, 1])).tolist() == pytest.approx([0.0, 1 / 3, 0.0])


def test_the_loss_is_weighted_cross_entropy() -> None:
    logits, labels, weights = torch.randn(5, 3), torch.tensor([0, 2, 1, 1, 2]), torch.tensor([0.5, 1.0, 4.0])
    expected = functional.cross_entropy(logits, labels, reduction="none") * weights[labels]
    assert torch.allclose(importance_loss(logits, labels, weights), expected)


def test_critical_is_decided_by_the_threshold_and_the_rest_by_what_is_likelier() -> None:
    head = ImportanceHead(3, hidden=3).eval()
    with torch.no_grad():
        head.hidden.weight.copy_(torch.eye(3))
        head.output.weight.copy_(4 * torch.eye(3))
        head.hidden.bias.zero_()
        head.output.bias.zero_()
    vectors = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0.0, 0.8, 0.79]])
    assert head.decide(vectors) == [Importance.TRIVIAL, Importance.RELEVANT, Importance.CRITICAL, Importance.RELEVANT]
    head.threshold.fill_(0.3)
    assert head.decide(vectors)[3] is Importance.CRITICAL
    head.threshold.fill_(0.9999)
    assert Importance.CRITICAL not in head.decide(vectors)
    assert torch.allclose(head.probabilities(vectors).sum(-1), torch.ones(4))


def test_the_head_and_its_threshold_are_saved_with_the_model(tmp_path: Path) -> None:
    model = tiny.model(importance=True)
    assert model.importance is not None
    model.importance.threshold.fill_(0.83)
    vectors, _, _ = tiny.inputs()
    loaded = FoveateModel.from_pretrained(tiny.saved(tmp_path, model)).eval()
    assert loaded.importance is not None
    assert float(loaded.importance.threshold) == pytest.approx(0.83)
    assert torch.equal(loaded.importance_of(vectors), model.importance_of(vectors))
    assert loaded.importance_of(vectors).shape == (9, 3)


def test_a_model_without_the_head_is_what_it_was_and_says_so(tmp_path: Path) -> None:
    plain, other = tiny.model(), tiny.model(importance=True)
    for name, tensor in plain.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name
    saved = tiny.saved(tmp_path, plain)
    config = (saved / "config.json").read_text()
    (saved / "config.json").write_text(config.replace('"importance": false,', ""))
    loaded = FoveateModel.from_pretrained(saved)
    assert loaded.importance is None
    with pytest.raises(ConfigError, match="no importance head"):
        loaded.importance_of(torch.zeros(1, tiny.DIM))


TURNS = [Turn("a", "user", "hi"), Turn("b", "user", "I'm allergic to bees."), Turn("c", "user", "the lake is cold")]


def test_a_scorer_gives_critical_where_head_or_rule_says_so(tmp_path: Path) -> None:
    model = tiny.model(importance=True)
    assert model.importance is not None
    for threshold, expected in ((1.1, [False, True, False]), (0.0, [True, True, True])):
        model.importance.threshold.fill_(threshold)
        index = load_scorer(tiny.saved(tmp_path / str(threshold), model)).open()
        for turn in TURNS:
            index.append([turn])
            index.score(Query("how cold ?"))
        found = index.score(Query("how cold ?")).importance
        assert found is not None
        assert [level is Importance.CRITICAL for level in found] == expected


def test_a_scorer_without_the_head_leaves_the_classes_to_others(tmp_path: Path) -> None:
    index = load_scorer(tiny.saved(tmp_path, tiny.model())).open()
    index.append(TURNS)
    assert index.score(Query("how cold ?")).importance is None


def test_an_export_gives_the_classes_that_the_model_gives(tmp_path: Path) -> None:
    from foveate.export.folder import export
    from foveate.serving.onnx_scorer import OnnxScorer

    model = tiny.model(importance=True)
    assert model.importance is not None
    vectors, _, _ = tiny.inputs()
    model.importance.threshold.fill_(float(model.importance_of(vectors).detach()[:, 2].median()))
    run = tiny.saved(tmp_path / "run", model)
    export(run, tmp_path / "out", int8=False, say=lambda _: None)
    exported, reference = OnnxScorer(tmp_path / "out"), load_scorer(run)
    turns = [TURNS[0]] * 9
    assert exported.importance is not None
    assert reference.importance is not None
    classes = exported.importance(vectors.numpy(), turns)
    assert classes == reference.importance(vectors.numpy(), turns)
    assert {Importance.CRITICAL} < set(classes)

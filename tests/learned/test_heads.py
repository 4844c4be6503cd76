"""The fusion heads."""

from __future__ import annotations

import pytest
import torch
from tiny import DIM, SIGNALS, WIDTH, inputs
from torch.nn import functional

from foveate.learned.heads import COSINE_FEATURES, ContextFusion, CosineHead, LinearFusion, cosine_features


def test_linear_weights_stay_non_negative_whatever_they_learn() -> None:
    torch.manual_seed(0)
    head = LinearFusion(4)
    features, target = torch.randn(64, 4), torch.zeros(64)
    target[:] = -5 * features[:, 0] + 3 * features[:, 1]
    optimizer = torch.optim.Adam(head.parameters(), lr=0.3)
    for _ in range(150):
        optimizer.zero_grad()
        functional.mse_loss(head(features), target).backward()
        optimizer.step()
    weights = head.weights.detach()
    assert bool((weights >= 0).all())
    assert float(weights[0]) < 0.1
    assert float(weights[1]) == pytest.approx(3, abs=0.7)


def test_a_linear_logit_is_the_weighted_sum() -> None:
    head, features = LinearFusion(3), torch.tensor([[[1.0, -2.0, 0.5]]])
    expected = (features * head.weights).sum(-1) + head.bias
    torch.testing.assert_close(head(features), expected)
    more = head(features + torch.tensor([0.0, 1.0, 0.0]))
    assert bool((more > head(features)).all())


def test_the_cosine_head_scales_the_cosine() -> None:
    head = CosineHead()
    found = head(torch.eye(3)[:, :2], torch.tensor([[0.6, 0.8]]))
    torch.testing.assert_close(found, head.scale.exp() * torch.tensor([[0.6, 0.8, 0.0]]))


def test_cosine_features_by_hand() -> None:
    vectors = torch.eye(3)[:, :2].contiguous()
    found = cosine_features(vectors, torch.tensor([[1.0, 0.0]]))
    assert found.shape == (1, 3, COSINE_FEATURES)
    assert found[0, :, 0].tolist() == [3, 0, 0]
    assert found[0, :, 1].tolist() == pytest.approx([2**0.5, -(0.5**0.5), -(0.5**0.5)], rel=1e-4)
    assert found[0, :, 2].tolist() == pytest.approx([0.5**0.5, 0.5**0.5, -(2**0.5)], rel=1e-4)


def test_cosine_features_of_one_turn_are_finite() -> None:
    vectors, queries, _ = inputs(turns=1)
    assert bool(torch.isfinite(cosine_features(vectors, queries)).all())


@torch.no_grad()
def test_the_context_head_scores_each_question_alone() -> None:
    torch.manual_seed(0)
    head = ContextFusion(DIM, WIDTH, SIGNALS + COSINE_FEATURES, layers=1, kernel=3, dropout=0.5).eval()
    vectors, queries, signals = inputs(turns=12)
    features, mixed = torch.cat([signals, cosine_features(vectors, queries)], -1), torch.randn(12, WIDTH)
    found = head(vectors, mixed, queries, features)
    assert found.shape == (3, 12)
    for q in range(3):
        torch.testing.assert_close(head(vectors, mixed, queries[q : q + 1], features[q : q + 1]), found[q : q + 1])


@torch.no_grad()
def test_the_context_head_sees_as_many_neighbours_as_its_kernels() -> None:
    torch.manual_seed(0)
    head = ContextFusion(DIM, WIDTH, SIGNALS, layers=2, kernel=3, dropout=0.0).eval()
    vectors, queries, signals = inputs(turns=20, questions=1)
    mixed, changed = torch.randn(20, WIDTH), signals.clone()
    changed[:, 9] += 1
    moved = (head(vectors, mixed, queries, signals) != head(vectors, mixed, queries, changed))[0]
    assert torch.nonzero(moved).flatten().tolist() == [7, 8, 9, 10, 11]

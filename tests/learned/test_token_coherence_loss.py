"""The token and coherence parts: values by hand, gradients, and the multiplier's way to its target."""

from __future__ import annotations

import math

import pytest
import torch

from foveate.learned.objective.coherence import contradiction_loss, nli_loss, support_loss
from foveate.learned.objective.token import DualMultiplier, excess, ratio_loss
from foveate.learned.selection import expected_tokens, relaxed_selection


def test_expected_tokens_by_hand() -> None:
    prob = torch.tensor([[[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]])
    cost = torch.tensor([[[0.0, 10.0, 4.0], [0.0, 20.0, 8.0]]])
    found = expected_tokens(prob, cost)
    assert found.tolist() == [5 + 5 + 6]
    assert ratio_loss(found, history=64).tolist() == [0.25]
    assert excess(found, target=8).tolist() == [1.0]
    assert excess(found, target=32).tolist() == [-0.5]


@pytest.mark.parametrize("call", [lambda x: ratio_loss(x, 0), lambda x: excess(x, 0)])
def test_a_length_of_zero_is_refused(call) -> None:
    with pytest.raises(ValueError, match="=0 tokens"):
        call(torch.ones(1))


def test_the_multiplier_rises_above_the_target_and_falls_to_zero_below() -> None:
    dual = DualMultiplier(rate=0.5)
    assert dual.ascend(mean=150, target=100) == 0.25
    assert dual.ascend(mean=75, target=100) == 0.125
    assert dual.ascend(mean=10, target=100) == 0
    with pytest.raises(ValueError, match="rate=0"):
        DualMultiplier(rate=0)


def test_dual_ascent_brings_the_mean_cost_to_its_target() -> None:
    """Values that would rather keep everything, a budget that never binds: the multiplier alone must find 40 tokens."""
    cost = torch.tensor([0.0, 10.0]).expand(1, 12, 2)
    logit = torch.zeros(1, 12, requires_grad=True)
    worth = torch.linspace(0.1, 1.2, 12)
    optimizer, dual = torch.optim.Adam([logit], lr=0.05), DualMultiplier(rate=0.05)

    def select() -> torch.Tensor:
        value = torch.stack([torch.zeros_like(logit), logit], -1)
        return relaxed_selection(value, cost, torch.tensor([1e6]), temperature=0.5).prob

    for _ in range(1500):
        prob = select()
        expected = expected_tokens(prob, cost)
        optimizer.zero_grad()
        (dual.value * excess(expected, 40).sum() - (prob[..., 1] * worth).sum() / 4).backward()
        optimizer.step()
        dual.ascend(float(expected.detach().mean()), 40)
    found = select().detach()
    assert float(expected_tokens(found, cost)) == pytest.approx(40, rel=0.05)
    kept = found[0, :, 1]
    assert float(kept[-3:].min()) > 0.9
    assert float(kept[:6].max()) < 0.1


def test_contradiction_is_the_share_of_what_is_kept() -> None:
    retained = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.5, 0.0, 0.5]])
    assert contradiction_loss(retained, torch.tensor([0.2, 0.6, 1.0])).tolist() == pytest.approx([0.4, 0.0, 0.6])


def test_support_is_the_share_that_is_dropped() -> None:
    retained = torch.tensor([[1.0, 0.0, 0.5], [1.0, 1.0, 1.0]])
    assert support_loss(retained, torch.tensor([0.2, 0.6, 0.2])).tolist() == pytest.approx([0.7, 0.0])
    assert support_loss(retained, torch.zeros(3)).tolist() == [0, 0]


def test_an_uncertain_head_costs_log_3() -> None:
    assert nli_loss(torch.zeros(2, 3), torch.tensor([0, 2])).tolist() == pytest.approx([math.log(3)] * 2)


@pytest.mark.parametrize("loss", [contradiction_loss, support_loss])
def test_gradcheck(loss) -> None:
    make = torch.Generator().manual_seed(4)
    logits = torch.randn(2, 5, dtype=torch.float64, generator=make, requires_grad=True)
    fixed = torch.rand(2, 5, dtype=torch.float64, generator=make)
    assert torch.autograd.gradcheck(lambda z: loss(torch.sigmoid(z), fixed), (logits,))

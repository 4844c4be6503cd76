"""The evidence losses: by hand, by gradcheck, and what must not change them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from foveate.learned.objective.task import binary_loss, listwise_loss, packing_loss
from foveate.learned.selection import packed_turns

Loss = Callable[[Tensor, Tensor], Tensor]

COST = torch.tensor([20.0, 35.0, 10.0, 28.0, 16.0, 40.0], dtype=torch.float64)
SHORT = torch.stack([COST, (COST / 3).ceil()], dim=-1)
RETENTION = torch.tensor([0.5, 0.4, 0.9, 0.3, 0.6, 0.2], dtype=torch.float64)


def through_packer(
    logits: Tensor, evidence: Tensor, cost: Tensor, budget: float, temperature: float, retention: Tensor | None = None
) -> Tensor:
    budgets = logits.new_full((len(logits),), budget)
    return packing_loss(packed_turns(logits, cost, budgets, temperature, retention).retained, evidence)


def packing(logits: Tensor, evidence: Tensor) -> Tensor:
    return through_packer(logits, evidence, COST, 60, 0.1)


def packing_short(logits: Tensor, evidence: Tensor) -> Tensor:
    return through_packer(logits, evidence, SHORT, 60, 0.1, RETENTION)


LOSSES: list[Loss] = [listwise_loss, binary_loss, packing, packing_short]


def example(seed: int = 0) -> tuple[Tensor, Tensor]:
    make = torch.Generator().manual_seed(seed)
    logits = torch.randn(3, 6, generator=make, dtype=torch.float64)
    evidence = torch.tensor([[1, 0, 0, 0, 0, 0], [0, 1, 0, 1, 0, 0], [1, 1, 0, 1, 0, 1]], dtype=torch.float64)
    return logits, evidence


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_exact(loss: Loss) -> None:
    logits, evidence = example()
    assert torch.autograd.gradcheck(lambda z: loss(z, evidence), logits.requires_grad_(), eps=1e-6, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_one_number_a_question_whatever_their_order(loss: Loss) -> None:
    logits, evidence = example()
    found = loss(logits, evidence)
    assert found.shape == (3,)
    order = [2, 0, 1]
    torch.testing.assert_close(loss(logits[order], evidence[order]), found[order])
    torch.testing.assert_close(torch.cat([loss(logits[q : q + 1], evidence[q : q + 1]) for q in range(3)]), found)


@pytest.mark.parametrize("loss", LOSSES)
def test_it_falls_as_the_logit_of_the_only_evidence_grows(loss: Loss) -> None:
    logits, evidence = example()
    steps: list[Tensor] = []
    for shift in (-2.0, -1.0, 0.0, 1.0, 2.0, 4.0):
        moved = logits.clone()
        moved[:, 0] += shift
        steps.append(loss(moved, evidence))
    assert bool((torch.stack(steps)[:, 0].diff() < 0).all())


@pytest.mark.parametrize("loss", LOSSES)
def test_it_grows_with_the_logit_of_another_turn(loss: Loss) -> None:
    logits, evidence = example()
    logits.requires_grad_()
    loss(logits, evidence).sum().backward()
    assert logits.grad is not None
    assert bool((logits.grad[evidence == 0] >= 0).all())
    assert float(logits.grad[evidence == 0].sum()) > 0


def test_padded_turns_change_nothing() -> None:
    logits, evidence = example()
    far, none = functional.pad(logits, (0, 4), value=-1e4), functional.pad(evidence, (0, 4))
    torch.testing.assert_close(listwise_loss(far, none), listwise_loss(logits, evidence))
    torch.testing.assert_close(binary_loss(far, none), binary_loss(logits, evidence))
    padded = through_packer(far, none, functional.pad(COST, (0, 4)), 60, 0.1)
    torch.testing.assert_close(padded, packing(logits, evidence))


def test_the_order_of_the_turns_changes_nothing() -> None:
    logits, evidence = example()
    order = [4, 2, 0, 5, 1, 3]
    torch.testing.assert_close(listwise_loss(logits[:, order], evidence[:, order]), listwise_loss(logits, evidence))
    moved = through_packer(logits[:, order], evidence[:, order], SHORT[order], 60, 0.1, RETENTION[order])
    torch.testing.assert_close(moved, packing_short(logits, evidence))


def test_listwise_by_hand() -> None:
    logits = torch.tensor([[math.log(1.0), math.log(3.0), math.log(4.0)]])
    found = listwise_loss(logits, torch.tensor([[0.0, 1.0, 1.0]]))
    assert found.item() == pytest.approx(-(math.log(3 / 8) + math.log(4 / 8)) / 2, rel=1e-6)


def test_binary_by_hand() -> None:
    logits = torch.full((2, 5), math.log(3.0))
    evidence = torch.tensor([[1.0, 0, 0, 0, 0], [1, 1, 1, 1, 0]])
    hit, miss = -math.log(3 / 4), -math.log(1 / 4)
    expected = [hit + 4 * miss, (4 * hit + miss) / 3]
    assert binary_loss(logits, evidence).tolist() == pytest.approx(expected, rel=1e-6)


def test_packing_by_hand_where_everything_fits() -> None:
    logits = torch.tensor([[0.0, math.log(3.0)]], dtype=torch.float64)
    found = through_packer(logits, torch.tensor([[1.0, 1.0]]).double(), torch.tensor([5.0, 5.0]), 100, 0.5)
    kept = [1 / (1 + math.exp(-v / 0.5)) for v in (0.5, 0.75)]
    assert found.item() == pytest.approx(-sum(map(math.log, kept)) / 2)


def test_packing_by_hand_where_two_equal_turns_share_the_budget() -> None:
    found = through_packer(torch.zeros(1, 2).double(), torch.tensor([[1.0, 0.0]]), torch.tensor([8.0, 8.0]), 4, 0.1)
    assert found.item() == pytest.approx(-math.log(0.25))


def test_the_compressed_form_counts_by_what_it_carries() -> None:
    logits, evidence = torch.zeros(1, 1).double(), torch.ones(1, 1).double()
    cost, retention = torch.tensor([[10.0, 4.0]]), torch.tensor([0.6], dtype=torch.float64)
    found = through_packer(logits, evidence, cost, 100, 0.5, retention)
    drop, full, short = 1.0, math.exp(0.5 / 0.5), math.exp(0.3 / 0.5)
    assert found.item() == pytest.approx(-math.log((full + 0.6 * short) / (drop + full + short)))


def test_a_compressed_form_helps_where_only_it_fits() -> None:
    logits = torch.tensor([[2.0] * 6], dtype=torch.float64)
    evidence = torch.tensor([[0, 1, 0, 0, 0, 0]], dtype=torch.float64)
    without = through_packer(logits, evidence, COST, 40, 0.05)
    assert float(through_packer(logits, evidence, SHORT, 40, 0.05, torch.full_like(RETENTION, 0.9))) < float(without)


def test_two_costs_need_the_retention() -> None:
    logits, evidence = example()
    with pytest.raises(ValueError, match="retention"):
        through_packer(logits, evidence, SHORT, 60, 0.1)


def test_hopeless_evidence_has_a_finite_loss_and_gradient() -> None:
    logits = torch.tensor([[-40.0, 5.0, 5.0, 5.0, 5.0, 5.0]], requires_grad=True)
    found = through_packer(logits, torch.tensor([[1.0, 0, 0, 0, 0, 0]]), COST.float(), 20, 0.01)
    found.sum().backward()
    assert math.isfinite(found.item())
    assert logits.grad is not None
    assert bool(torch.isfinite(logits.grad).all())

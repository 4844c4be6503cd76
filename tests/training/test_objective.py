"""Eq. 9 as one sum: which part a weight switches on, what each is summed over, and the multiplier of the budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_runs import tiny_config
from torch import Tensor

from foveate.config.schema import BudgetConfig, ObjectiveConfig, TrainConfig
from foveate.learned.objective.coherence import contradiction_loss, support_loss
from foveate.learned.objective.task import binary_loss, listwise_loss, packing_loss
from foveate.training.objective import Judged, Objective

TEXTS = [f"turn {k} tells of the {word}" for k, word in enumerate("lake dog car tree house cat".split())]
COST = torch.tensor([20.0, 35.0, 10.0, 28.0, 16.0, 40.0])
EVIDENCE = torch.tensor([[1.0, 0, 0, 0, 0, 0], [0, 1, 0, 1, 0, 0]])


@pytest.fixture
def config(shared: Path) -> TrainConfig:
    return tiny_config(shared, shared / "unused")


def objective(config: TrainConfig, budget: BudgetConfig | None = None, **weights: object) -> Objective:
    plain = ObjectiveConfig(budgets=(60,), temperature=0.1)
    return Objective(replace(config, objective=replace(plain, **weights), budget=budget or BudgetConfig()))


def logits() -> Tensor:
    return torch.randn(2, 6, generator=torch.Generator().manual_seed(0)).requires_grad_()


def judged() -> Judged:
    make = torch.Generator().manual_seed(1)
    return Judged(torch.tensor([1]), torch.rand(1, 6, generator=make), torch.rand(1, 6, generator=make))


def parts(made: Objective, z: Tensor, beside: dict[str, Tensor] | None = None) -> tuple[Tensor, dict[str, Tensor]]:
    return made.parts(z, EVIDENCE, COST, TEXTS, judged(), beside or {}, step=3)


def test_the_total_is_the_weighted_sum_of_the_parts(config: TrainConfig) -> None:
    made, z = objective(config, listwise=2.0, binary=0.3, packing=0.7, eta1=0.5, eta2=1.5, eta3=0.9), logits()
    total, found = parts(made, z, {"nli": torch.tensor(4.0), "importance": torch.tensor(8.0)})
    weights = {"listwise": 2.0, "binary": 0.3, "packing": 0.7, "contradiction": 0.5, "support": 0.5, "nli": 0.5}
    weights |= {"token": 1.5, "reconstruction": 0.9, "importance": 0.0}
    assert found.keys() == weights.keys() | {"spent"}
    torch.testing.assert_close(total, sum(weights[name] * found[name] for name in weights), check_dtype=False)


def test_each_part_is_its_pure_function_through_one_packing(config: TrainConfig) -> None:
    made, z = objective(config, eta1=1.0, eta2=1.0), logits()
    _, found = parts(made, z)
    packed = made.pack(z, COST, 60)
    kept = packed.retained
    torch.testing.assert_close(found["listwise"], listwise_loss(z, EVIDENCE).sum())
    torch.testing.assert_close(found["binary"], binary_loss(z, EVIDENCE).sum())
    torch.testing.assert_close(found["packing"], packing_loss(kept, EVIDENCE).sum())
    torch.testing.assert_close(found["contradiction"], contradiction_loss(kept[1:], judged().contradiction).sum())
    torch.testing.assert_close(found["support"], support_loss(kept[1:], judged().entailment).sum())
    torch.testing.assert_close(found["token"], packed.cost.sum() / COST.sum())
    torch.testing.assert_close(found["spent"], packed.cost.sum() / 60)


@pytest.mark.parametrize(
    ("weight", "names"),
    [
        ("eta1", {"contradiction", "support"}),
        ("eta2", {"token"}),
        ("eta3", {"reconstruction"}),
        ("packing", set[str]()),
    ],
)
def test_a_weight_of_zero_leaves_its_part_out(config: TrainConfig, weight: str, names: set[str]) -> None:
    on = {"packing": 0.5, "eta1": 0.5, "eta2": 0.5, "eta3": 0.5}
    off = on | {weight: 0.0}
    everything = parts(objective(config, None, **on), logits())[1].keys()
    assert everything - parts(objective(config, None, **off), logits())[1].keys() == names


def test_without_a_packed_part_nothing_is_packed(config: TrainConfig) -> None:
    _, found = parts(objective(config, packing=0.0), logits())
    assert found.keys() == {"listwise", "binary"}


@pytest.mark.parametrize("form", ["fixed", "paper", "prose", "price"])
def test_every_part_gives_a_finite_gradient(config: TrainConfig, form: str) -> None:
    made = objective(config, BudgetConfig(form=form), eta1=1.0, eta2=1.0, eta3=1.0)  # type: ignore[arg-type]
    made.dual.value = 0.5
    z = logits()
    parts(made, z)[0].backward()
    assert z.grad is not None
    assert bool(torch.isfinite(z.grad).all())
    assert float(z.grad.abs().sum()) > 0


@pytest.mark.parametrize("form", ["bleu", "precision", "self_critical"])
def test_each_form_of_reconstruction_is_drawn_by_seed_and_step(config: TrainConfig, form: str) -> None:
    made, z = objective(config, eta3=1.0, reconstruction=form), logits()
    once, again = (parts(made, z)[1]["reconstruction"] for _ in range(2))
    assert torch.equal(once, again)
    assert 0 < float(once.detach()) <= len(z)
    # A self-critical draw that equals the greedy rendering has no gradient, so that one step may be silent.
    drawn = [made.parts(z, EVIDENCE, COST, TEXTS, judged(), {}, step=step)[1]["reconstruction"] for step in range(20)]
    (gradient,) = torch.autograd.grad(torch.stack(drawn).sum(), z)
    assert float(gradient.abs().sum()) > 0


def test_the_token_penalty_is_silent_where_the_budget_binds(config: TrainConfig) -> None:
    made, z = objective(config), logits()
    (gradient,) = torch.autograd.grad(made.pack(z, COST, 60).cost.sum(), z)
    assert float(gradient.abs().max()) < 1e-3


@pytest.mark.parametrize("form", ["paper", "prose", "price"])
def test_dual_ascent_brings_the_spending_to_its_target(config: TrainConfig, form: str) -> None:
    budget = BudgetConfig(form=form, target=0.6, least=0.05, rate=0.1)  # type: ignore[arg-type]
    made, z = objective(config, budget), 3 * logits().detach()

    def spent() -> float:
        return float(made.pack(z, COST, 60).cost.mean()) / 60

    for _ in range(400):
        made.after_step({"spent": spent()})
    assert spent() == pytest.approx(0.6, abs=0.02)
    assert made.dual.value > 0


def test_a_fixed_budget_has_no_multiplier(config: TrainConfig) -> None:
    made = objective(config)
    made.after_step({"spent": 1.0})
    assert made.dual.value == 0


def test_the_multiplier_is_part_of_the_state(config: TrainConfig) -> None:
    made, other = (objective(config, BudgetConfig(form="price")) for _ in range(2))
    made.after_step({"spent": 1.0})
    other.load_state_dict(made.state_dict())
    assert other.dual.value == made.dual.value > 0

"""The relaxed packer: exact gradients, the budget kept, and the hard packer in the limit."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from foveate.core import Instance, Item, Option, Tier, pack
from foveate.learned.selection import Selection, relaxed_selection

T = 0.2


def problem(batch: int, turns: int, options: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Values and costs in float64; option 0 is DROP, a shorter form costs and is worth less."""
    make = torch.Generator().manual_seed(seed)
    value = torch.rand(batch, turns, options, generator=make, dtype=torch.float64)
    cost = torch.randint(1, 40, (batch, turns, options), generator=make).double()
    for table in (value, cost):
        table[..., 0] = 0
        table[..., 1:] = table[..., 1:].sort(dim=-1, descending=True).values
    return value, cost


def budgets(cost: Tensor, share: float) -> Tensor:
    return share * cost.max(-1).values.sum(-1)


def select(value: Tensor, cost: Tensor, budget: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    return relaxed_selection(value, cost, budget, T, mask)


@pytest.mark.parametrize("options", [2, 3])
@pytest.mark.parametrize(("share", "scarce"), [(0.3, True), (2.0, False)])
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_are_exact(options: int, share: float, scarce: bool, masked: bool) -> None:
    value, cost = problem(2, 5, options, seed=options)
    budget = budgets(cost, share)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2]) if masked else None
    if mask is not None:
        budget = share * (cost.max(-1).values * mask).sum(-1)
    assert bool((relaxed_selection(value, cost, budget, T, mask).price > 0).all()) is scarce
    leaves = [x.requires_grad_() for x in (value, cost, budget)]
    assert torch.autograd.gradcheck(lambda v, c, b: select(v, c, b, mask), leaves, eps=1e-6, atol=1e-5, rtol=1e-4)


def test_a_larger_budget_is_worth_its_price() -> None:
    value, cost = problem(1, 6, 3)
    budget = budgets(cost, 0.4).requires_grad_()
    found = relaxed_selection(value, cost, budget, T)
    entropy = -(found.prob * found.prob.clamp(min=1e-300).log()).sum()
    objective = (found.prob * value).sum() + T * entropy
    (gain,) = torch.autograd.grad(objective, budget)
    assert float(gain) == pytest.approx(float(found.price.detach()), rel=1e-6)


@given(
    seed=st.integers(0, 10_000),
    turns=st.integers(1, 30),
    options=st.integers(2, 3),
    share=st.floats(0.01, 1.5),
    temperature=st.sampled_from([1e-3, 0.05, 1.0]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
@settings(max_examples=60)
def test_probabilities_sum_to_one_and_the_budget_holds(
    seed: int, turns: int, options: int, share: float, temperature: float, dtype: torch.dtype
) -> None:
    value, cost = (x.to(dtype) for x in problem(2, turns, options, seed))
    budget = budgets(cost, share)
    found = relaxed_selection(value, cost, budget, temperature)
    torch.testing.assert_close(found.prob.sum(-1), torch.ones(2, turns, dtype=dtype))
    slack = 1e-8 if dtype == torch.float64 else 2e-3
    assert bool((found.cost <= budget * (1 + slack) + slack).all())
    assert bool((found.price >= 0).all())
    torch.testing.assert_close(found.cost, (found.prob * cost).sum((-1, -2)))


def test_where_tokens_are_scarce_all_are_spent() -> None:
    value, cost = problem(3, 12, 3)
    budget = budgets(cost, 0.2)
    found = relaxed_selection(value, cost, budget, T)
    assert bool((found.price > 0).all())
    torch.testing.assert_close(found.cost, budget)


def test_tokens_are_free_where_everything_fits() -> None:
    value, cost = problem(3, 12, 3)
    found = relaxed_selection(value, cost, budgets(cost, 1.0), T)
    assert found.price.tolist() == [0, 0, 0]
    torch.testing.assert_close(found.prob, torch.softmax(value / T, dim=-1))


def test_the_price_falls_as_the_budget_grows() -> None:
    value, cost = (x.expand(8, -1, -1) for x in problem(1, 12, 3))
    budget = budgets(cost, 1.0) * torch.linspace(0.05, 1.0, 8, dtype=torch.float64)
    price = relaxed_selection(value, cost, budget, T).price
    assert bool((price.diff() <= 0).all())
    assert price[0] > 0


def test_padding_changes_nothing_and_is_dropped() -> None:
    value, cost = problem(2, 6, 3)
    budget = budgets(cost, 0.3)
    plain = relaxed_selection(value, cost, budget, T)
    rubbish = torch.full((2, 4, 3), 7.0, dtype=torch.float64)
    mask = torch.tensor([[True] * 6 + [False] * 4] * 2)
    padded = relaxed_selection(torch.cat([value, rubbish], 1), torch.cat([cost, rubbish], 1), budget, T, mask)
    torch.testing.assert_close(padded.prob[:, :6], plain.prob)
    torch.testing.assert_close(padded.price, plain.price)
    torch.testing.assert_close(padded.cost, plain.cost)
    assert bool((padded.prob[:, 6:, 0] == 1).all())


@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_a_temperature_must_be_positive(temperature: float) -> None:
    value, cost = problem(1, 2, 2)
    with pytest.raises(ValueError, match="temperature"):
        relaxed_selection(value, cost, budgets(cost, 0.5), temperature)


def hard(value: Tensor, cost: Tensor, budget: int) -> float:
    """The greatest value any choice within the budget has, by the packer's exact program."""
    tiers = (Tier.FULL, Tier.COMPRESSED)
    items = tuple(
        Item(tuple(Option(tiers[k - 1], int(c[k]), float(v[k])) for k in range(1, len(v))), float(v[1]))
        for v, c in zip(value, cost, strict=True)
    )
    packing = pack(Instance(items), budget, "optimal")
    assert packing.gap == 0
    return packing.value


@pytest.mark.parametrize("options", [2, 3])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("share", [0.1, 0.4, 0.8])
def test_in_the_limit_it_is_the_hard_packer_up_to_one_turn(options: int, seed: int, share: float) -> None:
    temperature = 1e-5
    value, cost = problem(1, 25, options, seed)
    budget = torch.floor(budgets(cost, share))
    found = relaxed_selection(value, cost, budget, temperature, iterations=100)
    best, largest = hard(value[0], cost[0], int(budget)), float(value.max())
    relaxed = float((found.prob * value).sum())
    assert best - temperature * 25 * math.log(options) <= relaxed <= best + largest + 1e-6
    assert len(split(found)) <= 1
    assert whole_value(found, value, cost, int(budget)) >= best - largest - 1e-3


def split(found: Selection) -> list[int]:
    """Turns that do not take one option whole."""
    return torch.nonzero(found.prob[0].max(-1).values < 0.99).flatten().tolist()


def whole_value(found: Selection, value: Tensor, cost: Tensor, budget: int) -> float:
    """The value of the turns that take one option whole, which must fit the budget."""
    chosen = found.prob[0].argmax(-1, keepdim=True)
    kept = torch.ones(len(chosen), dtype=torch.bool)
    kept[split(found)] = False
    spent = float(cost[0].gather(-1, chosen)[kept].sum())
    assert spent <= budget + 1
    return float(value[0].gather(-1, chosen)[kept].sum())

"""The packer's entropy-regularised relaxation: the layer a scorer is trained through.

Serving solves a multiple-choice knapsack hard (`core.packer`): choose one option k a turn i, maximise sum v[i,k], keep
sum c[i,k] <= B. Training solves the same problem with an entropy bonus of temperature T over the options'
probabilities:

    p[i,k] = softmax_k((v[i,k] - nu * c[i,k]) / T),    nu >= 0 such that the expected cost is at most B,

where nu is the price of a token; it is 0 when everything fits. As T -> 0 the solution becomes the linear relaxation
of the
knapsack: every turn but at most one takes one option whole.

Shapes:  B batch, N turns, K options (option 0 is DROP: value 0, cost 0).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class Selection(NamedTuple):
    """The relaxed packing.

    Attributes:
        prob: (B, N, K) probability of each option; sums to 1 over K.
        price: (B,) value a further token of budget would buy (nu).
        cost: (B,) expected tokens.
    """

    prob: Tensor
    price: Tensor
    cost: Tensor


def relaxed_selection(
    value: Tensor, cost: Tensor, budget: Tensor, temperature: float, mask: Tensor | None = None, iterations: int = 60
) -> Selection:
    """Probabilities of the options under an expected-cost budget, differentiable in the values, costs and budget.

    The price is found by bisection without gradients, then refined by one Newton step that autograd sees: at the root
    that step changes nothing, and its derivative is the implicit one, d nu = (sum c dp + dc p - dB) / (sum Var_p(c) /
    T).

    Args:
        value: (B, N, K) value of each option; DROP's is 0.
        cost: (B, N, K) tokens of each option; DROP's is 0.
        budget: (B,) tokens allowed, positive.
        temperature: T > 0, in units of value.
        mask: (B, N) False on padding, which is always dropped.
        iterations: bisection steps; each halves the error of the price.
    """
    if temperature <= 0:
        raise ValueError(f"temperature={temperature}: give a positive one")
    if mask is not None:
        cost = cost * mask[..., None]
        value = value.masked_fill(~mask[..., None], -1e4)
        value = torch.cat([torch.zeros_like(value[..., :1]), value[..., 1:]], -1)
    with torch.no_grad():
        price = _bisect_price(value, cost, budget, temperature, iterations)
    price = _newton_step(value, cost, budget, temperature, price)
    prob = _probabilities(value, cost, price, temperature)
    return Selection(prob, price, expected_tokens(prob, cost))


class Packed(NamedTuple):
    """Turns of one conversation under the relaxed packer.

    Attributes:
        prob: (Q, N, K) probability of DROP, FULL and, with two costs, COMPRESSED.
        retained: (Q, N) expected share of the turn that stays readable.
        cost: (Q,) expected tokens.
    """

    prob: Tensor
    retained: Tensor
    cost: Tensor


def packed_turns(
    logits: Tensor,
    cost: Tensor,
    budget: Tensor,
    temperature: float,
    retention: Tensor | None = None,
    price: Tensor | None = None,
) -> Packed:
    """The packing of turns whose value is the probability that they are needed.

    Args:
        logits: (Q, N); the value of FULL is their sigmoid.
        cost: (N,) or (N, 2) tokens of FULL and, where given, COMPRESSED.
        budget: (Q,) tokens.
        temperature: of the relaxation.
        retention: (N,) share of the turn that COMPRESSED carries, by which its value falls; required with two costs.
        price: (Q,) value a token must be worth even where the budget has room: the multiplier of a mean cost.
    """
    value = torch.sigmoid(logits)
    columns = [torch.zeros_like(value), value]
    readable = torch.tensor([0.0, 1.0], dtype=value.dtype, device=value.device).expand(*value.shape, 2)
    cost = cost[:, None] if cost.ndim == 1 else cost
    if cost.shape[1] == 2:
        if retention is None:
            raise ValueError("two costs a turn need the retention of the compressed form")
        columns.append(value * retention)
        readable = torch.cat([readable, retention.expand_as(value)[..., None]], dim=-1)
    costs = functional.pad(cost.to(value.dtype), (1, 0)).expand(*value.shape, -1)
    net = torch.stack(columns, dim=-1)
    if price is not None:
        net = net - price[:, None, None] * costs
    found = relaxed_selection(net, costs, budget.to(value.dtype), temperature)
    return Packed(found.prob, (found.prob * readable).sum(-1), found.cost)


def expected_tokens(prob: Tensor, cost: Tensor) -> Tensor:
    """(B, N, K) probabilities of the options and their tokens -> (B,) expected tokens of the packed context."""
    return (prob * cost).sum((-1, -2))


def _probabilities(value: Tensor, cost: Tensor, price: Tensor, temperature: float) -> Tensor:
    return torch.softmax((value - price[:, None, None] * cost) / temperature, dim=-1)


def _expected_cost(value: Tensor, cost: Tensor, price: Tensor, temperature: float) -> Tensor:
    return expected_tokens(_probabilities(value, cost, price, temperature), cost)


def _bisect_price(value: Tensor, cost: Tensor, budget: Tensor, temperature: float, iterations: int) -> Tensor:
    low = torch.zeros_like(budget, dtype=value.dtype)
    fits = _expected_cost(value, cost, low, temperature) <= budget
    high = torch.full_like(low, float(temperature) / 16)
    for _ in range(64):
        over = _expected_cost(value, cost, high, temperature) > budget
        if not bool(over.any()):
            break
        high = torch.where(over, 2 * high, high)
    for _ in range(iterations):
        middle = (low + high) / 2
        over = _expected_cost(value, cost, middle, temperature) > budget
        low, high = torch.where(over, middle, low), torch.where(over, high, middle)
    return torch.where(fits, torch.zeros_like(high), high)


def _newton_step(value: Tensor, cost: Tensor, budget: Tensor, temperature: float, price: Tensor) -> Tensor:
    """`price` unchanged in value, with the implicit gradient attached; a price of 0 stays a constant."""
    prob = _probabilities(value, cost, price, temperature)
    mean = (prob * cost).sum(-1)
    excess = mean.sum(-1) - budget
    with torch.no_grad():
        variance = ((prob * cost**2).sum(-1) - mean**2).sum(-1) / temperature
        usable = (price > 0) & (variance > 1e-12)
    step = excess / torch.where(usable, variance, torch.ones_like(variance))
    return torch.where(usable, price + step - step.detach(), price)

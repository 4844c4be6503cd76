"""The dynamic budget while it is learned: how one multiplier becomes the tokens that each question may use.

The multiplier is found by dual ascent (`objective.token.DualMultiplier`) so that the mean cost meets its target:

- paper: B = B_max (1 - lambda h), Eq. 3 as printed, with lambda a share of B_max and h the entropy of softmax(z)
  divided by log n: uncertainty shrinks the budget;
- prose: B = B_max (1 - lambda (1 - h)): uncertainty grows it, as the paper's text says;
- price: B = B_max, and every token must be worth lambda: value is the expected share of the needed turns, as in
  `rules.budget.PriceBudget`, in units of temperature over the mean cost of a turn.

Source: Eq. 3 of the adaptive compression paper; price: Everett (1963).

Shapes:  Q questions, N turns.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from foveate.config.schema import BudgetForm


class Allowance(NamedTuple):
    """What a question may spend.

    Attributes:
        budget: (Q,) tokens.
        price: (Q,) value that a token must be worth.
    """

    budget: Tensor
    price: Tensor


def normalised_entropy(logits: Tensor) -> Tensor:
    """(Q, N) -> (Q,) entropy of softmax(z) over log N, in [0, 1]; 0 for a single turn."""
    if logits.shape[-1] < 2:
        return logits.new_zeros(logits.shape[0])
    log = torch.log_softmax(logits, dim=-1)
    return -(log.exp() * log).sum(-1) / math.log(logits.shape[-1])


def allowance(
    form: BudgetForm, multiplier: float, logits: Tensor, cost: Tensor, most: float, least: float, temperature: float
) -> Allowance:
    """The budget of each question under a multiplier.

    Args:
        form: see the module.
        multiplier: lambda, 0 or more.
        logits: (Q, N) scores.
        cost: (N,) tokens of the turns.
        most: B_max, tokens.
        least: B_min as a share of B_max.
        temperature: of the relaxed packer.
    """
    whole = logits.new_full((logits.shape[0],), float(most))
    match form:
        case "fixed":
            return Allowance(whole, 0 * whole)
        case "price":
            needed = torch.sigmoid(logits).sum(-1)
            return Allowance(whole, multiplier * temperature * needed / cost.mean().clamp(min=1.0))
        case "paper" | "prose":
            h = normalised_entropy(logits)
            taken = h if form == "paper" else 1 - h
            return Allowance(most * (1 - multiplier * taken).clamp(min=least, max=1.0), 0 * whole)

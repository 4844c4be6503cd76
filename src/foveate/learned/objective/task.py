"""The evidence part of L_task (Eq. 4): the turns that answer a question must rank first, be calibrated, and stay
readable.

Three terms, each a mean-able sum over questions:
- listwise: -log softmax(z) averaged over a question's evidence turns (ListNet with a uniform target, Cao et al. 2007);
- binary: cross-entropy of sigmoid(z), summed over turns, so that the score is a probability the packer can trade
  tokens for;
- packing: -log P(evidence turn stays readable) under the relaxed packer of `learned.selection`, FULL counting whole and
  COMPRESSED by the share of the turn it still carries.

Shapes:  Q questions, N turns of one conversation, K options (DROP, FULL[, COMPRESSED]).
Every question must have evidence; the caller leaves others out.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from foveate.learned.selection import relaxed_selection


def listwise_loss(logits: Tensor, evidence: Tensor) -> Tensor:
    """(Q, N) logits and 0/1 evidence -> (Q,) mean negative log-softmax of the evidence turns."""
    target = evidence / evidence.sum(-1, keepdim=True)
    return -(functional.log_softmax(logits, dim=-1) * target).sum(-1)


def binary_loss(logits: Tensor, evidence: Tensor) -> Tensor:
    """(Q, N) logits and 0/1 evidence -> (Q,) cross-entropy summed over turns, divided by the evidence count (3 at
    most).
    """
    total = functional.binary_cross_entropy_with_logits(logits, evidence, reduction="none").sum(-1)
    return total / evidence.sum(-1).clamp(max=3)


def packing_loss(
    logits: Tensor, evidence: Tensor, cost: Tensor, budget: float, temperature: float, retention: Tensor | None = None
) -> Tensor:
    """-log of the probability that evidence stays readable when the packer has `budget` tokens.

    Args:
        logits: (Q, N); the value of FULL is their sigmoid.
        evidence: (Q, N) 0/1.
        cost: (N,) or (N, 2) tokens of FULL and, where given, COMPRESSED.
        budget: tokens; the same for every question.
        temperature: of the relaxation.
        retention: (N,) share of the turn that COMPRESSED carries; required with two costs.

    Returns:
        (Q,) mean over a question's evidence turns.
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
    budgets = value.new_full((value.shape[0],), float(budget))
    prob = relaxed_selection(torch.stack(columns, dim=-1), costs, budgets, temperature).prob
    kept = (prob * readable).sum(-1).clamp(min=1e-6)
    return -(kept.log() * evidence).sum(-1) / evidence.sum(-1)

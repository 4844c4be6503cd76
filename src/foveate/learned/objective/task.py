"""The evidence part of L_task (Eq. 4): the turns that answer a question must rank first, be calibrated, and stay
readable.

Three terms, each a mean-able sum over questions:
- listwise: -log softmax(z) averaged over a question's evidence turns (ListNet with a uniform target, Cao et al. 2007);
- binary: cross-entropy of sigmoid(z), summed over turns, so that the score is a probability the packer can trade
  tokens for;
- packing: -log P(evidence turn stays readable) under the relaxed packer of `learned.selection`, FULL counting whole and
  COMPRESSED by the share of the turn it still carries.

Shapes:  Q questions, N turns of one conversation.
Every question must have evidence; the caller leaves others out.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


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


def packing_loss(retained: Tensor, evidence: Tensor) -> Tensor:
    """-log of the probability that evidence stays readable.

    Args:
        retained: (Q, N) expected readable share of each turn, of `learned.selection.packed_turns`.
        evidence: (Q, N) 0/1.

    Returns:
        (Q,) mean over a question's evidence turns.
    """
    return -(retained.clamp(min=1e-6).log() * evidence).sum(-1) / evidence.sum(-1)

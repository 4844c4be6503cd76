"""The reader part of L_task (Eq. 4): the negative log-likelihood of the gold answer under a frozen language model that
sees each turn as much as it is kept.

The gate g of a turn is the probability that the packer keeps it. Every query outside the turn adds log(g) to its
attention logit of each of the turn's tokens, so that their weight before normalisation is multiplied by g: at 1 the
model is the plain one, as g -> 0 the turn is absent as a key, and in between the loss is differentiable in g. Inside
the turn nothing is added: there a bias would only move attention from the turn's own words to those of others and leave
no key at all at g = 0, while every way from the turn to the answer already passes a query outside it.

Sources: Eq. 4 of the adaptive compression paper, which names the loss and does not define it; the definition is ours.

Shapes:  S spans (turns and date headers of one prompt), T tokens, A answer tokens, V vocabulary, H headers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

MIN_GATE = 1e-30
"""Gates below count as this: log is -69, which leaves no weight that float32 could show, and is far from overflow."""


def reader_loss(logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Mean negative log-likelihood of the answer, in nats a token.

    Args:
        logits: (..., A, V), each the prediction of the label at its place.
        labels: (..., A) token ids.
        mask: (..., A) 1 on the answer's tokens, 0 on padding; at least one 1 an answer.

    Returns:
        (...) one number an answer.
    """
    nll = functional.cross_entropy(logits.flatten(0, -2), labels.flatten(), reduction="none").view_as(labels)
    return (nll * mask).sum(-1) / mask.sum(-1)


def gate_bias(gates: Tensor, owner: Tensor) -> Tensor:
    """The additive attention mask of a prompt whose spans are gated: causal, plus log(gate) on the keys of a span for
    all queries outside it.

    Args:
        gates: (S,) in [0, 1].
        owner: (T,) span of each token, -1 for tokens that no gate touches.

    Returns:
        (1, 1, T, T) of the gates' dtype; its least finite number where a key is in the future.
    """
    keys = torch.cat([gates.clamp(min=MIN_GATE).log(), gates.new_zeros(1)])[owner]
    bias = torch.where(owner[:, None] != owner[None, :], keys[None, :], 0.0)
    future = torch.ones_like(bias, dtype=torch.bool).triu(1)
    return bias.masked_fill(future, torch.finfo(bias.dtype).min)[None, None]


def header_gates(gates: Tensor, members: Sequence[Sequence[int]]) -> Tensor:
    """(N,) gates of turns -> (H,) the probability that any turn under a date header is kept, turns independent.

    Args:
        gates: (N,) in [0, 1].
        members: for each header the rows of its turns.
    """
    if not members:
        return gates.new_zeros(0)
    return torch.stack([1 - (1 - gates[list(rows)]).prod() for rows in members])

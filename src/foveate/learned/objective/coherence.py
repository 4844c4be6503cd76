"""L_coh of Eq. 4: the packed context must not contradict the reply, nor lose what supports the answer.

Three terms:
- nli: cross-entropy of the NLI head on labelled pairs, so that P(contradiction) of Eq. 5 means something;
- contradiction: the expected share of retained turns that contradict the response;
- support: the expected share of the entailing turns that are dropped.

Sources: Eq. 4-5 of the adaptive compression paper, which names the loss and does not define it; the definition is ours.

Shapes:  Q questions, N turns; probabilities are in [0, 1].
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def nli_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """(B, 3) logits and (B,) class numbers -> (B,) cross-entropy."""
    return functional.cross_entropy(logits, labels, reduction="none")


def contradiction_loss(retained: Tensor, contradiction: Tensor) -> Tensor:
    """Expected share of the retained turns that contradict the response.

    Args:
        retained: (Q, N) probability that a turn stays readable.
        contradiction: (Q, N) or (N,) P(contradiction | turn, response).

    Returns:
        (Q,) in [0, 1]; 0 where nothing is retained.
    """
    kept = retained.sum(-1)
    return (retained * contradiction).sum(-1) / kept.clamp(min=1e-9)


def support_loss(retained: Tensor, entailment: Tensor) -> Tensor:
    """Expected share of the support for the answer that is dropped.

    Args:
        retained: (Q, N) probability that a turn stays readable.
        entailment: (Q, N) or (N,) P(entailment | turn, answer).

    Returns:
        (Q,) in [0, 1]; 0 where nothing supports the answer.
    """
    support = entailment.expand_as(retained).sum(-1)
    return ((1 - retained) * entailment).sum(-1) / support.clamp(min=1e-9)

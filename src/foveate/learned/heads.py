"""Fusion heads: from signals, cosines and mixed vectors to one logit a turn and question.

`LinearFusion` is Eq. 1 of the adaptive compression paper with learned non-negative weights. `ContextFusion` adds a
small network that sees how question and turn interact and what the neighbouring turns look like for this question: an
answer often stands one turn after the words that the question shares.

`CosineHead` is the encoder alone: what fine-tunes it for retrieval before a fusion head is trained on its vectors.

Shapes:  Q questions of one conversation, N turns, D width, S signals, C cosine features.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from foveate.learned.mixer import feed_forward

COSINE_FEATURES = 3


def cosine_features(vectors: Tensor, queries: Tensor) -> Tensor:
    """(N, dim) and (Q, dim) unit vectors -> (Q, N, 3): cosine x 3, cosine standardised, its 3-turn mean
    standardised.
    """
    cosine = queries @ vectors.T
    around = functional.pad(cosine, (1, 1))
    near = (around[:, :-2] + around[:, 1:-1] + around[:, 2:]) / 3
    return torch.stack([3 * cosine, _standardise(cosine), _standardise(near)], dim=-1)


def _standardise(x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt()


class LinearFusion(nn.Module):
    """z = sum_k w_k signal_k + b with w >= 0 (Eq. 1; signals that speak against a turn enter negated by the
    signal itself).
    """

    def __init__(self, signals: int) -> None:
        super().__init__()
        self.raw = nn.Parameter(torch.full((signals,), -2.0))
        self.bias = nn.Parameter(torch.tensor(-6.0))

    @property
    def weights(self) -> Tensor:
        """(S + C,) the non-negative weights."""
        return functional.softplus(self.raw)

    def forward(self, features: Tensor) -> Tensor:
        return features @ self.weights + self.bias


class CosineHead(nn.Module):
    """z = exp(s) x cosine, with a learned scale s (the inverse temperature of a dual encoder; Radford et al. 2021)."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(3.0))

    def forward(self, vectors: Tensor, queries: Tensor) -> Tensor:
        """(N, dim), (Q, dim) unit vectors -> (Q, N)."""
        return self.scale.exp() * (queries @ vectors.T)


class ContextBlock(nn.Module):
    """Depthwise convolution over neighbouring turns, then a feed-forward layer, residual. (Q, N, D) -> (Q, N, D)."""

    def __init__(self, width: int, kernel: int, dropout: float) -> None:
        super().__init__()
        self.near = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.feed = feed_forward(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.dropout(self.feed(self.near(x.transpose(1, 2)).transpose(1, 2)))


HOP_FEATURES = 3


class SecondHop(nn.Module):
    """What the turns chosen by a first pass say of the others: an answer's second part often resembles its first and
    not the question (multi-hop evidence). -> (Q, N, 3).

    The features of a turn are its first logit, its cosine with the mean of the other turns weighted by the first
    pass's attention, and its greatest cosine with the `count` best of the others, weighted by their probability.
    """

    def __init__(self, count: int = 8) -> None:
        super().__init__()
        self.count = count
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, vectors: Tensor, logits: Tensor) -> Tensor:
        """(N, dim) unit vectors and (Q, N) first logits -> (Q, N, HOP_FEATURES)."""
        attention = torch.softmax(self.scale * logits, dim=-1)
        mean = attention @ vectors
        others = (mean @ vectors.T - attention) / (mean.square().sum(-1, keepdim=True) + 1e-6).sqrt()
        best = functional.pad(logits, (0, self.count), value=-1e4).topk(self.count, dim=-1)
        cosine = functional.pad(vectors, (0, 0, 0, self.count))[best.indices] @ vectors.T
        another = best.indices[..., None] != torch.arange(logits.shape[-1], device=logits.device)
        nearest = (torch.sigmoid(best.values)[..., None] * cosine * another).amax(1)
        return torch.stack([logits / 4, _standardise(others), _standardise(nearest)], dim=-1)


class ContextFusion(nn.Module):
    """A question-gated linear path over the signals plus a contextual network. -> (Q, N) logits.

    With two hops a second such network corrects the first one's logits in the light of what they choose.
    """

    def __init__(
        self, dim: int, width: int, signals: int, layers: int, kernel: int, dropout: float, hops: int = 1
    ) -> None:
        super().__init__()
        self.hop = SecondHop() if hops > 1 else None
        self.again = ContextFusion(dim, width, signals + HOP_FEATURES, layers, kernel, dropout) if hops > 1 else None
        self.query = nn.Linear(dim, width)
        self.gate = nn.Linear(dim, signals)
        self.linear = nn.Linear(signals, 1)
        self.inputs = nn.Linear(signals + 3 * width, width)
        self.blocks = nn.ModuleList(ContextBlock(width, kernel, dropout) for _ in range(layers))
        self.output = nn.Linear(width, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor, mixed: Tensor, queries: Tensor, features: Tensor) -> Tensor:
        """(N, dim), (N, D), (Q, dim), (Q, N, S + C) -> (Q, N)."""
        first = self._pass(mixed, queries, features)
        if self.hop is None or self.again is None:
            return first
        return first + self.again(vectors, mixed, queries, torch.cat([features, self.hop(vectors, first)], dim=-1))

    def _pass(self, mixed: Tensor, queries: Tensor, features: Tensor) -> Tensor:
        count, n, _ = features.shape
        query = self.query(queries)[:, None]
        together = (mixed[None] * query, mixed.expand(count, n, -1), query.expand(count, n, -1))
        x = self.dropout(self.inputs(torch.cat([features, *together], dim=-1)))
        for block in self.blocks:
            x = block(x)
        gate = 1 + torch.tanh(self.gate(queries))
        return self.output(x)[..., 0] + self.linear(gate[:, None] * features)[..., 0]

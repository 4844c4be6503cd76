"""The mixer: each turn's vector in the light of its neighbours, whatever the question.

Local-window self-attention (as in Longformer, Beltagy et al. 2020, without its global tokens), so a turn depends on
`window x layers` turns on each side: a new turn changes that many earlier ones and no more.

Shapes:  N turns, D width, H heads, W = 2 * window + 1 positions of a window.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


def windows(x: Tensor, window: int) -> Tensor:
    """(N, ...) -> (N, W, ...): rows i - window .. i + window, zeros beyond the ends."""
    n = x.shape[0]
    padded = torch.cat([x.new_zeros(window, *x.shape[1:]), x, x.new_zeros(window, *x.shape[1:])])
    return torch.stack([padded[k : k + n] for k in range(2 * window + 1)], dim=1)


def feed_forward(width: int) -> nn.Sequential:
    """Norm, widen to twice the width, GELU, back: the pre-norm layer of mixer and head."""
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))


class LocalAttention(nn.Module):
    """Pre-norm attention over a window plus a feed-forward layer, both residual. (N, D) -> (N, D)."""

    def __init__(self, width: int, window: int, dropout: float, heads: int = 4) -> None:
        super().__init__()
        self.window, self.heads = window, heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.bias = nn.Parameter(torch.zeros(heads, 2 * window + 1))
        self.out = nn.Linear(width, width)
        self.feed = feed_forward(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.attend(self.norm(x)))
        return x + self.dropout(self.feed(x))

    def attend(self, x: Tensor) -> Tensor:
        """(N, D) -> (N, D) attention of each turn to the turns of its window that exist."""
        n, width = x.shape
        head = width // self.heads
        query, key, value = self.qkv(x).reshape(n, 3, self.heads, head).unbind(1)
        key, value = windows(key, self.window), windows(value, self.window)
        exists = windows(torch.ones_like(x[:, 0]), self.window) > 0
        logits = torch.einsum("nhd,nwhd->nhw", query, key) / head**0.5 + self.bias
        weights = torch.softmax(logits.masked_fill(~exists[:, None], -1e9), dim=-1)
        return self.out(torch.einsum("nhw,nwhd->nhd", weights, value).reshape(n, width))


class Mixer(nn.Module):
    """Turn vectors to mixed vectors. (N, dim) -> (N, D)."""

    def __init__(self, dim: int, width: int, window: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.reach = window * layers
        self.project = nn.Linear(dim, width)
        self.layers = nn.ModuleList(LocalAttention(width, window, dropout) for _ in range(layers))

    def forward(self, vectors: Tensor) -> Tensor:
        x = functional.layer_norm(self.project(vectors), (self.project.out_features,))
        for layer in self.layers:
            x = layer(x)
        return x

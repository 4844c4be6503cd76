"""The importance head: AFM's CRITICAL, RELEVANT and TRIVIAL (section 3.2) from a turn's vector.

It reads what the encoder makes of one turn (`signals.vectors.turn_text`), whatever the question, so a turn is
classified once. CRITICAL is decided by a threshold of its own, chosen on validation data and kept with the weights:
what a missed allergy costs and what a turn kept for nothing costs are not alike.

Shapes:  N turns, dim encoder width; classes in the order of `core.tiers.Importance`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from foveate.core.tiers import Importance
from foveate.learned.objective.importance import CLASSES
from foveate.rules.importance import decide

HIDDEN = 128


class ImportanceHead(nn.Module):
    """(N, dim) unit vectors -> (N, 3) logits.

    Attributes:
        threshold: a turn is CRITICAL from this probability on; saved with the weights.
    """

    threshold: Tensor

    def __init__(self, dim: int, hidden: int = HIDDEN, dropout: float = 0.2) -> None:
        super().__init__()
        self.hidden = nn.Linear(dim, hidden)
        self.output = nn.Linear(hidden, CLASSES)
        self.dropout = nn.Dropout(dropout)
        self.scale = float(dim) ** 0.5
        self.register_buffer("threshold", torch.tensor(0.5))

    def forward(self, vectors: Tensor) -> Tensor:
        hidden = nn.functional.gelu(self.hidden(self.dropout(vectors * self.scale)))
        return self.output(self.dropout(hidden))

    def probabilities(self, vectors: Tensor) -> Tensor:
        """(N, dim) -> (N, 3), rows that sum to 1."""
        return torch.softmax(self(vectors), dim=-1)

    def decide(self, vectors: Tensor) -> list[Importance]:
        """The class of each turn: CRITICAL from the threshold on, else the likelier of the other two."""
        return decide(self.probabilities(vectors).tolist(), float(self.threshold))

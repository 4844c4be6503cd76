"""The importance part: class-balanced cross-entropy over AFM's three classes (section 3.2).

    loss_i = w[y_i] * -log softmax(logits_i)[y_i],   w[c] = n / (3 n_c)

so that a class weighs the same however rare it is (CRITICAL turns are). The paper leaves the classifier to a prompt;
training a head for it is ours.

Shapes:  N turns; classes in the order of `core.tiers.Importance`.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

CLASSES = 3


def class_weights(labels: Tensor) -> Tensor:
    """(N,) class numbers -> (3,) weights n / (3 n_c); 0 for a class that does not occur."""
    counts = torch.bincount(labels, minlength=CLASSES).to(torch.float32)
    return torch.where(counts > 0, len(labels) / (CLASSES * counts.clamp(min=1)), torch.zeros_like(counts))


def importance_loss(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """(N, 3) logits, (N,) class numbers and (3,) class weights -> (N,) weighted cross-entropy."""
    return functional.cross_entropy(logits, labels, weight=weights, reduction="none")

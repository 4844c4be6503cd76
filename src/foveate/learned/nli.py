"""Networks for natural-language inference, and the temperature that makes their probabilities mean something.

`NliHead` reads two sentence vectors (a bi-encoder: premises are encoded once and kept); `CrossEncoder` reads both
sentences at once, which is far more accurate and costs a forward pass a pair.

Shapes:  B pairs, T tokens, dim encoder width; logits in the order of `NLI_LABELS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from foveate.config.schema import EncoderConfig
from foveate.core.errors import CheckpointError
from foveate.learned.encoder import load_encoder, merged, prepare

NLI_LABELS = ("entailment", "neutral", "contradiction")
COOLEST, HOTTEST = 0.05, 20.0
"""Range of a fitted temperature: on separable data the best one is 0."""


def pair_features(u: Tensor, v: Tensor) -> Tensor:
    """(..., dim) unit vectors of premise and hypothesis -> (..., 4 dim): [u; v; |u - v|; u * v], each scaled to entries
    about 1.

    Source: Conneau et al. (2017), InferSent.
    """
    root = u.shape[-1] ** 0.5
    u, v = u * root, v * root
    return torch.cat([u, v, (u - v).abs(), u * v], dim=-1)


class NliHead(nn.Module):
    """A small network on `pair_features` of frozen sentence vectors."""

    def __init__(self, dim: int, width: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(4 * dim, width),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(width, len(NLI_LABELS)),
        )

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        """(B, dim) premises, (B, dim) hypotheses, unit vectors -> (B, 3) logits."""
        return self.layers(pair_features(u, v))


class CrossEncoder(nn.Module):
    """A Hugging Face sequence classifier whose encoder's parameters are named `encoder.`, as the optimizer expects."""

    def __init__(self, classifier: PreTrainedModel) -> None:
        super().__init__()
        self.encoder = classifier.base_model
        self.classifier = classifier

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor | None = None) -> Tensor:
        """(B, T) token ids, mask and, where the encoder knows them, segment numbers -> (B, 3) logits."""
        segments = {} if types is None else {"token_type_ids": types}
        return self.classifier(input_ids=ids, attention_mask=mask, **segments).logits

    def finished(self) -> PreTrainedModel:
        """The classifier with LoRA adapters folded into its weights."""
        _set_encoder(self.classifier, merged(self.encoder))
        return self.classifier


def build_cross_encoder(config: EncoderConfig) -> CrossEncoder:
    """A fresh three-way classifier on a pretrained encoder, or on that of a finished run; what trains of the encoder is
    set by `config.tune`, its pooler and the classifier always train.
    """
    loaded = load_encoder(config.name)
    encoder = cast(PreTrainedModel, loaded.encoder) if loaded.config.model_type == "foveate" else loaded
    settings = deepcopy(encoder.config)
    settings.id2label = dict(enumerate(NLI_LABELS))
    settings.label2id = {name: number for number, name in enumerate(NLI_LABELS)}
    classifier = AutoModelForSequenceClassification.from_config(settings)
    prepared = prepare(encoder, config)
    for name, parameter in prepared.named_parameters():
        if "pooler" in name:
            parameter.requires_grad_(True)
    _set_encoder(classifier, prepared)
    return CrossEncoder(classifier)


def _set_encoder(classifier: PreTrainedModel, encoder: nn.Module) -> None:
    setattr(classifier, classifier.base_model_prefix, encoder)


def has_segments(model: PreTrainedModel) -> bool:
    """Whether its encoder numbers the two texts of a pair."""
    return int(model.config.to_dict().get("type_vocab_size") or 0) > 1


def class_order(id2label: Mapping[Any, str] | None, where: str) -> list[int]:
    """The classifier's class numbers of `NLI_LABELS`, read from its `id2label`; public heads differ in their order.

    Raises:
        CheckpointError: a label is absent, stands twice, or there are others.
    """
    names = {int(number): str(name).strip().lower() for number, name in (id2label or {}).items()}
    if sorted(names.values()) != sorted(NLI_LABELS):
        raise CheckpointError(
            f"{where} names its classes {list(names.values())}: id2label in its config.json must name "
            f"{', '.join(NLI_LABELS)} once each"
        )
    number_of = {name: number for number, name in names.items()}
    return [number_of[name] for name in NLI_LABELS]


def fit_temperature(logits: Tensor, labels: Tensor, steps: int = 60) -> float:
    """T that minimises the cross-entropy of softmax(logits / T), within `COOLEST`..`HOTTEST`.

    The loss is convex in 1 / T, so its derivative is bisected. Source: Guo et al. (2017), temperature scaling.

    Args:
        logits: (n, k).
        labels: (n,) class numbers.
        steps: halvings of the interval.
    """
    z = logits.double()
    gold = z.gather(1, labels[:, None])[:, 0]
    low, high = 1 / HOTTEST, 1 / COOLEST
    for _ in range(steps):
        middle = (low + high) / 2
        expected = (functional.softmax(middle * z, dim=1) * z).sum(1)
        if float((expected - gold).mean()) > 0:
            high = middle
        else:
            low = middle
    return 2 / (low + high)

"""The heads that train beside the scorer on vectors of a frozen encoder: NLI (Eq. 5) and importance (AFM section 3.2).

Each step of the evidence stage takes a batch of labelled pairs and one of labelled turns with it; after the run the
NLI head's temperature and the threshold of CRITICAL are fitted on validation data.

Shapes:  N turns, Q questions, R of them with a response, B pairs or turns of a batch, dim encoder width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from foveate.config.schema import TrainConfig
from foveate.core.schema import Conversation, Question
from foveate.core.tiers import Importance
from foveate.corpora.root import data_root
from foveate.learned.importance import ImportanceHead
from foveate.learned.model import FoveateModel, Outputs
from foveate.learned.nli import NLI_LABELS, NliHead, fit_temperature
from foveate.learned.objective.coherence import nli_loss
from foveate.learned.objective.importance import importance_loss
from foveate.training.examples import Encode, Example
from foveate.training.importance import SOURCES, ImportanceBatches, choose_threshold, labelled_turns
from foveate.training.nli import NliBatches, load_pairs, measured
from foveate.training.objective import Judged

Say = Callable[[str], None]


def response_text(question: Question) -> str | None:
    """What L_coh takes for the response to a question: the question with its gold answer; None where there is none.

    Gold answers are read in training alone.
    """
    answer = question.evidence.answer
    return None if answer is None else f"{question.query.text} {answer}"


@dataclass
class NliPart:
    """The NLI head's share of a step.

    Attributes:
        train, validation: labelled pairs as vectors.
        responses: per training conversation, the rows of its questions with a response and their (R, dim) vectors.
    """

    train: NliBatches
    validation: NliBatches
    responses: list[dict[int, Tensor]]

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Mean cross-entropy of the batch, a scalar."""
        return nli_loss(logits, labels).mean()

    @torch.no_grad()
    def judge(self, head: NliHead, temperature: float, vectors: Tensor, example: int, rows: Sequence[int]) -> Judged:
        """P(contradiction) and P(entailment) of (N, dim) turns and the responses to the questions in `rows`."""
        given = self.responses[example]
        known = [(place, given[row]) for place, row in enumerate(rows) if row in given]
        places = torch.tensor([place for place, _ in known], dtype=torch.long, device=vectors.device)
        if not known:
            return Judged(places, vectors.new_zeros(0, len(vectors)), vectors.new_zeros(0, len(vectors)))
        response = torch.stack([vector for _, vector in known]).to(vectors)
        shape = (len(known), *vectors.shape)
        training = head.training
        logits = head.eval()(vectors.expand(shape), response[:, None].expand(shape))
        head.train(training)
        prob = torch.softmax(logits / temperature, dim=-1)
        contradiction, entailment = (prob[..., NLI_LABELS.index(name)] for name in ("contradiction", "entailment"))
        return Judged(places, contradiction, entailment)


@dataclass
class ImportancePart:
    """The importance head's share of a step: labelled turns as vectors."""

    train: ImportanceBatches
    validation: ImportanceBatches

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Mean class-balanced cross-entropy of the batch, a scalar."""
        return importance_loss(logits, labels, self.train.weights.to(logits)).mean()


class Heads:
    """Batches, losses and calibration of the heads that a run trains beside the scorer.

    Args:
        nli, importance: their data; None where the run does not train that head.
    """

    def __init__(self, nli: NliPart | None = None, importance: ImportancePart | None = None) -> None:
        self.nli, self.importance = nli, importance

    def inputs(self, step: int, device: torch.device) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What the model is called with besides the questions, and the labels of it."""
        inputs: dict[str, Any] = {}
        labels: dict[str, Tensor] = {}
        if self.nli is not None:
            premise, hypothesis, gold = self.nli.train.batch(step)
            inputs["pairs"], labels["nli"] = (premise.to(device), hypothesis.to(device)), gold.to(device)
        if self.importance is not None:
            vectors, classes = self.importance.train.batch(step)
            inputs["turns"], labels["importance"] = vectors.to(device), classes.to(device)
        return inputs, labels

    def losses(self, outputs: Outputs, labels: dict[str, Tensor]) -> dict[str, Tensor]:
        """Mean loss of each head's batch."""
        found: dict[str, Tensor] = {}
        if self.nli is not None and outputs.nli is not None:
            found["nli"] = self.nli.loss(outputs.nli, labels["nli"])
        if self.importance is not None and outputs.importance is not None:
            found["importance"] = self.importance.loss(outputs.importance, labels["importance"])
        return found

    @torch.no_grad()
    def calibrate(self, model: FoveateModel) -> dict[str, float]:
        """Fits the NLI temperature and the threshold of CRITICAL on validation data; what the result says of them."""
        model.eval()
        found: dict[str, float] = {}
        if self.nli is not None and model.nli is not None:
            pairs = self.nli.validation
            inputs = (x.to(model.device) for x in pairs.inputs(range(len(pairs))))
            logits = model.nli(*inputs).cpu()
            model.config.nli_temperature = fit_temperature(logits, pairs.labels)
            metrics = measured(logits / model.config.nli_temperature, pairs.labels)
            found |= {f"nli_{name}": value for name, value in metrics.items()}
        if self.importance is not None and model.importance is not None:
            found |= _set_threshold(model.importance, self.importance.validation)
        return found


def _set_threshold(head: ImportanceHead, turns: ImportanceBatches) -> dict[str, float]:
    critical = head.probabilities(turns.vectors.to(head.threshold.device))[:, Importance.CRITICAL].cpu()
    counted = turns.ordinary if bool(turns.ordinary.any()) else torch.ones_like(turns.ordinary)
    threshold = choose_threshold(critical[counted], turns.labels[counted])
    head.threshold.fill_(threshold)
    gold = turns.labels == int(Importance.CRITICAL)
    said = critical >= threshold
    return {
        "critical_threshold": threshold,
        "critical_recall": float((said & gold).sum() / gold.sum().clamp(min=1)),
        "critical_precision": float((said & gold).sum() / said.sum().clamp(min=1)),
    }


def build_heads(
    config: TrainConfig, encode: Encode, train: Sequence[Example], chats: Sequence[Conversation], say: Say
) -> Heads:
    """The heads that the configuration asks for.

    Args:
        config: `nli` and `importance` say which.
        encode: texts to vectors of the frozen encoder, kept on disk.
        train: the conversations that the scorer trains on, for their responses.
        chats: generated conversations among them, from which importance is learned, too.
        say: prints a line of progress.

    Raises:
        DataError: a corpus is missing or changed.
    """
    return Heads(_nli(config, encode, train, say), _importance(config, encode, chats, say))


def _nli(config: TrainConfig, encode: Encode, train: Sequence[Example], say: Say) -> NliPart | None:
    if not config.with_nli:
        return None
    size, shares = config.nli.pairs, (config.nli.turn_share, config.nli.unrelated)
    pairs = [NliBatches(part, encode, size, config.seed, *shares, say) for part in load_pairs(config.nli)]
    return NliPart(pairs[0], pairs[1], [_responses(example, encode) for example in train])


def _responses(example: Example, encode: Encode) -> dict[int, Tensor]:
    found = ((row, response_text(question)) for row, question in enumerate(example.conversation.questions))
    texts = {row: text for row, text in found if text is not None}
    if not texts:
        return {}
    vectors = torch.from_numpy(encode(list(texts.values())))
    return dict(zip(texts, vectors, strict=True))


def _importance(config: TrainConfig, encode: Encode, chats: Sequence[Conversation], say: Say) -> ImportancePart | None:
    if not config.importance.weight:
        return None
    splits = labelled_turns(data_root(), chats, config.seed)
    say(f"importance: {len(splits.train)} labelled turns, {len(splits.validation)} to validate; encoding")
    size = config.importance.turns
    return ImportancePart(
        ImportanceBatches(splits.train, encode, size=size, seed=config.seed),
        ImportanceBatches(splits.validation, encode, size=size, seed=config.seed),
    )


def sources(config: TrainConfig) -> list[str]:
    """What the heads are trained on, for the model's `trained_on`."""
    pairs = [f"nli:{name}" for name in config.nli.sources] if config.with_nli else []
    return pairs + (list(SOURCES) if config.importance.weight else [])

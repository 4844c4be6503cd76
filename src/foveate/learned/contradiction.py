"""Trained forms of `rules.contradiction.ContradictionProb`: P(contradiction | u_i, r_{t-1}) of Eq. 5.

Both give the softmax of the logits divided by a temperature fitted on validation data. The class is found by its name,
never by its place. A text that was cut is flagged.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from foveate.core.errors import CheckpointError
from foveate.core.tokens import without_surrogates
from foveate.learned.encoder import MODEL_FOLDER, load_tokenizer, resolve
from foveate.learned.nli import NLI_LABELS, CrossEncoder, NliHead, class_order, has_segments
from foveate.learned.scorer import TorchVectorModel, load_model
from foveate.signals.batches import Ids, length_batches, pad
from foveate.signals.lexical import Floats

CONTRADICTION = NLI_LABELS.index("contradiction")
MOST_VECTORS = 1 << 16
"""Premise vectors kept by the bi-encoder; the oldest go first."""
BATCH_TOKENS = 4096
LONGEST = 256
"""Tokens of a pair that a cross-encoder reads where its configuration does not say."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a model says of pairs.

    Attributes:
        probabilities: (n, 3) in the order of `NLI_LABELS`.
        truncated: (n,) whether the pair was longer than the model reads.
    """

    probabilities: Floats
    truncated: np.ndarray


class NliModel(Protocol):
    """Judges pairs; also a `ContradictionProb`."""

    name: str

    def judge(self, premises: Sequence[str], hypotheses: Sequence[str]) -> Judged:
        """Premise i against hypothesis i."""
        ...

    def probabilities(self, premises: Sequence[str], hypothesis: str) -> list[float]: ...


class BiEncoderNli:
    """An NLI head over sentence vectors: each premise is encoded once, a further hypothesis costs one encoding.

    Args:
        vectors: the encoder; long texts are read in windows, so nothing is cut.
        head: see `NliHead`.
        temperature: divides the logits.
    """

    def __init__(self, vectors: TorchVectorModel, head: NliHead, temperature: float) -> None:
        self.name = vectors.name
        self._vectors, self._head, self._temperature = vectors, head.eval(), temperature
        self._kept: dict[str, Floats] = {}

    def judge(self, premises: Sequence[str], hypotheses: Sequence[str]) -> Judged:
        return Judged(
            self.of_vectors(self._encoded(premises), self._encoded(hypotheses)), np.zeros(len(premises), bool)
        )

    def probabilities(self, premises: Sequence[str], hypothesis: str) -> list[float]:
        """P(contradiction) of each premise with the hypothesis."""
        if not premises:
            return []
        v = np.broadcast_to(self._encoded([hypothesis]), (len(premises), self._vectors.dim))
        return self.of_vectors(self._encoded(premises), v)[:, CONTRADICTION].tolist()

    @torch.inference_mode()
    def of_vectors(self, u: Floats, v: Floats) -> Floats:
        """(n, dim), (n, dim) unit vectors -> (n, 3) probabilities, for callers that hold the vectors."""
        device = next(self._head.parameters()).device
        inputs = (torch.from_numpy(np.array(x, dtype=np.float32)).to(device) for x in (u, v))
        return torch.softmax(self._head(*inputs) / self._temperature, dim=-1).cpu().numpy()

    def _encoded(self, texts: Sequence[str]) -> Floats:
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        if new:
            self._kept.update(zip(new, self._vectors.encode(new), strict=True))
        found = (
            np.stack([self._kept[text] for text in texts]) if texts else np.zeros((0, self._vectors.dim), np.float32)
        )
        for text in list(self._kept)[: max(0, len(self._kept) - MOST_VECTORS)]:
            del self._kept[text]
        return found


class CrossEncoderNli:
    """A sequence classifier that reads premise and hypothesis together.

    Args:
        model: its configuration names the classes, and may hold `nli_temperature` and `nli_max_length`.
        tokenizer: the model's, as a `tokenizers.Tokenizer` of its own.
        name: for tables.

    Attributes:
        truncated: pairs that were cut since it was made.

    Raises:
        CheckpointError: the classes are not named.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: Any, name: str) -> None:
        self.name, self.truncated = name, 0
        settings = model.config.to_dict()
        self._order = class_order(settings.get("id2label"), name)
        self._temperature = float(settings.get("nli_temperature") or 1.0)
        longest = int(settings.get("nli_max_length") or LONGEST)
        longest = min(longest, int(settings.get("max_position_embeddings") or longest))
        self._tokens = PairTokens(tokenizer, longest, has_segments(model))
        self._model, self._device = CrossEncoder(model).eval(), model.device

    @torch.inference_mode()
    def judge(self, premises: Sequence[str], hypotheses: Sequence[str]) -> Judged:
        rows = self._tokens.rows(premises, hypotheses)
        logits = np.zeros((len(premises), len(NLI_LABELS)), dtype=np.float32)
        for group in length_batches([len(row) for row in rows.ids], BATCH_TOKENS):
            inputs = (torch.from_numpy(x).to(self._device) for x in rows.batch(group))
            logits[group] = self._model(*inputs)[:, self._order].float().cpu().numpy()
        self.truncated += int(rows.truncated.sum())
        scaled = torch.from_numpy(logits) / self._temperature
        return Judged(torch.softmax(scaled, dim=-1).numpy(), rows.truncated)

    def probabilities(self, premises: Sequence[str], hypothesis: str) -> list[float]:
        """P(contradiction) of each premise with the hypothesis."""
        if not premises:
            return []
        return self.judge(premises, [hypothesis] * len(premises)).probabilities[:, CONTRADICTION].tolist()


@dataclass(frozen=True, slots=True)
class PairRows:
    """Tokens of pairs.

    Attributes:
        ids: token ids, a row a pair.
        types: segment numbers; None where the encoder knows one segment only.
        truncated: (n,) whether a pair was cut.
    """

    ids: list[list[int]]
    types: list[list[int]] | None
    truncated: np.ndarray

    def batch(self, rows: Sequence[int]) -> tuple[Ids, ...]:
        """Padded ids, mask and, where there are any, segment numbers."""
        inputs = pad([self.ids[i] for i in rows])
        return inputs if self.types is None else (*inputs, pad([self.types[i] for i in rows])[0])


class PairTokens:
    """Pairs to tokens of one sequence; the longer text is cut until the pair fits.

    Args:
        tokenizer: a `tokenizers.Tokenizer` of its own: its truncation is set here.
        max_length: tokens a pair, special tokens included.
        segments: whether the encoder tells the two texts apart by segment numbers.
    """

    def __init__(self, tokenizer: Any, max_length: int, segments: bool) -> None:
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_length, strategy="longest_first")
        self._tokenizer, self._segments = tokenizer, segments

    def rows(self, premises: Sequence[str], hypotheses: Sequence[str]) -> PairRows:
        both = zip(map(without_surrogates, premises), map(without_surrogates, hypotheses), strict=True)
        found = self._tokenizer.encode_batch(list(both))
        types = [one.type_ids for one in found] if self._segments else None
        return PairRows([one.ids for one in found], types, np.array([bool(one.overflowing) for one in found], bool))


def load_nli(name: str) -> BiEncoderNli | CrossEncoderNli:
    """The NLI model of a run folder, a saved model folder or, for a cross-encoder, a hub id.

    Raises:
        CheckpointError: nothing loadable there, a scorer without an NLI head, or classes without names.
    """
    folder = Path(name)
    place = folder / MODEL_FOLDER if (folder / MODEL_FOLDER).is_dir() else folder
    if _model_type(place) == "foveate":
        model, tokenizer = load_model(folder)
        if model.nli is None:
            raise CheckpointError(f"{name} is a scorer without an NLI head: train one with stage: nli, nli.form: bi")
        vectors = TorchVectorModel(model, tokenizer, folder.name)
        return BiEncoderNli(vectors, model.nli, model.config.nli_temperature)
    found = resolve(name)
    try:
        classifier = AutoModelForSequenceClassification.from_pretrained(found, dtype=torch.float32)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise CheckpointError(
            f"{name} is no sequence classifier ({reason}): give a run with nli.form: cross"
        ) from error
    return CrossEncoderNli(classifier, load_tokenizer(name), folder.name)


def _model_type(folder: Path) -> str:
    path = folder / "config.json"
    try:
        return str(json.loads(path.read_text(encoding="utf-8")).get("model_type")) if path.is_file() else ""
    except ValueError as error:
        raise CheckpointError(f"{path} is not JSON ({error}): copy it again, or train again") from error

"""Conversations as arrays: vectors, signals, costs and evidence, computed once a run.

Shapes:  N turns, Q questions, S signals, dim encoder width.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from foveate.core.render import Piece, TranscriptRenderer
from foveate.core.schema import Conversation
from foveate.core.tokens import TokenCounter
from foveate.learned.model import FoveateModel
from foveate.signals.features import SignalIndex
from foveate.signals.lexical import Floats
from foveate.signals.vectors import turn_text
from foveate.training.sources import thin

Encode = Callable[[Sequence[str]], Floats]


@dataclass(slots=True)
class Example:
    """One conversation with its questions.

    Attributes:
        conversation: the source.
        turn_texts, query_texts: what the encoder reads.
        vectors: (N, dim) turn vectors; replaced when the encoder trains.
        queries: (Q, dim) question vectors.
        signals: (Q, N, S).
        evidence: (Q, N) 0/1.
        cost: (N,) tokens of each turn in full, as rendered.
    """

    conversation: Conversation
    turn_texts: list[str]
    query_texts: list[str]
    vectors: Floats
    queries: Floats
    signals: Floats
    evidence: Floats
    cost: Floats


def build_example(conversation: Conversation, encode: Encode, counter: TokenCounter) -> Example:
    """Everything about one conversation that does not change while the encoder is frozen."""
    turn_texts = [turn_text(turn) for turn in conversation.turns]
    query_texts = [question.query.text for question in conversation.questions]
    index = SignalIndex()
    index.append(conversation.turns)
    place = {turn.id: i for i, turn in enumerate(conversation.turns)}
    evidence = np.zeros((len(query_texts), len(turn_texts)), dtype=np.float32)
    for row, question in enumerate(conversation.questions):
        evidence[row, [place[i] for i in question.evidence.turn_ids]] = 1.0
    renderer = TranscriptRenderer()
    cost = [renderer.cost(Piece("turn", turn), counter) for turn in conversation.turns]
    return Example(
        conversation=conversation,
        turn_texts=turn_texts,
        query_texts=query_texts,
        vectors=encode(turn_texts),
        queries=encode(query_texts),
        signals=np.stack([index.signals(question.query) for question in conversation.questions]),
        evidence=evidence,
        cost=np.array(cost, dtype=np.float32),
    )


def beginning(example: Example, turns: int, most: int = 0) -> Example | None:
    """The conversation's first turns alone, with the questions whose evidence lies among them; None without any.

    Of more than `most` questions some are taken, evenly spaced; 0 takes all. Vectors are taken over, signals are made
    anew: they are standardised inside the history.
    """
    within = example.evidence[:, :turns].sum(1) == example.evidence.sum(1)
    rows = list(thin(np.flatnonzero(within & (example.evidence.sum(1) > 0)).tolist(), most))
    if not rows:
        return None
    whole = example.conversation
    cut = Conversation(whole.id, whole.turns[:turns], tuple(whole.questions[row] for row in rows))
    index = SignalIndex()
    index.append(cut.turns)
    return Example(
        conversation=cut,
        turn_texts=example.turn_texts[:turns],
        query_texts=[example.query_texts[row] for row in rows],
        vectors=example.vectors[:turns],
        queries=example.queries[rows],
        signals=np.stack([index.signals(question.query) for question in cut.questions]),
        evidence=example.evidence[rows, :turns],
        cost=example.cost[:turns],
    )


class VectorCache:
    """Vectors of texts on disk, keyed by the encoder's weights and the texts; a hit costs a read, a miss an encoding.

    Args:
        folder: where the files lie; made where missing.
        encoder_key: digest of weights, tokenizer and window length.
        encode: what to call on a miss.
    """

    def __init__(self, folder: Path, encoder_key: str, encode: Encode) -> None:
        self._folder, self._key, self._encode = folder, encoder_key, encode

    def __call__(self, texts: Sequence[str]) -> Floats:
        digest = hashlib.sha256("\x00".join((self._key, *texts)).encode()).hexdigest()[:32]
        path = self._folder / f"{digest}.npy"
        if path.is_file():
            return np.load(path)
        vectors = self._encode(texts)
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{digest[:8]}.tmp")
        with unfinished.open("wb") as file:
            np.save(file, vectors)
        unfinished.replace(path)
        return vectors


def encoder_key(model: FoveateModel, tokenizer: Any, max_length: int) -> str:
    """Digest of what determines a text's vector: encoder weights, tokenizer, window length."""
    digest = hashlib.sha256(f"{max_length}|{tokenizer.to_str()}".encode())
    for name, tensor in sorted(model.encoder.state_dict().items()):
        if tensor.is_floating_point():
            digest.update(name.encode() + tensor.cpu().numpy().tobytes())
    return digest.hexdigest()

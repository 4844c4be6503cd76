"""The reader part of the evidence stage: how well a frozen language model answers from what the packer keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from foveate.config.schema import ReaderConfig
from foveate.core.errors import ConfigError
from foveate.core.history import History
from foveate.learned.reader import FrozenReader, Prompt, candidates
from foveate.learned.selection import packed_turns
from foveate.training.examples import Example


class ReaderPart:
    """The reader's loss on the questions of a batch.

    Args:
        reader: the frozen model.
        config: how much of it is asked.
        temperature: of the relaxed packing whose probabilities are the gates.
        seed: of the questions drawn where a batch has more than are read.
    """

    def __init__(self, reader: FrozenReader, config: ReaderConfig, temperature: float, seed: int) -> None:
        self.reader, self.config = reader, config
        self._temperature, self._seed = temperature, seed
        self._histories: dict[str, History] = {}

    def __call__(self, example: Example, rows: Sequence[int], logits: Tensor, cost: Tensor, step: int) -> Tensor:
        """The negative log-likelihood summed over the questions that have an answer, a scalar.

        Where more of them have one than `config.questions`, so many are drawn and stand for the others.

        Args:
            example: the conversation.
            rows: the batch's questions.
            logits: (Q, N) of these questions, over all turns.
            cost: (N,) tokens of the turns.
            step: seeds the draw.
        """
        answered = [place for place, row in enumerate(rows) if gold_answer(example, row)]
        if not answered:
            return logits.sum() * 0.0
        rng = np.random.default_rng((self._seed, step, 2))
        drawn = sorted(rng.permutation(answered)[: self.config.questions].tolist())
        budgets = logits.new_full((len(drawn),), self.config.max_tokens / 2)
        gates = packed_turns(logits[drawn], cost, budgets, self._temperature).retained
        prompts = [self.prompt(example, rows[place], logits[place]) for place in drawn]
        read = [self.reader.nll(p, g[list(p.turns)]) for p, g in zip(prompts, gates, strict=True)]
        return torch.stack(read).sum() * (len(answered) / len(drawn))

    def prompt(self, example: Example, row: int, logits: Tensor) -> Prompt:
        """A question's prompt: its evidence, then the turns of highest score, while they fit in `config.max_tokens`."""
        history = self._history(example)
        score = logits.detach().cpu().numpy()
        order = np.lexsort((np.arange(len(score)), -score, -example.evidence[row])).tolist()
        chosen = candidates(history, order, self.config.max_tokens)
        return self.reader.prompt(history, chosen, example.query_texts[row], gold_answer(example, row))

    def _history(self, example: Example) -> History:
        name = example.conversation.id
        if name not in self._histories:
            self._histories[name] = self.reader.history(example.conversation.turns)
        return self._histories[name]


def gold_answer(example: Example, row: int) -> str:
    """The answer's text, "" where the corpus gives none."""
    return (example.conversation.questions[row].evidence.answer or "").strip()


def require_answers(examples: Sequence[Example], task: str) -> None:
    """Refuse training data on which the reader would have nothing to read.

    Raises:
        ConfigError: no question has an answer.
    """
    if not any(gold_answer(e, row) for e in examples for row in range(len(e.query_texts))):
        raise ConfigError(
            f"objective.task={task}: no training question has an answer; use data with answers, or evidence"
        )

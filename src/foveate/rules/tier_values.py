"""What a compressed form is worth, learned: P(it carries what is needed), from how much of the turn it retains.

A form counts as carrying what is needed where its words cover `KEPT_FROM` of the turn's own, the threshold from which
evidence recall counts a turn as kept (`metrics.retrieval`). Labelled evidence says which turns are looked at, so the
map is that of turns that matter. Nothing is learned for stubs: they carry no words of the turn, and no question can be
answered from one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from foveate.core.history import History
from foveate.core.messages import spoken
from foveate.core.protocols import Summarizer
from foveate.core.render import Renderer
from foveate.core.schema import Conversation, Turn
from foveate.core.tiers import TierValues
from foveate.core.tokens import TokenCounter
from foveate.metrics.retrieval import KEPT_FROM, coverage

COMPRESS_RATIO = 0.5
_ITERATIONS = 100

Pair = tuple[float, bool]


def evidence_forms(
    conversations: Sequence[Conversation],
    summarizer: Summarizer,
    counter: TokenCounter,
    renderer: Renderer,
    words: Callable[[Turn], str] = spoken,
    ratio: float = COMPRESS_RATIO,
) -> list[Pair]:
    """(retention, whether it carries what is needed) of the compressed form of every evidence turn that has one.

    Args:
        conversations: with labelled questions; a turn counts once for each question that needs it.
        summarizer, counter, renderer, ratio: as the packer will have them.
        words: what of a turn must be covered.
    """
    found: list[Pair] = []
    for conversation in conversations:
        history = History(counter, renderer)
        history.append(conversation.turns)
        made: dict[str, Pair | None] = {}
        for question in conversation.questions:
            for turn_id in question.evidence.turn_ids:
                if turn_id not in made:
                    made[turn_id] = _form(history, history.index(turn_id), summarizer, words, ratio)
                pair = made[turn_id]
                if pair is not None:
                    found.append(pair)
    return found


def _form(
    history: History, index: int, summarizer: Summarizer, words: Callable[[Turn], str], ratio: float
) -> Pair | None:
    members = history.groups.members[history.groups.group_of[index]]
    shortened = history.shorten(members, summarizer, ratio, "")
    if shortened is None:
        return None
    piece = shortened.pieces[members.index(index)]
    return shortened.retention, coverage(words(history.turns[index]), spoken(piece.turn)) >= KEPT_FROM


def fit_tier_values(pairs: Sequence[Pair]) -> TierValues:
    """The logistic map of retention to P(what is needed is carried), by damped Newton steps.

    Two pairs are added that hold by definition: nothing retained carries nothing, everything retained carries
    everything. Targets are Platt's (1999), (positives + 1) / (positives + 2) and 1 / (negatives + 2), so that the
    numbers stay finite where a threshold separates the pairs. A slope below 0 is fitted as 0: more retained is never
    worth less. Without any pair the prior stays.
    """
    if not pairs:
        return TierValues()
    retention = np.array([value for value, _ in pairs] + [0.0, 1.0])
    carried = np.array([hit for _, hit in pairs] + [False, True])
    positives = int(carried.sum())
    high, low = (positives + 1) / (positives + 2), 1 / (len(carried) - positives + 2)
    target = np.where(carried, high, low)
    slope, shift = _logistic(retention, target)
    if slope < 0.0:
        rate = float(target.mean())
        slope, shift = 0.0, float(np.log(rate / (1 - rate)))
    return TierValues(slope, shift)


def _logistic(x: np.ndarray, target: np.ndarray) -> tuple[float, float]:
    """Slope and shift of least cross-entropy with targets strictly between 0 and 1."""
    inputs = np.stack([x, np.ones_like(x)], axis=1)
    weights = np.zeros(2)
    for _ in range(_ITERATIONS):
        prob = 1 / (1 + np.exp(-(inputs @ weights)))
        curvature = (inputs * (prob * (1 - prob))[:, None]).T @ inputs + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, inputs.T @ (prob - target)).clip(-2, 2)
        weights = weights - step
        if np.abs(step).max() < 1e-10:
            break
    return float(weights[0]), float(weights[1])

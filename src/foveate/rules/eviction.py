"""The memory chapter's strategies: sliding windows by turns and by tokens, and FIFO, importance and hybrid eviction.

`evict` is the chapter's rule on its own: remove turns one at a time until the rest fits, never one of the newest
`min_retained`. The scorers say the same to the packer: the order in which the packer keeps turns is the reverse of
the order in which the chapter removes them. The packer goes on past the first turn that does not fit, so within one
budget it keeps what the chapter keeps and, where room is left, more. A turn here is one message; the chapter pairs
a question with its reply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from foveate.core.errors import ConfigError
from foveate.core.protocols import ImportanceClassifier, PolicyName, ScorerIndex, Scores
from foveate.core.schema import Query, Turn
from foveate.core.tokens import TokenCounter
from foveate.rules.importance import KeywordImportance

Strategy = Literal["fifo", "importance", "hybrid"]

MIN_RETAINED = 2
_OUT, _IN = 0.0, 0.5


def eviction_order(levels: Sequence[int], strategy: Strategy, min_retained: int = MIN_RETAINED) -> list[int]:
    """The turns that may be removed, first removed first; the newest `min_retained` are not among them.

    `fifo` removes the oldest; `importance` the oldest of the lowest level; `hybrid` weighs age and level, and as level
    decides it is in effect the same (EVALUATION section 9).
    """
    free = range(max(0, len(levels) - min_retained))
    match strategy:
        case "fifo":
            return list(free)
        case "importance" | "hybrid":
            return sorted(free, key=lambda i: (levels[i], i))


def evict(
    costs: Sequence[int], levels: Sequence[int], budget: int, strategy: Strategy, min_retained: int = MIN_RETAINED
) -> list[int]:
    """The turns kept, in order, once turns are removed until the cost is within `budget` or none may be removed."""
    total, removed = sum(costs), set[int]()
    for i in eviction_order(levels, strategy, min_retained):
        if total <= budget:
            break
        removed.add(i)
        total -= costs[i]
    return [i for i in range(len(costs)) if i not in removed]


@dataclass(frozen=True, slots=True)
class EvictionScorer:
    """One of the eviction strategies as scores for the policy `score`: the later removed, the higher.

    Attributes:
        strategy: which.
        importance: the level of each turn, for `importance` and `hybrid`.
        min_retained: newest turns that are removed last of all.
    """

    strategy: Strategy
    importance: ImportanceClassifier = field(default_factory=KeywordImportance)
    min_retained: int = MIN_RETAINED
    policy: PolicyName = "score"
    calibrated: bool = False

    @property
    def name(self) -> str:
        return f"evict-{self.strategy}"

    def open(self) -> ScorerIndex:
        return _EvictionIndex(self)


class _EvictionIndex:
    def __init__(self, scorer: EvictionScorer) -> None:
        self._scorer = scorer
        self._levels: list[int] = []

    def append(self, turns: Sequence[Turn]) -> None:
        leveled = self._scorer.strategy != "fifo"
        self._levels.extend(int(self._scorer.importance.classify(turn)) if leveled else 0 for turn in turns)

    def score(self, query: Query) -> Scores:
        n = len(self._levels)
        order = eviction_order(self._levels, self._scorer.strategy, self._scorer.min_retained)
        score = [(i + 1) / max(1, n) for i in range(n)]
        for position, i in enumerate(order):
            score[i] = (position + 1) / n
        return Scores(score=score, signals={"level": [float(level) for level in self._levels]})


@dataclass(frozen=True, slots=True)
class WindowScorer:
    """The newest `turns` turns, in FULL, and nothing else; policy `topk` keeps what scores above the threshold 0.45.

    Where the budget is smaller than the window, the newest of it are kept first.
    """

    turns: int = 20
    policy: PolicyName = "topk"
    calibrated: bool = False

    def __post_init__(self) -> None:
        if self.turns < 1:
            raise ConfigError(f"a window of {self.turns} turns holds nothing: give turns >= 1")

    @property
    def name(self) -> str:
        return f"window-{self.turns}"

    def open(self) -> ScorerIndex:
        return _WindowIndex(lambda costs: len(costs) - self.turns)


@dataclass(frozen=True, slots=True)
class TokenWindowScorer:
    """The newest turns whose own tokens add up to at most `tokens`, and always at least one (the chapter's window)."""

    counter: TokenCounter
    tokens: int = 500
    policy: PolicyName = "topk"
    calibrated: bool = False

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ConfigError(f"a window of {self.tokens} tokens holds nothing: give tokens >= 1")

    @property
    def name(self) -> str:
        return f"window-{self.tokens}-tokens"

    def open(self) -> ScorerIndex:
        return _WindowIndex(self._start, self.counter)

    def _start(self, costs: Sequence[int]) -> int:
        total, start = 0, len(costs)
        while start > 0 and (start == len(costs) or total + costs[start - 1] <= self.tokens):
            start -= 1
            total += costs[start]
        return start


class _WindowIndex:
    def __init__(self, start: Callable[[Sequence[int]], int], counter: TokenCounter | None = None) -> None:
        self._start = start
        self._counter = counter
        self._costs: list[int] = []

    def append(self, turns: Sequence[Turn]) -> None:
        counter = self._counter
        self._costs.extend(counter.count(turn.text) if counter is not None else 1 for turn in turns)

    def score(self, query: Query) -> Scores:
        n, start = len(self._costs), self._start(self._costs)
        return Scores(score=[_IN + (1 - _IN) * (i + 1) / n if i >= start else _OUT for i in range(n)])

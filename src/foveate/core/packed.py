"""What a build returns: the context, its statistics, and the trace of every decision, made only when it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from foveate.core.history import History, Shortened
from foveate.core.messages import spoken
from foveate.core.problem import Packing
from foveate.core.protocols import PolicyName, Scores
from foveate.core.render import Piece
from foveate.core.tiers import Importance, Thresholds, Tier


@dataclass(frozen=True, slots=True)
class PackStats:
    """Counts of one build. Tokens are as rendered; turns are counted one by one, also inside groups.

    Attributes:
        tokens: of the whole context, preamble, query and overhead included.
        budget: as given, the reserve included.
        turns: in the conversation.
        full, compressed, placeholder, dropped: turns by the tier they got.
        value: total value of the choice (see `core.packer`).
        upper_bound, gap: as in `Packing`; None where the policy proves nothing.
        policy, method: how it was chosen and found.
        history_tokens: all turns in FULL with all session headers.
        ratio: tokens of the kept history over `history_tokens`, r_t of Eq. 7; 1.0 for an empty history.
    """

    tokens: int
    budget: int
    turns: int
    full: int
    compressed: int
    placeholder: int
    dropped: int
    value: float
    upper_bound: float | None
    gap: float | None
    policy: PolicyName
    method: str
    history_tokens: int
    ratio: float


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """Why a turn got the tier it got.

    Attributes:
        text: the original words.
        tier: what it got; all turns of an atomic group get the same.
        intended: what its group's score called for before the budget was looked at.
        score, importance, signals: what the scorer said of the turn.
        tokens: per option ("full", "compressed", "placeholder"), the turn's tokens; a placeholder stands for the
            whole group. "compressed" is there only where such a form was made: the one it got, else the cheapest.
        cost: tokens paid for it, headers apart; a group's stub is paid by its first turn.
        reason: one phrase; for a shortened turn also the summarizer's note, where it left one.
        emitted: its words in the context, "" where it has none there.
    """

    turn_id: str
    role: str
    speaker: str | None
    date: str | None
    text: str
    tier: Tier
    intended: Tier
    score: float
    importance: Importance
    signals: dict[str, float]
    tokens: dict[str, int]
    cost: int
    reason: str
    emitted: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the trace of one build is made from. Later appends do not change it."""

    history: History
    members: Sequence[tuple[int, ...]]
    pinned: frozenset[int]
    critical: frozenset[int]
    scores: Scores
    item_score: Sequence[float]
    policy: PolicyName
    thresholds: Thresholds
    packing: Packing
    placed: Mapping[int, Piece]
    shortened: Callable[[tuple[int, ...]], Mapping[int, Shortened]]

    def traces(self) -> tuple[TurnTrace, ...]:
        """One trace a turn, in the order of the turns."""
        traces = [trace for item in range(len(self.members)) for trace in self._item(item)]
        return tuple(trace for _, trace in sorted(traces, key=lambda entry: entry[0]))

    def tiers(self) -> tuple[Tier, ...]:
        """The tier of each turn, which is its group's."""
        given = [Tier.DROP] * len(self.scores.score)
        for members, tier in zip(self.members, self.packing.choice, strict=True):
            for member in members:
                given[member] = tier
        return tuple(given)

    def _item(self, item: int) -> list[tuple[int, TurnTrace]]:
        members, tier = self.members[item], self.packing.choice[item]
        shortened = self._shortened(item)
        stub, _ = self.history.stub(members)
        full = sum(self.history.costs[member] for member in members)
        forms = {
            Tier.FULL: full,
            Tier.COMPRESSED: full - shortened.saved if shortened else full,
            Tier.PLACEHOLDER: stub,
        }
        reason = self._reason(item, tier, forms)
        if tier is Tier.COMPRESSED and shortened and shortened.note:
            reason += f"; {shortened.note}"
        traces: list[tuple[int, TurnTrace]] = []
        for place, member in enumerate(members):
            tokens = {"full": self.history.costs[member]}
            if shortened:
                tokens["compressed"] = shortened.costs[place]
            tokens["placeholder"] = stub
            cost = tokens[tier.name.lower()] if tier and (tier is not Tier.PLACEHOLDER or place == 0) else 0
            traces.append((member, self._turn(item, member, tokens, cost, reason)))
        return traces

    def _shortened(self, item: int) -> Shortened | None:
        """The compressed form the item got, else the cheapest that was made."""
        made = self.shortened(self.members[item])
        if self.packing.choice[item] is Tier.COMPRESSED:
            return made[self.packing.form.get(item, 0)]
        return max(made.values(), key=lambda form: form.saved, default=None)

    def _turn(self, item: int, member: int, tokens: dict[str, int], cost: int, reason: str) -> TurnTrace:
        turn = self.history.turns[member]
        importance = self.scores.importance
        return TurnTrace(
            turn_id=turn.id,
            role=turn.role,
            speaker=turn.speaker,
            date=turn.date,
            text=turn.text,
            tier=self.packing.choice[item],
            intended=self.thresholds.intended(self.item_score[item]),
            score=float(self.scores.score[member]),
            importance=Importance.RELEVANT if importance is None else Importance(importance[member]),
            signals={name: float(values[member]) for name, values in self.scores.signals.items()},
            tokens=tokens,
            cost=cost,
            reason=reason,
            emitted=spoken(self.placed[member].turn) if member in self.placed else "",
        )

    def _reason(self, item: int, tier: Tier, forms: dict[Tier, int]) -> str:
        score, full = self.item_score[item], forms[Tier.FULL]
        if item in self.pinned:
            return "pinned"
        match tier:
            case Tier.FULL if item in self.critical:
                return f"critical: kept for {full} tokens"
            case Tier.FULL:
                return f"kept: value {score:.2f} for {full} tokens"
            case Tier.COMPRESSED:
                return f"compressed: {forms[tier]} of {full} tokens, value {score:.2f} before shortening"
            case Tier.PLACEHOLDER:
                return f"stub: {forms[tier]} tokens stand for {full}"
            case Tier.DROP:
                return self._dropped(item, full, min(forms.values()))

    def _dropped(self, item: int, full: int, cheapest: int) -> str:
        packing, score = self.packing, self.item_score[item]
        if packing.restricted and item not in self.critical:
            return "dropped: not even the critical turns all fit"
        left = packing.left[item] if packing.left else -1
        if self.policy == "afm":
            return f"cheapest form does not fit: {cheapest} tokens, {left} left"
        if left >= 0:
            return f"skipped: {full} tokens, {left} left"
        if self.policy == "topk":
            return f"dropped: score {score:.2f} is not above {self.thresholds.mid:.2f}"
        if score <= 0.0:
            return "dropped: no value"
        if packing.price is not None and score < packing.price * full:
            return f"dropped: value {score:.2f} for {full} tokens, which cost {packing.price * full:.2f}"
        return f"dropped: value {score:.2f} for {full} tokens is worth less than what was kept"


@dataclass(frozen=True)
class Packed:
    """A packed context.

    Attributes:
        messages: chat messages in OpenAI form; a transcript is one user message.
        text: the same as one text.
        tokens: counted on what was rendered; never above `budget` less the reserve.
        budget: as given.
        stats: counts.
        trace: one entry a turn; made when it is first read.
    """

    messages: list[dict[str, Any]]
    text: str
    tokens: int
    budget: int
    stats: PackStats
    _snapshot: Snapshot | None = field(repr=False, compare=False)

    @cached_property
    def trace(self) -> tuple[TurnTrace, ...]:
        return self._snapshot.traces() if self._snapshot is not None else ()

    @cached_property
    def tiers(self) -> tuple[Tier, ...]:
        """The tier each turn was given, in the order of the turns: the trace's cheapest part."""
        return self._snapshot.tiers() if self._snapshot is not None else ()

    def __getstate__(self) -> dict[str, Any]:
        """For pickling: the trace itself instead of the conversation it is made from."""
        return {**self.__dict__, "trace": self.trace, "tiers": self.tiers, "_snapshot": None}

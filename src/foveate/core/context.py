"""Turns and scores to a packed context: the one place where text, tokens and the packer meet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from foveate.core.errors import BudgetError, ConfigError
from foveate.core.history import History, Shortened
from foveate.core.packed import Packed, PackStats, Snapshot, TurnTrace
from foveate.core.packer import Columns, Option, Packing, pack_columns
from foveate.core.problem import ascending
from foveate.core.protocols import PolicyName, Scores, Summarizer
from foveate.core.render import Piece, Rendered, Renderer, preamble_piece, query_piece
from foveate.core.schema import Query, Turn
from foveate.core.tiers import Importance, Thresholds, Tier, TierValues
from foveate.core.tokens import TokenCounter

__all__ = ["CANDIDATE_FACTOR", "ContextBuilder", "PackStats", "Packed", "TurnTrace"]

CANDIDATE_FACTOR = 4
"""`optimal` weighs shorter forms of the items of best score until their full texts cost this many times the budget."""

_MAX_ROUNDS = 24

Made = dict[tuple[int, ...], dict[int, Shortened | None]]
"""By the turns of an item and the place of the ratio: the compressed form, None where it would not be cheaper."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """What stands around the turns: the preamble before, the query after."""

    opening: list[Piece]
    closing: list[Piece]


@dataclass(frozen=True, slots=True)
class _Fit:
    """A packing that holds its budget as rendered."""

    packing: Packing
    placed: list[tuple[int, Piece]]
    rendered: Rendered
    tokens: int


class ContextBuilder:
    """Packs one growing conversation under a token budget.

    Args:
        counter: counts tokens; should be the tokenizer of the model that reads the context.
        renderer: how the context is written and priced.
        summarizer: makes the COMPRESSED form; None offers none.
        thresholds: from score to intended tier (policies `afm`, `topk` and the trace).
        stub_value: value of a PLACEHOLDER as a share of the turn's score, for `optimal`; 0 never spends tokens on
            stubs.
        tier_values: value of a COMPRESSED form as a share of the turn's score; None for the prior.
        compress_ratios: tokens a compressed text may take, as shares of its full tokens: one form is offered for each,
            and the policy chooses among them.
        query_aware_compression: whether the summarizer is told the query.

    A builder is not to be appended to and built from by two threads at once; builders that share a counter may be.
    """

    def __init__(
        self,
        *,
        counter: TokenCounter,
        renderer: Renderer,
        summarizer: Summarizer | None = None,
        thresholds: Thresholds | None = None,
        stub_value: float = 0.0,
        tier_values: TierValues | None = None,
        compress_ratios: Sequence[float] = (0.5,),
        query_aware_compression: bool = False,
    ) -> None:
        if not 0.0 <= stub_value <= 1.0:
            raise ConfigError(f"stub_value={stub_value}: give a share of the turn's score, 0 to 1")
        if not all(0.0 < ratio < 1.0 for ratio in compress_ratios):
            raise ConfigError(f"compress_ratios={tuple(compress_ratios)}: give shares of the tokens between 0 and 1")
        self._counter = counter
        self._renderer = renderer
        self._thresholds = thresholds or Thresholds()
        self._query_aware = query_aware_compression
        self._summarizer = summarizer
        self._stub_value = stub_value
        self._tier_values = tier_values or TierValues()
        self._ratios = tuple(sorted(set(compress_ratios)))
        self._history = History(counter, renderer)
        self._hint = ""
        self._made: Made = {}

    @property
    def turns(self) -> Sequence[Turn]:
        """The turns appended so far."""
        return self._history.turns

    @property
    def items(self) -> Sequence[tuple[int, ...]]:
        """The turns of each item of `problem`, ascending: atomic groups, most of them of one turn."""
        return self._history.groups.members

    def append(self, turns: Sequence[Turn]) -> None:
        """Adds turns at the end of the conversation; their tokens are counted here, once.

        Raises:
            ConversationError: a turn id is already taken.
        """
        self._history.append(turns)

    def expand(self, turn_id: str) -> Turn:
        """The original turn behind an id that a stub carries.

        Raises:
            ConversationError: there is no such turn.
        """
        return self._history.turns[self._history.index(turn_id)]

    def build(
        self,
        scores: Scores,
        budget: int,
        *,
        policy: PolicyName,
        query: Query | None = None,
        preamble: str | None = None,
        include_query: bool = False,
        reserve: int = 0,
        thresholds: Thresholds | None = None,
    ) -> Packed:
        """The context for a query: `tokens <= budget - reserve`, counted on what was rendered.

        Args:
            scores: one score a turn, in the order of the turns.
            budget: tokens the context and the reserve may take together.
            policy: how to choose (see `core.packer`).
            query: what is asked; rendered only with `include_query`, and then as the last message.
            preamble: system text that opens the context.
            include_query: whether the query is part of the context and its budget.
            reserve: tokens set aside, for instance for the reply.
            thresholds: for this build alone, where they depend on the length (Eq. 2); None for the builder's.

        Raises:
            BudgetError: preamble, query, pinned turns and fixed overhead do not fit; names the least budget.
            ConfigError: scores do not match the turns, or arguments contradict each other.
        """
        if reserve < 0:
            raise ConfigError(f"reserve={reserve}: give the tokens to set aside, at least 0")
        thresholds = thresholds or self._thresholds
        frame, forms, columns = self._problem(scores, policy, query, preamble, include_query, thresholds)
        allowed = budget - reserve
        if columns.fixed > allowed:
            raise BudgetError(budget, columns.fixed + reserve, _required_part(frame, len(columns.pinned), reserve))
        fit = self._fit(columns, policy, forms, frame, allowed, thresholds)
        snapshot = Snapshot(
            history=self._history,
            members=list(self._history.groups.members),
            pinned=columns.pinned,
            critical=frozenset(columns.critical),
            scores=scores,
            item_score=columns.score,
            policy=policy,
            thresholds=thresholds,
            packing=fit.packing,
            placed=dict(fit.placed),
            shortened=forms.made,
        )
        stats = self._stats(fit, budget, policy, frame)
        return Packed(fit.rendered.messages, fit.rendered.text, fit.tokens, budget, stats, snapshot)

    def problem(
        self, scores: Scores, *, query: Query | None = None, preamble: str | None = None, include_query: bool = False
    ) -> Columns:
        """What `build` would pack under any budget: what each item costs and is worth, and, in `fixed`, the tokens of
        the preamble, the query and the pinned turns.

        Raises:
            ConfigError: as `build`.
        """
        return self._problem(scores, "optimal", query, preamble, include_query, self._thresholds)[2]

    def _problem(
        self,
        scores: Scores,
        policy: PolicyName,
        query: Query | None,
        preamble: str | None,
        include_query: bool,
        thresholds: Thresholds,
    ) -> tuple[_Frame, _Forms, Columns]:
        self._check(scores, include_query and query is None)
        frame = _Frame(
            [preamble_piece(preamble)] if preamble is not None else [],
            [query_piece(query.text)] if include_query and query is not None else [],
        )
        item_score = self._item_scores(scores)
        forms = self._forms(item_score, query.text if self._query_aware and query is not None else "")
        pinned = [(item, Tier.FULL, 0) for item in sorted(self._history.pinned)]
        fixed = self._renderer.count(self._write(frame, self._place(pinned, forms)), self._counter)
        intended = [thresholds.intended(score) for score in item_score] if policy == "afm" else ()
        return frame, forms, self._columns(scores, item_score, intended, forms, fixed)

    def _fit(
        self,
        columns: Columns,
        policy: PolicyName,
        forms: _Forms,
        frame: _Frame,
        allowed: int,
        thresholds: Thresholds,
    ) -> _Fit:
        """Packs, writes and counts; where the whole counts more than its pieces, packs again with that much less.

        What is taken off doubles every round, so that the rounds end: with nothing left, only the required part is
        written.
        """
        working = allowed
        for turn in range(_MAX_ROUNDS):
            packing = pack_columns(columns, working, policy, thresholds=thresholds)
            kept = [(item, tier, packing.form.get(item, 0)) for item, tier in enumerate(packing.choice) if tier]
            placed = self._place(kept, forms)
            rendered = self._write(frame, placed)
            tokens = self._renderer.count(rendered, self._counter)
            if tokens <= allowed:
                return _Fit(packing, placed, rendered, tokens)
            working = max(columns.fixed, working - (tokens - allowed) * 2**turn)
        raise AssertionError(
            f"no context of at most {allowed} tokens after {_MAX_ROUNDS} rounds: "
            f"{self._renderer.name} and {self._counter.name} do not agree on what a piece costs"
        )

    def _check(self, scores: Scores, query_missing: bool) -> None:
        turns = len(self._history.turns)
        given = {"score": scores.score, "importance": scores.importance, **scores.signals}
        for name, values in given.items():
            if values is not None and len(values) != turns:
                raise ConfigError(f"{len(values)} values of {name} for {turns} turns: give one a turn")
        if query_missing:
            raise ConfigError("include_query=True without a query: give the query")

    def _item_scores(self, scores: Scores) -> list[float]:
        """A group's score is the highest of its turns: it is needed where any of them is."""
        score = [float(value) for value in scores.score]
        if not all(map(math.isfinite, score)):
            index = next(i for i, value in enumerate(score) if not math.isfinite(value))
            raise ConfigError(
                f"the score of turn {self._history.turns[index].id!r} is {score[index]}: give a finite number"
            )
        if not self._history.grouped:
            return score
        return [max(score[member] for member in members) for members in self._history.groups.members]

    def _forms(self, item_score: list[float], hint: str) -> _Forms:
        if hint != self._hint:
            self._hint, self._made = hint, {}
        return _Forms(
            self._history,
            self._summarizer,
            self._stub_value,
            self._tier_values,
            self._ratios,
            hint,
            item_score,
            self._made,
        )

    def _columns(
        self, scores: Scores, item_score: list[float], intended: Sequence[Tier], forms: _Forms, fixed: int
    ) -> Columns:
        history = self._history
        critical: set[int] = set()
        if scores.importance is not None:
            group_of = history.groups.group_of
            critical = {group_of[turn] for turn, level in enumerate(scores.importance) if level == Importance.CRITICAL}
        return Columns(
            cost=history.cost,
            value=[score if score > 0.0 else 0.0 for score in item_score],
            score=item_score,
            intended=intended,
            section=history.section,
            header=history.header,
            pinned=frozenset(history.pinned),
            critical=tuple(sorted(critical - history.pinned)),
            fixed=fixed,
            paid=frozenset(history.headers_of(history.pinned)),
            forms=forms,
            least=1,
        )

    def _place(self, kept: Iterable[tuple[int, Tier, int]], forms: _Forms) -> list[tuple[int, Piece]]:
        """The pieces of what is kept, in the order of the turns, each with the index of its turn."""
        history = self._history
        placed: list[tuple[int, Piece]] = []
        for item, tier, form in kept:
            members = history.groups.members[item]
            if tier is Tier.FULL:
                placed += [(member, history.pieces[member]) for member in members]
            elif tier is Tier.PLACEHOLDER:
                placed.append((members[0], history.stub(members)[1]))
            else:
                placed += zip(members, forms.made(members)[form].pieces, strict=True)
        placed.sort(key=itemgetter(0))
        return placed

    def _write(self, frame: _Frame, placed: list[tuple[int, Piece]]) -> Rendered:
        """Renders it all; a session's header opens its first kept turn, but never between a call and its results."""
        history = self._history
        pieces = list(frame.opening)
        written = {-1}
        call_ends = -1
        for index, piece in placed:
            section = history.section_of[index]
            if section not in written and index > call_ends:
                written.add(section)
                pieces.append(history.dates[section])
            pieces.append(piece)
            if piece.kind == "turn":
                call_ends = max(call_ends, history.last_result.get(index, -1))
        return self._renderer.render(pieces + frame.closing)

    def _stats(self, fit: _Fit, budget: int, policy: PolicyName, frame: _Frame) -> PackStats:
        history = self._history
        turns = dict.fromkeys(Tier, 0)
        for members, tier in zip(history.groups.members, fit.packing.choice, strict=True):
            turns[tier] += len(members)
        overhead = self._renderer.count(self._write(frame, []), self._counter)
        return PackStats(
            tokens=fit.tokens,
            budget=budget,
            turns=len(history.turns),
            full=turns[Tier.FULL],
            compressed=turns[Tier.COMPRESSED],
            placeholder=turns[Tier.PLACEHOLDER],
            dropped=turns[Tier.DROP],
            value=fit.packing.value,
            upper_bound=fit.packing.upper_bound,
            gap=fit.packing.gap,
            policy=policy,
            method=fit.packing.method,
            history_tokens=history.total,
            ratio=max(0, fit.tokens - overhead) / history.total if history.total else 1.0,
        )


class _Forms:
    """The shorter forms of one build's items; what was made is kept for later builds with the same hint."""

    def __init__(
        self,
        history: History,
        summarizer: Summarizer | None,
        stub_value: float,
        tier_values: TierValues,
        ratios: tuple[float, ...],
        hint: str,
        score: list[float],
        made: Made,
    ) -> None:
        self._history = history
        self._summarizer = summarizer
        self._stub_value = stub_value
        self._tier_values = tier_values
        self._ratios = ratios
        self._hint = hint
        self._score = score
        self._made = made

    def made(self, members: tuple[int, ...]) -> dict[int, Shortened]:
        """The compressed forms of these turns that were made and are cheaper, by the place of their ratio."""
        found = self._made.get(members, {})
        return {form: shortened for form, shortened in found.items() if shortened is not None}

    def compressed(self, item: int, left: int | None = None) -> Sequence[Option]:
        """See `core.problem.Forms`: with `left`, made only where a form of the target size would fit."""
        if self._summarizer is None:
            return ()
        cost, members = self._history.cost[item], self._history.groups.members[item]
        made, options = self._made.setdefault(members, {}), list[Option]()
        for form, ratio in enumerate(self._ratios):
            if left is not None and ratio * cost > left:
                break
            if form not in made:
                made[form] = self._history.shorten(members, self._summarizer, ratio, self._hint)
            if (shortened := made[form]) is not None:
                value = max(0.0, self._score[item]) * self._tier_values.carried(shortened.retention)
                options.append(Option(Tier.COMPRESSED, cost - shortened.saved, value, form))
        return ascending(options) if len(options) > 1 else options

    def stub(self, item: int) -> Option | None:
        """The stub where it is cheaper than the full text, headers apart."""
        members = self._history.groups.members[item]
        cost, _ = self._history.stub(members)
        if cost >= sum(self._history.costs[member] for member in members):
            return None
        return Option(Tier.PLACEHOLDER, cost, self._stub_value * max(0.0, self._score[item]))

    def worthwhile(self, budget: int) -> Sequence[int]:
        """The items of best score whose full texts together cost `CANDIDATE_FACTOR` budgets, ascending."""
        if self._summarizer is None and self._stub_value == 0.0:
            return ()
        tokens, items = 0, list[int]()
        for item in sorted(range(len(self._score)), key=self._score.__getitem__, reverse=True):
            if tokens > CANDIDATE_FACTOR * budget or self._score[item] <= 0.0:
                break
            tokens += self._history.cost[item]
            items.append(item)
        return sorted(items)


def _required_part(frame: _Frame, pinned: int, reserve: int) -> str:
    parts = ["the preamble"] * len(frame.opening) + ["the query"] * len(frame.closing)
    parts += [f"{pinned} pinned turn{'s' * (pinned > 1)}"] if pinned else []
    parts += [f"a reserve of {reserve} tokens"] if reserve else []
    return " and ".join(parts) or "an empty context"

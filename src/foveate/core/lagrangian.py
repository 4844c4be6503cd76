"""Large packing problems: the Lagrangian dual, and the exact program on the few decisions it leaves open.

With a price nu on every token the problem falls apart into rows and blocks,

    L(nu) = nu * tokens + sum over blocks of max(0, sum over rows of max(0, max_k v_k - nu * c_k) - nu * header),

and every L(nu) is an upper bound on the value of any choice. L is convex and piecewise linear; its minimum is found on
prefix sums over the rows' options, sorted by value per token. At the minimising price each decision has a loss, what
reversing it costs in L: reversing one whose loss exceeds the distance from L to a known choice cannot pay. The
decisions of least loss form the core (Balas and Zemel 1980; Pisinger 1997), which is solved exactly with the tokens
that the others leave. A choice outside the core reverses at least one decision left out of it, so L less the least
loss left out bounds it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from foveate.core.knapsack import Block, Choice, Picks, Row, solve_exactly

CORE_CELLS = 100_000
"""Largest options x tokens of the core."""

_DUAL_ROUNDS = 100
_TOLERANCE = 1e-12
_NUDGE = 1 + 2.0**-40
_FREE = float("-inf")


@dataclass(frozen=True, slots=True)
class Bounded:
    """A choice, its value, an upper bound on the value of any choice, and the price of a token; values in units."""

    picks: list[Picks]
    value: float
    upper_bound: float
    price: float


def solve_bounded(blocks: Sequence[Block], tokens: int) -> Bounded:
    """A choice within `tokens` and a bound that says how good it is; `upper_bound == value` proves it optimal."""
    price, states = _priced(blocks, tokens)
    bound = price * tokens + sum(state.gain for state in states)
    relaxed = _fill(
        blocks, [state.picks if state.open else [None] * len(state.picks) for state in states], tokens, price
    )
    known = _value(relaxed)
    core = _core(blocks, states, tokens, bound - known + _TOLERANCE * bound)
    picks = _settle(blocks, states, core, tokens)
    upper_bound = min(bound, max(_value(picks), known, bound - core.least_loss_out))
    picks = max(relaxed, _fill(blocks, picks, tokens, price), key=_value)
    return Bounded(picks, _value(picks), max(upper_bound, _value(picks)), price)


def _priced(blocks: Sequence[Block], tokens: int) -> tuple[float, list[_State]]:
    """The minimising price and the blocks at it, nudged up where rounding at a breakpoint let too much in."""
    price = minimise_dual(blocks, tokens)
    while True:
        states = [_state(block, price) for block in blocks]
        if sum(_spent(block, state.picks) for block, state in zip(blocks, states, strict=True) if state.open) <= tokens:
            return price, states
        price *= _NUDGE


def minimise_dual(blocks: Sequence[Block], tokens: int) -> float:
    """The price that minimises L.

    The bracket's ends are lines of known value and slope, so the point where they cross is a lower bound of the
    minimum: the search ends where L meets it. Every other round halves the bracket, which bounds the number of
    rounds.
    """
    free = [row for block in blocks if not block.header for row in block.rows]
    pools = [_Pool(0, free)] + [_Pool(block.header, block.rows) for block in blocks if block.header]
    low, high = 0.0, max(pool.prohibitive for pool in pools)
    at_low, spent_low = _dual(pools, low, tokens)
    if spent_low <= tokens:
        return low
    at_high, spent_high = _dual(pools, high, tokens)
    for turn in range(_DUAL_ROUNDS):
        fall, rise = spent_low - tokens, tokens - spent_high
        crossing = (at_low - at_high + fall * low + rise * high) / (fall + rise)
        floor = at_low - fall * (crossing - low)
        price = crossing if turn % 2 == 0 else (low + high) / 2
        if not low < price < high:
            break
        value, spent = _dual(pools, price, tokens)
        if spent > tokens:
            low, at_low, spent_low = price, value, spent
        else:
            high, at_high, spent_high = price, value, spent
        if min(at_low, at_high) <= floor * (1 + _TOLERANCE):
            break
    return high


class _Pool:
    """Rows behind one header: their options as steps of falling value per token, with prefix sums.

    From the price `prohibitive` on nothing is bought that costs a token.
    """

    __slots__ = ("costs", "header", "keys", "prohibitive", "values")

    def __init__(self, header: int, rows: Iterable[Row]) -> None:
        steps = [step for _, options in rows for step in _steps(options)]
        steps.sort()
        self.header = header
        self.keys = [step[0] for step in steps]
        self.costs = [0, *accumulate([step[1] for step in steps])]
        self.values = [0.0, *accumulate([step[2] for step in steps])]
        free = bisect_right(self.keys, _FREE)
        self.prohibitive = max(
            -self.keys[free] if free < len(steps) else 0.0, self.values[free] / header if header else 0.0
        )


def _steps(options: tuple[Choice, ...]) -> list[tuple[float, int, float]]:
    """The upper concave hull of a row's options as (negated value per token, cost, value) of each step."""
    if len(options) == 1:
        cost, value, *_ = options[0]
        return [(-value / cost if cost else _FREE, cost, value)]
    hull: list[tuple[int, float]] = [(0, 0.0)]
    for cost, value, *_ in options:
        while len(hull) > 1 and _below(hull[-2], hull[-1], (cost, value)):
            hull.pop()
        hull.append((cost, value))
    return [((v0 - v1) / (c1 - c0) if c1 > c0 else _FREE, c1 - c0, v1 - v0) for (c0, v0), (c1, v1) in pairwise(hull)]


def _below(before: tuple[int, float], point: tuple[int, float], after: tuple[int, float]) -> bool:
    return (point[1] - before[1]) * (after[0] - before[0]) <= (after[1] - before[1]) * (point[0] - before[0])


def _dual(pools: Sequence[_Pool], price: float, tokens: int) -> tuple[float, int]:
    """L at a price, and the tokens its choice spends: the fewest, where there are several."""
    total, spent = price * tokens, 0
    for pool in pools:
        steps = bisect_left(pool.keys, -price)
        gain = pool.values[steps] - price * (pool.costs[steps] + pool.header)
        if gain > 0.0:
            total += gain
            spent += pool.costs[steps] + pool.header
    return total, spent


@dataclass(frozen=True, slots=True)
class _State:
    """A block at the final price.

    Attributes:
        gain: its part of L.
        open: whether its rows are kept at all.
        loss: of reversing that; infinite where there is no header, since nothing is decided.
        picks: the best option of each row, given that the block is open.
        losses: of each row, the loss of its second best option.
    """

    gain: float
    open: bool
    loss: float
    picks: Picks
    losses: list[float]


def _state(block: Block, price: float) -> _State:
    picks: Picks = []
    losses: list[float] = []
    net = -price * block.header
    for _, options in block.rows:
        best, second, pick = 0.0, float("-inf"), None
        for option in options:
            reduced = option[1] - price * option[0]
            if reduced > best:
                best, second, pick = reduced, best, option
            elif reduced > second:
                second = reduced
        net += best
        picks.append(pick)
        losses.append(best - second)
    if not block.header:
        return _State(net, True, float("inf"), picks, losses)
    return _State(max(0.0, net), net > 0.0, abs(net), picks, losses)


@dataclass(slots=True)
class _Core:
    """The decisions left open: rows by (block, place), blocks whose header is open, and the least loss left out."""

    rows: set[tuple[int, int]] = field(default_factory=set)
    blocks: set[int] = field(default_factory=set)
    least_loss_out: float = float("inf")


def _core(blocks: Sequence[Block], states: Sequence[_State], tokens: int, cut: float) -> _Core:
    """The decisions of least loss, up to `cut` and as many as `CORE_CELLS` allows.

    Opening or closing a block is one decision; it brings in the rows that are kept where the block is open.
    """
    core = _Core(least_loss_out=cut)
    left = tokens - sum(_spent(block, state.picks) for block, state in zip(blocks, states, strict=True) if state.open)
    options = 0
    for loss, b, place in sorted(_decisions(states, cut)):
        rows = blocks[b].rows
        places = [p for p, pick in enumerate(states[b].picks) if pick is not None] if place < 0 else [place]
        places = [p for p in places if (b, p) not in core.rows]
        options += sum(len(rows[p][1]) for p in places)
        if states[b].open:
            left += sum(pick[0] for p in places if (pick := states[b].picks[p]) is not None)
            left += blocks[b].header if place < 0 else 0
        if options * left > CORE_CELLS:
            core.least_loss_out = loss
            break
        core.rows.update((b, p) for p in places)
        if place < 0:
            core.blocks.add(b)
    return core


def _decisions(states: Sequence[_State], cut: float) -> Iterable[tuple[float, int, int]]:
    """(loss, block, place) of each decision with a loss up to `cut`; place -1 opens or closes the block."""
    for b, state in enumerate(states):
        if state.loss <= cut:
            yield state.loss, b, -1
        aside = 0.0 if state.open else state.loss
        if aside <= cut:
            for place, loss in enumerate(state.losses):
                if loss + aside <= cut:
                    yield loss + aside, b, place


def _settle(blocks: Sequence[Block], states: Sequence[_State], core: _Core, tokens: int) -> list[Picks]:
    """Fixes what is clear and solves the core exactly with the tokens left."""
    picks: list[Picks] = []
    inner: list[Block] = []
    places: list[tuple[int, list[int]]] = []
    for b, (block, state) in enumerate(zip(blocks, states, strict=True)):
        is_open = state.open and b not in core.blocks
        picks.append([p if is_open and (b, k) not in core.rows else None for k, p in enumerate(state.picks)])
        tokens -= _spent(block, picks[b]) if is_open else 0
        wanted = [k for k in range(len(block.rows)) if (b, k) in core.rows] if is_open or b in core.blocks else []
        if wanted:
            inner.append(Block(block.header if b in core.blocks else 0, [block.rows[k] for k in wanted]))
            places.append((b, wanted))
    for (b, wanted), chosen in zip(places, solve_exactly(inner, tokens), strict=True):
        for k, pick in zip(wanted, chosen, strict=True):
            picks[b][k] = pick
    return picks


def _fill(blocks: Sequence[Block], picks: list[Picks], tokens: int, price: float) -> list[Picks]:
    """Spends what is left on the options nearest to their price that still fit."""
    filled = [list(row) for row in picks]
    opened = [not block.header or any(row) for block, row in zip(blocks, filled, strict=True)]
    left = tokens - sum(
        _spent(block, row) for block, row, is_open in zip(blocks, filled, opened, strict=True) if is_open
    )
    for _, b, place, option in sorted(_fitting(blocks, filled, opened, left, price), key=lambda entry: entry[:3]):
        held = filled[b][place]
        gain = option[1] - (held[1] if held else 0.0)
        need = option[0] - (held[0] if held else 0) + (0 if opened[b] else blocks[b].header)
        if gain > 0.0 and need <= left:
            filled[b][place] = option
            opened[b] = True
            left -= need
    return filled


def _fitting(
    blocks: Sequence[Block], picks: list[Picks], opened: list[bool], left: int, price: float
) -> Iterable[tuple[float, int, int, Choice]]:
    for b, block in enumerate(blocks):
        room = left if opened[b] else left - block.header
        for place, (_, options) in enumerate(block.rows):
            held = picks[b][place]
            if options[0][0] > room and held is None:
                continue
            for option in options:
                if option is not held and option[0] - (held[0] if held else 0) <= room:
                    yield price * option[0] - option[1], b, place, option


def _spent(block: Block, picks: Picks) -> int:
    return block.header + sum(pick[0] for pick in picks if pick is not None)


def _value(picks: list[Picks]) -> float:
    return sum(pick[1] for row in picks for pick in row if pick is not None)

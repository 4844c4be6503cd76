"""The policy `optimal`: the multiple-choice knapsack with set-up costs, solved exactly or with a proven gap.

Small problems go through a dynamic program over (item, tokens); larger ones through the Lagrangian dual and the same
program on what the dual leaves open (`core.lagrangian`).

Legend, here and there: a row is one item with its options as (cost, value, tier, form), cheapest first, none dominated,
relative to what the critical guard already keeps; a block is the rows of one section with the header cost they share,
0 where there is none to pay. Values are whole multiples of one power of two, the unit, so that their sums are exact
in any order and ties are true ties.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import ge

from foveate.core.policies import Guard, Walk
from foveate.core.problem import Columns, Option
from foveate.core.tiers import Tier

_VALUE_BITS = 52
_NOTHING = float("-inf")

Choice = tuple[int, float, Tier, int]
Row = tuple[int, tuple[Choice, ...]]
Picks = list[Choice | None]


@dataclass(frozen=True, slots=True)
class Block:
    """The rows of one section, chronological, and the header cost that the first of them to be kept pays."""

    header: int
    rows: list[Row]


def blocks_of(columns: Columns, guarded: Guard, walk: Walk, budget: int) -> tuple[list[Block], float]:
    """The problem that is left after the guard: blocks in order of their first item, and the unit of their values."""
    several = set(columns.forms.worthwhile(budget))
    listed = {
        item: _options(columns, item) for item in guarded.candidates if item in several and item not in guarded.base
    }
    listed.update({item: _upgrade(columns, item, option) for item, option in guarded.base.items()})
    largest = max(columns.value, default=0.0)
    largest = max([largest, *(value for options in listed.values() for _, value, *_ in options)])
    exponent = min(_VALUE_BITS - math.frexp(largest)[1] - len(columns.cost).bit_length(), 1000)
    scale = math.ldexp(1.0, exponent)
    rows = list(_rows(columns, guarded, listed, walk.left, scale))
    return _by_section(columns, rows, walk.paid), math.ldexp(1.0, -exponent)


def solve_exactly(blocks: Sequence[Block], capacity: int) -> list[Picks]:
    """The choice of greatest value within `capacity` tokens: a pick for each row of each block.

    Among equal values it prefers fewer tokens, then a better form of the earlier item. Time and memory grow with
    options x capacity. The program runs from the last row to the first, so that walking back meets the earliest row
    first.
    """
    best = [0.0] * (capacity + 1)
    trail: list[tuple[bytes, list[bytes]]] = []
    for block in reversed(blocks):
        inner = ([_NOTHING] * block.header + best)[: capacity + 1] if block.header else best
        marks: list[bytes] = []
        for _, options in reversed(block.rows):
            inner, mark = _add_row(inner, options)
            marks.append(mark)
        opened = bytes(map(ge, inner, best)) if block.header else b""
        best = list(map(max, inner, best)) if block.header else inner
        trail.append((opened, marks))
    return _walk_back(blocks, trail, best.index(best[capacity]))


def _add_row(inner: list[float], options: tuple[Choice, ...]) -> tuple[list[float], bytes]:
    """One row: the best value at each number of tokens, and which option (counted from 1, 0 for none) attains it."""
    size = len(inner)
    new, mark = inner, bytes(size)
    for number, (cost, value, *_) in enumerate(options, start=1):
        if cost >= size:
            break
        lifted = [base + value for base in inner[: size - cost]]
        upper = new[cost:]
        won = bytes(map(ge, lifted, upper))
        mark = mark[:cost] + (
            won if number == 1 else bytes([number if w else m for w, m in zip(won, mark[cost:], strict=True)])
        )
        new = new[:cost] + [a if a > b else b for a, b in zip(lifted, upper, strict=True)]
    return new, mark


def _walk_back(blocks: Sequence[Block], trail: list[tuple[bytes, list[bytes]]], tokens: int) -> list[Picks]:
    picks: list[Picks] = []
    for block, (opened, marks) in zip(blocks, reversed(trail), strict=True):
        chosen: Picks = [None] * len(block.rows)
        if not block.header or opened[tokens]:
            for place, ((_, options), mark) in enumerate(zip(block.rows, reversed(marks), strict=True)):
                if number := mark[tokens]:
                    chosen[place] = options[number - 1]
                    tokens -= options[number - 1][0]
            tokens -= block.header
        picks.append(chosen)
    return picks


def _rows(columns: Columns, guarded: Guard, listed: dict[int, list[Choice]], left: int, scale: float) -> Iterable[Row]:
    """Rows in chronological order. A positive value stays positive, however small beside the largest."""
    cost, value, floor = columns.cost, columns.value, math.floor
    quantum = 1.0 if guarded.restricted else 0.0
    for item in guarded.candidates:
        if item in listed:
            scaled = [
                (c, max(1.0 if v else quantum, floor(v * scale + 0.5)), tier, k) for c, v, tier, k in listed[item]
            ]
            if options := _undominated(scaled, left):
                yield item, options
        elif cost[item] <= left and (value[item] > 0.0 or quantum):
            yield item, ((cost[item], floor(value[item] * scale + 0.5) or 1.0, Tier.FULL, 0),)


def _options(columns: Columns, item: int) -> list[Choice]:
    stub = columns.forms.stub(item)
    options = [Option(Tier.FULL, columns.cost[item], columns.value[item]), *columns.forms.compressed(item)]
    options += [] if stub is None else [stub]
    return [(option.cost, option.value, option.tier, option.form) for option in options]


def _upgrade(columns: Columns, item: int, base: Option) -> list[Choice]:
    """The better text forms, priced by what they cost and are worth beyond what the guard keeps."""
    if base.tier is Tier.FULL:
        return []
    options = [Option(Tier.FULL, columns.cost[item], columns.value[item]), *columns.forms.compressed(item)]
    return [(o.cost - base.cost, max(0.0, o.value - base.value), o.tier, o.form) for o in options if o.cost > base.cost]


def _undominated(options: list[Choice], left: int) -> tuple[Choice, ...]:
    kept: list[Choice] = []
    for option in sorted(options, key=lambda option: (option[0], -option[1], -option[2], option[3])):
        if option[0] <= left and option[1] > (kept[-1][1] if kept else 0.0):
            kept.append(option)
    return tuple(kept)


def _by_section(columns: Columns, rows: Iterable[Row], paid: set[int]) -> list[Block]:
    section, header = columns.section, columns.header
    blocks: list[Block] = []
    unpaid: dict[int, Block] = {}
    free = Block(0, [])
    for row in rows:
        key = section[row[0]]
        if key < 0 or key in paid or not header[key]:
            if not blocks or blocks[-1] is not free:
                free = Block(0, [])
                blocks.append(free)
            free.rows.append(row)
        else:
            if key not in unpaid:
                unpaid[key] = Block(header[key], [])
                blocks.append(unpaid[key])
            unpaid[key].rows.append(row)
    return blocks

"""`pack`: one packing problem, five policies.

| policy | order | source |
|---|---|---|
| `afm` | oldest first, from the intended tier down | AFM section 3.3 |
| `topk` | descending score above the thresholds | adaptive compression, Algorithm 1 |
| `newest` | newest first | what chat applications do |
| `score` | descending score | EVALUATION section 11 |
| `optimal` | maximal total value | multiple-choice knapsack with set-up costs |
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from foveate.core.errors import BudgetError
from foveate.core.knapsack import Block, Picks, blocks_of, solve_exactly
from foveate.core.lagrangian import solve_bounded
from foveate.core.policies import Walk, guard, keep_base, walk_afm, walk_newest, walk_score, walk_topk
from foveate.core.problem import Columns, Forms, Instance, Item, Option, Packing, columns_of
from foveate.core.protocols import PolicyName
from foveate.core.tiers import Thresholds, Tier

EXACT_CELLS = 100_000
"""Largest options x tokens that the dynamic program takes on as a whole: some 10 ms in CPython."""

__all__ = ["Columns", "Forms", "Instance", "Item", "Option", "Packing", "columns_of", "pack", "pack_columns"]


def pack(instance: Instance, budget: int, policy: PolicyName, *, thresholds: Thresholds | None = None) -> Packing:
    """Chooses a tier for every item so that the total cost stays within `budget` tokens.

    Args:
        instance: the items in chronological order; ties go to the earlier one.
        budget: tokens for everything, `fixed_cost` and headers included.
        policy: how to choose (see the module's table).
        thresholds: used by `topk` only; `afm` reads `Item.intended`.

    Raises:
        BudgetError: `fixed_cost` and the pinned items alone exceed the budget.
        ConfigError: the instance contradicts itself.
    """
    return pack_columns(columns_of(instance), budget, policy, thresholds=thresholds)


def pack_columns(columns: Columns, budget: int, policy: PolicyName, *, thresholds: Thresholds | None = None) -> Packing:
    """`pack` on columns."""
    if columns.fixed > budget:
        raise BudgetError(budget, columns.fixed, "the required part")
    match policy:
        case "afm":
            return _walked(columns, budget, walk_afm(columns, budget))
        case "topk":
            return _walked(columns, budget, walk_topk(columns, budget, thresholds or Thresholds()))
        case "newest":
            return _walked(columns, budget, walk_newest(columns, budget))
        case "score":
            return _walked(columns, budget, walk_score(columns, budget))
        case "optimal":
            return _solved(columns, budget)


def total_value(columns: Columns, walk: Walk) -> float:
    """The value of a choice, summed without rounding error."""
    form = walk.form
    return math.fsum(_value(columns, item, tier, form.get(item, 0)) for item, tier in enumerate(walk.choice) if tier)


def _walked(columns: Columns, budget: int, walk: Walk) -> Packing:
    value, cost = total_value(columns, walk), budget - walk.left
    return Packing(tuple(walk.choice), value, cost, None, None, "walk", None, walk.passed, walk.restricted, walk.form)


def _solved(columns: Columns, budget: int) -> Packing:
    """Maximises the total value: by the dynamic program alone where it is small, else by the dual and a core."""
    guarded = guard(columns, budget)
    walk = Walk(columns, budget)
    keep_base(walk, guarded)
    held = [option.value for option in guarded.base.values()] + [columns.value[item] for item in columns.pinned]
    blocks, unit = blocks_of(columns, guarded, walk, budget)
    options = sum(len(row[1]) for block in blocks for row in block.rows)
    if options * walk.left <= EXACT_CELLS:
        _keep(walk, blocks, solve_exactly(blocks, walk.left))
        value, cost = total_value(columns, walk), budget - walk.left
        return Packing(tuple(walk.choice), value, cost, value, 0.0, "dp", None, (), walk.restricted, walk.form)
    solved = solve_bounded(blocks, walk.left)
    _keep(walk, blocks, solved.picks)
    value = total_value(columns, walk)
    bound = max(value, math.fsum(held) + solved.upper_bound * unit) if solved.upper_bound > solved.value else value
    gap = (bound - value) / bound if bound > 0.0 else 0.0
    return Packing(
        tuple(walk.choice),
        value,
        budget - walk.left,
        bound,
        gap,
        "lagrangian",
        solved.price * unit,
        (),
        walk.restricted,
        walk.form,
    )


def _keep(walk: Walk, blocks: Sequence[Block], picks: list[Picks]) -> None:
    """Keeps what a solver picked: picked costs are relative to what the guard had kept."""
    for block, chosen in zip(blocks, picks, strict=True):
        if any(chosen):
            walk.left -= block.header
        for (item, _), pick in zip(block.rows, chosen, strict=True):
            if pick is not None:
                walk.change(item, pick[0], pick[2], pick[3])


def _value(columns: Columns, item: int, tier: Tier, form: int) -> float:
    if tier is Tier.FULL:
        return columns.value[item]
    if tier is Tier.COMPRESSED:
        return next(option.value for option in columns.forms.compressed(item) if option.form == form)
    stub = columns.forms.stub(item)
    return stub.value if stub is not None else 0.0

"""The packing problem in numbers, and its answer. Nothing here knows text.

Choose one tier an item, maximise the total value, keep the total cost within the budget; the first item of a section
that is kept also pays the section's header. `Instance` is the readable form; `Columns` is what the solvers run on,
and what the context builder keeps up to date as a conversation grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from foveate.core.errors import ConfigError
from foveate.core.tiers import Tier


@dataclass(frozen=True, slots=True)
class Option:
    """One way to keep an item: `cost` in tokens, `value` in whatever unit the policy maximises."""

    tier: Tier
    cost: int
    value: float


@dataclass(frozen=True, slots=True)
class Item:
    """An atomic group of turns.

    Attributes:
        options: at most one a tier, FULL among them; DROP (no cost, no value) is always possible and not listed.
        score: what the walking policies order by.
        intended: the tier the policy `afm` aims for.
        critical: under the guard of `newest`, `score` and `optimal` (see `core.policies`).
        pinned: kept FULL.
        section: index into `Instance.header_costs`; None pays no header.
    """

    options: tuple[Option, ...]
    score: float
    intended: Tier = Tier.FULL
    critical: bool = False
    pinned: bool = False
    section: int | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """Items in chronological order, the token cost of each section's header, and what is spent before any item."""

    items: tuple[Item, ...]
    header_costs: tuple[int, ...] = ()
    fixed_cost: int = 0


class Forms(Protocol):
    """The shorter options of items, made only when asked for, since a summary can be costly."""

    def compressed(self, item: int, left: int | None = None) -> Option | None:
        """The COMPRESSED option; with `left`, may answer None unmade where it is not expected to fit that many
        tokens.
        """
        ...

    def stub(self, item: int) -> Option | None:
        """The PLACEHOLDER option."""
        ...

    def worthwhile(self, budget: int) -> Sequence[int]:
        """The items, ascending, whose shorter options `optimal` should weigh under this budget."""
        ...


@dataclass(slots=True)
class Columns:
    """A packing problem as columns, one entry an item.

    Attributes:
        cost: tokens of the item in FULL.
        value: value of the item in FULL, at least 0.
        score: as in `Item`.
        intended: as in `Item`.
        section: as in `Item`, -1 for none.
        header: tokens of each section's header.
        pinned: items kept FULL whose cost and headers are in `fixed` already.
        critical: items under the guard, ascending, none of them pinned.
        fixed: tokens spent before any other item.
        paid: sections whose header is in `fixed` already.
        forms: the shorter options.
        least: tokens under which no option of any item costs; lets walks stop early.
    """

    cost: Sequence[int]
    value: Sequence[float]
    score: Sequence[float]
    intended: Sequence[Tier]
    section: Sequence[int]
    header: Sequence[int]
    pinned: frozenset[int]
    critical: tuple[int, ...]
    fixed: int
    paid: frozenset[int]
    forms: Forms
    least: int = 0


@dataclass(frozen=True, slots=True)
class Packing:
    """What was chosen.

    Attributes:
        choice: the tier of each item.
        value: total value of what was chosen, pinned items included.
        cost: total tokens, `fixed` and headers included.
        upper_bound: no choice within the budget is worth more; None where the policy proves nothing.
        gap: (upper_bound - value) / upper_bound; 0.0 is a proof that nothing better exists; None as above.
        method: how it was found, for instance "walk", "dp" or "lagrangian".
        price: the value a token had to bring at the margin (the multiplier of the budget), where it was found by
            duality.
        left: tokens left when the item was passed over, -1 where the policy never came to weigh it.
        restricted: whether the critical guard left only critical items to choose from.
    """

    choice: tuple[Tier, ...]
    value: float
    cost: int
    upper_bound: float | None
    gap: float | None
    method: str
    price: float | None = None
    left: Sequence[int] = ()
    restricted: bool = False


@dataclass(frozen=True, slots=True)
class ListedForms:
    """Forms that are all at hand, as `Instance` lists them."""

    options: Sequence[dict[Tier, Option]]

    def compressed(self, item: int, left: int | None = None) -> Option | None:
        return self.options[item].get(Tier.COMPRESSED)

    def stub(self, item: int) -> Option | None:
        return self.options[item].get(Tier.PLACEHOLDER)

    def worthwhile(self, budget: int) -> Sequence[int]:
        return [item for item, options in enumerate(self.options) if len(options) > 1]


def columns_of(instance: Instance) -> Columns:
    """The instance as columns.

    Raises:
        ConfigError: an item lacks a FULL option, names a tier twice or DROP, has a negative cost or value, or an
            unknown section.
    """
    options = [_by_tier(item, index, len(instance.header_costs)) for index, item in enumerate(instance.items)]
    pinned = [index for index, item in enumerate(instance.items) if item.pinned]
    section = [-1 if item.section is None else item.section for item in instance.items]
    paid = frozenset(section[index] for index in pinned) - {-1}
    cost = [option[Tier.FULL].cost for option in options]
    return Columns(
        cost=cost,
        value=[option[Tier.FULL].value for option in options],
        score=[item.score for item in instance.items],
        intended=[item.intended for item in instance.items],
        section=section,
        header=instance.header_costs,
        pinned=frozenset(pinned),
        critical=tuple(i for i, item in enumerate(instance.items) if item.critical and not item.pinned),
        fixed=instance.fixed_cost + sum(cost[i] for i in pinned) + sum(instance.header_costs[s] for s in paid),
        paid=paid,
        forms=ListedForms(options),
    )


def _by_tier(item: Item, index: int, sections: int) -> dict[Tier, Option]:
    by_tier = {option.tier: option for option in item.options}
    if Tier.FULL not in by_tier or Tier.DROP in by_tier or len(by_tier) != len(item.options):
        raise ConfigError(f"item {index}: options must hold FULL, no DROP, and each tier once")
    for option in item.options:
        if option.cost < 0 or not 0.0 <= option.value < float("inf"):
            raise ConfigError(
                f"item {index}: {option.tier.name} has cost {option.cost}, value {option.value}: both must be >= 0"
            )
    if item.section is not None and not 0 <= item.section < sections:
        raise ConfigError(f"item {index}: section {item.section} has no header cost: there are {sections}")
    return by_tier

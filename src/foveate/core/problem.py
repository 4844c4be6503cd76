"""The packing problem in numbers, and its answer. Nothing here knows text.

Choose one tier an item, maximise the total value, keep the total cost within the budget; the first item of a section
that is kept also pays the section's header. `Instance` is the readable form; `Columns` is what the solvers run on,
and what the context builder keeps up to date as a conversation grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from foveate.core.errors import ConfigError
from foveate.core.tiers import Tier


@dataclass(frozen=True, slots=True)
class Option:
    """One way to keep an item.

    Attributes:
        tier: what is kept.
        cost: tokens.
        value: in whatever unit the policy maximises.
        form: which of the item's COMPRESSED options this is, counted from 0; 0 for other tiers.
    """

    tier: Tier
    cost: int
    value: float
    form: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """An atomic group of turns.

    Attributes:
        options: FULL once, PLACEHOLDER at most once, any number of COMPRESSED, whose `form` is their place among them;
            DROP (no cost, no value) is always possible and not listed.
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

    def compressed(self, item: int, left: int | None = None) -> Sequence[Option]:
        """The COMPRESSED options, cheapest first, a dearer one worth more; with `left`, those that are not expected
        to fit that many tokens may be missing, unmade.
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
        form: for items that are COMPRESSED, which of their forms was chosen; 0 for those not named.
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
    form: Mapping[int, int] = field(default_factory=dict)


def ascending(options: Iterable[Option]) -> tuple[Option, ...]:
    """The options cheapest first, without those that cost more than another and are worth no more."""
    kept: list[Option] = []
    for option in sorted(options, key=lambda option: (option.cost, -option.value, option.form)):
        if not kept or option.value > kept[-1].value:
            kept.append(option)
    return tuple(kept)


@dataclass(frozen=True, slots=True)
class ListedForms:
    """Forms that are all at hand, as `Instance` lists them."""

    shorter: Sequence[tuple[Option, ...]]
    stubs: Sequence[Option | None]

    def compressed(self, item: int, left: int | None = None) -> Sequence[Option]:
        return self.shorter[item]

    def stub(self, item: int) -> Option | None:
        return self.stubs[item]

    def worthwhile(self, budget: int) -> Sequence[int]:
        return [item for item, stub in enumerate(self.stubs) if stub is not None or self.shorter[item]]


def columns_of(instance: Instance) -> Columns:
    """The instance as columns.

    Raises:
        ConfigError: an item lacks a FULL option, names FULL or PLACEHOLDER twice, or DROP, has a negative cost or
            value, or an unknown section.
    """
    options = [_checked(item, index, len(instance.header_costs)) for index, item in enumerate(instance.items)]
    pinned = [index for index, item in enumerate(instance.items) if item.pinned]
    section = [-1 if item.section is None else item.section for item in instance.items]
    paid = frozenset(section[index] for index in pinned) - {-1}
    cost = [full.cost for full, _, _ in options]
    return Columns(
        cost=cost,
        value=[full.value for full, _, _ in options],
        score=[item.score for item in instance.items],
        intended=[item.intended for item in instance.items],
        section=section,
        header=instance.header_costs,
        pinned=frozenset(pinned),
        critical=tuple(i for i, item in enumerate(instance.items) if item.critical and not item.pinned),
        fixed=instance.fixed_cost + sum(cost[i] for i in pinned) + sum(instance.header_costs[s] for s in paid),
        paid=paid,
        forms=ListedForms([shorter for _, shorter, _ in options], [stub for _, _, stub in options]),
    )


def _checked(item: Item, index: int, sections: int) -> tuple[Option, tuple[Option, ...], Option | None]:
    """FULL, the COMPRESSED options as `Forms` gives them, and the stub."""
    by_tier: dict[Tier, list[Option]] = {tier: [] for tier in Tier}
    for option in item.options:
        by_tier[option.tier].append(option)
    full, stubs = by_tier[Tier.FULL], by_tier[Tier.PLACEHOLDER]
    if len(full) != 1 or len(stubs) > 1 or by_tier[Tier.DROP]:
        raise ConfigError(f"item {index}: options must hold FULL once, PLACEHOLDER at most once, and no DROP")
    for option in item.options:
        if option.cost < 0 or not 0.0 <= option.value < float("inf"):
            raise ConfigError(
                f"item {index}: {option.tier.name} has cost {option.cost}, value {option.value}: both must be >= 0"
            )
    if item.section is not None and not 0 <= item.section < sections:
        raise ConfigError(f"item {index}: section {item.section} has no header cost: there are {sections}")
    shorter = [replace(option, form=form) for form, option in enumerate(by_tier[Tier.COMPRESSED])]
    return full[0], ascending(shorter), stubs[0] if stubs else None

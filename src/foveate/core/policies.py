"""The walking policies: take items in some order, keep each in the best form that fits, pass over what does not.

`afm` and `topk` follow their papers as published. `newest` and `score` (and `optimal`, in `core.knapsack`) keep a
promise the papers do not make, the critical guard: a critical item is never dropped or reduced to a stub while an
item that is neither critical nor pinned is kept. If all critical items fit in full they are kept in full: a shorter
form may lose just the allergen. Else, if their cheapest text forms fit together, these are kept from the start and may
be upgraded; if not even they fit, only critical items are candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foveate.core.problem import Columns, Option
from foveate.core.tiers import Thresholds, Tier


class Walk:
    """The tokens left, the headers paid and the choices made so far."""

    __slots__ = ("_cost", "_header", "_section", "choice", "columns", "form", "left", "paid", "passed", "restricted")

    def __init__(self, columns: Columns, budget: int) -> None:
        self.columns = columns
        self.left = budget - columns.fixed
        self.paid = set(columns.paid)
        self.choice = [Tier.DROP] * len(columns.cost)
        self.form: dict[int, int] = {}
        self.passed = [-1] * len(columns.cost)
        self.restricted = False
        self._cost = columns.cost
        self._section = columns.section
        self._header = columns.header
        for item in columns.pinned:
            self.choice[item] = Tier.FULL

    def full(self, item: int) -> bool:
        """Keeps the item in FULL where it fits."""
        return self._take(item, self._cost[item], Tier.FULL)

    def option(self, item: int, option: Option | None) -> bool:
        """Keeps the item in this form where there is one and it fits."""
        return option is not None and self._take(item, option.cost, option.tier, option.form)

    def best(self, item: int, options: Sequence[Option]) -> bool:
        """Keeps the item in the last of these forms, cheapest first, that fits."""
        return any(self.option(item, option) for option in reversed(options))

    def change(self, item: int, tokens: int, tier: Tier, form: int) -> None:
        """Keeps the item in another form than it has, for so many further tokens."""
        self.left -= tokens
        self.choice[item] = tier
        self.form.pop(item, None)
        if form:
            self.form[item] = form

    def pass_over(self, item: int) -> None:
        self.passed[item] = self.left

    def _take(self, item: int, cost: int, tier: Tier, form: int = 0) -> bool:
        section = self._section[item]
        if section >= 0 and section not in self.paid:
            if cost + self._header[section] > self.left:
                return False
            self.paid.add(section)
            self.left -= self._header[section]
        elif cost > self.left:
            return False
        self.change(item, cost, tier, form)
        return True


@dataclass(frozen=True, slots=True)
class Guard:
    """What the critical guard demands of a policy.

    Attributes:
        base: the form each critical item is kept in from the start; empty where they do not all fit.
        candidates: the items that may (still) be kept or upgraded, ascending.
        restricted: whether these are the critical items alone.
    """

    base: dict[int, Option]
    candidates: Sequence[int]
    restricted: bool = False


def guard(columns: Columns, budget: int) -> Guard:
    """Applies the critical guard (see the module's text)."""
    free = [item for item in range(len(columns.cost)) if item not in columns.pinned] if columns.pinned else None
    everyone = range(len(columns.cost)) if free is None else free
    if not columns.critical:
        return Guard({}, everyone)
    sections = {columns.section[item] for item in columns.critical} - columns.paid - {-1}
    left = budget - columns.fixed - sum(columns.header[section] for section in sections)
    if sum(columns.cost[item] for item in columns.critical) <= left:
        return Guard({item: _full(columns, item) for item in columns.critical}, everyone)
    base = {item: _cheapest_text(columns, item) for item in columns.critical}
    if sum(option.cost for option in base.values()) <= left:
        return Guard(base, everyone)
    return Guard({}, columns.critical, restricted=True)


def walk_afm(columns: Columns, budget: int) -> Walk:
    """AFM section 3.3: oldest first; from the intended tier down to the first form that fits, else dropped.

    A stub is tried only where it is cheaper than the text; where it is not, the text itself stands in, which costs no
    more.
    """
    walk = Walk(columns, budget)
    forms = columns.forms
    for item in range(len(columns.cost)):
        if item in columns.pinned:
            continue
        if walk.left < columns.least:
            walk.pass_over(item)
            continue
        intended = columns.intended[item]
        if intended is Tier.FULL and walk.full(item):
            continue
        if intended >= Tier.COMPRESSED and walk.best(item, forms.compressed(item)):
            continue
        stub = forms.stub(item)
        if not (walk.full(item) if stub is None else walk.option(item, stub)):
            walk.pass_over(item)
    return walk


def walk_topk(columns: Columns, budget: int, thresholds: Thresholds) -> Walk:
    """Algorithm 1 of the adaptive compression paper, lines 5 to 7 and 10.

    Candidates in FULL where z > tau_s and COMPRESSED where tau_l < z <= tau_s, by descending z, ties to the earlier
    turn; what does not fit, or has no shorter form, is passed over.
    """
    walk = Walk(columns, budget)
    score = columns.score
    for item in sorted(range(len(score)), key=score.__getitem__, reverse=True):
        if item in columns.pinned:
            continue
        if score[item] <= thresholds.mid:
            break
        if score[item] > thresholds.high:
            taken = walk.full(item)
        else:
            taken = walk.left >= columns.least and walk.best(item, columns.forms.compressed(item, walk.left))
        if not taken:
            walk.pass_over(item)
    return walk


def walk_score(columns: Columns, budget: int) -> Walk:
    """Descending score, ties to the earlier turn: FULL, else the best COMPRESSED form that fits, else passed over
    (EVALUATION section 11).
    """
    score = columns.score
    guarded = guard(columns, budget)
    return _walk_down(columns, budget, guarded, sorted(guarded.candidates, key=score.__getitem__, reverse=True))


def walk_newest(columns: Columns, budget: int) -> Walk:
    """Newest first: FULL, else COMPRESSED, else passed over."""
    guarded = guard(columns, budget)
    return _walk_down(columns, budget, guarded, sorted(guarded.candidates, reverse=True))


def keep_base(walk: Walk, guarded: Guard) -> None:
    """Keeps what the guard demands."""
    walk.restricted = guarded.restricted
    for item, option in guarded.base.items():
        walk.option(item, option)


def _walk_down(columns: Columns, budget: int, guarded: Guard, order: Iterable[int]) -> Walk:
    walk = Walk(columns, budget)
    keep_base(walk, guarded)
    base, least, compressed = guarded.base, columns.least, columns.forms.compressed
    for item in order:
        if item in base:
            _upgrade(walk, item, base[item])
        elif walk.full(item):
            continue
        elif walk.left < least or not walk.best(item, compressed(item, walk.left)):
            walk.pass_over(item)
    return walk


def _upgrade(walk: Walk, item: int, base: Option) -> None:
    if base.tier is Tier.FULL:
        return
    for option in (_full(walk.columns, item), *reversed(walk.columns.forms.compressed(item))):
        if base.cost < option.cost <= base.cost + walk.left:
            walk.change(item, option.cost - base.cost, option.tier, option.form)
            return


def _cheapest_text(columns: Columns, item: int) -> Option:
    full = _full(columns, item)
    return next((option for option in columns.forms.compressed(item) if option.cost < full.cost), full)


def _full(columns: Columns, item: int) -> Option:
    return Option(Tier.FULL, columns.cost[item], columns.value[item])

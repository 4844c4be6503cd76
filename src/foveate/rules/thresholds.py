"""tau_s(n) and tau_l(n) of Eq. 2, learned: Algorithm 1's rule with thresholds that keep most evidence at a mean cost.

The rule keeps a turn FULL above tau_s, COMPRESSED between tau_l and tau_s, and nothing of it below. The paper says that
the thresholds adapt with the length of the context, and not how. Here logit tau_l(n) = level + rate * log(n / 64) and
logit tau_s(n) = logit tau_l(n) + gap. For a rate and a gap there is one level at which the rule's mean cost is what may
be spent: the multiplier of that constraint, found by bisection. Rate and gap are the best of a grid by the evidence
that is then kept, the least ones where several are equally good.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foveate.core.errors import DataError
from foveate.core.problem import Columns
from foveate.core.tiers import REFERENCE_LENGTH, OrdinalThresholds

Floats = NDArray[np.float64]

RATES = tuple(sorted((k / 4 for k in range(-8, 9)), key=abs))
GAPS = (0.0, 0.5, 1.0, 2.0)
LOWEST, HIGHEST = -40.0, 40.0
_HALVINGS = 60
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Case:
    """One question over one history, as Algorithm 1 sees it, and what it needs.

    Attributes:
        turns: length of the history.
        logit: (items,) log odds that the item is needed.
        full, compressed: (items,) tokens of the forms; `compressed` is infinite where there is no such form.
        carried: (items,) P(the compressed form carries what is needed), 0 where there is none.
        section: (items,) whose header is paid with the first item kept, -1 for none.
        header: tokens of each section's header.
        weight: (items,) share of the question's evidence that the item is; sums to 1.
    """

    turns: int
    logit: Floats
    full: Floats
    compressed: Floats
    carried: Floats
    section: NDArray[np.int64]
    header: Floats
    weight: Floats


def case_of(columns: Columns, turns: int, needed: Collection[int]) -> Case:
    """The case of a packing problem whose scores are probabilities.

    Args:
        columns: what `ContextBuilder.problem` gives for the question.
        turns: length of the history.
        needed: the items that hold evidence, at least one.

    Raises:
        DataError: no item is needed.
    """
    if not needed:
        raise DataError("a question without evidence teaches no thresholds: leave it out")
    items = range(len(columns.cost))
    score = np.clip(np.array(columns.score), _TINY, 1 - _TINY)
    forms = [next(reversed(columns.forms.compressed(item)), None) for item in items]
    worth = zip(forms, columns.value, strict=True)
    weight = np.zeros(len(columns.cost))
    weight[sorted(needed)] = 1 / len(needed)
    return Case(
        turns=turns,
        logit=np.log(score / (1 - score)),
        full=np.array(columns.cost, dtype=np.float64),
        compressed=np.array([np.inf if form is None else form.cost for form in forms]),
        carried=np.array([form.value / value if form is not None and value > 0.0 else 0.0 for form, value in worth]),
        section=np.array(columns.section, dtype=np.int64),
        header=np.array(columns.header, dtype=np.float64),
        weight=weight,
    )


@dataclass(frozen=True, slots=True)
class Fitted:
    """Thresholds, and the mean cost and mean share of the evidence kept that they give on what they were fitted on."""

    thresholds: OrdinalThresholds
    tokens: float
    kept: float


def fit_thresholds(
    cases: Sequence[Case], tokens: float, rates: Sequence[float] = RATES, gaps: Sequence[float] = GAPS
) -> Fitted:
    """The thresholds that keep most evidence at a mean cost of at most `tokens`.

    Args:
        cases: questions over histories of different lengths; with one length the rate means nothing.
        tokens: mean over the cases, headers included.
        rates, gaps: what to choose from; `rates=(0.0,)` gives thresholds that do not depend on the length.

    Raises:
        DataError: no case.
    """
    if not cases:
        raise DataError("no question to learn thresholds from: give conversations whose questions have evidence")
    best: Fitted | None = None
    for rate in rates:
        for gap in gaps:
            rule = _Rule(cases, rate, gap)
            level = rule.level(tokens)
            found = Fitted(OrdinalThresholds(level, rate, gap), rule.cost(level), rule.kept(level))
            if best is None or found.kept > best.kept + _TINY:
                best = found
    assert best is not None
    return best


def spends(cases: Sequence[Case], thresholds: OrdinalThresholds) -> tuple[float, float]:
    """Mean tokens and mean share of the evidence kept under given thresholds."""
    rule = _Rule(cases, thresholds.rate, thresholds.gap)
    return rule.cost(thresholds.level), rule.kept(thresholds.level)


class _Rule:
    """Algorithm 1's rule over all cases for one rate and gap: what it costs and keeps, by the level.

    An item's key is its log odds less rate * log(n / 64): it is FULL above level + gap, COMPRESSED above the level.
    Sums over the items above a level are read off cumulative sums over the sorted keys.
    """

    def __init__(self, cases: Sequence[Case], rate: float, gap: float) -> None:
        key = [case.logit - rate * np.log(max(1, case.turns) / REFERENCE_LENGTH) for case in cases]
        # Without a compressed form an item is kept above level + gap only.
        least = [np.where(np.isinf(c.compressed), k - gap, k) for c, k in zip(cases, key, strict=True)]
        keys, opened = np.concatenate(key), np.concatenate(least)
        full, weight = (np.concatenate([getattr(c, name) for c in cases]) for name in ("full", "weight"))
        short = np.concatenate([c.compressed for c in cases])
        formless = np.isinf(short)
        first_cost = np.where(formless, full, short)
        first_gain = weight * np.where(formless, 1.0, np.concatenate([c.carried for c in cases]))
        headers = [_header_keys(case, own) for case, own in zip(cases, least, strict=True)]
        self._count, self._gap = len(cases), gap
        # A form's cost from its own level on, and what FULL takes and keeps more from level + gap on.
        self._costs = [
            _Above(opened, first_cost),
            _Above(keys - gap, full - first_cost),
            _Above(np.concatenate([k for k, _ in headers]), np.concatenate([cost for _, cost in headers])),
        ]
        self._gains = [_Above(opened, first_gain), _Above(keys - gap, weight - first_gain)]

    def cost(self, level: float) -> float:
        return sum(part.sum(level) for part in self._costs) / self._count

    def kept(self, level: float) -> float:
        return sum(part.sum(level) for part in self._gains) / self._count

    def level(self, tokens: float) -> float:
        """The lowest level whose mean cost is at most `tokens`, up to the bisection's last step."""
        if self.cost(LOWEST) <= tokens:
            return LOWEST
        low, high = LOWEST, HIGHEST
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.cost(middle) > tokens else (low, middle)
        return high


class _Above:
    """Sums of values over the keys that lie above a level."""

    def __init__(self, keys: Floats, values: Floats) -> None:
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._sums = np.append(np.cumsum(values[order][::-1])[::-1], 0.0)

    def sum(self, level: float) -> float:
        return float(self._sums[np.searchsorted(self._keys, level, side="right")])


def _header_keys(case: Case, opened: Floats) -> tuple[Floats, Floats]:
    """The level below which each section's header is paid, and its tokens."""
    highest = np.full(len(case.header), -np.inf)
    dated = case.section >= 0
    np.maximum.at(highest, case.section[dated], opened[dated])
    return highest, case.header

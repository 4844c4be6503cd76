"""How much of the allowed budget a question gets: rules behind one protocol, and how their one scalar is learned.

A rule looks at what the packer could buy for a question (`Offer`: scores, token costs, headers) and says how many of
the `b_max` tokens allowed it may spend. It never sees labels, and it never raises a budget.

| rule | tokens | scalar |
|---|---|---|
| `FixedBudget` | the same for every question | tokens |
| `DynamicBudget` | Eq. 3: B_max - lambda H, as printed or as the paper's prose has it | lambda |
| `PriceBudget` | what it costs to take all that is worth its price | nu, the price of a token |
| `NeedBudget` | a factor times the expected tokens of the needed turns (as ATACompressor predicts a length) | factor |
| `CoverageBudget` | the least that holds a share of the expected evidence | rho |

Why a price. Let V_q(B) be the value that question q gets out of B tokens, and let the budgets of Q questions share a
mean. For any price nu >= 0, budgets B_q that maximise V_q(B) - nu B, each question by itself, are the best of all that
spend no more: for other budgets B'_q with sum B'_q <= sum B_q,

    sum V_q(B'_q) <= sum V_q(B_q) - nu (sum B_q - sum B'_q) <= sum V_q(B_q),

the first step since each B_q maximises its own term, the second since nu >= 0 (Everett 1963, generalised Lagrange
multipliers; V need not be concave). So a further token has the same worth in every question, and one number is to be
learned: the nu at which the mean is met. Fixed budgets satisfy this only where all questions have the same V.
With calibrated scores the sum of the probabilities of the kept turns is the expected number of needed turns kept, and
V - nu B falls apart into turns and sections (`core.lagrangian`), which `PriceBudget` solves exactly.

References: H. Everett, Generalized Lagrange Multiplier Method for Solving Problems of Optimum Allocation of Resources,
Operations Research 11 (1963).

Shapes:  n items of one conversation, S sections.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from foveate.core.errors import ConfigError
from foveate.core.problem import Columns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BudgetSign = Literal["paper", "prose"]
Worth = Literal["turns", "share"]

_EDGE = 1e-9
_HALVINGS = 80


@dataclass(frozen=True, slots=True)
class Offer:
    """What the packer could buy for one question.

    Attributes:
        score: (n,) score of each item; a probability where the scorer is calibrated.
        cost: (n,) tokens of each item in full.
        section: (n,) section of each item, -1 for none.
        header: (S,) tokens that the first kept item of a section pays.
    """

    score: Floats
    cost: Floats
    section: Ints
    header: Floats

    @classmethod
    def of(
        cls,
        score: Sequence[float],
        cost: Sequence[float],
        section: Sequence[int] | None = None,
        header: Sequence[float] = (),
    ) -> Offer:
        """An offer from plain sequences; without `section` nothing pays a header.

        Raises:
            ConfigError: the lengths differ, or a section has no header.
        """
        sections = [-1] * len(score) if section is None else section
        if not len(score) == len(cost) == len(sections):
            raise ConfigError(f"{len(score)} scores, {len(cost)} costs, {len(sections)} sections: give one each a turn")
        if max(sections, default=-1) >= len(header):
            raise ConfigError(f"section {max(sections)} has no header cost: there are {len(header)}")
        return cls(
            np.asarray(score, dtype=np.float64),
            np.asarray(cost, dtype=np.float64),
            np.asarray(sections, dtype=np.int64),
            np.asarray(header, dtype=np.float64),
        )


def offer_of(columns: Columns) -> Offer:
    """What a packing problem offers beyond what it has to keep: pinned items are left out, paid headers are free."""
    free = [item for item in range(len(columns.cost)) if item not in columns.pinned]
    return Offer.of(
        [columns.score[item] for item in free],
        [columns.cost[item] for item in free],
        [columns.section[item] for item in free],
        [0 if section in columns.paid else cost for section, cost in enumerate(columns.header)],
    )


def critical_tokens(columns: Columns) -> int:
    """What all items under the critical guard take in full, beyond what has to be kept anyway."""
    sections = {columns.section[item] for item in columns.critical} - columns.paid - {-1}
    return sum(columns.cost[item] for item in columns.critical) + sum(columns.header[s] for s in sections)


@runtime_checkable
class BudgetRule(Protocol):
    """Says how many tokens a question may spend on its history.

    Attributes:
        probabilities: whether it needs scores that are calibrated probabilities.
    """

    @property
    def probabilities(self) -> bool: ...

    def tokens(self, offer: Offer, b_max: int) -> int:
        """The budget to use, 0 to `b_max`; the same for the same offer."""
        ...


@dataclass(frozen=True, slots=True)
class FixedBudget:
    """The same budget for every question: what the others are judged against."""

    size: int

    def __post_init__(self) -> None:
        _check("a fixed budget", size=self.size)

    @property
    def probabilities(self) -> bool:
        return False

    def tokens(self, offer: Offer, b_max: int) -> int:
        """The size, `b_max` at most."""
        return min(b_max, self.size)


@dataclass(frozen=True, slots=True)
class CappedBudget:
    """Another rule that is told a smaller `b_max`: the B_max of Eq. 3 apart from what the call allows."""

    rule: BudgetRule
    cap: int

    def __post_init__(self) -> None:
        _check("a capped budget", cap=self.cap)

    @property
    def probabilities(self) -> bool:
        return self.rule.probabilities

    def tokens(self, offer: Offer, b_max: int) -> int:
        """The rule's budget under the lower of both limits."""
        return self.rule.tokens(offer, min(b_max, self.cap))


def softmax(z: Sequence[float] | Floats) -> Floats:
    """Probabilities proportional to exp(z); empty for no scores."""
    values = np.asarray(z, dtype=np.float64)
    if not len(values):
        return values
    e = np.exp(values - values.max())
    return e / e.sum()


def entropy(p: Sequence[float] | Floats) -> float:
    """H = - sum p log p, in nats."""
    values = np.asarray(p, dtype=np.float64)
    positive = values[values > 0]
    return max(0.0, -float((positive * np.log(positive)).sum()))


def logits(p: Floats) -> Floats:
    """(n,) probabilities -> (n,) log odds, finite at 0 and 1."""
    inside = np.clip(p, _EDGE, 1 - _EDGE)
    return np.log(inside) - np.log1p(-inside)


@dataclass(frozen=True, slots=True)
class DynamicBudget:
    """Eq. 3: the budget of a call from the entropy H (nats) of softmax(z) over n turns.

    `paper`: B = B_max - lam H, as printed: uncertainty shrinks the budget. `prose`: B = B_max - lam (log n - H):
    uncertainty grows it, as the paper's text says, and it never exceeds B_max. With `normalised`, H is divided by log n
    and lies in [0, 1], so lam is the most that can be taken away, in tokens. The result is floored and clamped to
    [b_min, B_max].

    z is the score of Eq. 6 where there is one. Calibrated probabilities are no z: all of them lie within 1 of each
    other, so their softmax is nearly uniform and H nearly log n whatever the question. With `log_odds` z is the
    probability's log odds, the scale on which a trained scorer adds up its evidence, and softmax(z) the share of each
    turn in the sum of the odds.

    Attributes:
        lam: lambda, tokens a nat (or tokens in all, normalised), >= 0.
        sign: which of the two.
        normalised: whether H is divided by log n.
        b_min: the least budget.
        log_odds: whether the scores are probabilities, to be taken as log odds.
    """

    lam: float = 64.0
    sign: BudgetSign = "paper"
    normalised: bool = False
    b_min: int = 0
    log_odds: bool = False

    def __post_init__(self) -> None:
        _check("a dynamic budget", lam=self.lam, b_min=self.b_min)

    @property
    def probabilities(self) -> bool:
        return self.log_odds

    def from_entropy(self, h: float, n: int, b_max: int) -> int:
        """Eq. 3 for a given entropy over n turns."""
        most = math.log(n) if n > 1 else 0.0
        uncertain = h if self.sign == "paper" else most - h
        if self.normalised:
            uncertain = uncertain / most if most else 0.0
        return _within(b_max - self.lam * max(0.0, uncertain), self.b_min, b_max)

    def budget(self, z: Sequence[float] | Floats, b_max: int) -> int:
        """Eq. 3 for the scores z of the turns."""
        return self.from_entropy(entropy(softmax(z)), len(z), b_max)

    def tokens(self, offer: Offer, b_max: int) -> int:
        """Eq. 3 for the scores of the offer, or their log odds."""
        return self.budget(logits(offer.score) if self.log_odds else offer.score, b_max)


def dynamic_budget(
    z: Sequence[float], b_max: int, lam: float, sign: BudgetSign = "paper", *, normalised: bool = False, b_min: int = 0
) -> int:
    """`DynamicBudget.budget` as one call."""
    return DynamicBudget(lam=lam, sign=sign, normalised=normalised, b_min=b_min).budget(z, b_max)


@dataclass(frozen=True, slots=True)
class PriceBudget:
    """What it costs to take every item that is worth its price, at one price of a token for all questions.

    An item is worth its tokens where value > nu cost; a section is opened where what its items are worth beyond their
    own price pays its header. See the module's text for why this is the best way to spend a mean budget.

    The value is the probability that the item is needed (`turns`: the packing then maximises the expected number of
    needed turns kept over all questions), or that over the number of needed items expected in the question (`share`:
    the expected share of each question's evidence, which is what evidence recall averages).

    Attributes:
        price: nu, value a token, > 0.
        worth: which value.
        b_min: the least budget.
    """

    price: float
    worth: Worth = "turns"
    b_min: int = 0

    def __post_init__(self) -> None:
        _check("a price budget", price=self.price, b_min=self.b_min)

    @property
    def probabilities(self) -> bool:
        return True

    def tokens(self, offer: Offer, b_max: int) -> int:
        """The tokens of the choice that maximises value - nu tokens."""
        value = offer.score if self.worth == "turns" else shares(offer.score)
        gain = np.maximum(value - self.price * offer.cost, 0.0)
        alone = offer.section < 0
        inside = np.where(alone, len(offer.header), offer.section)
        worth = np.bincount(inside, weights=gain, minlength=len(offer.header) + 1)[:-1]
        opened = np.append(worth > self.price * offer.header, True)
        spent = offer.cost[(gain > 0.0) & opened[inside]].sum() + offer.header[opened[:-1]].sum()
        return _within(float(spent), self.b_min, b_max)


def shares(p: Floats) -> Floats:
    """(n,) probabilities -> (n,) each over their sum: the expected share of the needed items that each is."""
    total = float(p.sum())
    return p / total if total > 0.0 else p


@dataclass(frozen=True, slots=True)
class NeedBudget:
    """A factor times the tokens that the needed items are expected to take, sum_i p_i c_i.

    ATACompressor's idea, a budget from a predicted length of what is relevant; here the prediction is the scorer's.

    Attributes:
        factor: >= 0.
        b_min: the least budget.
    """

    factor: float
    b_min: int = 0

    def __post_init__(self) -> None:
        _check("a need budget", factor=self.factor, b_min=self.b_min)

    @property
    def probabilities(self) -> bool:
        return True

    def tokens(self, offer: Offer, b_max: int) -> int:
        """The factor times the expected tokens; headers are left to the factor."""
        return _within(self.factor * float(offer.score @ offer.cost), self.b_min, b_max)


@dataclass(frozen=True, slots=True)
class CoverageBudget:
    """The tokens of the items of highest probability that together hold a share rho of the sum of all probabilities.

    Attributes:
        rho: the expected recall aimed at, 0 to 1.
        b_min: the least budget.
    """

    rho: float
    b_min: int = 0

    def __post_init__(self) -> None:
        _check("a coverage budget", rho=self.rho, b_min=self.b_min)
        if self.rho > 1:
            raise ConfigError(f"a coverage budget has rho={self.rho}: give a share, 0 to 1")

    @property
    def probabilities(self) -> bool:
        return True

    def tokens(self, offer: Offer, b_max: int) -> int:
        """Items by falling probability, headers included, up to the first that reaches the share."""
        if not len(offer.score):
            return _within(0.0, self.b_min, b_max)
        order = np.argsort(-offer.score, kind="stable")
        held = np.cumsum(offer.score[order])
        first = np.zeros(len(order), dtype=bool)
        first[np.unique(offer.section[order], return_index=True)[1]] = True
        section = offer.section[order]
        header = np.where(first & (section >= 0), np.append(offer.header, 0.0)[section], 0.0)
        spent = np.cumsum(offer.cost[order] + header)
        last = min(int(np.searchsorted(held, self.rho * held[-1])), len(order) - 1)
        return _within(float(spent[last]) if self.rho > 0.0 else 0.0, self.b_min, b_max)


def mean_tokens(rule: BudgetRule, offers: Sequence[Offer], b_max: int) -> float:
    """The mean budget that a rule gives.

    Raises:
        ConfigError: there is no offer.
    """
    if not offers:
        raise ConfigError("there is no question to average a budget over: give at least one")
    return math.fsum(rule.tokens(offer, b_max) for offer in offers) / len(offers)


def fit_scalar(
    make: Callable[[float], BudgetRule],
    offers: Sequence[Offer],
    target: float,
    b_max: int,
    *,
    low: float,
    high: float,
    tolerance: float = 0.25,
) -> float:
    """The scalar at which a rule's mean budget meets the target, by bisection on its logarithm.

    This is the dual variable of the constraint "mean cost = target": the mean is monotone in it, so bisection finds
    what dual ascent (`learned.objective.token.DualMultiplier`) would converge to. Where no scalar between `low` and
    `high` meets the target, the nearer end is what comes out: a rule that cannot spend that much is not an error, and
    `mean_tokens` says what it spends.

    Args:
        make: scalar to rule; its mean budget rises or falls with the scalar throughout.
        offers: of questions that are not tested on.
        target: mean tokens wanted.
        b_max: tokens allowed.
        low, high: the scalars to search between, both positive.
        tolerance: tokens of the mean that need not be met.

    Raises:
        ConfigError: no offer, or no such interval.
    """
    if not 0 < low < high:
        raise ConfigError(f"a scalar between {low} and {high}: give 0 < low < high")
    rising = mean_tokens(make(high), offers, b_max) >= mean_tokens(make(low), offers, b_max)
    middle = math.sqrt(low * high)
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        excess = mean_tokens(make(middle), offers, b_max) - target
        if abs(excess) <= tolerance:
            break
        if (excess < 0) is rising:
            low = middle
        else:
            high = middle
    return middle


def _within(tokens: float, b_min: int, b_max: int) -> int:
    """Whole tokens in [b_min, b_max]; `b_max` wins."""
    return min(b_max, max(b_min, math.floor(min(tokens, float(b_max)))))


def _check(what: str, **values: float) -> None:
    """Raises ConfigError where a value is below 0 or no number."""
    for name, value in values.items():
        if not value >= 0:
            raise ConfigError(f"{what} has {name}={value}: it must be >= 0")
